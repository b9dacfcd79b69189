"""What a model offers: the ranges of the controls, and its place in the table of models."""

from collections.abc import Mapping
from typing import NamedTuple

from model.trace import Kind, Side


class Sizes(NamedTuple):
    """What a model offers: the ranges of the controls."""

    model: str
    kinds: Mapping[Kind, tuple[int, int]]  # layers and heads of each
    pieces: int  # the longest sentence
    shape: str  # "encoder-decoder", "decoder" or "encoder"
    languages: Mapping[Side, str]
    hides: bool = False  # any piece can be hidden from it
    asked: bool = True  # text can be typed; else it is a file, which holds one text

    @property
    def layers(self) -> int:
        """The most of any kind."""
        return max((layers for layers, _heads in self.kinds.values()), default=1)

    @property
    def heads(self) -> int:
        return max((heads for _layers, heads in self.kinds.values()), default=1)


class Offer(NamedTuple):
    """A model in the table: what it is built of, and a word about it."""

    name: str
    shape: str
    material: str
    note: str
