"""What Add & Norm does: the sizes of what goes forward and of what comes back, and two ways to normalise.

Shapes: B batch, L layers, S source positions, T target positions, D d_model, N positions of a whole batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from model.config import END, START
from model.masks import rules
from model.trace import Change, Flags, Floats
from model.transformer import Transformer

EPS = 1e-5  # added to a variance, as in torch


@dataclass(frozen=True, eq=False)
class Flow:
    """Sizes at each height of the model: what enters layer 1 first, then what leaves each layer."""

    encoder: Floats  # (L + 1,)  mean norm of the rows x
    decoder: Floats  # (L + 1,)
    encoder_gradient: Floats  # (L + 1,)  norm of the loss's gradient by all of x
    decoder_gradient: Floats  # (L + 1,)
    loss: float  # mean of -log p over the pieces that come out


def flow(model: Transformer, source: Sequence[int], target: Sequence[int], change: Change) -> Flow:
    """One pass forward and one back under `change`, for source ids with </s> and target ids from <s> on.

    The weights are left alone: the gradient is by what flows between the layers, which the weights' own
    gradients are made of. The ids are all that is read: `change` appends no pads here.
    ValueError where they do not fit.
    """
    source_ids, target_ids = torch.tensor([[*source]]), torch.tensor([[*target]])
    if source_ids.numel() == 0 or target_ids.numel() == 0 or target_ids[0, 0] != START:
        raise ValueError("the source must hold a piece, the target must begin with <s>")
    out = torch.tensor([*target[1:], END])
    with torch.inference_mode(False), torch.enable_grad():
        governed = rules(source_ids, target_ids, model.config, change)
        x = model.embed(source_ids, governed.source_positions).sum.detach().requires_grad_()
        read = [x]
        for layer, rule in zip(model.encoder, governed.encoder, strict=True):
            x = layer(x, rule)[0]
            read.append(x)
        memory = model.keys_values(x)
        y = model.embed(target_ids, governed.target_positions).sum.detach().requires_grad_()
        written = [y]
        for i, decoder_layer in enumerate(model.decoder_layers):
            y = decoder_layer(y, None, memory[i], governed.decoder[i], governed.cross[i])[0]
            written.append(y)
        loss = cross_entropy(model.logits(y)[0], out)
        gradients = torch.autograd.grad(loss, [*read, *written], allow_unused=True, materialize_grads=True)
    back = _sizes(gradients)
    return Flow(_rows(read), _rows(written), back[: len(read)], back[len(read) :], float(loss.detach()))


def _rows(found: Sequence[Tensor]) -> Floats:
    """The mean norm of the rows of each [1, T, D]."""
    return np.array([each.detach()[0].norm(dim=-1).mean() for each in found], np.float32)


def _sizes(found: Sequence[Tensor]) -> Floats:
    return np.array([each.norm() for each in found], np.float32)


def layer_norm(x: Floats) -> Floats:
    """x (N, D) with mean 0 and variance 1 along each row: one position, all dimensions (Ba et al. 2016)."""
    return _normal(x, x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True))


def batch_norm(x: Floats, counted: Flags | None = None) -> Floats:
    """x (N, D) with mean 0 and variance 1 down each column: one dimension, all positions of the batch.

    As in training (Ioffe and Szegedy 2015). Mean and variance are of the rows that `counted` (N,) flags.
    """
    among = x if counted is None else x[counted]
    return _normal(x, among.mean(axis=0), among.var(axis=0))


def _normal(x: Floats, mean: Floats, variance: Floats) -> Floats:
    return ((x - mean) / np.sqrt(variance + EPS)).astype(np.float32)
