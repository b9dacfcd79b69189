"""What the doors of all models share: text read within bounds, and what a pass showed out of torch."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from model.attention import Attention
from model.build import Model
from model.config import PAD, SPECIAL, Config
from model.embedding import Embedded
from model.layers import SubLayer
from model.tokenizer import Piece, Tokenizer
from model.trace import (
    NEUTRAL,
    Added,
    Candidate,
    Cell,
    Change,
    Embedding,
    Fed,
    Floats,
    Head,
    Stages,
    TextError,
)

MODELS = Path(__file__).parent.parent / "assets" / "models"
MAX_CHARACTERS = 1000  # refused before any work is done on them
CANDIDATES = 10


@dataclass(frozen=True)
class Reader:
    """A trained model and its tokenizer. Nothing in it changes after loading, so threads may share it."""

    name: str
    model: Model
    tokenizer: Tokenizer

    @property
    def config(self) -> Config:
        return self.model.config

    @cached_property
    def texts(self) -> list[str]:
        """Every piece as a reader knows it, by its id."""
        return [self.tokenizer.piece(id_).text for id_ in range(self.tokenizer.size)]

    def read(self, text: str) -> list[Piece]:
        """The pieces of a reader's text, few enough that one special piece still fits beside them."""
        if len(text) > MAX_CHARACTERS:
            raise TextError("huge", len(text), MAX_CHARACTERS)
        pieces = self.tokenizer.encode(text)
        most = self.config.max_pieces - 1
        if not pieces:
            raise TextError("empty")
        if len(pieces) > most:
            raise TextError("long", len(pieces), most)
        return pieces

    def check(self, change: Change) -> None:
        """Raise ValueError where `change` speaks of what this model has not."""
        for field in fields(change):
            same = getattr(change, field.name) == getattr(NEUTRAL, field.name)
            if not same and field.name not in self.config.changes | {"seed"}:
                raise ValueError(f"{self.name} has nothing that {field.name} could change")
        places: list[Cell | Head] = [*change.blocked, *change.removed, *change.uniform]
        for kind in {place.kind for place in places} - {*self.config.kinds}:
            raise ValueError(f"{self.name} has no {kind} attention")

    def candidates(self, log_probs: Tensor) -> tuple[tuple[Candidate, ...], ...]:
        """The likeliest pieces of each row of (T, V)."""
        top = log_probs.topk(CANDIDATES, dim=-1)
        return tuple(
            tuple(Candidate(self.texts[id_], value) for id_, value in zip(ids, values, strict=True))
            for ids, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        )


def special(id_: int) -> Piece:
    return Piece(SPECIAL[id_], id_, False)


def pads(count: int) -> list[Piece]:
    return [special(PAD)] * count


def ids(pieces: Sequence[Piece]) -> Tensor:
    """As a batch of one, [1, T]."""
    return torch.tensor([[piece.id for piece in pieces]])


def stages(layers: Sequence[Attention | None]) -> Stages:
    """Leave torch: drop the batch axis, stack the layers, spell the mask out in full."""
    seen = [layer for layer in layers if layer is not None]

    def stack(name: str) -> Tensor:
        return torch.stack([getattr(layer, name)[0] for layer in seen])

    allowed = torch.stack([layer.allowed.expand_as(layer.weights)[0] for layer in seen])
    names = ("q", "k", "v", "scores", "weights", "output")
    return Stages(allowed=allowed.numpy(), **{name: stack(name).numpy() for name in names})


def added(layers: Sequence[SubLayer]) -> Added:
    return Added(_stacked([layer.update for layer in layers]), _stacked([layer.out for layer in layers]))


def fed(layers: Sequence[SubLayer]) -> Fed:
    both = added(layers)
    hidden = [layer.hidden for layer in layers if layer.hidden is not None]
    return Fed(both.update, both.out, _stacked(hidden))


def _stacked(layers: Sequence[Tensor]) -> Floats:
    """A tensor [1, T, ...] of each layer as one array (L, T, ...)."""
    return torch.cat([*layers]).numpy()


def embedding(embedded: Embedded) -> Embedding:
    pieces, total = embedded.pieces[0], embedded.sum[0]
    positions = torch.zeros_like(pieces) if embedded.positions is None else embedded.positions
    return Embedding(pieces.numpy(), positions.numpy(), total.clone().numpy())
