"""The pieces of other vocabularies, as a reader knows them.

Vocabularies mark where a word begins: byte-level ones with a letter for the space and a letter for every
byte (GPT-2, RoBERTa, BART), sentencepiece with a low line, WordPiece by what goes on with `##`, some by
what ends with `</w>`. A reader sees the text; the space before it is a fact kept beside it.
"""

import codecs
import re
import unicodedata
from typing import Literal

from model.unseen import IGNORABLE

Spelling = Literal["bytes", "low line", "hashes", "ends", "plain"]

LOW_LINE = "\u2581"
BARE = "\u2423"  # a space with nothing behind it
_SEEN = {"\n": "\u23ce", "\r": "\u240d", "\t": "\u21e5"}
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _alphabet() -> dict[str, int]:
    """The bytes by the letters that byte-level vocabularies write for them (Radford et al., 2019).

    What can be printed stands for itself, the rest for itself moved beyond 255, in order.
    """
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printed]
    return {chr(byte): byte for byte in printed} | {chr(256 + i): byte for i, byte in enumerate(rest)}


BYTES = _alphabet()


def _shown(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no whole character, as sentencepiece writes them."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"<0x{byte:02X}>" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("headlight", _shown)


def spelled(token: str, spelling: Spelling) -> tuple[str, bool]:
    """What a reader sees of a token of the vocabulary, and whether a space stands before it."""
    space = False
    if spelling == "bytes" and all(letter in BYTES for letter in token):
        text = bytes(BYTES[letter] for letter in token).decode("utf-8", errors="headlight")
    elif spelling == "low line":
        whole = _BYTE.fullmatch(token)
        text = token.replace(LOW_LINE, " ")
        if whole:
            text = bytes([int(whole[1], 16)]).decode("utf-8", errors="headlight")
    elif spelling == "hashes":
        going_on = token.startswith("##") and len(token) > 2
        text, space = (token[2:], False) if going_on else (token, True)
    elif spelling == "ends":
        text = token.removesuffix("</w>")
    else:
        text = token
    if text.startswith(" "):
        text, space = text[1:], True
    return visible(text), space


def visible(text: str) -> str:
    """The text with a sign for each character that could not be seen, or would garble a label."""
    if not text.strip(" "):
        return BARE * max(1, len(text))
    return "".join(map(_sign, text))


def _sign(letter: str) -> str:
    if letter in _SEEN:
        return _SEEN[letter]
    hidden = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    hidden = hidden or letter in IGNORABLE or letter == "\u2800"  # the last is a braille cell without a dot
    return f"<U+{ord(letter):04X}>" if hidden else letter


def readable(text: str) -> str:
    """The text that a model is given: line breaks stay, what cannot be seen goes.

    Lone surrogates, control, format and private-use characters could garble a label or split a word
    without a trace on the screen. The rest is for the model's own tokenizer to make plain.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        letter
        for letter in text
        if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    ).strip()
