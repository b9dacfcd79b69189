"""What a head does, measured on a trace: how wide it looks, how far, by which rule, and through all layers.

Numpy only, as `model.trace` is. Shapes: L layers, H heads, Q queries, K keys, S source, T target.
Rows with one allowed key have no choice and are never counted; nor are rows of pads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from model import words
from model.trace import KINDS, Flags, Floats, Head, Kind, Trace

Counts = NDArray[np.int64]
Role = Literal["previous", "next", "same", "first", "end", "mark", "broad", "align out", "align in"]
ROLES: tuple[Role, ...] = get_args(Role)
Measure = Literal["entropy", "largest", "distance"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

HOLDS = 0.5  # a head has a role where the rule holds in at least this share of its rows
BROAD = 0.75  # a row is broad where it reads as many keys as an even row over this share of them
BROAD_KEYS = 4  # over fewer keys every row is broad

WHERE: dict[Role, tuple[Kind, ...]] = {
    "previous": ("encoder", "decoder"),
    "next": ("encoder",),  # a decoder may not look ahead
    "same": ("encoder", "decoder"),
    "first": KINDS,
    "end": ("encoder", "cross"),  # no </s> goes into a decoder
    "mark": KINDS,
    "broad": KINDS,
    "align out": ("cross",),  # these two need links between the words: `aligned`
    "align in": ("cross",),
}
READING: dict[Role, words.Read] = {"align out": "comes out", "align in": "goes in"}


def all_heads(layers: int, heads: int, kinds: Sequence[Kind] = KINDS) -> list[Head]:
    """Every head of a model, kind by kind."""
    return [Head(kind, layer, head) for kind in kinds for layer in range(layers) for head in range(heads)]


# --- measures ---------------------------------------------------------------------------------------------


def evenness(weights: Floats, allowed: Flags) -> Floats:
    """[..., K] -> [...]: entropy over the largest it could be, log n of n allowed keys; 1 is an even row.

    0 where one key or none is allowed.
    """
    keys = allowed.sum(axis=-1)
    safe = np.where(weights > 0, weights, 1).astype(np.float64)
    entropy = -(safe * np.log(safe)).sum(axis=-1)
    return np.asarray(entropy / np.log(np.maximum(keys, 2)), np.float32)


def distances(trace: Trace, kind: Kind) -> Floats:
    """(Q, K): how far a key is from its query, in pieces.

    In cross-attention the query is put where it would stand, were both sentences as long: at the same
    share of the way.
    """
    queries, keys = (len(axis) for axis in trace.axes(kind))
    rows = np.arange(queries, dtype=np.float32)
    if kind == "cross":
        rows *= (keys - 1) / max(1, queries - 1)
    return np.abs(rows[:, None] - np.arange(keys, dtype=np.float32))


def counted(trace: Trace, kind: Kind, least: int = 2) -> Flags:
    """(L, H, Q): rows with a choice of `least` keys, pads left out."""
    real = np.array([piece != "<pad>" for piece in trace.axes(kind)[0]])
    return (trace.allowed(kind).sum(axis=-1) >= least) & real


def measures(trace: Trace, kind: Kind) -> dict[Measure, tuple[Floats, Counts]]:
    """Sums over rows (L, H) and how many rows: evenness, largest weight, mean distance looked at."""
    weights, rows = trace.weights(kind), counted(trace, kind)
    each: dict[Measure, Floats] = {
        "entropy": evenness(weights, trace.allowed(kind)),
        "largest": weights.max(axis=-1),
        "distance": (weights * distances(trace, kind)).sum(axis=-1),
    }
    return {name: ((values * rows).sum(axis=-1), rows.sum(axis=-1)) for name, values in each.items()}


# --- roles ------------------------------------------------------------------------------------------------


Cells = Callable[[Trace, Kind], Flags]  # (Q, K): the cells that a rule is about
Rule = Callable[[Trace, Kind], tuple[Flags, Flags]]  # where it holds, and the rows that are asked: (L, H, Q)


def _beside(offset: int) -> Cells:
    """The piece `offset` places on."""

    def cells(trace: Trace, kind: Kind) -> Flags:
        queries, keys = map(len, trace.axes(kind))
        return np.eye(queries, keys, k=offset, dtype=bool)

    return cells


def _on(wanted: Callable[[int, str], bool]) -> Cells:
    """A wanted piece that is not the row's own."""

    def cells(trace: Trace, kind: Kind) -> Flags:
        queries, keys = trace.axes(kind)
        good = np.array([[wanted(place, piece) for place, piece in enumerate(keys)]] * len(queries))
        return good if kind == "cross" else good & ~np.eye(len(keys), dtype=bool)

    return cells


def _reads(wanted: Cells) -> Rule:
    """The row's largest weight is on a wanted key. Rows that may look at none are not asked."""

    def rule(trace: Trace, kind: Kind) -> tuple[Flags, Flags]:
        weights, good = trace.weights(kind), wanted(trace, kind)
        favourites = weights.argmax(axis=-1)[..., None]
        hit = np.take_along_axis(np.broadcast_to(good, weights.shape), favourites, axis=-1)[..., 0]
        return hit, _asked(trace, kind, good)

    return rule


def _asked(trace: Trace, kind: Kind, good: Flags) -> Flags:
    return counted(trace, kind) & (good & trace.allowed(kind)).any(axis=-1)


def _broad(trace: Trace, kind: Kind) -> tuple[Flags, Flags]:
    allowed = trace.allowed(kind)
    keys = np.maximum(allowed.sum(axis=-1), 2)
    read = keys ** evenness(trace.weights(kind), allowed)  # e^entropy: as many even keys would be as wide
    return read >= BROAD * keys, counted(trace, kind, BROAD_KEYS)


def is_mark(piece: str) -> bool:
    """A full stop, a comma, a hyphen on its own: no letter or digit, and no special piece."""
    return piece not in words.SPECIAL and not any(map(str.isalnum, piece))


_CELLS: dict[Role, Cells] = {
    "previous": _beside(-1),
    "next": _beside(1),
    "same": _beside(0),
    "first": _on(lambda place, _piece: place == 0),
    "end": _on(lambda _place, piece: piece == "</s>"),
    "mark": _on(lambda _place, piece: is_mark(piece)),
}
_RULES: dict[Role, Rule] = {role: _reads(cells) for role, cells in _CELLS.items()} | {"broad": _broad}


def role_counts(trace: Trace, role: Role, kind: Kind) -> tuple[Counts, Counts]:
    """(L, H) each: the rows in which the rule of `role` holds, and the rows that were asked."""
    hits, rows = _RULES[role](trace, kind)
    return (hits & rows).sum(axis=-1), rows.sum(axis=-1)


def mean_weight(trace: Trace, role: Role, kind: Kind) -> Floats:
    """(L, H): the mean weight on the cells of a rule, over the rows that are asked; 0 where none is.

    For one short sentence, where the share of rows has few values.
    """
    good = _CELLS[role](trace, kind)
    rows = _asked(trace, kind, good)
    on = (trace.weights(kind) * good).sum(axis=-1) * rows
    return np.asarray(on.sum(axis=-1) / np.maximum(rows.sum(axis=-1), 1), np.float32)


def aligned(trace: Trace, role: Role, possible: words.Links) -> tuple[Counts, Counts]:
    """(L, H) each: the French words whose favourite English word is a possible link, and all of them."""
    chosen = words.favourites(words.cross_words(trace, READING[role]))
    rows = range(chosen.shape[-1])
    hits = np.stack([np.isin(chosen[..., t], [s for s, u in possible if u == t]) for t in rows], axis=-1)
    return hits.sum(axis=-1), np.full(chosen.shape[:-1], len(rows))


def given(rates: Mapping[Role, float | None]) -> Role | None:
    """The role of a head: the rule that holds most often, if it holds in `HOLDS` of the rows; else none."""
    held = [(rate, role) for role, rate in rates.items() if rate is not None and rate >= HOLDS]
    return max(held, key=lambda pair: pair[0])[1] if held else None


# --- a survey of sentences --------------------------------------------------------------------------------


@dataclass
class Tally:
    """Sums over sentences, for every head of one kind."""

    measured: dict[Measure, tuple[Floats, Counts]]
    roles: dict[Role, tuple[Counts, Counts]]

    @classmethod
    def of(cls, trace: Trace, kind: Kind) -> "Tally":
        return cls(
            measures(trace, kind),
            {role: role_counts(trace, role, kind) for role in _RULES if kind in WHERE[role]},
        )

    def add(self, other: "Tally") -> None:
        for name, (total, rows) in other.measured.items():
            self.measured[name] = self.measured[name][0] + total, self.measured[name][1] + rows
        for role, (hits, asked) in other.roles.items():
            self.roles[role] = self.roles[role][0] + hits, self.roles[role][1] + asked

    def means(self) -> dict[str, Floats]:
        """(L, H) of each measure and each role's share of rows; NaN where no row was asked."""
        both: Iterable[tuple[str, Any]] = [*self.measured.items(), *self.roles.items()]
        with np.errstate(invalid="ignore"):
            return {name: np.asarray(total / rows) for name, (total, rows) in both}


def random_weights(trace: Trace, kind: Kind, seed: int) -> Floats:
    """(1, 1, Q, K): a head that knows nothing: softmax over the allowed keys of scores drawn from N(0, 1)."""
    allowed = trace.allowed(kind)[:1, :1]
    scores = np.random.default_rng([seed, *trace.source_ids, 0, *trace.target_ids]).standard_normal(
        allowed.shape, np.float32
    )
    powers = np.exp(scores) * allowed
    return np.asarray(powers / np.maximum(powers.sum(axis=-1, keepdims=True), 1e-30))


def randomised(trace: Trace, seed: int) -> Trace:
    """The trace with one layer of one random head in every kind: the baseline of every measure here."""
    parts = {
        kind: replace(
            trace.seen(kind),
            weights=random_weights(trace, kind, seed),
            allowed=trace.allowed(kind)[:1, :1],
        )
        for kind in trace.kinds
    }
    return replace(trace, attention=parts)


# --- rollout ----------------------------------------------------------------------------------------------


def rollout(trace: Trace, kind: Kind) -> Floats:
    """What each row holds of the pieces at the bottom, if weights were all that mixed them, after each layer.

    Attention rollout (Abnar and Zuidema 2020): half of a row stays, half is mixed by the mean of the
    heads, Ã = (I + mean W) / 2, and layers multiply. Encoder: (L, S, S). Decoder and cross, which are one
    stream: (L, T, S + T), English first; a cross-attention mixes in what the encoder's rows hold.
    In a decoder that stands alone: (L, T, T). Rows sum to 1, but for those that had a row with nothing
    allowed on their way.
    """
    read = np.eye(len(trace.source), dtype=np.float32)
    layers = []
    for weights in trace.weights("encoder").mean(axis=1) if "encoder" in trace.kinds else ():
        read = (read + weights @ read) / 2
        layers.append(read)
    if kind == "encoder":
        return np.stack(layers)
    size, crosses = len(trace.target), "cross" in trace.kinds
    mixed = np.concatenate([np.zeros((size, len(trace.source))), np.eye(size)], axis=1).astype(np.float32)
    below = np.concatenate([read, np.zeros((len(trace.source), size), np.float32)], axis=1)
    layers = []
    for layer, own in enumerate(trace.weights("decoder").mean(axis=1)):
        mixed = (mixed + own @ mixed) / 2
        if crosses:
            mixed = (mixed + trace.weights("cross")[layer].mean(axis=0) @ below) / 2
        layers.append(mixed)
    return np.stack(layers)
