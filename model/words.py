"""Pieces to words, words to links, links to an error rate: how well a head aligns two sentences.

Numpy only, as `model.trace` is. Shapes: Q queries, K keys, N words along the queries, M along the keys.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.trace import Floats, Trace

Indices = NDArray[np.int64]
Link = tuple[int, int]  # (English word, French word), counted from 0
Links = frozenset[Link]
Read = Literal["comes out", "goes in"]  # which piece a row of the cross-attention is taken to read for
READS: tuple[Read, ...] = ("comes out", "goes in")

GOLD = Path(__file__).parent.parent / "assets" / "gold" / "en-fr.txt"
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")

_LETTER = "[^\\W\\d_\u0300-\u036f]"
# The tokenizer's WORD for Python's own `re`, spaces left out; a test holds the two together.
_WORD = re.compile(
    rf"(?i:aujourd'hui|o'clock|{_LETTER}+n't)(?!{_LETTER})"
    rf"|(?i:[cdjlmnst]|{_LETTER}*qu)'(?={_LETTER})"
    rf"|(?i:'(?:s|m|d|re|ve|ll))(?!{_LETTER})"
    rf"|-?(?:{_LETTER}|[\u0300-\u036f])+"
    r"|\S"
)


def cut(text: str) -> list[str]:
    """The words and marks of a cleaned text, as the tokenizer cuts them before it makes pieces."""
    return _WORD.findall(text)


def word_of(pieces: Sequence[str], spaces: Sequence[bool]) -> Indices:
    """[T]: the number of the word that each piece belongs to; a special piece is a word of its own.

    `spaces` says whether a space stands before a piece, as in a trace.
    """
    found = np.zeros(len(pieces), np.int64)
    count, start = 0, 0
    while start < len(pieces):
        stop = start + 1
        if pieces[start] in SPECIAL:
            found[start] = count
            count += 1
        else:
            while stop < len(pieces) and pieces[stop] not in SPECIAL:
                stop += 1
            text, places = "", []
            for piece, space in zip(pieces[start:stop], spaces[start:stop], strict=True):
                text += " " * space
                places.append(len(text))
                text += piece
            begins = [match.start() for match in _WORD.finditer(text)]
            found[start:stop] = count + np.searchsorted(begins, places, side="right") - 1
            count += len(begins)
        start = stop
    return found


def names(pieces: Sequence[str], words: Indices) -> tuple[str, ...]:
    """What each word is called: its pieces, joined."""
    called = [""] * (int(words.max()) + 1 if len(words) else 0)
    for piece, word in zip(pieces, words, strict=True):
        called[word] += piece
    return tuple(called)


def merge(weights: Floats, rows: Indices, columns: Indices) -> Floats:
    """[..., Q, K] -> [..., N, M]: summed over the pieces of a key word, averaged over those of a query word.

    Rows that sum to 1 sum to 1 afterwards: a word shares its pieces' attention, and is asked for whole.
    """
    asked = np.eye(int(columns.max()) + 1, dtype=weights.dtype)[columns]  # (K, M)
    asking = np.eye(int(rows.max()) + 1, dtype=weights.dtype)[rows]  # (Q, N)
    merged: Floats = (asking / asking.sum(axis=0)).T @ weights @ asked
    return merged


@dataclass(frozen=True, eq=False)
class Merged:
    """The cross-attention between words. Pads, <s> and </s> are words too, with their own names."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights: Floats  # (L, H, N, M)

    def real(self) -> tuple[list[int], list[int]]:
        """The rows and columns that are words of the two sentences."""
        return (
            [n for n, name in enumerate(self.rows) if name not in SPECIAL],
            [m for m, name in enumerate(self.columns) if name not in SPECIAL],
        )


def cross_words(trace: Trace, read: Read) -> Merged:
    """The cross-attention of all heads with pieces merged into words.

    Row t reads for the piece that comes out of it, or for the one that goes in: the same numbers, one
    place apart.
    """
    pieces, spaces = trace.target, trace.target_spaces
    if read == "comes out":
        pieces, spaces = trace.comes_out, (*trace.target_spaces[1:], False)
    rows, columns = word_of(pieces, spaces), word_of(trace.source, trace.source_spaces)
    return Merged(
        names(pieces, rows), names(trace.source, columns), merge(trace.weights("cross"), rows, columns)
    )


def favourites(merged: Merged) -> Indices:
    """(L, H, n): for each French word, the number of the English word that each head reads most.

    Both count the words of the sentences alone. <s>, </s> and pads are no words: a head that rests on
    </s> is asked what it reads most besides. Every French word gets one link, marks included.
    """
    rows, columns = merged.real()
    chosen: Indices = merged.weights[..., rows, :][..., columns].argmax(axis=-1)
    return chosen


def links(chosen: Iterable[int]) -> Links:
    """The links of one head from its row of `favourites`."""
    return frozenset((int(source), target) for target, source in enumerate(chosen))


@dataclass(frozen=True)
class Gold:
    """A sentence pair with its links drawn by hand; `assets/gold/README.md` has the rule."""

    english: str
    french: str
    source: tuple[str, ...]  # the English words and marks
    target: tuple[str, ...]
    sure: Links
    possible: Links  # the sure ones among them
    alone: tuple[tuple[int, ...], tuple[int, ...]]  # words without a link, of either side


def aer(found: Sequence[Links], gold: Sequence[Gold]) -> float:
    """Alignment error rate, 1 - (|A∩S| + |A∩P|) / (|A| + |S|), counted over all pairs together.

    A are the links found, S the sure ones, P the possible ones with S among them (Och and Ney 2003). At 0
    every link found is possible, and every sure one was found.
    """
    hits = total = 0
    for one, truth in zip(found, gold, strict=True):
        hits += len(one & truth.sure) + len(one & truth.possible)
        total += len(one) + len(truth.sure)
    return 1 - hits / total if total else 0.0


def halves(gold: Sequence[Gold]) -> tuple[list[Gold], list[Gold]]:
    """The half that the best head is chosen on, and the half that it is reported on."""
    return list(gold[::2]), list(gold[1::2])


def read_gold(path: Path = GOLD) -> list[Gold]:
    """The pairs of a gold file. Raises ValueError with the line that breaks the format."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [_block(block) for block in blocks]


def _block(block: str) -> Gold:
    fields: dict[str, str] = {}
    for line in block.splitlines():
        name, colon, value = line.partition(":")
        if not colon or name not in {"en", "fr", "sure", "possible", "alone"} or name in fields:
            raise ValueError(f"not a line of a gold file: {line}")
        fields[name] = value.strip()
    if not {"en", "fr", "sure"} <= fields.keys():
        raise ValueError(f"a pair needs en, fr and sure: {block}")
    source, target = cut(fields["en"]), cut(fields["fr"])
    sure = _links(fields["sure"], source, target)
    possible = sure | _links(fields.get("possible", ""), source, target)
    english, _stroke, french = fields.get("alone", "/").partition("/")
    alone = (
        tuple(_place(word, source) for word in english.split()),
        tuple(_place(word, target) for word in french.split()),
    )
    linked = {s for s, _t in possible}, {t for _s, t in possible}
    for side, words in enumerate((source, target)):
        if sorted([*linked[side], *alone[side]]) != list(range(len(words))):
            odd = [word for i, word in enumerate(words) if (i in linked[side]) == (i in alone[side])]
            raise ValueError(f"{odd} must be linked or alone, not both: {fields['en']}")
    return Gold(fields["en"], fields["fr"], tuple(source), tuple(target), sure, possible, alone)


def _links(text: str, source: list[str], target: list[str]) -> Links:
    found = set()
    for item in text.split():
        # A mark may be "=" or "/" itself in some other file; no sentence here has one.
        left, equals, right = item.partition("=")
        if not (left and equals and right):
            raise ValueError(f"not a link: {item}")
        found |= {(_place(a, source), _place(b, target)) for a in left.split("/") for b in right.split("/")}
    return frozenset(found)


def _place(name: str, words: list[str]) -> int:
    """Where a word stands; `for#2` is the second one. A repeated word needs its number."""
    word, _hash, number = name.partition("#")
    places = [place for place, other in enumerate(words) if other == word]
    if not places or (not number and len(places) > 1) or int(number or 1) > len(places):
        raise ValueError(f"{name} names no one word of: {' '.join(words)}")
    return places[int(number or 1) - 1]
