"""The encoder-decoder of "Attention Is All You Need" (Vaswani et al. 2017, figure 1).

Layer norm follows each sub-layer, as in the figure; there is no further norm after the last layer.
Shapes: B batch, S source positions, T target positions, D d_model, V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from torch import Tensor, nn

from model.attention import Attention, KeysValues, Rule
from model.config import Config
from model.embedding import Embedded, Tied
from model.layers import DecoderLayer, DecoderSeen, EncoderLayer, SubLayer
from model.masks import Rules, rules
from model.trace import NEUTRAL, Change


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


def run_layers(
    layers: nn.ModuleList, x: Tensor, rules: Sequence[Rule], embedded: Embedded, capture: bool
) -> Encoded:
    """Let encoder layers revise x [B, S, D], each by its rule."""
    seen, done = [], []
    for layer, rule in zip(layers, rules, strict=True):
        x, attention, steps = layer(x, rule, capture)
        seen.append(attention)
        done.append(steps)
    return Encoded(x, embedded, tuple(seen), tuple(done))


class Transformer(Tied):
    """One embedding serves source, target and output layer (section 3.4)."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_layers))
        self.dropout = nn.Dropout(config.dropout)
        self.reset()

    @property
    def decoder_layers(self) -> Sequence[DecoderLayer]:
        return cast(Sequence[DecoderLayer], self.decoder)

    def forward(self, source: Tensor, target: Tensor, change: Change = NEUTRAL) -> Tensor:
        """Logits [B, T, V] of the next piece after each of `target` [B, T], given `source` [B, S]."""
        governed = rules(source, target, self.config, change)
        encoded = self.encode(source, governed)
        return self.logits(self.decode(target, self.keys_values(encoded.memory), governed).hidden)

    def encode(self, source: Tensor, rules: Rules, capture: bool = False) -> Encoded:
        embedded = self.embed(source, rules.source_positions)
        return run_layers(self.encoder, self.dropout(embedded.sum), rules.encoder, embedded, capture)

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
