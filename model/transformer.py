"""The encoder-decoder of "Attention Is All You Need" (Vaswani et al. 2017, figure 1).

Layer norm follows each sub-layer, as in the figure; there is no further norm after the last layer.
Shapes: B batch, S source positions, T target positions, D d_model, V vocabulary.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

from torch import Tensor, nn

from model.attention import Attention, KeysValues, MultiHeadAttention, along_inputs
from model.config import Config
from model.layers import DecoderLayer, DecoderSeen, EncoderLayer, FeedForward, SubLayer
from model.masks import Rules, rules
from model.positions import sinusoids
from model.trace import NEUTRAL, Change


class Embedded(NamedTuple):
    """What enters the first layer: pieces, positions and their sum, each [B, T, D] or [T, D]."""

    pieces: Tensor  # [B, T, D]  embedding times √d_model (section 3.4)
    positions: Tensor | None  # [T, D]
    sum: Tensor  # [B, T, D]  before dropout


class Encoded(NamedTuple):
    """The encoder's answer, [B, S, D], and what its layers did on the way."""

    memory: Tensor
    embedded: Embedded
    seen: tuple[Attention | None, ...]
    done: tuple[tuple[SubLayer, ...], ...]  # the sub-layers of each layer, on capture


class Decoded(NamedTuple):
    """The decoder's answer, [B, T, D], what its layers did, and their keys and values so far."""

    hidden: Tensor
    embedded: Embedded
    seen: tuple[DecoderSeen, ...]
    cache: tuple[KeysValues, ...]
    done: tuple[tuple[SubLayer, ...], ...]


class Output(NamedTuple):
    """The embedding matrix laid out for the output layer, and the state of it that was copied."""

    weight: Tensor  # [V, D]
    made_of: tuple[int, int]  # where it lies, how often it was written


class Transformer(nn.Module):
    """One embedding serves source, target and output layer (section 3.4)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.d_model)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_layers))
        self.dropout = nn.Dropout(config.dropout)
        self._output: Output | None = None
        self.reset()

    @property
    def decoder_layers(self) -> Sequence[DecoderLayer]:
        return cast(Sequence[DecoderLayer], self.decoder)

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

    def forward(self, source: Tensor, target: Tensor, change: Change = NEUTRAL) -> Tensor:
        """Logits [B, T, V] of the next piece after each of `target` [B, T], given `source` [B, S]."""
        governed = rules(source, target, self.config, change)
        encoded = self.encode(source, governed)
        return self.logits(self.decode(target, self.keys_values(encoded.memory), governed).hidden)

    def embed(self, ids: Tensor, positions: Tensor | None) -> Embedded:
        pieces = self.embedding(ids) * math.sqrt(self.config.d_model)
        if positions is None:
            return Embedded(pieces, None, pieces)
        encoding = sinusoids(positions, self.config.d_model)
        return Embedded(pieces, encoding, pieces + encoding)

    def encode(self, source: Tensor, rules: Rules, capture: bool = False) -> Encoded:
        embedded = self.embed(source, rules.source_positions)
        x, seen, done = self.dropout(embedded.sum), [], []
        for layer, rule in zip(self.encoder, rules.encoder, strict=True):
            x, attention, steps = layer(x, rule, capture)
            seen.append(attention)
            done.append(steps)
        return Encoded(x, embedded, tuple(seen), tuple(done))

    def keys_values(self, memory: Tensor) -> tuple[KeysValues, ...]:
        """What each decoder layer reads of the source: projected once, used at every step."""
        return tuple(layer.cross_attention.keys_values(memory) for layer in self.decoder_layers)

    def decode(
        self,
        target: Tensor,
        memory: Sequence[KeysValues],
        rules: Rules,
        past: Sequence[KeysValues] | None = None,
        capture: bool = False,
    ) -> Decoded:
        """Run the decoder over `target` [B, T], which continues the pieces cached in `past`."""
        start = past[0][0].size(-2) if past else 0
        stop = start + target.size(1)
        positions = rules.target_positions
        embedded = self.embed(target, None if positions is None else positions[start:stop])
        x, seen, cache, done = self.dropout(embedded.sum), [], [], []
        for i, layer in enumerate(self.decoder_layers):
            own_rule = rules.decoder[i].rows(start, stop, stop)
            cross_rule = rules.cross[i].rows(start, stop, memory[i][0].size(-2))
            before = past[i] if past else None
            x, own, attention, steps = layer(x, before, memory[i], own_rule, cross_rule, capture)
            seen.append(attention)
            cache.append(own)
            done.append(steps)
        return Decoded(x, embedded, tuple(seen), tuple(cache), tuple(done))

    def logits(self, hidden: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, V], by the embedding matrix again."""
        weight = self.embedding.weight
        if self._output is not None and self._output.made_of == (weight.data_ptr(), weight._version):
            weight = self._output.weight
        return hidden @ weight.T
