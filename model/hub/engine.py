"""Passes through a model of transformers: one over finished texts, or one after another to write a text.

Shapes: a batch is one sentence, S source pieces, T target pieces, V vocabulary.
"""

import inspect
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from model.hub.refusal import RefusedError
from model.hub.seeing import Call, Watch, watching
from model.trace import NEUTRAL, Change, Kind, Seen, asked, asks

CLOSE = 1e-4  # to 1, of the sum of a row
_handing_over = threading.Lock()  # transformers collects what it hands over by hooks


class Done(NamedTuple):
    """One pass: what was seen of each kind, and the logits of the side that predicts."""

    attention: dict[Kind, Seen]
    logits: Tensor | None  # [T, V]
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Engine:
    """A model of transformers, and what a first look found out about it."""

    model: Any
    kinds: tuple[Kind, ...]
    encodes: tuple[Kind, ...] = ()  # the kinds of its attentions in the order they run, of the encoder
    decodes: tuple[Kind, ...] = ()  # and of the decoder; of a model with one stack, here or there
    pad: int = 0
    start: int | None = None  # what goes into the decoder first, beside an encoder
    first: int | None = None  # what must come out of it first
    ends: tuple[int, ...] = ()  # pieces that end a text
    never: tuple[int, ...] = ()  # pieces that it must not write

    @property
    def watched(self) -> bool:
        """Whether its attention runs through ours; else the weights alone are handed over."""
        return bool(self.encodes or self.decodes)

    @cached_property
    def _takes(self) -> frozenset[str]:
        """What a pass may be given."""
        return frozenset(inspect.signature(self.model.forward).parameters)

    @cached_property
    def _counts(self) -> bool:
        """Whether it must be told which position each piece has; else it finds out by itself, or cannot."""
        return "position_ids" in self._takes and not any(
            name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
            for name, module in self.model.named_modules()
        )

    @torch.inference_mode()
    def run(
        self,
        source: Sequence[int],
        target: Sequence[int],
        change: Change = NEUTRAL,
        source_pads: int = 0,
        target_pads: int = 0,
        left: bool = False,
    ) -> Done:
        """One pass over ids, so many of which are pads, at the end or (`left`) before the rest.

        Pads count as nobody's position. That is the model's own doing, or it is told the positions;
        beside an encoder neither is possible, so that pads stand at the end there.
        """
        sides = _flags(len(source), source_pads, left), _flags(len(target), target_pads, left)
        if not self.watched:
            return self._handed_over(source, target, *sides)
        plan = (*(self.encodes if source else ()), *(self.decodes if target else ()))
        watch = Watch(plan, change, *sides)
        with watching(watch):
            logits = self._logits(self._pass(source, target, *sides, left and source_pads + target_pads > 0))
        if len(watch.calls) != len(plan):
            raise RefusedError("attention", f"{len(watch.calls)} attentions ran instead of {len(plan)}")
        return Done({kind: watch.seen(kind) for kind in self.kinds}, logits, tuple(watch.calls))

    @torch.inference_mode()
    def write(
        self,
        source: Sequence[int],
        begun: Sequence[int],
        most: int,
        change: Change = NEUTRAL,
        source_pads: int = 0,
        target_pads: int = 0,
    ) -> tuple[list[int], bool]:
        """What follows `begun` greedily, up to `most` pieces in all, and whether the model ended it itself.

        A step keeps keys and values of the steps before it, where the model can. Under a change it is a
        pass over all so far, since a change may alter all.
        """
        keeps = change == NEUTRAL and "cache" in self._takes
        found = [*begun]
        source_real = _flags(len(source), source_pads)
        with _watched(self.encodes, change, source_real, None):
            memory = self._encode(source, source_real) if source else None
        before = None
        while len(found) < most:
            ids = [*found, *[self.pad] * target_pads]
            real = _flags(len(ids), target_pads)
            options: dict[str, Any] = {"cache": before, "use_cache": True} if keeps else {"use_cache": False}
            if before is not None:
                ids = ids[-1:]
            with _watched(self.decodes, change, source_real, real):
                out = self._step(ids, real, memory, source_real, options)
            before = out.cache if keeps else None
            chosen = self.choose(out.logits[0, len(ids) - 1 - target_pads], len(found) == 1)
            if chosen in self.ends:
                return found, True
            found.append(chosen)
        return found, False

    def choose(self, logits: Tensor, early: bool = False) -> int:
        """The likeliest piece of logits [V] that may be written."""
        if early and self.first is not None and self.start is not None:
            return self.first
        return int(logits.index_fill(0, torch.tensor(self.never, dtype=torch.long), -torch.inf).argmax())

    def _pass(
        self,
        source: Sequence[int],
        target: Sequence[int],
        source_real: Tensor,
        target_real: Tensor,
        left: bool = False,
        **options: Any,
    ) -> Any:
        if self.start is not None and source and target:
            return self.model(
                input_ids=_row(source),
                attention_mask=_row(source_real),
                decoder_input_ids=_row(target),
                decoder_attention_mask=_row(target_real),
                use_cache=False,
                **options,
            )
        ids, real = (target, target_real) if target else (source, source_real)
        if target:
            options["use_cache"] = False
        if left and self._counts:
            options["position_ids"] = _row((real.cumsum(0) - 1).clamp(min=0))
        return self.model(input_ids=_row(ids), attention_mask=_row(real), **options)

    def _encode(self, source: Sequence[int], real: Tensor) -> Any:
        return self.model.get_encoder()(input_ids=_row(source), attention_mask=_row(real))

    def _step(
        self, ids: Sequence[int], real: Tensor, memory: Any, source_real: Tensor, options: dict[str, Any]
    ) -> Any:
        if memory is None:
            return self.model(input_ids=_row(ids), attention_mask=_row(real), **options)
        return self.model(
            encoder_outputs=memory,
            attention_mask=_row(source_real),
            decoder_input_ids=_row(ids),
            decoder_attention_mask=_row(real),
            **options,
        )

    def _logits(self, out: Any) -> Tensor | None:
        logits = getattr(out, "logits", None)
        return None if logits is None else logits[0].float()

    def _handed_over(
        self, source: Sequence[int], target: Sequence[int], source_real: Tensor, target_real: Tensor
    ) -> Done:
        """The same of a family whose attention does not run through ours: its own word for the weights.

        Its masks are not seen. Where every head of a layer weighs a key exactly 0, it was not allowed.
        """
        with _handing_over:
            out = self._pass(source, target, source_real, target_real, output_attentions=True)
        found: dict[Kind, Seen] = {}
        sizes = {"source": len(source), "target": len(target)}
        for kind in self.kinds:
            weights = handed_over(out, kind, self.kinds)
            whole(weights, sizes[asks(kind)], sizes[asked(kind)])
            allowed = (weights > 0).any(dim=1, keepdim=True).expand_as(weights)
            found[kind] = Seen(weights.numpy(), allowed.numpy().copy())
        return Done(found, self._logits(out))


def handed_over(out: Any, kind: Kind, kinds: Sequence[Kind]) -> Tensor:
    """[L, H, Q, K]: what transformers itself tells of one kind. Raises RefusedError where that is nothing.

    Fused attention has no weights: an empty tuple comes then, and no error.
    """
    if kind == "cross":
        name = "cross_attentions"
    elif "cross" in kinds:
        name = f"{kind}_attentions"
    else:
        name = "attentions"
    layers = getattr(out, name, None)
    if not layers or any(layer is None or layer.dim() != 4 for layer in layers):
        raise RefusedError("attention", "this model does not hand over what its attention weighs")
    return torch.cat([*layers]).float()


def whole(weights: Tensor, queries: int, keys: int) -> None:
    """Raise RefusedError where maps [L, H, Q, K] are not of pieces by pieces, shares that sum to 1.

    Attention in windows is handed over window by window, for instance.
    """
    if weights.shape[-2:] != (queries, keys):
        raise RefusedError("attention", "its maps do not show each piece beside each piece")
    if not bool(((weights.sum(dim=-1) - 1).abs() < CLOSE).all()):
        raise RefusedError("attention", "the weights of its attention are not shares that sum to 1")


def _watched(
    plan: tuple[Kind, ...], change: Change, source: Tensor, target: Tensor | None
) -> AbstractContextManager[object]:
    """A pass that keeps nothing: under watch only where something is changed in it."""
    if change == NEUTRAL:
        return nullcontext()
    return watching(Watch(plan, change, source, target, keep=False))


def _row(values: Sequence[int] | Tensor) -> Tensor:
    """[1, T]"""
    return torch.as_tensor(values, dtype=torch.long)[None]


def _flags(size: int, pads: int, left: bool = False) -> Tensor:
    """[size]: True for pieces, False for the pads among them."""
    real = torch.ones(size, dtype=torch.bool)
    if pads:
        real[slice(0, pads) if left else slice(size - pads, size)] = False
    return real
