"""The door into a recurrent translator: text in, a translation or a `Trace` out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import END, START, UNKNOWN
from model.decoding import beam_search, greedy, limit
from model.reader import Reader, embedding, ids, pads, special, stages
from model.recurrent import Recurrent, joined
from model.sampling import Lot, Search, sample, search
from model.tokenizer import clean
from model.trace import NEUTRAL, Change, Trace


@dataclass(frozen=True)
class RecurrentTranslator(Reader):
    """Translates English to French by recurrent networks."""

    model: Recurrent

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

        Row t of the cross-attention is the step that reads target[t], but what asks there is the state
        before it. `states` of the target are those after it, those of the source the forward and then
        the backward half.
        Raises TextError where the text cannot be read, ValueError where the change does not fit.
        """
        self.check(change)
        source = [*self.read(text), special(END), *pads(change.source_pads)]
        source_ids = ids(source)
        if target is None:
            pieces = [self.tokenizer.piece(id_) for id_ in greedy(self.model, source_ids, change)[0]]
        elif isinstance(target, str):
            pieces = self.read(target)
        else:
            pieces = [self.tokenizer.piece(id_) for id_ in target]
        goes_in = [special(START), *pieces, *pads(change.target_pads)]
        comes_out = [*pieces, special(END), *pads(change.target_pads)]
        target_ids = ids(goes_in)

        memory = self.model.encode(source_ids)
        told = self.model.decode(target_ids, memory, self.model.rule(source_ids, target_ids, change))
        log_probs = self.model.logits(told.hidden)[0].log_softmax(dim=-1)
        piece_log_probs = log_probs.gather(1, ids(comes_out)[0][:, None])[:, 0]
        piece_log_probs[len(pieces) + 1 :] = 0
        return Trace(
            text=clean(text),
            change=change,
            attention={"cross": stages([joined(told.seen)])} if told.seen else {},
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
            else self.tokenizer.decode([p.id for p in pieces]),
            forced=isinstance(target, str),
            cut=not isinstance(target, str)
            and len(pieces) >= limit(len(source) - change.source_pads, self.config),
            embeddings={
                "source": embedding(self.model.embed(source_ids, None)),
                "target": embedding(self.model.embed(target_ids, None)),
            },
            states={"source": memory.states[0].numpy(), "target": told.states[0].numpy()},
            log_probs=log_probs.numpy(),
            piece_log_probs=piece_log_probs.numpy(),
            candidates=self.candidates(log_probs),
        )

    def _source(self, text: str) -> Tensor:
        return ids([*self.read(text), special(END)])
