"""Pieces of other vocabularies stand as a reader knows them."""

import json
import unicodedata
from pathlib import Path

import pytest
import sentencepiece
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from model.hub import tiny
from model.hub.pieces import BYTES, readable, spelled, visible
from model.hub.vocabulary import MAX_CHARACTERS, Vocabulary
from model.trace import TextError


@pytest.fixture(scope="module")
def vocabularies() -> dict[str, Vocabulary]:
    return {family: Vocabulary(tiny.tokenizer_of(family)) for family in ("bert", "gpt2", "llama", "roberta")}


def test_byte_level_pieces_are_text_again() -> None:
    assert spelled("ĠSe", "bytes") == ("Se", True)
    assert spelled("Ã¡n", "bytes") == ("án", False)
    assert spelled("Ċ", "bytes") == ("⏎", False)
    assert spelled("Ġ", "bytes") == ("␣", True)
    assert spelled("ðŁ", "bytes") == ("<0xF0><0x9F>", False)


def test_the_letters_of_byte_level_vocabularies_are_those_of_gpt_2() -> None:
    assert len(BYTES) == 256
    assert sorted(BYTES.values()) == [*range(256)]
    assert {*BYTES} == {*pre_tokenizers.ByteLevel.alphabet()}


def test_other_marks_become_the_space_before_a_piece() -> None:
    assert spelled("▁chat", "low line") == ("chat", True)
    assert spelled("eau", "low line") == ("eau", False)
    assert spelled("<0x0A>", "low line") == ("⏎", False)
    assert spelled("<0xC3>", "low line") == ("<0xC3>", False)
    assert spelled("##ing", "hashes") == ("ing", False)
    assert spelled("play", "hashes") == ("play", True)
    assert spelled("##", "hashes") == ("##", True)
    assert spelled("chat</w>", "ends") == ("chat", False)
    assert spelled("Ġ", "plain") == ("Ġ", False)


@given(st.text(max_size=20))
def test_nothing_that_is_shown_cannot_be_seen(text: str) -> None:
    for shown in (visible(text), readable(text).replace("\n", "").replace("\t", "")):
        assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn")]
    assert visible(text)


@pytest.mark.parametrize(
    ("family", "spelling"),
    [("bert", "hashes"), ("gpt2", "bytes"), ("llama", "low line"), ("roberta", "bytes")],
)
def test_a_vocabulary_tells_how_it_is_spelled(
    vocabularies: dict[str, Vocabulary], family: str, spelling: str
) -> None:
    assert vocabularies[family].spelling == spelling


@pytest.mark.parametrize("text", ["Seán saw it.\nShe doesn't, Zoë!", "à l'école  twice", "a 🙂 b", "x"])
@pytest.mark.parametrize("family", ["gpt2", "roberta"])
def test_byte_level_pieces_put_together_are_the_text(
    vocabularies: dict[str, Vocabulary], family: str, text: str
) -> None:
    vocabulary = vocabularies[family]
    pieces = [piece for piece in vocabulary.read(text, 99) if not vocabulary.silent(piece.id)]
    data = b""
    for piece in pieces:
        token = vocabulary.tokenizer.convert_ids_to_tokens(piece.id)
        assert piece.space == token.startswith("Ġ")
        data += bytes(BYTES[letter] for letter in token)
    assert data.decode() == text
    assert vocabulary.decode([piece.id for piece in pieces]) == text


def test_a_line_break_and_accents_stand_in_pieces(vocabularies: dict[str, Vocabulary]) -> None:
    texts = [piece.text for piece in vocabularies["gpt2"].read("Seán\nx", 99)]
    assert "".join(texts) == "Seán⏎x"
    assert "⏎" in texts


def test_special_pieces_stand_as_they_are(vocabularies: dict[str, Vocabulary]) -> None:
    read = vocabularies["bert"].read("The [MASK] sat.", 99)
    assert [read[0].text, read[-1].text] == ["[CLS]", "[SEP]"]
    assert [piece.id for piece in read if piece.text == "[MASK]"] == [vocabularies["bert"].mask]
    assert "<mask>" in [piece.text for piece in vocabularies["roberta"].read("The [MASK] sat.", 99)]
    assert vocabularies["llama"].read("The cat", 99)[0].text == "<s>"


def test_wordpiece_keeps_the_spaces_that_were_written(vocabularies: dict[str, Vocabulary]) -> None:
    read = vocabularies["bert"].read("She doesn't, [MASK] know.", 99)
    assert vocabularies["bert"].join(read) == "she doesn't, [MASK] know."


def test_an_unknown_piece_keeps_its_letters(vocabularies: dict[str, Vocabulary]) -> None:
    read = vocabularies["bert"].read("The 猫 sat.", 99)
    (unknown,) = [piece for piece in read if piece.id == vocabularies["bert"].unknown]
    assert (unknown.text, unknown.space) == ("猫", True)


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b", "\u00a0", "\ud800"])
def test_nothing_to_read_is_said_so(vocabularies: dict[str, Vocabulary], text: str) -> None:
    for vocabulary in vocabularies.values():
        with pytest.raises(TextError) as caught:
            vocabulary.read(text, 99)
        assert caught.value.code == "empty"


def test_too_much_to_read_is_said_so(vocabularies: dict[str, Vocabulary]) -> None:
    with pytest.raises(TextError) as caught:
        vocabularies["gpt2"].read("a" * (MAX_CHARACTERS + 1), 99)
    assert (caught.value.code, caught.value.limit) == ("huge", MAX_CHARACTERS)
    with pytest.raises(TextError) as caught:
        vocabularies["gpt2"].read("9 " * 30, 29)
    assert (caught.value.code, caught.value.limit) == ("long", 29)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for family in ("bert", "gpt2", "llama"):
        try:
            pieces = _any(family).read(text, 10_000)
        except TextError:
            continue
        assert all(piece.text for piece in pieces)


_kept: dict[str, Vocabulary] = {}


def _any(family: str) -> Vocabulary:
    if family not in _kept:
        _kept[family] = Vocabulary(tiny.tokenizer_of(family))
    return _kept[family]


@pytest.mark.filterwarnings("ignore:Recommended")  # sacremoses, which makes punctuation plain
def test_a_tokenizer_of_sentencepiece_with_two_vocabularies_reads_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(tiny.SENTENCES * 3), encoding="utf-8")
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(path),
            model_prefix=str(tmp_path / side),
            vocab_size=97,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (tmp_path / f"{side}.model").rename(tmp_path / f"{side}.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "source.spm"))
    names = ["</s>", "<unk>", *(pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())), "<pad>"]
    (tmp_path / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    marian = transformers.MarianTokenizer(
        source_spm=str(tmp_path / "source.spm"),
        target_spm=str(tmp_path / "target.spm"),
        vocab=str(tmp_path / "vocab.json"),
    )
    vocabulary = Vocabulary(marian)
    assert vocabulary.spelling == "low line"
    for target in (False, True):
        read = vocabulary.read("The cat looks at me.", 99, target)
        assert read[-1].text == "</s>"
        assert "".join(" " * p.space + p.text for p in read[:-1]).replace("␣", "").split() == (
            ["The", "cat", "looks", "at", "me."]
        )
