"""The decoder one piece at a time: what `Transformer.decode` computes, with only keys and values kept.

A step of one sentence is some thirty small products, and what surrounds them can cost as much as they do. So
what stays the same is prepared once a translation; no module, no record and no mask that hides nothing is
in the way.
Shapes: B batch, H heads, S source positions, T target positions, K keys, D d_model, d = D / H, V vocabulary.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from model.attention import KeysValues, Rule, attend_fused
from model.layers import AddNorm, DecoderLayer
from model.masks import Rules, look_ahead_mask
from model.positions import sinusoids
from model.transformer import Transformer

Affine = tuple[Tensor, Tensor]  # a weight and a shift


class _Layer(NamedTuple):
    """The parameters of one decoder layer, in the order of their use."""

    own: Affine  # W_Q, W_K, W_V
    own_output: Affine
    norm_1: Affine
    asked: Affine  # W_Q of the cross-attention
    asked_output: Affine
    norm_2: Affine
    w_1: Affine
    w_2: Affine
    norm_3: Affine


class Steps:
    """A translation under way: called with the pieces [B] that go in, it returns the next logits [B, V]."""

    def __init__(
        self, model: Transformer, memory: Sequence[KeysValues], rules: Rules, batch: int, room: int
    ) -> None:
        """Ready for up to `room` pieces of `batch` sentences, whose source is `memory`."""
        config, weight = model.config, model.embedding.weight
        self._model, self._memory, self._rules, self._batch = model, memory, rules, batch
        self._layers = [_parameters(layer) for layer in model.decoder_layers]
        self._eps = model.decoder_layers[0].add_1.norm.eps
        self._cache = weight.new_empty(config.n_layers, batch, 2, config.n_heads, room, config.d_k).unbind()
        positions = rules.target_positions
        self._encoding = None if positions is None else sinusoids(positions, config.d_model)
        later = ~look_ahead_mask(room).to(weight.device)  # keys that are not there yet hide nothing
        self._own_open = [_open_rows(rule.allowed[..., :room, :room] | later, room) for rule in rules.decoder]
        self._cross_open = [_open_rows(rule.allowed[..., :room, :], room) for rule in rules.cross]
        self._done = 0

    def __call__(self, last: Tensor) -> Tensor:
        config, now = self._model.config, self._done
        self._done += 1
        x = embedding(last, self._model.embedding.weight) * math.sqrt(config.d_model)
        if self._encoding is not None:
            x = x + self._encoding[now]
        for i, layer in enumerate(self._layers):
            made = linear(x, *layer.own).view(self._batch, 3, config.n_heads, 1, config.d_k)
            self._cache[i].narrow(3, now, 1).copy_(made[:, 1:])
            keys, values = self._cache[i].narrow(3, 0, now + 1).unbind(1)
            read = self._read(made[:, 0], keys, values, self._rules.decoder[i], self._own_open[i])
            x = self._add(x, read, layer.own_output, layer.norm_1)
            q = linear(x, *layer.asked).view(self._batch, config.n_heads, 1, config.d_k)
            read = self._read(q, *self._memory[i], self._rules.cross[i], self._cross_open[i])
            x = self._add(x, read, layer.asked_output, layer.norm_2)
            x = self._add(x, linear(x, *layer.w_1).relu_(), layer.w_2, layer.norm_3)
        return self._model.logits(x)

    def _read(self, q: Tensor, k: Tensor, v: Tensor, rule: Rule, open_rows: Sequence[bool]) -> Tensor:
        """The heads' outputs side by side, [B, D]."""
        now = self._done - 1
        if open_rows[now]:
            output = attend_fused(q, k, v, rule, masked=False)
        else:
            output = attend_fused(q, k, v, rule.rows(now, now + 1, k.size(-2)))
        return output.reshape(self._batch, -1)

    def _add(self, x: Tensor, update: Tensor, last: Affine, norm: Affine) -> Tensor:
        """LayerNorm(x + update W + b)"""
        return torch.layer_norm(linear(update, *last).add_(x), x.shape[-1:], *norm, self._eps)


def _parameters(layer: DecoderLayer) -> _Layer:
    own, cross, fed = layer.attention, layer.cross_attention, layer.feed_forward

    def of(module: nn.Linear | AddNorm) -> Affine:
        part = module.norm if isinstance(module, AddNorm) else module
        return part.weight, part.bias

    return _Layer(
        own.stacked(),
        of(own.w_o),
        of(layer.add_1),
        of(cross.w_q),
        of(cross.w_o),
        of(layer.add_2),
        of(fed.w_1),
        of(fed.w_2),
        of(layer.add_3),
    )


def _open_rows(allowed: Tensor, room: int) -> list[bool]:
    """Of each row of a mask [B, H, T, K] whether it hides nothing from any head; T may be 1, for all rows."""
    rows = allowed.all(dim=-1).flatten(0, 1).all(dim=0).tolist()
    return rows * room if len(rows) == 1 else rows
