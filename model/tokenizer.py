"""Text to pieces and back: one vocabulary of byte-pair pieces for English and French.

A text is cleaned, cut into words by `WORD`, and the words into pieces. A reader sees pieces without
markers; that a space stands before a piece is a fact about the piece, kept beside it.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers

from model.config import END, SPECIAL, START, UNKNOWN
from model.unseen import IGNORABLE

SPACE = "\u2581"  # how the vocabulary writes a space before a piece
BARE = "\u2423"  # how a space with nothing behind it is shown; no text is cut into one
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        "\u2026": "...",
        SPACE: "_",
        "\u2800": " ",  # a braille cell without a dot
    }
)

# Words, each with the space before it. In this order: words that hold their apostrophe, French elision
# cut after its apostrophe, English 's 'm 're cut before it, a hyphen at the head of what it joins,
# single digits, single marks.
WORD = (
    rf"{SPACE}?(?:"
    r"(?i:aujourd'hui|o'clock|\p{L}+n't)(?![\p{L}\p{M}])"
    r"|(?i:[cdjlmnst]|\p{L}*qu)'(?=\p{L})"
    r"|(?i:'(?:s|m|d|re|ve|ll))(?![\p{L}\p{M}])"
    r"|-?[\p{L}\p{M}]+"
    r"|\p{N}"
    rf"|[^{SPACE}\p{{L}}\p{{M}}\p{{N}}]"
    r")"
)


def clean(text: str) -> str:
    """Composed accents, plain quotes and hyphens, single spaces; nothing that cannot be seen.

    Drops lone surrogates, control, format and private-use characters (NUL, bidirectional overrides,
    zero-width spaces) and fillers, which could garble a label or split a word without a trace on the screen.
    """
    seen = "".join(
        character
        for character in text
        if character.isspace() or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")
        if character not in IGNORABLE
    )
    composed = unicodedata.normalize("NFC", seen)  # only now: an accent may have lost what kept it apart
    return re.sub(r"\s+", " ", composed.translate(_PLAIN)).strip()


@dataclass(frozen=True)
class Piece:
    """A piece as a reader knows it, its id, and whether a space stands before it."""

    text: str
    id: int
    space: bool


def join(pieces: Iterable[Piece]) -> str:
    """The cleaned text that was cut into these pieces."""
    return "".join(" " * piece.space + piece.text for piece in pieces).removeprefix(" ")


class Tokenizer:
    """Cuts text into pieces by a trained vocabulary."""

    def __init__(self, bpe: tokenizers.Tokenizer) -> None:
        self._bpe = bpe
        self._bpe.encode_special_tokens = True  # `</s>` typed by a reader is four ordinary pieces
        self.size: int = bpe.get_vocab_size()

    @classmethod
    def train(cls, texts: Iterable[str], size: int, special: Sequence[str] = SPECIAL) -> "Tokenizer":
        """Learn `size` pieces, the special ones included, which come first, from texts in any language."""
        bpe = tokenizers.Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
        bpe.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
        bpe.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), behavior="isolated")
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(special), show_progress=False, min_frequency=2
        )
        cleaned = [clean(text) for text in texts]
        # Every character gets a piece with a space before it: else the space before a rare beginning of
        # a word would be a piece of its own, with nothing to be seen in it.
        characters = sorted(set("".join(cleaned)) - {" "})
        bpe.train_from_iterator(chain(cleaned, characters * 1000), trainer)
        return cls(bpe)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        return cls(tokenizers.Tokenizer.from_file(str(path)))

    def save(self, path: Path) -> None:
        fresh = path.with_name(f"{path.name}.new")  # a kill leaves the old file or the new one, whole
        self._bpe.save(str(fresh))
        os.replace(fresh, path)

    def encode(self, text: str) -> list[Piece]:
        """Clean `text` and cut it. A character outside the vocabulary is a piece of its own, <unk>."""
        text = clean(text)
        encoding = self._bpe.encode(text)
        pieces: list[Piece] = []
        space = False
        for token, id_, (start, stop) in zip(encoding.tokens, encoding.ids, encoding.offsets, strict=True):
            space = space or token.startswith(SPACE)
            shown = token.removeprefix(SPACE)
            if id_ == UNKNOWN:
                shown = text[start:stop].strip()
            if shown:  # a space with nothing behind it belongs to the piece that follows
                pieces.append(Piece(shown, id_, space))
                space = False
        return pieces

    def piece(self, id_: int) -> Piece:
        """The piece of one id."""
        token = self._bpe.id_to_token(id_)
        if token is None:
            raise ValueError(f"piece {id_} of {self.size}")
        return Piece(token.removeprefix(SPACE) or BARE, id_, token.startswith(SPACE))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; <s>, </s> and <pad> are not text."""
        return join(self.piece(id_) for id_ in ids if id_ >= len(SPECIAL))

    def ids(self, text: str) -> list[int]:
        return [piece.id for piece in self.encode(text)]

    def source(self, text: str) -> list[int]:
        """What the encoder reads: the pieces, then </s>."""
        return [*self.ids(text), END]

    def target(self, text: str) -> list[int]:
        """<s>, the pieces, </s>. The decoder is fed all but the last and predicts all but the first."""
        return [START, *self.ids(text), END]
