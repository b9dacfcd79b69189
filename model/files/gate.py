"""What a file may hold at most, the one way in which it is refused, and the gate for its text."""

import re
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

LARGEST = 20 * 2**20  # bytes of a file
LARGEST_JSON = 8 * 2**20  # bytes of JSON
UNPACKED = 64 * 2**20  # bytes of all numbers in a file
MEMBERS = 256  # arrays in a file
LONGEST = 512  # pieces along an axis, as many as the stage draws
HEADS = 2048  # in all layers of one kind
CHARACTERS = 200  # of a token
TEXT = 20_000  # characters of a whole text
BRACKETS = 100_000  # in a .json, one for each row of weights
NAMES = 50_000  # in a .json, or rather colons
NUMBERS = 2_000_000  # in a .json, or rather commas

BARE = "\u2423"  # how a token of spaces alone is shown
NONE = "\u2205"  # how a token without a character is shown
UNSEEN = "\ufffd"  # what stands for a character that cannot be seen
_JOINERS = "\u200c\u200d"  # they shape the letters beside them
_SIGNS = {"\n": "\u23ce", "\t": "\u21e5"}
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


def visible(text: str) -> str:
    """The same text with something to see in each place: no NUL, lone surrogate or bidirectional override.

    Line breaks and tabs become signs for them, other spaces a space, what cannot be seen U+FFFD, so that no
    two tokens look alike that were not, and every text can be shown, sent and saved. A second time it
    changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_seen, text))


def _seen(character: str) -> str:
    category = unicodedata.category(character)
    if character in _SIGNS:
        return _SIGNS[character]
    if category.startswith("Z"):
        return " "
    hidden = category in ("Cc", "Cf", "Cs", "Co", "Cn") and character not in _JOINERS
    return UNSEEN if hidden else character


def token(text: str) -> tuple[str, bool]:
    """A token as a reader sees it, and whether a space stands before it. Raises FileError.

    The marks of tokenizers for a space, U+2581 and U+0120, are such spaces when they come first.
    """
    if len(text) > CHARACTERS:
        raise FileError("huge", f"token {named(text)}", f"{len(text)} characters", f"{CHARACTERS} at most")
    if not text:
        return NONE, False
    space = text[0] in " \u2581\u0120"
    seen = visible(text[1:] if space else text)
    return (seen if seen.strip(" " + _JOINERS) else BARE), space


def named(text: object, most: int = 40) -> str:
    """A name out of a file, short and plain enough for a sentence."""
    plain = _ODD.sub("?", str(text)[: most + 1])
    return f'"{plain[:most]}..."' if len(plain) > most else f'"{plain}"'


def shaped(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def finite(name: str, array: Numbers, where: Numbers | None = None) -> None:
    """Raise FileError for a NaN or an infinity, in the cells `where` alone if it is given."""
    odd = ~np.isfinite(array)
    if where is not None:
        odd &= where
    if odd.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(odd))
        raise FileError("nan", name, f"{array[at]} at {shaped(at)}, counted from 0", "finite numbers")
