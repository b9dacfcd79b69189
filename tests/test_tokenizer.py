"""Cleaning and cutting: any text comes back from its pieces, and words are cut where a reader would."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from conftest import FORCED, PAIRS, TEXT
from model.config import END, PAD, SPECIAL, START, UNKNOWN
from model.tokenizer import SPACE, WORD, Tokenizer, clean, join

# Any code point, lone surrogates too, and often those that cleaning and cutting must take care with.
NASTY = "e\u0301\u00e9c\u0327'\u2019-\u2011 \u00a0\u202f\t\n\u0000\u200b\u200d\u00ad\u202e\u2066\ud83d"
MORE = "\U0001f642\u05d0\u0645\ufb01\u00b28\u2581_<s/>\u2026\u00ab\u00b4"
WORDS = ["l'", "qu'", "aujourd'hui", "n't", "'s", "at.", "avez-vous", "</s>", "<pad>", "école", "Cat", " "]
ANY_TEXT = st.lists(st.sampled_from([*NASTY, *MORE, *WORDS]) | st.characters(), max_size=40).map("".join)
KNOWN_TEXT = st.text(sorted({*PAIRS} - {"\t", "\n"}), max_size=40)  # of characters that training met


def letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


def texts(tokenizer: Tokenizer, text: str) -> list[str]:
    return [piece.text for piece in tokenizer.encode(text)]


def words(text: str) -> list[str]:
    """What `WORD` cuts a text into, without the space before each."""
    marked = SPACE + clean(text).replace(" ", SPACE)
    found = Split(Regex(WORD), behavior="isolated").pre_tokenize_str(marked)
    return [word.removeprefix(SPACE) for word, _ in found]


@given(text=ANY_TEXT)
def test_joined_pieces_are_the_cleaned_text(tokenizer: Tokenizer, text: str) -> None:
    assert join(tokenizer.encode(text)) == clean(text)


@given(text=KNOWN_TEXT)
def test_ids_decode_to_the_cleaned_text(tokenizer: Tokenizer, text: str) -> None:
    assert UNKNOWN not in tokenizer.ids(text)
    assert tokenizer.decode(tokenizer.ids(text)) == clean(text)


@given(text=ANY_TEXT)
def test_no_piece_is_empty_or_holds_the_marker_or_a_space(tokenizer: Tokenizer, text: str) -> None:
    for piece in texts(tokenizer, text):
        assert piece
        assert SPACE not in piece
        assert " " not in piece


@given(text=ANY_TEXT)
def test_no_piece_mixes_letters_with_marks_other_than_apostrophe_and_leading_hyphen(
    tokenizer: Tokenizer, text: str
) -> None:
    for piece in texts(tokenizer, text):
        others = {character for character in piece if not letter(character)}
        assert len(piece) == 1 or others <= {"'", "-"}
        assert "-" not in piece[1:]
        assert "'" not in piece or len(piece) == 1 or any(map(letter, piece))


@given(text=ANY_TEXT)
def test_no_text_that_a_reader_types_becomes_a_special_piece(tokenizer: Tokenizer, text: str) -> None:
    assert not {PAD, START, END} & {*tokenizer.ids(text)}


@given(text=ANY_TEXT)
@example("e\u200b\u0301")  # what stood between a letter and its accent is dropped
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(text=ANY_TEXT)
def test_a_cleaned_text_holds_only_what_can_be_seen_and_single_spaces(text: str) -> None:
    cleaned = clean(text)
    assert not {unicodedata.category(character) for character in cleaned} & {"Cc", "Cf", "Cs", "Co", "Cn"}
    assert cleaned.split(" ") == cleaned.split() or not cleaned
    assert not {*cleaned} & set("\u2018\u2019\u201c\u201d\u00ab\u00bb\u2011\u2013\u2014\u2026▁")
    cleaned.encode()  # no lone surrogate is left


def test_bidirectional_overrides_and_nul_vanish() -> None:
    assert clean("a\u202eb\u2066c\u2069d\x00e\u200f\u061c\ufefff") == "abcdef"


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("J\u2019aime l\u2018école", "J'aime l'école"),
        ("J\u00b4aime", "J'aime"),
        ("vu le chat\u00a0?", "vu le chat ?"),
        ("vu\u202fle\u2009chat\t\n?", "vu le chat ?"),
        ("e\u0301cole", "\u00e9cole"),
        ("avez\u2011vous", "avez-vous"),
        ("\u00abchat\u00bb", '"chat"'),
        ("chat\u2026", "chat..."),
    ],
)
def test_what_looks_the_same_is_cut_the_same(tokenizer: Tokenizer, typed: str, same: str) -> None:
    assert clean(typed) == clean(same) == same
    assert tokenizer.encode(typed) == tokenizer.encode(same)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("J'aime l'école", ["J'", "aime", "l'", "école"]),
        ("avez-vous", ["avez", "-vous"]),
        ("The cat looks at me.", ["The", "cat", "looks", "at", "me", "."]),
        ("I don't know.", ["I", "don't", "know", "."]),
        ("It's 8 o'clock.", ["It", "'s", "8", "o'clock", "."]),
        ("You're a student.", ["You", "'re", "a", "student", "."]),
        ("Qu'est-ce que c'est ?", ["Qu'", "est", "-ce", "que", "c'", "est", "?"]),
        ("aujourd'hui", ["aujourd'hui"]),
        ("2024", ["2", "0", "2", "4"]),
        ("10 chats!?", ["1", "0", "chats", "!", "?"]),
    ],
)
def test_words_are_cut_where_a_reader_would_cut(text: str, cut: list[str]) -> None:
    assert words(text) == cut


def test_frequent_words_are_one_piece(tokenizer: Tokenizer) -> None:
    assert texts(tokenizer, "J'aime l'école") == ["J'", "aime", "l'", "école"]
    assert texts(tokenizer, "avez-vous") == ["avez", "-vous"]
    assert texts(tokenizer, TEXT) == ["The", "cat", "looks", "at", "me", "."]


def test_a_typed_special_piece_is_ordinary_text(tokenizer: Tokenizer) -> None:
    for special in SPECIAL:
        assert "".join(texts(tokenizer, special)) == special
        assert min(tokenizer.ids(special)) >= UNKNOWN
        assert len(tokenizer.ids(special)) > 1


def test_an_unknown_character_keeps_its_face(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.encode("le \U0001f408猫.")
    assert [piece.text for piece in pieces if piece.id == UNKNOWN] == ["\U0001f408", "猫"]
    assert join(pieces) == "le \U0001f408猫."


def test_source_and_target_carry_their_special_ids(tokenizer: Tokenizer) -> None:
    ids = tokenizer.ids(TEXT)
    assert tokenizer.source(TEXT) == [*ids, END]
    assert tokenizer.target(TEXT) == [START, *ids, END]
    assert tokenizer.decode([START, *ids, END, PAD]) == TEXT


def test_the_special_pieces_are_the_first_ids_and_no_others_are_outside(tokenizer: Tokenizer) -> None:
    assert [tokenizer.piece(id_).text for id_ in range(4)] == ["<pad>", "<s>", "</s>", "<unk>"]
    with pytest.raises(ValueError, match=f"{tokenizer.size} of {tokenizer.size}"):
        tokenizer.piece(tokenizer.size)


def test_every_piece_of_the_vocabulary_can_be_seen(tokenizer: Tokenizer) -> None:
    assert [id_ for id_ in range(tokenizer.size) if not tokenizer.piece(id_).text] == []


def test_a_tokenizer_from_disk_cuts_as_before(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.size == tokenizer.size
    for text in (*PAIRS.splitlines(), FORCED, "</s> <pad>", "\U0001f408 l\u2019été"):
        assert loaded.encode(text) == tokenizer.encode(text)


def test_training_learns_the_same_pieces_every_time(tokenizer: Tokenizer) -> None:
    again = Tokenizer.train((half for line in PAIRS.splitlines() for half in line.split("\t")), size=211)
    assert [again.piece(i) for i in range(again.size)] == [tokenizer.piece(i) for i in range(tokenizer.size)]
