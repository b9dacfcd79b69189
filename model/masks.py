"""Who may look where: the paper's masks, and what a `Change` makes of them.

A mask is True where a query may look. Shapes: B batch, H heads, Q queries, K keys, S source, T target.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from model.attention import Rule
from model.config import PAD, Config
from model.trace import NEUTRAL, Change, Head, Kind


class Rules(NamedTuple):
    """Everything that governs one pass: a rule for each layer of each kind, and the positions."""

    encoder: tuple[Rule, ...]
    decoder: tuple[Rule, ...]
    cross: tuple[Rule, ...]
    source_positions: Tensor | None  # [S]; None adds no positions
    target_positions: Tensor | None  # [T]


def padding_mask(ids: Tensor) -> Tensor:
    """[B, K] -> [B, 1, 1, K]: no query may look at a pad."""
    return (ids != PAD)[:, None, None, :]


def look_ahead_mask(size: int) -> Tensor:
    """[1, 1, T, T]: position t may look at 0..t, itself included (section 3.2.3)."""
    return torch.ones(size, size, dtype=torch.bool).tril()[None, None]


def rules(source: Tensor, target: Tensor, config: Config, change: Change = NEUTRAL) -> Rules:
    """The rules for source ids [B, S] and target ids [B, T]; the paper's where `change` is neutral."""
    change.check(config.n_layers, config.n_heads)
    source_padding, target_padding = padding_mask(source), padding_mask(target)
    look_ahead = look_ahead_mask(target.size(1)).to(target.device)
    layers = range(config.n_layers)

    def rule(kind: Kind, layer: int, queries: int, *masks: tuple[Tensor, bool]) -> Rule:
        allowed = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=source.device)
        for mask, on in masks:
            allowed = allowed & mask if on else allowed.expand_as(allowed & mask)
        allowed = _block(allowed, kind, layer, queries, config.n_heads, change)
        removed, uniform = (
            _heads(chosen, kind, layer, config.n_heads) for chosen in (change.removed, change.uniform)
        )
        keep = None if removed is None else (~removed).float()
        return Rule(allowed, keep, change.scale, uniform, change.residual, change.norm)

    return Rules(
        encoder=tuple(
            rule("encoder", i, source.size(1), (source_padding, change.source_padding.on(i))) for i in layers
        ),
        decoder=tuple(
            rule(
                "decoder",
                i,
                target.size(1),
                (target_padding, change.target_padding.on(i)),
                (look_ahead, change.look_ahead.on(i)),
            )
            for i in layers
        ),
        cross=tuple(
            rule("cross", i, target.size(1), (source_padding, change.cross_padding.on(i))) for i in layers
        ),
        source_positions=_positions(source, change),
        target_positions=_positions(target, change),
    )


def _block(allowed: Tensor, kind: Kind, layer: int, queries: int, n_heads: int, change: Change) -> Tensor:
    """Blocks single cells. Only a changed mask is spelled out for every head and query."""
    cells = [cell for cell in change.blocked if cell.kind == kind and cell.layer in (None, layer)]
    if not cells:
        return allowed
    keys = allowed.size(-1)
    allowed = allowed.expand(-1, n_heads, queries, keys).clone()
    for cell in cells:
        if cell.query < queries and cell.key < keys:
            head = slice(None) if cell.head is None else cell.head
            allowed[:, head, cell.query, cell.key] = False
    return allowed


def _heads(chosen: frozenset[Head], kind: Kind, layer: int, n_heads: int) -> Tensor | None:
    """[H, 1, 1]: True for the chosen heads of one attention; None where none is."""
    here = [head.head for head in chosen if (head.kind, head.layer) == (kind, layer)]
    if not here:
        return None
    flags = torch.zeros(n_heads, 1, 1, dtype=torch.bool)
    flags[here] = True
    return flags


def _positions(ids: Tensor, change: Change) -> Tensor | None:
    """Positions [T]. A shuffle permutes the real pieces of the first sentence; pads keep their place."""
    if change.positions == "off":
        return None
    positions = torch.arange(ids.size(1), device=ids.device)
    if change.positions == "shuffled":
        real = int((ids[0] != PAD).sum())
        positions[:real] = torch.from_numpy(np.random.default_rng(change.seed).permutation(real))
    return positions + change.shift
