"""What is said of a map follows from its numbers."""

from dataclasses import replace

import numpy as np
import pytest

from model.trace import NEUTRAL, Cell, Change, Kind, Stages, Trace
from model.translator import Translator
from tests.conftest import FORCED, TEXT
from viz.reading import Map, aloud, facts, favourite, find, number, percent, resting, roles


def with_weights(trace: Trace, kind: Kind, weights: np.ndarray) -> Trace:
    """The trace with other weights in one kind."""
    stages: Stages = trace.stages(kind)
    return replace(
        trace, attention={**trace.attention, kind: replace(stages, weights=weights.astype(np.float32))}
    )


def one_head(trace: Trace, kind: Kind, layer: int, head: int, rows: list[int]) -> Trace:
    """A trace whose chosen head puts each row's whole weight on `rows[q]`; the others spread it evenly."""
    weights = np.where(trace.allowed(kind), 1.0, 0.0)
    weights /= weights.sum(axis=-1, keepdims=True)
    weights[layer, head] = np.eye(weights.shape[-1])[rows]
    return with_weights(trace, kind, weights)


def test_the_chosen_cell_is_read_aloud_with_its_share(trace: Trace) -> None:
    picture = Map(trace, "cross", 2, 1)
    key = favourite(picture, 3)
    share = percent(float(trace.weights("cross")[2, 1, 3].max()))
    said = aloud(picture, 3, key)
    assert said == (
        f'Head 2 of layer 3, working on "{trace.target[3]}", takes {share} of its mix '
        f'from "{trace.source[key]}". '
        f'This row helps to choose "{trace.comes_out[3]}".'
    )


def test_a_blocked_cell_and_an_empty_row_are_read_as_what_they_are(
    translator: Translator, trace: Trace
) -> None:
    assert "may not look at" in aloud(Map(trace, "decoder", 0, 0), 1, 5)
    empty = translator.trace(
        TEXT, FORCED, Change(blocked=frozenset(Cell("decoder", 0, key) for key in range(13)))
    )
    assert "nothing it may look at" in aloud(Map(empty, "decoder", 1, 1), 0, 0)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.618, "62 %"),
        (0.0937, "9.4 %"),
        (0.0123, "1.2 %"),
        (0.0005, "less than 0.1 %"),
    ],
)
def test_shares_are_said_in_as_many_digits_as_they_need(share: float, said: str) -> None:
    assert percent(share) == said


def test_a_tiny_weight_is_not_called_zero() -> None:
    assert [number(0.0), number(0.00004), number(0.12345)] == ["0.0000", "under 0.0001", "0.1235"]


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_line_under_a_map_states_kind_place_axes_sum_and_range(trace: Trace, kind: Kind) -> None:
    picture = Map(trace, kind, 1, 0)
    line = facts(picture)
    allowed = picture.weights[picture.allowed]
    assert "head 1 of layer 2" in line
    assert kind in line.lower() or kind == "cross"
    assert "Each row sums to 1" in line
    assert f"{number(float(allowed.min()))} to {number(float(allowed.max()))}" in line
    assert ("goes in → comes out" in line) == (kind != "encoder")
    assert line.count("English") == {"encoder": 2, "decoder": 0, "cross": 1}[kind]


def test_a_map_that_does_not_sum_to_one_says_so(trace: Trace) -> None:
    broken = with_weights(trace, "cross", trace.weights("cross") * 0.9)
    assert "do not trust this map" in facts(Map(broken, "cross", 0, 0))


def test_a_resting_place_is_named_only_where_a_row_had_a_choice(trace: Trace) -> None:
    end = len(trace.source) - 1
    rows = [end if query in (2, 3, 5) else 0 for query in range(len(trace.target))]
    assert resting(Map(one_head(trace, "cross", 1, 1, rows), "cross", 1, 1)) == [("</s>", 3)]
    first_only = one_head(trace, "decoder", 0, 0, list(range(len(trace.target))))
    assert resting(Map(first_only, "decoder", 0, 0)) == [(".", 1)]  # not <s>: its row has no choice


@pytest.mark.parametrize(
    ("role", "kind", "rows"),
    [
        (1, "encoder", lambda size: [max(0, q - 1) for q in range(size)]),
        (2, "decoder", lambda size: list(range(size))),
        (3, "encoder", lambda size: [size - 1] * size),
    ],
)
def test_a_head_made_for_a_role_is_found(trace: Trace, role: int, kind: Kind, rows: object) -> None:
    size = trace.weights(kind).shape[-2]
    made = one_head(trace, kind, 2, 1, rows(size))  # type: ignore[operator]
    found = find(made, roles()[role])
    assert (found.kind, found.layer, found.head) == (kind, 2, 1)
    assert found.score == pytest.approx(1)


def test_the_aligning_head_is_the_one_with_clear_and_different_favourites(translator: Translator) -> None:
    trace = translator.trace("The cat looks at me.", "Le chat me regarde.")
    words = len(trace.source) - 2
    spread = [min(q, words - 1) for q in range(len(trace.target))]
    assert find(one_head(trace, "cross", 1, 0, spread), roles()[0]).head == 0
    stuck = one_head(trace, "cross", 1, 0, [1] * len(trace.target))
    assert find(stuck, roles()[0]).score < find(one_head(trace, "cross", 1, 0, spread), roles()[0]).score


def test_roles_survive_the_shortest_sentence(translator: Translator) -> None:
    trace = translator.trace(".", ".", NEUTRAL)
    for role in roles():
        assert 0 <= find(trace, role).score <= 1
