"""The door into an encoder alone: a sentence with gaps in, what may stand in them or a `Trace` out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from model.config import END, GAP, MASK, PAD, START, UNKNOWN
from model.reader import Reader, added, embedding, fed, ids, pads, special, stages
from model.stack import Stack
from model.tokenizer import Piece, clean, join
from model.trace import NEUTRAL, Change, Trace

# For a typed gap while the text is cut: a mark of these that the text has not. None is in a vocabulary, and
# they are more than a text may have characters.
STAND_INS = tuple(map(chr, range(0x2600, 0x2A00)))
NEVER = [PAD, START, END, UNKNOWN, MASK]  # pieces that are no answer


@dataclass(frozen=True)
class Filler(Reader):
    """Guesses the hidden pieces of an English sentence."""

    model: Stack

    def read(self, text: str) -> list[Piece]:
        """The pieces of a reader's text; [MASK] in it is a piece of its own."""
        stand_in = next((mark for mark in STAND_INS if mark not in text), STAND_INS[0])
        pieces = super().read(text.replace(GAP, stand_in))
        return [replace(p, text=GAP, id=MASK) if p.text == stand_in else p for p in pieces]

    @torch.inference_mode()
    def trace(self, text: str, gaps: Sequence[int] | None = None, change: Change = NEUTRAL) -> Trace:
        """Everything the model computed for `text` with the pieces at `gaps` hidden behind [MASK].

        A typed [MASK] is a gap too. Row i tells what the model takes to stand at place i: `comes_out` is its
        guess, `piece_log_probs` is of the piece that stands there or is hidden, or of the guess where the
        reader typed the gap. It never learned to guess </s> and pads: these come out as they are, at 0.
        Raises TextError where the text cannot be read, ValueError where gaps or change do not fit.
        """
        self.check(change)
        told = self.read(text)
        wanted = {*(gaps or ())}
        if not wanted <= {*range(len(told))}:
            raise ValueError(f"gaps {sorted(wanted)} in {len(told)} pieces; they count from 0")
        places = sorted(wanted | {i for i, piece in enumerate(told) if piece.id == MASK})
        shown = [replace(p, text=GAP, id=MASK) if i in places else p for i, p in enumerate(told)]
        source = [*shown, special(END), *pads(change.source_pads)]

        done = self.model.run(ids(source), change, capture=True)
        log_probs = self.model.logits(done.memory)[0].log_softmax(dim=-1)
        guesses = log_probs.index_fill(1, torch.tensor(NEVER), -torch.inf).argmax(dim=-1)
        out = [*guesses.tolist()[: len(told)], *(piece.id for piece in source[len(told) :])]
        true = [int(guesses[i]) if piece.id == MASK else piece.id for i, piece in enumerate(told)]
        piece_log_probs = torch.zeros(len(source))
        piece_log_probs[: len(told)] = log_probs[range(len(told)), true]
        filled = [self.tokenizer.piece(int(guesses[i])) if i in places else p for i, p in enumerate(told)]
        return Trace(
            text=clean(text),
            change=change,
            attention={"encoder": stages(done.seen)},
            source=tuple(piece.text for piece in source),
            source_ids=tuple(piece.id for piece in source),
            comes_out=tuple(self.texts[id_] for id_ in out),
            out_ids=tuple(out),
            source_spaces=tuple(piece.space for piece in source),
            languages={"source": "en"},
            unknown=tuple(piece.text for piece in shown if piece.id == UNKNOWN),
            translation=join(filled),
            gaps=tuple(places),
            hidden=tuple("" if told[i].id == MASK else told[i].text for i in places),
            sublayers={"encoder": added([steps[0] for steps in done.done])},
            feeds={"source": fed([steps[-1] for steps in done.done])},
            embeddings={"source": embedding(done.embedded)},
            log_probs=log_probs.numpy(),
            piece_log_probs=piece_log_probs.numpy(),
            candidates=self.candidates(log_probs),
        )
