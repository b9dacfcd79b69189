"""The door into the model: text in, a translation or a `Trace` out. Torch stays on this side."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import END, START, UNKNOWN
from model.decoding import beam_search, greedy, greedy_changed, limit
from model.masks import rules
from model.reader import Reader, added, embedding, fed, ids, pads, special, stages
from model.sampling import Lot, Search, sample, search
from model.tokenizer import Piece, clean
from model.trace import NEUTRAL, Change, Trace
from model.transformer import Transformer


@dataclass(frozen=True)
class Translator(Reader):
    """The encoder-decoder of the paper, which translates English to French."""

    model: Transformer

    def translate(self, text: str, beam: int = 1) -> str:
        """The translation of one sentence, greedily or by beam search. Raises TextError."""
        source = self._source_ids(text)
        found = greedy(self.model, source)[0] if beam == 1 else beam_search(self.model, source, beam)
        return self.tokenizer.decode(found)

    def search(self, text: str, beam: int) -> Search:
        """Beam search for one sentence, with all that it considered. Raises TextError."""
        return search(self.model, self.tokenizer, self._source_ids(text), beam)

    def sample(self, text: str, lot: Lot, seeds: Sequence[int]) -> list[tuple[int, ...]]:
        """The ids of one translation by lot for each seed. Raises TextError."""
        return [tuple(found) for found in sample(self.model, self._source_ids(text), lot, seeds)]

    @torch.inference_mode()
    def trace(self, text: str, target: str | Sequence[int] | None = None, change: Change = NEUTRAL) -> Trace:
        """Everything the model computed for `text`: its own translation, or the `target` forced on it.

        Ids as a target are what the model chose in another way than greedily: a beam's, or one drawn.

        One pass over the finished target: under the look-ahead mask, row t of it is what step t of
        decoding saw. A shuffle of positions is the exception, since it is drawn for the whole length.
        Raises TextError where the text cannot be read, ValueError where the change does not fit.
        """
        source = [*self._source(text), *pads(change.source_pads)]
        source_ids = ids(source)
        if target is None:
            pieces = self._target(source_ids, change)
        elif isinstance(target, str):
            pieces = self.read(target)
        else:
            pieces = [self.tokenizer.piece(id_) for id_ in target]
        goes_in = [special(START), *pieces, *pads(change.target_pads)]
        comes_out = [*pieces, special(END), *pads(change.target_pads)]
        target_ids = ids(goes_in)

        changed = rules(source_ids, target_ids, self.model.config, change)
        encoded = self.model.encode(source_ids, changed, capture=True)
        memory = self.model.keys_values(encoded.memory)
        decoded = self.model.decode(target_ids, memory, changed, capture=True)
        log_probs = self.model.logits(decoded.hidden)[0]
        torch.log_softmax(log_probs, dim=-1, out=log_probs)  # in place: these are the most numbers of all
        rows = len(pieces) + 1
        chosen = log_probs.gather(1, ids(comes_out)[0][:, None])[:, 0]
        chosen[rows:] = 0

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
            unknown=tuple(piece.text for piece in [*source, *pieces] if piece.id == UNKNOWN),
            translation=clean(target)
            if isinstance(target, str)
            else self.tokenizer.decode([p.id for p in pieces]),
            forced=isinstance(target, str),
            cut=not isinstance(target, str)
            and len(pieces) >= limit(len(source) - change.source_pads, self.model.config),
            attention={
                "encoder": stages(encoded.seen),
                "decoder": stages([seen.decoder for seen in decoded.seen]),
                "cross": stages([seen.cross for seen in decoded.seen]),
            },
            sublayers={
                "encoder": added([done[0] for done in encoded.done]),
                "decoder": added([done[0] for done in decoded.done]),
                "cross": added([done[1] for done in decoded.done]),
            },
            feeds={
                "source": fed([done[-1] for done in encoded.done]),
                "target": fed([done[-1] for done in decoded.done]),
            },
            embeddings={"source": embedding(encoded.embedded), "target": embedding(decoded.embedded)},
            languages={"source": "en", "target": "fr"},
            log_probs=log_probs.numpy(),
            piece_log_probs=chosen.numpy(),
            candidates=self.candidates(log_probs),
        )

    def _source_ids(self, text: str) -> Tensor:
        return ids(self._source(text))

    def _source(self, text: str) -> list[Piece]:
        return [*self.read(text), special(END)]

    def _target(self, source: Tensor, change: Change) -> list[Piece]:
        return [self.tokenizer.piece(id_) for id_ in greedy_changed(self.model, source, change)]
