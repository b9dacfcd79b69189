"""The door into the model: text in, a translation or a `Trace` out. Torch stays on this side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from model import checkpoint
from model.attention import Attention
from model.config import END, PAD, SPECIAL, START, UNKNOWN
from model.decoding import beam_search, greedy, greedy_changed, limit
from model.layers import SubLayer
from model.masks import rules
from model.sampling import Lot, Search, sample, search
from model.tokenizer import Piece, Tokenizer, clean
from model.trace import (
    NEUTRAL,
    Added,
    Candidate,
    Change,
    Embedding,
    Fed,
    Floats,
    Stages,
    TextError,
    Trace,
)
from model.transformer import Embedded, Transformer

MODELS = Path(__file__).parent.parent / "assets" / "models"
MAX_CHARACTERS = 1000  # refused before any work is done on them
CANDIDATES = 10


@dataclass(frozen=True)
class Translator:
    """A trained model and its tokenizer. Nothing in it changes after loading, so threads may share it."""

    name: str
    model: Transformer
    tokenizer: Tokenizer

    @cached_property
    def _texts(self) -> list[str]:
        """Every piece as a reader knows it, by its id."""
        return [self.tokenizer.piece(id_).text for id_ in range(self.tokenizer.size)]

    def translate(self, text: str, beam: int = 1) -> str:
        """The translation of one sentence, greedily or by beam search. Raises TextError."""
        source = self._source_ids(text)
        ids = greedy(self.model, source)[0] if beam == 1 else beam_search(self.model, source, beam)
        return self.tokenizer.decode(ids)

    def search(self, text: str, beam: int) -> Search:
        """Beam search for one sentence, with all that it considered. Raises TextError."""
        return search(self.model, self.tokenizer, self._source_ids(text), beam)

    def sample(self, text: str, lot: Lot, seeds: Sequence[int]) -> list[tuple[int, ...]]:
        """The ids of one translation by lot for each seed. Raises TextError."""
        return [tuple(ids) for ids in sample(self.model, self._source_ids(text), lot, seeds)]

    @torch.inference_mode()
    def trace(self, text: str, target: str | Sequence[int] | None = None, change: Change = NEUTRAL) -> Trace:
        """Everything the model computed for `text`: its own translation, or the `target` forced on it.

        Ids as a target are what the model chose in another way than greedily: a beam's, or one drawn.

        One pass over the finished target: under the look-ahead mask, row t of it is what step t of
        decoding saw. A shuffle of positions is the exception, since it is drawn for the whole length.
        Raises TextError where the text cannot be read, ValueError where the change does not fit.
        """
        source = [*self._source(text), *self._pads(change.source_pads)]
        source_ids = torch.tensor([[piece.id for piece in source]])
        if target is None:
            pieces = self._target(source_ids, change)
        elif isinstance(target, str):
            pieces = self._read(target)
        else:
            pieces = [self.tokenizer.piece(id_) for id_ in target]
        goes_in = [Piece(SPECIAL[START], START, False), *pieces, *self._pads(change.target_pads)]
        comes_out = [*pieces, Piece(SPECIAL[END], END, False), *self._pads(change.target_pads)]
        target_ids = torch.tensor([[piece.id for piece in goes_in]])

        changed = rules(source_ids, target_ids, self.model.config, change)
        encoded = self.model.encode(source_ids, changed, capture=True)
        memory = self.model.keys_values(encoded.memory)
        decoded = self.model.decode(target_ids, memory, changed, capture=True)
        log_probs = self.model.logits(decoded.hidden)[0]
        torch.log_softmax(log_probs, dim=-1, out=log_probs)  # in place: these are the most numbers of all
        rows = len(pieces) + 1
        out_ids = torch.tensor([piece.id for piece in comes_out])
        chosen = log_probs.gather(1, out_ids[:, None])[:, 0]
        chosen[rows:] = 0
        top = log_probs.topk(CANDIDATES, dim=-1)
        texts = self._texts

        return Trace(
            text=clean(text),
            change=change,
            source=tuple(piece.text for piece in source),
            target=tuple(piece.text for piece in goes_in),
            source_ids=tuple(piece.id for piece in source),
            target_ids=tuple(piece.id for piece in goes_in),
            comes_out=tuple(piece.text for piece in comes_out),
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
                "encoder": _stages(encoded.seen),
                "decoder": _stages([seen.decoder for seen in decoded.seen]),
                "cross": _stages([seen.cross for seen in decoded.seen]),
            },
            sublayers={
                "encoder": _added([done[0] for done in encoded.done]),
                "decoder": _added([done[0] for done in decoded.done]),
                "cross": _added([done[1] for done in decoded.done]),
            },
            feeds={
                "source": _fed([done[-1] for done in encoded.done]),
                "target": _fed([done[-1] for done in decoded.done]),
            },
            embeddings={"source": _embedding(encoded.embedded), "target": _embedding(decoded.embedded)},
            languages={"source": "en", "target": "fr"},
            log_probs=log_probs.numpy(),
            piece_log_probs=chosen.numpy(),
            candidates=tuple(
                tuple(Candidate(texts[id_], log_prob) for id_, log_prob in zip(ids, values, strict=True))
                for ids, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
            ),
        )

    def _source_ids(self, text: str) -> Tensor:
        return torch.tensor([[piece.id for piece in self._source(text)]])

    def _source(self, text: str) -> list[Piece]:
        return [*self._read(text), Piece(SPECIAL[END], END, False)]

    def _read(self, text: str) -> list[Piece]:
        """The pieces of a reader's text, few enough that one special piece still fits beside them."""
        if len(text) > MAX_CHARACTERS:
            raise TextError("huge", len(text), MAX_CHARACTERS)
        pieces = self.tokenizer.encode(text)
        most = self.model.config.max_pieces - 1
        if not pieces:
            raise TextError("empty")
        if len(pieces) > most:
            raise TextError("long", len(pieces), most)
        return pieces

    def _target(self, source: Tensor, change: Change) -> list[Piece]:
        return [self.tokenizer.piece(id_) for id_ in greedy_changed(self.model, source, change)]

    def _pads(self, count: int) -> list[Piece]:
        return [Piece(SPECIAL[PAD], PAD, False)] * count


def load(name_or_folder: str | Path) -> Translator:
    """A shipped model by its name, such as "en-fr", or any model folder. Raises CheckpointError."""
    folder = MODELS / name_or_folder
    if not folder.is_dir():
        folder = Path(name_or_folder)
    _keep_memory()
    return Translator(folder.name, *checkpoint.load(folder))


def _keep_memory() -> None:
    """Let the process keep the memory of a trace for the next one, instead of having it from the system anew.

    glibc gives freed memory back beyond twice the largest block ever freed; elsewhere this does nothing.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8)


def _stages(layers: Sequence[Attention | None]) -> Stages:
    """Leave torch: drop the batch axis, stack the layers, spell the mask out in full."""
    seen = [layer for layer in layers if layer is not None]

    def stack(name: str) -> Tensor:
        return torch.stack([getattr(layer, name)[0] for layer in seen])

    allowed = torch.stack([layer.allowed.expand_as(layer.weights)[0] for layer in seen])
    names = ("q", "k", "v", "scores", "weights", "output")
    return Stages(allowed=allowed.numpy(), **{name: stack(name).numpy() for name in names})


def _added(layers: Sequence[SubLayer]) -> Added:
    return Added(_stacked([layer.update for layer in layers]), _stacked([layer.out for layer in layers]))


def _fed(layers: Sequence[SubLayer]) -> Fed:
    added = _added(layers)
    hidden = [layer.hidden for layer in layers if layer.hidden is not None]
    return Fed(added.update, added.out, _stacked(hidden))


def _stacked(layers: Sequence[Tensor]) -> Floats:
    """A tensor [1, T, ...] of each layer as one array (L, T, ...)."""
    return torch.cat([*layers]).numpy()


def _embedding(embedded: Embedded) -> Embedding:
    pieces, total = embedded.pieces[0], embedded.sum[0]
    positions = torch.zeros_like(pieces) if embedded.positions is None else embedded.positions
    return Embedding(pieces.numpy(), positions.numpy(), total.clone().numpy())
