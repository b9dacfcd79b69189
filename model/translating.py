"""What the doors of all translators share: text in, a translation or a `Trace` out, whatever is behind."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from model.config import END, START, UNKNOWN
from model.decoding import beam_search, greedy, limit
from model.reader import Reader, ids, pads, special
from model.recurrent import Recurrent
from model.sampling import Lot, Search, sample, search
from model.tokenizer import clean
from model.trace import NEUTRAL, Change, Trace
from model.transformer import Transformer


class Passed(NamedTuple):
    """One pass over a finished target."""

    logits: Tensor  # [1, T, V]
    shown: Mapping[str, Any]  # the fields of a `Trace` that tell of the inside


@dataclass(frozen=True)
class Translating(Reader):
    """Translates English to French."""

    model: Transformer | Recurrent

    def translate(self, text: str, beam: int = 1) -> str:
        """The translation of one sentence, greedily or by beam search. Raises TextError."""
        source = self._source(text)
        found = greedy(self.model, source)[0] if beam == 1 else beam_search(self.model, source, beam)
        return self.tokenizer.decode(found)

    def search(self, text: str, beam: int) -> Search:
        """Beam search for one sentence, with all that it considered. Raises TextError."""
        return search(self.model, self.tokenizer, self._source(text), beam)

    def sample(self, text: str, lot: Lot, seeds: Sequence[int]) -> list[tuple[int, ...]]:
        """The ids of one translation by lot for each seed. Raises TextError."""
        return [tuple(found) for found in sample(self.model, self._source(text), lot, seeds)]

    @torch.inference_mode()
    def trace(self, text: str, target: str | Sequence[int] | None = None, change: Change = NEUTRAL) -> Trace:
        """Everything the model computed for `text`: its own translation, or the `target` forced on it.

        Ids as a target are what the model chose in another way than greedily: a beam's, or one drawn.
        Raises TextError where the text cannot be read, ValueError where the change does not fit.
        """
        self.check(change)
        source = [*self.read(text), special(END), *pads(change.source_pads)]
        source_ids = ids(source)
        forced = isinstance(target, str)
        if isinstance(target, str):
            pieces = self.read(target)
        else:
            chosen = self._greedy(source_ids, change) if target is None else target
            pieces = [self.tokenizer.piece(id_) for id_ in chosen]
        goes_in = [special(START), *pieces, *pads(change.target_pads)]
        comes_out = [*pieces, special(END), *pads(change.target_pads)]

        passed = self._pass(source_ids, ids(goes_in), change)
        log_probs = passed.logits[0]
        torch.log_softmax(log_probs, dim=-1, out=log_probs)  # in place: these are the most numbers of all
        piece_log_probs = log_probs.gather(1, ids(comes_out)[0][:, None])[:, 0]
        piece_log_probs[len(pieces) + 1 :] = 0
        return Trace(
            text=clean(text),
            change=change,
            source=tuple(piece.text for piece in source),
            target=tuple(piece.text for piece in goes_in),
            source_ids=tuple(piece.id for piece in source),
            target_ids=tuple(piece.id for piece in goes_in),
            comes_out=tuple(piece.text for piece in comes_out),
            out_ids=tuple(piece.id for piece in comes_out),
            source_spaces=tuple(piece.space for piece in source),
            target_spaces=tuple(piece.space for piece in goes_in),
            languages={"source": "en", "target": "fr"},
            unknown=tuple(piece.text for piece in [*source, *pieces] if piece.id == UNKNOWN),
            translation=clean(target)
            if isinstance(target, str)
            else self.tokenizer.decode([piece.id for piece in pieces]),
            forced=forced,
            cut=not forced and len(pieces) >= limit(len(source) - change.source_pads, self.config),
            log_probs=log_probs.numpy(),
            piece_log_probs=piece_log_probs.numpy(),
            candidates=self.candidates(log_probs),
            **passed.shown,
        )

    def _source(self, text: str) -> Tensor:
        return ids([*self.read(text), special(END)])

    def _greedy(self, source: Tensor, change: Change) -> list[int]:
        return greedy(self.model, source, change)[0]

    @abstractmethod
    def _pass(self, source: Tensor, target: Tensor, change: Change) -> Passed:
        """Run the network over ids [1, S] and [1, T]."""
