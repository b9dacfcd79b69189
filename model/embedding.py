"""The one embedding of a model: of what it reads and of what it says (Vaswani et al. 2017, section 3.4).

Shapes: B batch, T positions, D d_model, V vocabulary.
"""

import math
from typing import NamedTuple

from torch import Tensor, nn

from model.attention import MultiHeadAttention, along_inputs
from model.config import Config
from model.layers import FeedForward
from model.positions import sinusoids


class Embedded(NamedTuple):
    """What enters the first layer: pieces, positions and their sum, each [B, T, D] or [T, D]."""

    pieces: Tensor  # [B, T, D]  embedding times √d_model (section 3.4)
    positions: Tensor | None  # [T, D]
    sum: Tensor  # [B, T, D]  before dropout


class Output(NamedTuple):
    """The embedding matrix laid out for the output layer, and the state of it that was copied."""

    weight: Tensor  # [V, D]
    made_of: tuple[int, int]  # where it lies, how often it was written


class Tied(nn.Module):
    """A model around one embedding; what lies between is its own."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.d_model)
        self._output: Output | None = None

    def reset(self) -> None:
        """Draw fresh weights; the embedding so that, times √d_model, its entries have variance 1."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=self.config.d_model**-0.5)

    def lay_out(self) -> None:
        """Arrange the weights in memory as decoding reads them fastest. Their values do not change.

        For a model that is no longer trained. The embedding, whose rows are looked up, is kept a second
        time for the output layer; should it change after all, the copy is passed over.
        """
        for module in self.modules():
            if isinstance(module, (MultiHeadAttention, FeedForward)):
                module.lay_out()
        weight = self.embedding.weight
        self._output = Output(along_inputs(weight.data), (weight.data_ptr(), weight._version))

    def embed(self, ids: Tensor, positions: Tensor | None) -> Embedded:
        pieces = self.embedding(ids) * math.sqrt(self.config.d_model)
        if positions is None:
            return Embedded(pieces, None, pieces)
        encoding = sinusoids(positions, self.config.d_model)
        return Embedded(pieces, encoding, pieces + encoding)

    def logits(self, hidden: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, V], by the embedding matrix again."""
        weight = self.embedding.weight
        if self._output is not None and self._output.made_of == (weight.data_ptr(), weight._version):
            weight = self._output.weight
        return hidden @ weight.T
