"""What positions tell apart: words that change places, equal pieces, and a rotation. Numbers only.

Shapes: L layers, H heads, S source, T pieces of one side, N positions, D d_model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.trace import Embedding, Floats, Kind, Stages, Trace, asks

SPECIAL = (
    4  # ids below are <pad>, <s>, </s> and <unk>; of these only <unk> can stand twice by a reader's doing
)
UNKNOWN = 3


@dataclass(frozen=True)
class Word:
    """A word of the source: its pieces are `start` up to `stop`."""

    text: str
    space: bool  # whether a space stands before it
    start: int
    stop: int


def words(trace: Trace) -> tuple[Word, ...]:
    """The source as a reader counts it: pieces of one word joined, each mark a word of its own."""
    found: list[Word] = []
    for index in range(len(trace.source) - trace.change.source_pads - 1):  # without </s> and pads
        piece, space = trace.source[index], trace.source_spaces[index]
        last = found[-1] if found else None
        if last and not space and piece[0].isalnum() and last.text[-1].isalnum():
            found[-1] = Word(last.text + piece, last.space, last.start, index + 1)
        else:
            found.append(Word(piece, space, index, index + 1))
    return tuple(found)


def swap(trace: Trace, first: int, second: int) -> tuple[str, NDArray[np.int64]]:
    """The text with two words swapped, and the order (S,) in which it should hold the old pieces.

    Each word takes its space along, since the tokenizer reads a word by its space.
    """
    moved = list(words(trace))
    moved[first], moved[second] = moved[second], moved[first]
    order = [index for word in moved for index in range(word.start, word.stop)]
    order += range(len(order), len(trace.source))
    text = "".join(" " * word.space + word.text for word in moved).strip()
    return text, np.array(order)


def same_pieces(trace: Trace, swapped: Trace, order: NDArray[np.int64]) -> bool:
    """Whether `swapped` reads the pieces of `trace` in this order; a word at a new place may be cut anew."""
    return swapped.source_ids == tuple(trace.source_ids[index] for index in order)


def put_back(swapped: Trace, order: NDArray[np.int64]) -> Trace:
    """`swapped` with its source pieces returned to their old places, in every array that has them."""
    old = np.argsort(order)

    def moved(stages: Stages, rows: Sequence[str], keys: Sequence[str]) -> Stages:
        arrays: dict[str, Any] = {name: getattr(stages, name) for name in {*rows, *keys}}
        arrays |= {name: arrays[name][:, :, old] for name in rows}
        arrays |= {name: arrays[name][..., old] for name in keys}
        return replace(stages, **arrays)

    maps = ("scores", "allowed", "weights")
    axes: dict[Kind, tuple[Sequence[str], Sequence[str]]] = {
        "encoder": (("q", "k", "v", "output", *maps), maps),
        "cross": (("k", "v"), maps),
    }
    embedding = swapped.embedding("source")
    return replace(
        swapped,
        source=tuple(swapped.source[index] for index in old),
        source_ids=tuple(swapped.source_ids[index] for index in old),
        source_spaces=tuple(swapped.source_spaces[index] for index in old),
        attention={
            kind: moved(swapped.stages(kind), *axes[kind]) if kind in axes else seen
            for kind, seen in swapped.attention.items()
        },
        embeddings={
            **swapped.embeddings,
            "source": Embedding(embedding.pieces[old], embedding.positions[old], embedding.sum[old]),
        },
    )


def twins(trace: Trace, kind: Kind) -> tuple[tuple[int, int], ...]:
    """The pairs of rows of a kind whose piece is the same, each with the next of its name."""
    ids = trace.source_ids if asks(kind) == "source" else trace.target_ids
    last: dict[int, int] = {}
    found = []
    for index, id_ in enumerate(ids):
        if id_ in last:
            found.append((last[id_], index))
        if id_ >= SPECIAL or id_ == UNKNOWN:
            last[id_] = index
    return tuple(found)


def apart(trace: Trace, kind: Kind, pair: tuple[int, int]) -> Floats:
    """(L, H): the largest difference of a weight between two rows."""
    first, second = pair
    weights = trace.weights(kind)
    return abs(weights[:, :, first] - weights[:, :, second]).max(axis=-1)


def norms(embedding: Embedding) -> Floats:
    """(T, 3): the lengths of piece, position and sum."""
    parts = (embedding.pieces, embedding.positions, embedding.sum)
    return np.stack([np.linalg.norm(part, axis=-1) for part in parts], axis=-1)


def shares(embedding: Embedding) -> Floats:
    """(T, 2): what piece and position bring to the squared length of the sum; a row adds up to 1.

    |s|² = s·piece + s·position, since s is their sum: no other split leaves nothing over.
    """
    total = embedding.sum
    parts = [(total * part).sum(axis=-1) for part in (embedding.pieces, embedding.positions)]
    return np.stack(parts, axis=-1) / np.square(total).sum(axis=-1, keepdims=True)


def places(positions: Floats, encoding: Floats) -> list[int]:
    """Which rows of `encoding` (N, D) the encodings `positions` (T, D) are. All are equally long."""
    return np.argmax(positions @ encoding.T, axis=-1).tolist()


def turn(encoding: Floats, pair: int, offset: int) -> Floats:
    """The rotation (2, 2) that takes dimensions (2 pair, 2 pair + 1) of any position `offset` further.

    Its sine and cosine are the encoding of the offset itself.
    """
    sine, cosine = encoding[offset, 2 * pair : 2 * pair + 2]
    return np.array([[cosine, sine], [-sine, cosine]])


def turned_apart(encoding: Floats, offset: int, pairs: Sequence[int]) -> float:
    """How far the rotated encodings are from the encodings `offset` further, at the worst position."""
    worst = 0.0
    for pair in pairs:
        points = encoding[:, 2 * pair : 2 * pair + 2]
        turned = points[: len(points) - offset] @ turn(encoding, pair, offset).T
        worst = max(worst, float(abs(turned - points[offset:]).max()))
    return worst
