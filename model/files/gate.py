"""What a file may hold at most, the one way in which it is refused, and the gate for its text."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.hub.pieces import LOW_LINE, Spelling, spelled, visible

Numbers = NDArray[Any]

UNPACKED = 64 * 2**20  # bytes of all numbers in a file
LARGEST_JSON = 8 * 2**20  # bytes of JSON
LARGEST = UNPACKED + LARGEST_JSON  # bytes of a file
MEMBERS = 256  # arrays in a file
LONGEST = 512  # pieces along an axis, as many as the stage draws
HEADS = 2048  # in all layers of one kind
CHARACTERS = 200  # of a token; a sign for what cannot be seen takes up to eight
TEXT = 20_000  # characters of a whole text
BRACKETS = 100_000  # in a .json, one for each row of weights
NAMES = 50_000  # in a .json, or rather colons
NUMBERS = 2_000_000  # in a .json, or rather commas

_ODD = re.compile(r"[^\x20-\x7e]")


class FileError(ValueError):
    """A file or an array that is refused, and why, in one sentence: `what` was wrong, `got` and `want`.

    `code` is one of
      format   not a .npz, .safetensors or .json, or its name says another of them
      damaged  it breaks off, or contradicts itself
      huge     more bytes, arrays, pieces, heads or characters than are read
      bomb     far more bytes inside than the file has
      pickle   Python objects, which could be a program
      member   a name that is used twice, is no plain name, or means nothing here
      nested   a JSON of too many brackets, names or numbers, or of brackets too deep in each other
      version  a whole trace in a way of writing that this version does not know
      missing  no attention weights, or none of what must stand beside them
      type     not numbers, or not text, where these are wanted
      shape    axes of another number or length
      batch    several sentences at once
      nan      a NaN or an infinity
      range    a weight below 0 or above 1
      sum      weights of a query that do not sum to 1
      tokens   not as many tokens as weights, or not for these axes
      mask     a mask that is not True and False, or forbids what has weight
      scores   scores whose softmax is not the weights
    """

    def __init__(self, code: str, what: str, got: object, want: object) -> None:
        self.code = code
        self.what, self.got, self.want = (_short(str(each)) for each in (what, got, want))
        super().__init__(f"{self.what}: got {self.got}, want {self.want}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.what, self.got, self.want)


def _short(text: str, most: int = 240) -> str:
    return text if len(text) <= most else text[:most] + " ..."


def shown(tokens: Sequence[str]) -> list[tuple[str, bool]]:
    """Tokens as a reader sees them, and whether a space stands before each. Raises FileError.

    A space in front, or a tokenizer's mark for one, is such a space; without any they are words, and a space
    is between them. What cannot be seen has a sign.
    """
    for token in tokens:
        if len(token) > CHARACTERS:
            raise FileError(
                "huge", f"token {named(token)}", f"{len(token)} characters", f"{CHARACTERS} at most"
            )
    spelling = _spelling(tokens)
    pieces = [spelled(token, spelling) for token in tokens]
    if sum(len(piece) for piece, _space in pieces) > TEXT:
        raise FileError("huge", "all tokens", f"over {TEXT:,} characters", f"at most {TEXT:,}")
    if spelling == "ends":
        ended = [False, *(token.endswith("</w>") for token in tokens)]
    elif any(space for _piece, space in pieces):
        return pieces
    else:
        ended = [False, *(True for _token in tokens)]
    return [(piece, end) for (piece, _space), end in zip(pieces, ended, strict=False)]


def _spelling(tokens: Sequence[str]) -> Spelling:
    """Whose tokens these are, as their marks tell."""
    if any("\u0120" in token for token in tokens):
        return "bytes"
    if any(token.startswith(LOW_LINE) for token in tokens):
        return "low line"
    if any(token.startswith("##") and len(token) > 2 for token in tokens):
        return "hashes"
    return "ends" if any(token.endswith("</w>") for token in tokens) else "plain"


def readable(text: str) -> str:
    """A text of a whole trace, with a sign for what cannot be seen; it may have lines. Raises FileError.

    What a door of `model` shows stays as it is, and a second time nothing changes.
    """
    if len(text) > TEXT:
        raise FileError("huge", "a text in the file", f"{len(text):,} characters", f"at most {TEXT:,}")
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if letter in " \n\t" else visible(letter) for letter in text)


def named(text: object, most: int = 40) -> str:
    """A name out of a file, short and plain enough for a sentence."""
    plain = _ODD.sub("?", str(text)[: most + 1])
    return f'"{plain[:most]}..."' if len(plain) > most else f'"{plain}"'


def shaped(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def finite(name: str, array: Numbers, where: Numbers | None = None) -> None:
    """Raise FileError for a NaN or an infinity, in the cells `where` alone if it is given."""
    array = np.atleast_1d(array)
    odd = ~np.isfinite(array)
    if where is not None:
        odd &= where
    if odd.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(odd))
        raise FileError("nan", name, f"{array[at]} at {shaped(at)}, counted from 0", "finite numbers")
