"""The values that cross the border: `Trace`, what a pass showed, and `Change`, what a reader altered.

Numpy only; nothing here knows torch or a screen.
Shapes: L layers, H heads, Q queries, K keys, S source, T target, D d_model, d width of a head, F d_ff,
V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Name = TypeVar("Name", bound=str)
Part = TypeVar("Part")

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")  # all there are; `Trace.kinds` are a model's own
Side = Literal["source", "target"]  # the two sentences; a model may have one of them alone


@dataclass(frozen=True)
class Switch:
    """A mask that is on everywhere, or off in all layers, or off in the chosen ones."""

    off: tuple[int, ...] | Literal["all"] = ()

    def on(self, layer: int) -> bool:
        return self.off != "all" and layer not in self.off


@dataclass(frozen=True)
class Cell:
    """One cell that a reader blocked; in every layer or head where none is named."""

    kind: Kind
    query: int
    key: int
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class Head:
    """The place of one head."""

    kind: Kind
    layer: int
    head: int


@dataclass(frozen=True)
class Change:
    """What differs from the paper's forward pass. Empty by default, and then nothing differs."""

    source_padding: Switch = Switch()  # pads as keys of the encoder
    target_padding: Switch = Switch()  # pads as keys of the decoder
    look_ahead: Switch = Switch()
    cross_padding: Switch = Switch()  # source pads as keys of the cross-attention
    blocked: frozenset[Cell] = frozenset()
    removed: frozenset[Head] = frozenset()  # heads whose output is 0 before W_O
    uniform: frozenset[Head] = frozenset()  # heads whose allowed keys all weigh the same
    positions: Literal["on", "off", "shuffled"] = "on"
    seed: int = 0  # which shuffle
    shift: int = 0  # added to every position
    scale: bool = True  # divide QKᵀ by √d_k
    residual: bool = True  # x + what the sub-layer says; else the latter alone
    norm: bool = True  # LayerNorm after it
    source_pads: int = 0  # pads appended after </s>
    target_pads: int = 0

    def check(self, n_layers: int, n_heads: int) -> None:
        """Raise ValueError where the change names a layer or head that the model has not."""
        switches = (self.source_padding, self.target_padding, self.look_ahead, self.cross_padding)
        layers = [layer for switch in switches if switch.off != "all" for layer in switch.off]
        places: list[Cell | Head] = [*self.blocked, *self.removed, *self.uniform]
        layers += [place.layer for place in places if place.layer is not None]
        heads = [place.head for place in places if place.head is not None]
        for name, values, size in (("layer", layers, n_layers), ("head", heads, n_heads)):
            for value in values:
                if not 0 <= value < size:
                    raise ValueError(f"{name} {value} of {size}; they count from 0")
        for cell in self.blocked:
            if min(cell.query, cell.key) < 0:
                raise ValueError(f"cell ({cell.query}, {cell.key}); queries and keys count from 0")
        if min(self.source_pads, self.target_pads) < 0:
            raise ValueError(f"pads cannot be fewer than 0: {self.source_pads}, {self.target_pads}")


NEUTRAL = Change()


class TextError(ValueError):
    """A sentence that cannot be read, and why: `code` is "empty", "long" or "huge".

    "long" counts pieces, "huge" counts characters: `got` is what came, `limit` what is accepted.
    """

    def __init__(self, code: Literal["empty", "long", "huge"], got: int = 0, limit: int = 0) -> None:
        unit = {"empty": "", "long": "pieces", "huge": "characters"}[code]
        super().__init__(f"{got} {unit}, the limit is {limit}" if unit else "no text to read")
        self.code, self.got, self.limit = code, got, limit

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.got, self.limit)


class AbsentError(LookupError):
    """Something that this trace does not show: its model has no such part, or its file held no more."""


class _Arrays:
    """Makes every array of a dataclass read-only, after construction and after unpickling."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            for array in value.values() if isinstance(value, Mapping) else (value,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.__post_init__()


@dataclass(frozen=True, eq=False)
class Seen(_Arrays):
    """Where the attentions of one kind looked, in every layer and head: the least that can be drawn."""

    weights: Floats  # (L, H, Q, K)  softmax over the allowed keys, or equal; exactly 0 elsewhere
    allowed: Flags  # (L, H, Q, K)  True where the query may look
    scores: Floats | None = None  # (L, H, Q, K)  what softmax was taken of, before the mask


@dataclass(frozen=True, eq=False, kw_only=True)
class Stages(Seen):
    """The same with all that stands before and after it.

    `scores` are QKᵀ/√d, but for additive attention. Keys and values are as wide as each other there too,
    or not: d is then the width of the values in `v` and `output`.
    """

    q: Floats  # (L, H, Q, d)
    k: Floats  # (L, H, K, d)
    v: Floats  # (L, H, K, d)
    output: Floats  # (L, H, Q, d)  weights times v; 0 for a removed head


@dataclass(frozen=True, eq=False)
class Added(_Arrays):
    """What sub-layers of one sort did, in every layer: out = LayerNorm(x + update), x being what entered."""

    update: Floats  # (L, T, D)  what the sub-layer adds
    out: Floats  # (L, T, D)  after Add & Norm: what enters the next sub-layer


@dataclass(frozen=True, eq=False)
class Fed(Added):
    """The same of the feed-forward networks, and their hidden rows."""

    hidden: Floats  # (L, T, F)  after ReLU


@dataclass(frozen=True, eq=False)
class Embedding(_Arrays):
    """What enters the first layer on one side; `sum` is what the layer reads."""

    pieces: Floats  # (T, D)  embedding times √d_model
    positions: Floats  # (T, D)  0 where positions are off
    sum: Floats  # (T, D)


@dataclass(frozen=True)
class Candidate:
    """A piece that may come next, and its log-probability."""

    piece: str
    log_prob: float


def _nothing() -> Floats:
    return np.zeros((0, 0), np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace(_Arrays):
    """Everything one forward pass showed. A side that the model has not is without pieces.

    Row t of the decoder and of the cross-attention is the query `target[t]`, the piece that goes in;
    the piece that this row helped to choose is `comes_out[t]`. An encoder that fills gaps predicts at its
    own places: there `comes_out` and all that is said of it stand beside `source`.
    """

    text: str  # the source, cleaned; of a decoder alone what it goes on from
    change: Change
    attention: Mapping[Kind, Seen]  # of the kinds that the model has, in the order of `KINDS`
    source: tuple[str, ...] = ()  # pieces as a reader knows them, </s> last, appended pads after it
    target: tuple[str, ...] = ()  # the pieces that go in: <s> first
    source_ids: tuple[int, ...] = ()  # what the model reads for them
    target_ids: tuple[int, ...] = ()
    comes_out: tuple[str, ...] = ()  # the pieces that come out: the same, one place on, </s> last
    out_ids: tuple[int, ...] = ()  # their ids
    source_spaces: tuple[bool, ...] = ()  # whether a space stands before the piece
    target_spaces: tuple[bool, ...] = ()
    languages: Mapping[Side, str] = field(default_factory=dict)  # "en", "fr"; none where nobody knows
    unknown: tuple[str, ...] = ()  # pieces of source or target that the model reads as <unk>
    translation: str = ""  # the target as text
    forced: bool = False  # the target was given, not chosen by the model
    cut: bool = False  # the length limit ended the translation, not </s>
    given: int = 0  # pieces of `target` after <s> that a reader gave to a decoder, which wrote the rest
    gaps: tuple[int, ...] = ()  # places of `source` that were hidden behind [MASK]
    hidden: tuple[str, ...] = ()  # the piece behind each of them; "" where a reader typed the gap
    sublayers: Mapping[Kind, Added] = field(default_factory=dict)  # Add & Norm around each attention
    feeds: Mapping[Side, Fed] = field(default_factory=dict)  # the network that ends each layer of a side
    embeddings: Mapping[Side, Embedding] = field(default_factory=dict)
    states: Mapping[Side, Floats] = field(default_factory=dict)  # (T, D)  of a recurrent network
    log_probs: Floats = field(default_factory=_nothing)  # (T, V)  of every piece, next after target[: t + 1]
    # (T,)  of comes_out[t], in a gap of what was hidden; 0 for an appended pad, which nothing predicts
    piece_log_probs: Floats = field(default_factory=_nothing)
    candidates: tuple[tuple[Candidate, ...], ...] = ()  # the ten likeliest next pieces of each row

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(self.attention)

    @property
    def typed(self) -> Side:
        """The side whose text a reader types: the source, or of a decoder alone the target."""
        return "source" if self.source else "target"

    @property
    def predicts(self) -> Side | None:
        """The side whose rows choose pieces; None where nothing is predicted."""
        if not self.comes_out:
            return None
        return "target" if self.target else "source"

    def seen(self, kind: Kind) -> Seen:
        """Raises AbsentError for a kind that the model has not, as do all that take a kind."""
        if kind not in self.attention:
            raise AbsentError(f"no {kind} attention, only: {', '.join(self.kinds) or 'none'}")
        return self.attention[kind]

    def stages(self, kind: Kind) -> Stages:
        """Raises AbsentError where no more than weights are known."""
        seen = self.seen(kind)
        if not isinstance(seen, Stages):
            raise AbsentError(f"of the {kind} attention the weights alone are known")
        return seen

    def added(self, kind: Kind) -> Added:
        return _of(self.sublayers, kind)

    def fed(self, kind: Kind) -> Fed:
        """The feed-forward networks on the side of a kind's queries."""
        return _of(self.feeds, asks(kind))

    def embedding(self, side: Side) -> Embedding:
        return _of(self.embeddings, side)

    def entering(self, kind: Kind, layer: int) -> Floats:
        """(Q, D): what a layer's attention asks with, that is the x of its Add & Norm."""
        if kind == "cross":
            return self.added("decoder").out[layer]
        return self.fed(kind).out[layer - 1] if layer else self.embedding(asks(kind)).sum

    def read(self, kind: Kind, layer: int) -> Floats:
        """(K, D): what a layer's attention reads, from which keys and values are made."""
        return self.fed("encoder").out[-1] if kind == "cross" else self.entering(kind, layer)

    def weights(self, kind: Kind) -> Floats:
        """(L, H, Q, K). Rows sum to 1, but for the rows that `empty` flags."""
        return self.seen(kind).weights

    def scores(self, kind: Kind) -> Floats:
        """(L, H, Q, K), before the mask."""
        scores = self.seen(kind).scores
        if scores is None:
            raise AbsentError(f"the scores of the {kind} attention are not known")
        return scores

    def allowed(self, kind: Kind) -> Flags:
        """(L, H, Q, K), True where a query may look."""
        return self.seen(kind).allowed

    def empty(self, kind: Kind) -> Flags:
        """(L, H, Q), True for a row with nothing allowed: its weights and output are 0."""
        return np.logical_not(self.allowed(kind).any(axis=-1))

    def pieces(self, side: Side) -> tuple[str, ...]:
        return self.source if side == "source" else self.target

    def axes(self, kind: Kind) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The pieces along (queries, keys)."""
        return self.pieces(asks(kind)), self.pieces(asked(kind))

    @property
    def log_prob(self) -> float:
        """Natural logarithm of the model's probability of the whole target, </s> included."""
        return float(self.piece_log_probs.sum())


def asks(kind: Kind) -> Side:
    """The side whose pieces are the queries of a kind."""
    return "source" if kind == "encoder" else "target"


def asked(kind: Kind) -> Side:
    """The side whose pieces are its keys."""
    return "target" if kind == "decoder" else "source"


def _of(parts: Mapping[Name, Part], name: Name) -> Part:
    if name not in parts:
        raise AbsentError(f"nothing is known of {name} here, only of: {', '.join(parts) or 'none'}")
    return parts[name]
