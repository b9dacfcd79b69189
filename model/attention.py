"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2).

Shapes: B batch, H heads, Q queries, K keys, D d_model, d = D / H the width of one head.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

KeysValues = tuple[Tensor, Tensor]  # each [B, H, K, d]


class Attention(NamedTuple):
    """What one attention sub-layer computed, stage by stage."""

    q: Tensor  # [B, H, Q, d]
    k: Tensor  # [B, H, K, d]
    v: Tensor  # [B, H, K, d]
    scores: Tensor  # [B, H, Q, K]  QKᵀ/√d, before the mask
    allowed: Tensor  # [B, H, Q, K] or what broadcasts to it; True where a query may look
    weights: Tensor  # [B, H, Q, K]  softmax over the allowed keys
    output: Tensor  # [B, H, Q, d]  weights times v, 0 for a head that was removed


@dataclass(frozen=True)
class Rule:
    """What governs one attention sub-layer, and the Add & Norm steps of its layer.

    The paper's own rule is the masks and nothing else.
    """

    allowed: Tensor  # broadcasts to [B, H, Q, K]; True where a query may look
    keep: Tensor | None = None  # [H, 1, 1]; 0 removes a head. None keeps all
    scaled: bool = True  # divide QKᵀ by √d
    uniform: Tensor | None = None  # [H, 1, 1]; True makes a head weigh all allowed keys alike. None: none
    residual: bool = True  # x + what a sub-layer says; else the latter alone
    norm: bool = True  # LayerNorm after it

    def scale(self, d: int) -> float:
        return 1 / math.sqrt(d) if self.scaled else 1.0

    def rows(self, start: int, stop: int, keys: int) -> "Rule":
        """The same rule for the queries start..stop-1 and the first `keys` keys."""
        queries = slice(start, stop) if self.allowed.size(-2) > 1 else slice(None)
        return replace(self, allowed=self.allowed[..., queries, :keys])


def attend(q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Attention:
    """softmax(QKᵀ/√d) V (eq. 1), every stage kept.

    A blocked cell is -inf before softmax, hence exactly 0 after it. A row with no allowed key
    has no softmax: its weights and its output are 0, and `allowed` alone tells which rows these are.
    """
    return weigh(q, k, v, (q @ k.transpose(-2, -1)).mul_(rule.scale(q.size(-1))), rule)


def weigh(q: Tensor, k: Tensor, v: Tensor, scores: Tensor, rule: Rule) -> Attention:
    """Scores [B, H, Q, K], however they came about, turned into weights, and the values weighed by them."""
    asked = scores if rule.uniform is None else scores.masked_fill(rule.uniform, 0.0)  # equal scores
    weights = asked.masked_fill(~rule.allowed, -math.inf).softmax(dim=-1)
    empty = ~rule.allowed.any(dim=-1, keepdim=True)
    if empty.any():
        weights = weights.masked_fill(empty, 0.0)
    output = weights @ v
    if rule.keep is not None:
        output = output * rule.keep
    return Attention(q, k, v, scores, rule.allowed, weights, output)


def attend_fused(q: Tensor, k: Tensor, v: Tensor, rule: Rule, masked: bool = True) -> Tensor:
    """The output of `attend` alone, [B, H, Q, d], from torch's fused kernel, in float32.

    `masked` may be false where the rule allows everything: the kernel is quicker without a mask.
    """
    if rule.uniform is not None:
        q = q.masked_fill(rule.uniform, 0.0)  # every score 0, so every allowed key weighs the same
    if torch.is_autocast_enabled(q.device.type):
        # On CPUs the kernel is several times slower in bfloat16 than in float32: training steps aside here.
        with torch.autocast(q.device.type, enabled=False):
            return attend_fused(q.float(), k.float(), v.float(), rule, masked)
    mask = rule.allowed if masked else None
    output = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=rule.scale(q.size(-1)))
    return output if rule.keep is None else output * rule.keep


class MultiHeadAttention(nn.Module):
    """Concat(head_1 .. head_h) W_O, with head_i = Attention(Q W_Q, K W_K, V W_V)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self._stacked: tuple[Tensor, Tensor] | None = None

    def lay_out(self) -> None:
        """Put W_Q, W_K and W_V side by side in memory, so that one product makes all three.

        Their values do not change, and w_q, w_k and w_v see the same memory as before: a change of
        them is a change of the stack. For weights that are read many times and no longer trained.
        """
        parts = (self.w_q, self.w_k, self.w_v)
        weight = along_inputs(torch.cat([each.weight.data for each in parts]))
        bias = torch.cat([each.bias.data for each in parts])
        for each, rows, shift in zip(parts, weight.chunk(3), bias.chunk(3), strict=True):
            each.weight.data, each.bias.data = rows, shift
        self._stacked = weight, bias

    def stacked(self) -> tuple[Tensor, Tensor]:
        """W_Q, W_K and W_V one under the other, [3 D, D], and their biases: as laid out, or made now."""
        parts = (self.w_q, self.w_k, self.w_v)
        made = self._laid_out()
        return made or (torch.cat([each.weight for each in parts]), torch.cat([each.bias for each in parts]))

    def _laid_out(self) -> tuple[Tensor, Tensor] | None:
        """What `lay_out` made; None before that, and where the weights were moved or copied since."""
        made = self._stacked
        return made if made and made[0].data_ptr() == self.w_q.weight.data_ptr() else None

    def queries(self, x: Tensor) -> Tensor:
        """What asks, x [B, Q, D], as the queries [B, H, Q, d] of every head."""
        return self._split(self.w_q(x))

    def keys_values(self, memory: Tensor) -> KeysValues:
        """What can be read, [B, K, D], as the keys and values of every head."""
        return self._split(self.w_k(memory)), self._split(self.w_v(memory))

    def project(self, x: Tensor) -> tuple[Tensor, KeysValues]:
        """Queries, and keys and values, of an x [B, T, D] that asks itself."""
        stacked = self._laid_out()
        if stacked is None:
            return self.queries(x), self.keys_values(x)
        q, k, v = linear(x, *stacked).chunk(3, dim=-1)
        return self._split(q), (self._split(k), self._split(v))

    def forward(
        self, q: Tensor, memory: KeysValues, rule: Rule, capture: bool = False
    ) -> tuple[Tensor, Attention | None]:
        """Let the queries ask and `memory` be asked. Returns [B, Q, D], and the stages on `capture`.

        Without `capture` torch's fused attention runs and nothing is kept.
        """
        if capture:
            seen = attend(q, *memory, rule)
            return self.w_o(self._merge(seen.output)), seen
        return self.w_o(self._merge(attend_fused(q, *memory, rule))), None

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # [B, T, D] -> [B, H, T, d]

    def _merge(self, heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).flatten(-2)  # [B, H, T, d] -> [B, T, D]


def along_inputs(weight: Tensor) -> Tensor:
    """The same matrix [out, in], in memory one input after the other.

    A matrix with more rows than columns is then read in longer runs: decoding, which meets each weight
    once a piece and waits for memory, is up to twice as fast.
    """
    return weight.T.contiguous().T


def append(past: KeysValues, new: KeysValues) -> KeysValues:
    """Grow a cache of keys and values along the keys."""
    return torch.cat([past[0], new[0]], dim=-2), torch.cat([past[1], new[1]], dim=-2)
