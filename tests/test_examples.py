"""No demonstration depends on luck: what each example promises, the shipped weights show."""

import functools

import pytest

import model
from model.trace import Trace
from model.translator import Translator
from viz.reading import find, roles
from viz.text import Example, examples

each = pytest.mark.parametrize("example", examples(), ids=lambda example: example.text)


@functools.cache
def shipped() -> Translator:
    return model.load("en-fr")


@functools.cache
def traced(text: str) -> Trace:
    return shipped().trace(text)


@each
def test_an_example_is_translated_as_it_says(example: Example) -> None:
    assert traced(example.text).translation == example.french


@each
def test_an_example_shows_what_it_promises(example: Example) -> None:
    trace = traced(example.text)
    queries, keys = trace.axes(example.kind)
    wanted = example.expect.row.removeprefix("-> ")
    rows = trace.comes_out if example.expect.row.startswith("-> ") else queries
    weights = trace.weights(example.kind)[example.layer - 1, example.head - 1]
    found = weights[example.row - 1, keys.index(example.expect.column)]
    assert rows[example.row - 1] == wanted, "the view opens on the row that the point is about"
    assert found >= example.expect.at_least
    assert found == weights[example.row - 1].max(), "the sentence that is read aloud makes the point"


@each
def test_every_word_of_an_example_is_one_piece_but_where_pieces_are_the_point(example: Example) -> None:
    pieces = traced(example.text).source[:-1]
    words = example.text.replace(".", " .").replace(",", " ,").replace("?", " ?").split()
    assert (example.text == "Thinking machines.") == (len(pieces) > len(words))
    assert 4 <= len(pieces) <= 12


def test_thinking_machines_come_apart_as_the_example_says() -> None:
    assert traced("Thinking machines.").source[:-1] == ("Th", "ink", "ing", "mach", "ines", ".")


def test_the_first_visit_opens_on_the_head_that_aligns_best() -> None:
    first = examples()[0]
    aligning = find(traced(first.text), roles()[0])
    assert (first.kind, first.layer, first.head) == (aligning.kind, aligning.layer + 1, aligning.head + 1)
    assert first.text == "She has a small black cat."


def test_there_are_a_dozen_examples_and_no_two_alike() -> None:
    texts = [example.text for example in examples()]
    assert len(texts) >= 12
    assert len(set(texts)) == len(texts)


def test_the_notes_own_sentence_comes_out_right() -> None:
    assert shipped().translate("I am a student.") in {"Je suis étudiant.", "Je suis étudiante."}
