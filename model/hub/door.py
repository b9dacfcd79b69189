"""The door into a model from elsewhere: text in, a `Trace` out, as from the doors of our own models.

What such a model predicts depends on what it has: a decoder alone goes on with a text, an encoder with a
decoder writes another (a translation, perhaps), an encoder alone fills gaps typed as [MASK] where it was
made for that. One without such a head predicts nothing, and its trace says nothing of pieces to come.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from model.hub.engine import Engine
from model.hub.pieces import readable
from model.hub.vocabulary import Vocabulary
from model.tokenizer import Piece
from model.trace import NEUTRAL, Candidate, Cell, Change, Head, Kind, Side, TextError, Trace

CANDIDATES = 10
CONTINUES = 24  # pieces that a decoder alone adds to a beginning


@dataclass(frozen=True, eq=False, repr=False)
class HubModel:
    """A model of transformers and its tokenizer. Nothing in it changes once loaded: threads may share it.

    Where several query heads share a key head (grouped queries), a trace has weights for every query head:
    of H heads, head h reads key head h // (H / key_heads[kind]).
    """

    name: str
    engine: Engine  # what runs
    vocabulary: Vocabulary
    family: str  # as transformers calls it: "bert", "gpt2", "llama"
    kinds: Mapping[Kind, tuple[int, int]]  # (layers, heads), in the order of KINDS
    key_heads: Mapping[Kind, int]
    predicts: bool  # whether it has a head that chooses pieces
    dots: bool  # whether all its scores are QKᵀ/√d
    rotary: bool  # whether queries and keys of a trace are turned by their positions
    max_pieces: int  # of a text, the special ones included
    parameters: int

    @property
    def languages(self) -> Mapping[Side, str]:
        """Nobody tells which they are."""
        return {}

    @property
    def changes(self) -> frozenset[str]:
        """The fields of `Change` that do something here; `trace` refuses the others."""
        if not self.engine.watched:
            return frozenset()
        found = {"blocked", "removed", "uniform"}
        found |= {"scale"} if self.dots else set()
        found |= {"source_padding", "source_pads"} if "encoder" in self.kinds else set()
        found |= {"target_padding", "target_pads", "look_ahead"} if "decoder" in self.kinds else set()
        found |= {"cross_padding"} if "cross" in self.kinds else set()
        return frozenset(found)

    def check(self, change: Change) -> None:
        """Raise ValueError where `change` speaks of what this model has not, or of what cannot be changed."""
        for each in fields(change):
            if getattr(change, each.name) != getattr(NEUTRAL, each.name) and each.name not in self.changes:
                able = ", ".join(sorted(self.changes)) or "nothing"
                raise ValueError(f"{each.name} cannot be changed in {self.name}; what can be: {able}")
        places: list[Cell | Head] = [*change.blocked, *change.removed, *change.uniform]
        for place in places:
            if place.kind not in self.kinds:
                raise ValueError(f"{self.name} has no {place.kind} attention")
        for kind, sizes in self.kinds.items():
            _of(change, kind).check(*sizes)

    @torch.inference_mode()
    def trace(self, text: str, target: str | Sequence[int] | None = None, change: Change = NEUTRAL) -> Trace:
        """What the model looked at for `text`, and what it predicts.

        Beside an encoder, `target` is forced on the decoder, a text or ids after the start, else the model
        writes greedily. To a decoder alone it is a whole text in the place of `text` and how that goes on.
        Raises TextError where the text cannot be read, ValueError where the change does not fit.
        """
        self.check(change)
        if "cross" in self.kinds:
            return self._written(text, target, change)
        if "decoder" in self.kinds:
            return self._continued(text, target, change)
        if target is not None:
            raise ValueError(f"{self.name} reads one text and writes none")
        return self._filled(text, change)

    def _filled(self, text: str, change: Change) -> Trace:
        pieces = self.vocabulary.read(text, self._room(change.source_pads))
        source = [*pieces, *self._pads(change.source_pads)]
        done = self.engine.run(_ids(source), (), change, source_pads=change.source_pads)
        said: dict[str, Any] = {"translation": self.vocabulary.join(pieces)}
        if done.logits is not None:
            guesses = self._pieces(done.logits.argmax(dim=-1).tolist())
            gaps = [i for i, piece in enumerate(pieces) if piece.id == self.vocabulary.mask]
            true = [guesses[i].id if i in gaps else piece.id for i, piece in enumerate(source)]
            silent = [
                i for i, piece in enumerate(source) if i not in gaps and self.vocabulary.silent(piece.id)
            ]
            filled = [replace(guesses[i], space=p.space) if i in gaps else p for i, p in enumerate(pieces)]
            said = self._said(done.logits, guesses, true, silent)
            said |= {
                "translation": self.vocabulary.join(filled),
                "gaps": tuple(gaps),
                "hidden": ("",) * len(gaps),
            }
        return Trace(
            text=readable(text),
            change=change,
            attention=done.attention,
            source=_texts(source),
            source_ids=_ids(source),
            source_spaces=_spaces(source),
            unknown=self._unknown(pieces),
            **said,
        )

    def _continued(self, text: str, target: str | Sequence[int] | None, change: Change) -> Trace:
        most = self._room(change.target_pads) - self.predicts
        begun = self._open(self.vocabulary.read(text, most))
        pieces, given, ended = begun, len(begun), True
        if isinstance(target, str):
            pieces = self._open(self.vocabulary.read(target, most))
            given = len(pieces)
        elif target is not None:
            pieces = self._given(target, most)
            alike = [one.id == other.id for one, other in zip(begun, pieces, strict=False)]
            given = alike.index(False) if False in alike else len(alike)
        elif self.predicts:
            last = min(most, len(begun) + CONTINUES)
            ids, ended = self.engine.write((), _ids(begun), last, change, 0, change.target_pads)
            pieces = [*begun, *self._pieces(ids[len(begun) :])]
        goes_in = [*pieces, *self._pads(change.target_pads)]
        done = self.engine.run((), _ids(goes_in), change, target_pads=change.target_pads)
        said: dict[str, Any] = {}
        if done.logits is not None:
            closes = bool(self.engine.ends) and (ended or target is not None)
            last = self.engine.ends[0] if closes else self.engine.choose(done.logits[len(pieces) - 1])
            out = [*pieces[1:], self.vocabulary.piece(last), *self._pads(change.target_pads)]
            said = self._said(done.logits, out, _ids(out), range(len(pieces), len(out)))
        return Trace(
            text=readable(text),
            change=change,
            attention=done.attention,
            target=_texts(goes_in),
            target_ids=_ids(goes_in),
            target_spaces=_spaces(goes_in),
            unknown=self._unknown(pieces),
            translation=self.vocabulary.decode(_ids(pieces)),
            forced=isinstance(target, str),
            cut=target is None and self.predicts and not ended,
            given=given - 1,  # what stands first only goes in, be it <s> or a word
            **said,
        )

    def _written(self, text: str, target: str | Sequence[int] | None, change: Change) -> Trace:
        assert self.engine.start is not None
        pieces = self.vocabulary.read(text, self._room(change.source_pads))
        source = [*pieces, *self._pads(change.source_pads)]
        most, told, ended = self._room(change.target_pads) - 1, list[Piece](), True
        if isinstance(target, str):
            told = self._open(self.vocabulary.read(target, most + 1, target=True))
            if len(told) > most:
                raise TextError("long", len(told), most)
        elif target is not None:
            told = self._given(target, most)
        elif self.predicts:
            last = min(most, 2 * len(pieces) + 10) + 1
            pads = change.source_pads, change.target_pads
            ids, ended = self.engine.write(_ids(source), [self.engine.start], last, change, *pads)
            told = self._pieces(ids[1:])
        goes_in = [self.vocabulary.piece(self.engine.start), *told, *self._pads(change.target_pads)]
        done = self.engine.run(
            _ids(source),
            _ids(goes_in),
            change,
            source_pads=change.source_pads,
            target_pads=change.target_pads,
        )
        said: dict[str, Any] = {}
        if done.logits is not None:
            end = self.engine.ends[0] if self.engine.ends else self.vocabulary.pad
            out = [*told, self.vocabulary.piece(end), *self._pads(change.target_pads)]
            said = self._said(done.logits, out, _ids(out), range(len(told) + 1, len(out)))
        return Trace(
            text=readable(text),
            change=change,
            attention=done.attention,
            source=_texts(source),
            source_ids=_ids(source),
            source_spaces=_spaces(source),
            target=_texts(goes_in),
            target_ids=_ids(goes_in),
            target_spaces=_spaces(goes_in),
            unknown=self._unknown([*pieces, *told]),
            translation=self.vocabulary.decode(_ids(told)),
            forced=isinstance(target, str),
            cut=target is None and self.predicts and not ended,
            **said,
        )

    def _said(
        self, logits: Tensor, out: Sequence[Piece], true: Sequence[int], silent: Iterable[int]
    ) -> dict[str, Any]:
        """What a trace tells of logits [T, V]: of the pieces `out`, with the log-probabilities of `true`."""
        log_probs = logits.log_softmax(dim=-1)
        chosen = log_probs.gather(1, torch.tensor(true)[:, None])[:, 0]
        chosen[[*silent]] = 0
        top = log_probs.topk(min(CANDIDATES, log_probs.size(-1)), dim=-1)
        return {
            "comes_out": _texts(out),
            "log_probs": log_probs.numpy(),
            "piece_log_probs": chosen.numpy(),
            "candidates": tuple(
                tuple(Candidate(self.vocabulary.piece(id_).text, p) for id_, p in zip(ids, ps, strict=True))
                for ids, ps in zip(top.indices.tolist(), top.values.tolist(), strict=True)
            ),
        }

    def _room(self, pads: int) -> int:
        """The most pieces that fit beside so many pads. Raises ValueError where none do."""
        if pads > self.max_pieces // 2:
            raise ValueError(f"{pads} pads, the limit is {self.max_pieces // 2}")
        return self.max_pieces - pads

    def _open(self, pieces: list[Piece]) -> list[Piece]:
        """Without what ends a text, if its tokenizer put that there."""
        stop = len(pieces)
        while stop > 1 and pieces[stop - 1].id in self.engine.ends:
            stop -= 1
        return pieces[:stop]

    def _given(self, ids: Sequence[int], most: int) -> list[Piece]:
        if not 0 < len(ids) <= most:
            raise ValueError(f"{len(ids)} pieces, the limit is {most}")
        return self._pieces(ids)

    def _pieces(self, ids: Sequence[int]) -> list[Piece]:
        return [self.vocabulary.piece(id_) for id_ in ids]

    def _pads(self, count: int) -> list[Piece]:
        return [self.vocabulary.piece(self.vocabulary.pad)] * count

    def _unknown(self, pieces: Sequence[Piece]) -> tuple[str, ...]:
        return tuple(piece.text for piece in pieces if piece.id == self.vocabulary.unknown)


def _of(change: Change, kind: Kind) -> Change:
    """What of a change concerns one kind, to be checked against its layers and heads."""
    mine = replace(
        NEUTRAL,
        blocked=frozenset(cell for cell in change.blocked if cell.kind == kind),
        removed=frozenset(head for head in change.removed if head.kind == kind),
        uniform=frozenset(head for head in change.uniform if head.kind == kind),
        source_pads=change.source_pads,
        target_pads=change.target_pads,
    )
    if kind == "encoder":
        return replace(mine, source_padding=change.source_padding)
    if kind == "cross":
        return replace(mine, cross_padding=change.cross_padding)
    return replace(mine, target_padding=change.target_padding, look_ahead=change.look_ahead)


def _ids(pieces: Sequence[Piece]) -> tuple[int, ...]:
    return tuple(piece.id for piece in pieces)


def _texts(pieces: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(piece.text for piece in pieces)


def _spaces(pieces: Sequence[Piece]) -> tuple[bool, ...]:
    return tuple(piece.space for piece in pieces)
