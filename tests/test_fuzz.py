"""What no reader would type, in short; `python -m tests.fuzz` is the same at length."""

import pytest

from model.config import GAP
from model.filler import STAND_INS, Filler
from model.reader import MAX_CHARACTERS
from tests import fuzz
from viz import cache


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


def test_random_presses_on_random_pages_break_nothing() -> None:
    assert sum(fuzz.page_chunk(10_000, 20).values()) == 20


def test_an_address_is_the_state_and_the_state_the_address() -> None:
    assert [fuzz.walk(number) for number in range(30)] == [30] * 30


@pytest.mark.parametrize("number", range(3))
def test_the_app_opens_a_random_address_where_it_says(number: int) -> None:
    fuzz.opened(number)
