"""The door into a decoder alone: the beginning of a sentence in, what follows it or a `Trace` out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import torch

from model.config import END, PAD, START, UNKNOWN
from model.decoding import likeliest
from model.reader import Reader, added, embedding, fed, ids, pads, special, stages
from model.sampling import Lot, drawn, shares
from model.stack import Stack
from model.tokenizer import clean
from model.trace import NEUTRAL, Change, Trace


@dataclass(frozen=True)
class Continuer(Reader):
    """Goes on from the beginning of an English sentence."""

    model: Stack

    def go_on(self, text: str) -> str:
        """The whole sentence, the likeliest piece following at each step. Raises TextError."""
        return self.tokenizer.decode(self._greedy([piece.id for piece in self.read(text)], NEUTRAL))

    @torch.inference_mode()
    def sample(self, text: str, lot: Lot, seeds: Sequence[int]) -> list[tuple[int, ...]]:
        """The ids of one sentence by lot for each seed, those of the beginning included. Raises TextError."""
        given = [piece.id for piece in self.read(text)]
        chance = [np.random.default_rng(seed) for seed in seeds]
        found, open_ = [[*given] for _ in seeds], {*range(len(seeds))}
        for length in range(len(given), self.config.max_pieces - 1):
            rows = sorted(open_)
            if not rows:
                break
            target = torch.tensor([[START, *found[row][:length]] for row in rows])
            logs = self.model.logits(self.model.run(target).memory[:, -1]).log_softmax(dim=-1).numpy()
            for row, log_probs in zip(rows, logs, strict=True):
                piece = drawn(shares(log_probs, lot), chance[row].random())
                if piece == END:
                    open_.remove(row)
                else:
                    found[row].append(piece)
        return [tuple(each) for each in found]

    @torch.inference_mode()
    def trace(self, text: str, target: str | Sequence[int] | None = None, change: Change = NEUTRAL) -> Trace:
        """Everything the model computed for the sentence that begins with `text`, as it goes on by itself.

        A `target` is a whole sentence instead, what follows <s>: a text that the reader forces, or ids
        that the model chose in another way. Its `given` first pieces are the reader's.
        Raises TextError where the text cannot be read, ValueError where the change does not fit.
        """
        self.check(change)
        begun = self.read(text)
        given = len(begun)
        if target is None:
            chosen = self._greedy([piece.id for piece in begun], change)
            pieces = [*begun, *(self.tokenizer.piece(id_) for id_ in chosen[given:])]
        elif isinstance(target, str):
            pieces = self.read(target)
            given = len(pieces)
        else:
            pieces = [self.tokenizer.piece(id_) for id_ in target]
            alike = zip(begun, pieces, strict=False)
            given = len([*takewhile(lambda two: two[0].id == two[1].id, alike)])
            pieces = [*begun[:given], *pieces[given:]]  # a reader's unknown piece keeps its letters
        goes_in = [special(START), *pieces, *pads(change.target_pads)]
        comes_out = [*pieces, special(END), *pads(change.target_pads)]
        if len(goes_in) - change.target_pads > self.config.max_pieces:
            raise ValueError(f"{len(pieces)} pieces after <s>, the limit is {self.config.max_pieces - 1}")

        done = self.model.run(ids(goes_in), change, capture=True)
        log_probs = self.model.logits(done.memory)[0].log_softmax(dim=-1)
        piece_log_probs = log_probs.gather(1, ids(comes_out)[0][:, None])[:, 0]
        piece_log_probs[len(pieces) + 1 :] = 0
        return Trace(
            text=clean(text),
            change=change,
            attention={"decoder": stages(done.seen)},
            target=tuple(piece.text for piece in goes_in),
            target_ids=tuple(piece.id for piece in goes_in),
            comes_out=tuple(piece.text for piece in comes_out),
            out_ids=tuple(piece.id for piece in comes_out),
            target_spaces=tuple(piece.space for piece in goes_in),
            languages={"target": "en"},
            unknown=tuple(piece.text for piece in pieces if piece.id == UNKNOWN),
            translation=clean(target)
            if isinstance(target, str)
            else self.tokenizer.decode([p.id for p in pieces]),
            forced=isinstance(target, str),
            cut=not isinstance(target, str) and len(pieces) >= self.config.max_pieces - 1,
            given=given,
            sublayers={"decoder": added([steps[0] for steps in done.done])},
            feeds={"target": fed([steps[-1] for steps in done.done])},
            embeddings={"target": embedding(done.embedded)},
            log_probs=log_probs.numpy(),
            piece_log_probs=piece_log_probs.numpy(),
            candidates=self.candidates(log_probs),
        )

    @torch.inference_mode()
    def _greedy(self, given: Sequence[int], change: Change) -> list[int]:
        """The beginning and what follows it; each step reads all so far, which a change may alter."""
        found = [*given]
        while len(found) < self.config.max_pieces - 1:
            target = torch.tensor([[START, *found, *[PAD] * change.target_pads]])
            hidden = self.model.run(target, change).memory[:, len(found)]
            chosen = int(likeliest(self.model.logits(hidden)))
            if chosen == END:
                break
            found.append(chosen)
        return found
