"""Sinusoidal positional encoding (Vaswani et al. 2017, section 3.5)."""

import math

import torch
from torch import Tensor


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """Encode positions [T] (any real numbers) as [T, d_model] in float32.

    PE(p, 2i) = sin(p / 10000^(2i/d_model)) and PE(p, 2i+1) = cos of the same angle, so that each
    pair of dimensions is a point on a circle and PE(p + k) is PE(p) turned by k times a fixed angle.
    """
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    frequency = torch.exp(pair * (-math.log(10_000.0) / d_model))
    angle = positions.to(torch.float64)[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).to(torch.float32)
