"""What no reader would type, in short; `python -m tests.fuzz` is the same at length."""

import pytest

from model.config import GAP
from model.filler import STAND_INS, Filler
from model.hub import pieces
from model.reader import MAX_CHARACTERS
from model.tokenizer import clean
from model.trace import TextError
from tests import fuzz
from viz import cache, export, view
from viz.pages import offers


@pytest.mark.parametrize("shape", range(len(fuzz.SHAPES)), ids=[" ".join(shape) for shape in fuzz.SHAPES])
def test_what_broke_other_tools_goes_through_every_model_of_a_shape(shape: int) -> None:
    ended = {
        fuzz.look(fuzz.tiny()[shape], text, turn % 2 == 1, turn + 1) for turn, text in enumerate(fuzz.SEEDS)
    }
    assert ended == {"read", "long", "empty", "huge"}


def test_all_of_it_is_drawn_printed_plotted_and_saved() -> None:
    for turn, text in enumerate(("a<b<c & <script>alert(1)</script>", "=1+1 @x", "שלום 👩‍👩‍👧 $x$", "$0.5$")):
        for door in fuzz.tiny()[turn % 2 :: 2]:
            assert fuzz.look(door, text, True) in ("read", "long")


def test_random_texts_go_through_every_model() -> None:
    ended = fuzz.text_chunk(1, 150)
    assert sum(ended.values()) == 150
    assert ended["read"] > 75


def test_the_fuzz_knows_all_models_that_are_shipped() -> None:
    assert cache.SHIPPED == fuzz.NAMES


def test_a_mark_that_stands_in_for_a_gap_is_never_one_that_was_typed() -> None:
    (filler,) = (door for door in fuzz.tiny() if isinstance(door, Filler))
    assert len({*STAND_INS}) > MAX_CHARACTERS - len(GAP)
    for mark in (*STAND_INS[:3], "\ufffc"):
        trace = filler.trace(f"a {mark} {GAP} {mark}")
        assert trace.source[:-1] == ("a", mark, GAP, mark)
        assert trace.gaps == (2,)


# Of Unicode's property Default_Ignorable_Code_Point, those that are letters or marks by their category.
IGNORABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180d\u180f\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"


@pytest.mark.parametrize("letter", [*IGNORABLE, "\u2800", "\u00ad", "\u2060", "\ufeff"])
def test_what_cannot_be_seen_is_no_piece_and_alone_nothing_to_read(letter: str) -> None:
    assert clean(f"a{letter}b") == ("a b" if letter == "\u2800" else "ab")
    for door in fuzz.tiny():
        with pytest.raises(TextError) as refused:
            door.trace(letter * 3)
        assert refused.value.code == "empty"


@pytest.mark.parametrize("digit", "٣३３³")
def test_a_digit_of_another_script_is_no_number_of_an_address(digit: str) -> None:
    offered = offers(cache.sizes(), cache.models())
    for name in ("head", "layer", "row", "column", "faint", "also", "gaps"):
        assert len(view.judge({name: digit}, offered)) == 1, name
    assert view.parse_gaps(digit) == ()
    for name in ("head", "also", "faint"):
        with pytest.raises(export.ExportError):
            export.shot_of(cache.trace(cache.MODEL, "I am a student."), {name: digit})


def test_random_presses_on_random_pages_break_nothing() -> None:
    assert sum(fuzz.page_chunk(10_000, 20).values()) == 20


def test_an_address_is_the_state_and_the_state_the_address() -> None:
    assert [fuzz.walk(number) for number in range(30)] == [30] * 30


@pytest.mark.parametrize("number", range(3))
def test_the_app_opens_a_random_address_where_it_says(number: int) -> None:
    fuzz.opened(number)


@pytest.mark.parametrize("letter", [*IGNORABLE, "\u2800"])
def test_what_cannot_be_seen_in_a_piece_from_elsewhere_has_a_sign(letter: str) -> None:
    assert pieces.visible(f"a{letter}b") == f"a<U+{ord(letter):04X}>b"
