"""How many numbers a Transformer learns, part by part (Vaswani et al. 2017, sections 3 and 6.2, table 3)."""

from dataclasses import dataclass
from typing import Literal

from model.config import Config

Group = Literal["embedding", "positions", "attention", "feed-forward", "norm"]
GROUPS: tuple[Group, ...] = ("embedding", "positions", "attention", "feed-forward", "norm")
Side = Literal["both", "encoder", "decoder"]


@dataclass(frozen=True)
class Shape:
    """Whatever decides how much is learned. The number of heads does not: h heads of width d / h."""

    vocabulary: int
    encoder: int  # layers; 0: a decoder alone, without cross-attention
    decoder: int  # layers; 0: an encoder alone
    d_model: int
    d_ff: int
    shared: bool = True  # one matrix embeds both sides and makes the output (section 3.4); else one for each
    biases: bool = True
    norms: bool = True
    positions: int = 0  # learned ones a side; 0: the paper's formula

    def __post_init__(self) -> None:
        for name in ("vocabulary", "d_model", "d_ff"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if min(self.encoder, self.decoder, self.positions) < 0:
            raise ValueError("layers and positions cannot be fewer than 0")


VOCABULARY = 37_000  # "about 37000" of section 5.1
PAPER: dict[Literal["base", "big"], Shape] = {
    "base": Shape(VOCABULARY, 6, 6, 512, 2048),
    "big": Shape(VOCABULARY, 6, 6, 1024, 4096),
}
PRINTED = {"base": 65_000_000, "big": 213_000_000}  # in table 3


def shape(config: Config) -> Shape:
    """The shape of a model of this project."""
    return Shape(config.vocabulary, config.n_layers, config.n_layers, config.d_model, config.d_ff)


@dataclass(frozen=True)
class Part:
    """`copies` of one part, each of `each` numbers."""

    group: Group
    side: Side
    name: str  # as in the paper: "W_Q"; "cross W_Q" where it belongs to the cross-attention
    formula: str
    each: int
    copies: int

    @property
    def total(self) -> int:
        return self.each * self.copies


def parts(of: Shape) -> list[Part]:
    """Every part that learns, in the order of a pass. Parts of which there are none are left out."""
    d, f, v = of.d_model, of.d_ff, of.vocabulary
    sides = (of.encoder > 0) + (of.decoder > 0)
    found = [Part("embedding", "both", "embedding", "V·d", v * d, 1 if of.shared else sides + 1)]
    if of.positions:
        found.append(Part("positions", "both", "positions", "n_max·d", of.positions * d, sides))
    bias = int(of.biases)
    for side, layers in (("encoder", of.encoder), ("decoder", of.decoder)):
        crosses = side == "decoder" and of.encoder > 0
        for prefix in ("", "cross ") if crosses else ("",):
            for name in ("W_Q", "W_K", "W_V", "W_O"):
                found.append(
                    Part("attention", side, prefix + name, "d·d" + " + d" * bias, d * d + d * bias, layers)  # type: ignore[arg-type]
                )
        for name, formula, each in (
            ("W_1", "d·d_ff" + " + d_ff" * bias, d * f + f * bias),
            ("W_2", "d_ff·d" + " + d" * bias, f * d + d * bias),
        ):
            found.append(Part("feed-forward", side, name, formula, each, layers))  # type: ignore[arg-type]
        if of.norms:
            found.append(Part("norm", side, "LayerNorm", "2·d", 2 * d, layers * (3 if crosses else 2)))  # type: ignore[arg-type]
    return [part for part in found if part.copies]


def total(of: Shape) -> int:
    return sum(part.total for part in parts(of))


def by_group(of: Shape) -> dict[Group, int]:
    """The total of each group, 0 for one that is missing."""
    found = parts(of)
    return {group: sum(part.total for part in found if part.group == group) for group in GROUPS}


def in_layer(of: Shape, side: Literal["encoder", "decoder"]) -> dict[Group, int]:
    """What one layer of a side holds; all 0 where the model has no such side."""
    layers = of.encoder if side == "encoder" else of.decoder
    own = [part for part in parts(of) if part.side == side]
    return {
        group: sum(part.total for part in own if part.group == group) // max(layers, 1) for group in GROUPS
    }


def attention_matrices(d_model: int, layers: int) -> int:
    """Numbers in the W_Q, W_K, W_V and W_O of so many multi-head layers, without biases."""
    return layers * 4 * d_model * d_model
