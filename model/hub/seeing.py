"""What an attention of transformers does, seen from inside and handed over by value.

Since its fourth version transformers asks a register for the function that attends. Ours stands there under
`NAME`: it calls the model's own eager function with what it was given, so that the numbers are the
family's own, and tells the `Watch` of the running pass what went in and out. A watch lives in a context
variable: each thread has its own, and no hook or attribute on a shared module carries anything. Asking for
`output_attentions` instead would give the weights alone, and nothing at all where attention is fused.

Shapes: B = 1 batch, H heads, G key heads, Q queries, K keys, d width of a head.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from model.hub.refusal import RefusedError
from model.trace import NEUTRAL, Change, Floats, Kind, Seen, Stages

NAME = "headlight"  # of our function in the register of transformers
CLOSE = 1e-5  # how near softmax(scores) must come to the weights for the scores to be shown
Eager = Callable[..., tuple[Tensor, Tensor | None]]


@dataclass(frozen=True)
class Call:
    """One attention of one layer, as it ran."""

    q: Tensor  # [H, Q, d]  as they are multiplied: where positions are rotations, after these
    k: Tensor  # [H, K, d]  a row for each query head, those that share a key head alike
    v: Tensor  # [H, K, d_v]
    allowed: Tensor  # [H, Q, K]
    weights: Tensor  # [H, Q, K]
    output: Tensor  # [H, Q, d_v]
    scores: Tensor | None  # [H, Q, K]  what softmax was taken of; None where that cannot be told
    dot: bool  # whether these are QKᵀ/√d and nothing else
    key_heads: int


@dataclass
class Watch:
    """One pass under observation: what changes in it, and what was seen of it so far.

    `plan` is the kind of each call in order, as a first look found it; a pass of many steps goes through
    it again and again. The flags tell pads (False) from pieces (True) on either side.
    """

    plan: Sequence[Kind] = ()
    change: Change = NEUTRAL
    source: Tensor | None = None  # [S]
    target: Tensor | None = None  # [T]
    keep: bool = True
    calls: list[Call] = field(default_factory=list)
    _count: int = 0

    def attend(
        self,
        eager: Eager,
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:
        """The model's own attention under the change, and a record of it."""
        place = self._place()
        allowed, bias = _parts(mask, query, key)
        if place is not None and self.change != NEUTRAL:
            allowed = self._changed(allowed, query.size(1), *place)
            mask = torch.where(allowed, query.new_zeros(()) if bias is None else bias, LEAST)
            if not self.change.scale:
                options = {**options, "scaling": 1.0}
        bias = _added(bias, options.get("position_bias"))
        output, weights = eager(module, query, key, value, mask, **options)
        if weights is None:
            raise RefusedError("attention", "this model does not hand over what its attention weighs")
        allowed = allowed.expand(weights.shape)
        shared = query.size(1) // value.size(1)
        values = value.repeat_interleave(shared, dim=1)
        if place is not None and self.change != NEUTRAL:
            output, weights = self._replaced(output, weights, allowed, values, *place)
        nothing = ~allowed.any(dim=-1, keepdim=True)  # [1, H, Q, 1]
        if bool(nothing.any()):  # transformers weighs all keys alike there, which is not what such a row says
            weights = weights.masked_fill(nothing, 0)
            output = output.masked_fill(nothing.transpose(1, 2), 0)
        if self.keep:
            scores, dot = _scores(query, key, bias, options, weights, allowed, place, self.change)
            self.calls.append(
                Call(
                    q=query[0],
                    k=key.repeat_interleave(query.size(1) // key.size(1), dim=1)[0],
                    v=values[0],
                    allowed=allowed[0],
                    weights=weights[0],
                    output=output.transpose(1, 2)[0],
                    scores=None if scores is None else scores[0],
                    dot=dot,
                    key_heads=key.size(1),
                )
            )
        return output, weights

    def seen(self, wanted: Kind) -> Seen:
        """The calls of one kind: all that is known of them, and no more."""
        calls = [call for call, kind in zip(self.calls, self.plan, strict=True) if kind == wanted]
        maps: dict[str, Any] = {name: stacked(calls, name) for name in ("weights", "allowed")}
        if any(call.scores is None for call in calls):
            return Seen(**maps)
        maps["scores"] = stacked(calls, "scores")
        if not all(call.dot for call in calls) or calls[0].q.size(-1) != calls[0].v.size(-1):
            return Seen(**maps)
        maps |= {name: stacked(calls, name) for name in ("q", "k", "v", "output")}
        return Stages(**maps)

    def _place(self) -> tuple[Kind, int] | None:
        """The kind and layer of the call that comes; None in a first look, which finds out."""
        if not self.plan:
            return None
        at = self._count % len(self.plan)
        self._count += 1
        kind = self.plan[at]
        return kind, self.plan[:at].count(kind)

    def _changed(self, allowed: Tensor, heads: int, kind: Kind, layer: int) -> Tensor:
        """[1, H, Q, K] or fewer: where a query may look under the change."""
        change = self.change
        queries, keys = allowed.shape[-2:]
        flags = self.target if kind == "decoder" else self.source
        real = torch.ones(keys, dtype=torch.bool) if flags is None else flags
        past = torch.ones(queries, keys, dtype=torch.bool)
        if kind == "decoder":
            past = past.tril()
            if not change.look_ahead.on(layer):
                allowed = allowed | (~past & real)
                past = torch.ones_like(past)
        switches = {
            "encoder": change.source_padding,
            "decoder": change.target_padding,
            "cross": change.cross_padding,
        }
        if not switches[kind].on(layer):
            allowed = allowed | (past & ~real)
        cells = [cell for cell in change.blocked if cell.kind == kind and cell.layer in (None, layer)]
        if cells:
            allowed = allowed.expand(-1, heads, -1, -1).clone()
        for cell in cells:
            if cell.query < queries and cell.key < keys:
                allowed[:, slice(None) if cell.head is None else cell.head, cell.query, cell.key] = False
        return allowed

    def _replaced(
        self, output: Tensor, weights: Tensor, allowed: Tensor, values: Tensor, kind: Kind, layer: int
    ) -> tuple[Tensor, Tensor]:
        """Output and weights with heads made even, or removed."""
        for chosen, even in ((self.change.uniform, True), (self.change.removed, False)):
            heads = [head.head for head in chosen if (head.kind, head.layer) == (kind, layer)]
            if not heads:
                continue
            output, weights = output.clone(), weights.clone()
            if even:
                shares = allowed[:, heads] / allowed[:, heads].sum(dim=-1, keepdim=True).clamp(min=1)
                weights[:, heads] = shares.to(weights.dtype)
                output[:, :, heads] = (weights[:, heads] @ values[:, heads]).transpose(1, 2)
            else:
                output[:, :, heads] = 0
        return output, weights


LEAST = torch.finfo(torch.float32).min  # what transformers adds to a score that is masked
_running: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """All attention of models opened here goes through `watch`, in this thread until the block is left."""
    token = _running.set(watch)
    try:
        yield watch
    finally:
        _running.reset(token)


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """What stands in the register of transformers: the family's own eager function, perhaps watched."""
    eager: Eager | None = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        raise RefusedError("architecture", "this sort of model does not let its attention be followed")
    watch = _running.get()
    if watch is None:
        return eager(module, query, key, value, attention_mask, **options)
    return watch.attend(eager, module, query, key, value, attention_mask, options)


def register() -> None:
    """Make our function known to transformers, with the masks of its eager attention. Twice is once."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


def _parts(mask: Tensor | None, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor | None]:
    """Where a query may look, and what is added to its scores besides, of a mask of transformers."""
    if mask is None:
        return torch.ones(1, 1, query.size(-2), key.size(-2), dtype=torch.bool), None
    if mask.dtype == torch.bool:
        return mask, None
    allowed = mask > LEAST / 2
    bias = mask.masked_fill(~allowed, 0)
    return allowed, bias if bool(bias.any()) else None


def _added(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _scores(
    query: Tensor,
    key: Tensor,
    bias: Tensor | None,
    options: dict[str, Any],
    weights: Tensor,
    allowed: Tensor,
    place: tuple[Kind, int] | None,
    change: Change,
) -> tuple[Tensor | None, bool]:
    """QKᵀ times the scale and the bias, where softmax of it gives these weights; and whether it is QKᵀ/√d.

    Families differ (caps, sinks, biases), so nothing is taken for granted: what does not give the weights
    is not shown. A head that a change made even is not asked.
    """
    root = query.size(-1) ** -0.5
    scaling = options.get("scaling")
    scaling = root if scaling is None else float(scaling)
    keys = key.repeat_interleave(query.size(1) // key.size(1), dim=1)
    scores = query @ keys.transpose(-1, -2) * scaling
    if bias is not None:
        scores = scores + bias
    worked = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1).nan_to_num(0.0)
    off = (worked - weights).abs().amax(dim=(0, 2, 3))  # [H]
    if place is not None:
        off[[head.head for head in change.uniform if (head.kind, head.layer) == place]] = 0
    if float(off.max()) > CLOSE:
        return None, False
    plain = bias is None and abs(scaling - (root if change.scale else 1.0)) < 1e-9
    return scores, plain


def stacked(calls: Sequence[Call], name: str) -> Floats:
    """A tensor of each call as one array (L, ...)."""
    return torch.stack([getattr(call, name) for call in calls]).numpy()
