"""Text to the pieces of another model's tokenizer, and ids back to what a reader sees."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from model.hub.pieces import LOW_LINE, Spelling, readable, spelled, visible
from model.tokenizer import Piece, join
from model.trace import TextError

MAX_CHARACTERS = 4000  # refused before any work is done on them
GAP = "[MASK]"  # how a reader types a gap, whatever the model calls it


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """A tokenizer of transformers, asked for nothing but ids."""

    tokenizer: Any

    @cached_property
    def spelling(self) -> Spelling:
        """How its tokens mark the beginnings of words: the mark that most of them bear."""
        marks: Counter[Spelling] = Counter()
        for token in self.tokenizer.get_vocab():
            marks["bytes"] += token.startswith("\u0120")
            marks["low line"] += token.startswith(LOW_LINE)
            marks["hashes"] += token.startswith("##") and len(token) > 2
            marks["ends"] += token.endswith("</w>")
        (spelling, count), *_ = marks.most_common(1)
        return spelling if count else "plain"

    @cached_property
    def special(self) -> frozenset[int]:
        return frozenset(self.tokenizer.all_special_ids)

    @property
    def pad(self) -> int:
        """What stands for nothing; any piece would do, since nothing looks at it."""
        for id_ in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id):
            if id_ is not None:
                return int(id_)
        return 0

    def silent(self, id_: int) -> bool:
        """Whether a piece is no text but a sign to the model, such as one that begins or ends it."""
        return id_ in self.special and id_ not in (self.mask, self.unknown)

    @property
    def mask(self) -> int | None:
        return self.tokenizer.mask_token_id

    @property
    def unknown(self) -> int | None:
        return self.tokenizer.unk_token_id

    def piece(self, id_: int) -> Piece:
        """The piece of one id; special ones stand as the vocabulary writes them."""
        token = self.tokenizer.convert_ids_to_tokens(id_) if id_ < len(self.tokenizer) else None
        if token is None:  # a row of the embedding that no piece has
            return Piece(f"<{id_}>", id_, False)
        if id_ in self.special:
            return Piece(visible(token), id_, False)
        text, space = spelled(token, self.spelling)
        return Piece(text, id_, space)

    def read(self, text: str, most: int, target: bool = False) -> list[Piece]:
        """The pieces of a text with the special ones that its model puts around it. Raises TextError."""
        if len(text) > MAX_CHARACTERS:
            raise TextError("huge", len(text), MAX_CHARACTERS)
        text = readable(text)
        if not text:
            raise TextError("empty")
        if self.mask is not None:
            text = text.replace(GAP, self.tokenizer.mask_token)
        fast = bool(self.tokenizer.is_fast)
        told = self.tokenizer(**{"text_target" if target else "text": text}, return_offsets_mapping=fast)
        pieces = [self.piece(id_) for id_ in told["input_ids"]]
        if fast:
            pieces = self._as_written(pieces, told["offset_mapping"], text)
        if all(self.silent(piece.id) for piece in pieces):
            raise TextError("empty")
        if len(pieces) > most:
            raise TextError("long", len(pieces), most)
        return pieces

    def _as_written(
        self, pieces: Sequence[Piece], spans: Sequence[tuple[int, int]], text: str
    ) -> list[Piece]:
        """The same with what only the text can tell: an unknown piece's letters, a space WordPiece drops."""
        found, end = [], 0
        for piece, (start, stop) in zip(pieces, spans, strict=True):
            shown, space = piece.text, piece.space
            if piece.id == self.unknown and text[start:stop].strip():
                shown, space = visible(text[start:stop].strip()), start > end
            elif self.spelling in ("hashes", "plain") and not self.silent(piece.id):
                space = start > end
            found.append(Piece(shown, piece.id, space))
            end = max(end, stop)
        return found

    def join(self, pieces: Sequence[Piece]) -> str:
        """The text of pieces that were read. WordPiece alone would lose which spaces were written."""
        if self.spelling != "hashes":
            return self.decode([piece.id for piece in pieces])
        return join(piece for piece in pieces if not self.silent(piece.id))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids, special ones left out."""
        return readable(
            self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )
