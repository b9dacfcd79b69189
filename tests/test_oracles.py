"""What must be true of the ways between a number and a reader: what is kept, addresses, before and after.

Each is a place where a mistake would show another number than the right one and break nothing.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import torch
from numpy.testing import assert_array_equal

from model import checkpoint, files
from model.reader import MODELS
from model.tokenizer import Tokenizer
from model.trace import KINDS, NEUTRAL, Cell, Change, Kind, Switch, Trace
from model.training.task import Translating
from model.translator import Translator
from tests.conftest import FORCED, TEXT, assert_same, random_model
from viz import act, cache, picture, stage, view
from viz.figures import Look, attention_map, head_grid, signed_map
from viz.reading import Map, facts
from viz.sizes import Sizes
from viz.svg.maps import Shot, draw
from viz.theme import PALETTES

SIZES = Sizes("tiny", dict.fromkeys(KINDS, (3, 2)), 31, "encoder-decoder", {"source": "en", "target": "fr"})
OTHER = Change(blocked=frozenset({Cell("cross", 3, 1)}), look_ahead=Switch((1,)), shift=5)


def standing(kind: Kind, **more: Any) -> view.View:
    """Layer 2, head 1, row 4."""
    return view.View(kind, 1, 0, 3, None, SIZES, **more)


# --- what is kept -----------------------------------------------------------------------------------------


@pytest.fixture
def doors(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Translator]:
    """Two models behind the cache, which has kept nothing yet."""
    made = {
        name: Translator(name, random_model(seed, vocabulary=tokenizer.size), tokenizer)
        for seed, name in enumerate(("one", "two"))
    }
    monkeypatch.setattr(cache, "door", made.__getitem__)
    monkeypatch.setattr(cache, "_store", cache.Store(2**26, 900))
    return made


def test_a_trace_that_is_kept_is_given_to_nobody_who_asked_for_another(
    doors: Mapping[str, Translator],
) -> None:
    """By model, text, target and change; asked for twice, so that the second comes from what is kept."""
    asked = [*product(doors, (TEXT, "I am tired."), (None, FORCED, "Je suis."), (NEUTRAL, OTHER))]
    first = [cache.trace(*each) for each in asked]
    for (name, *rest), one in zip(asked, first, strict=True):
        assert_same(one, doors[name].trace(*rest))
        assert cache.trace(name, *rest) is one
    assert len({id(one) for one in first}) == len(asked)


def test_a_trace_over_ids_is_given_to_nobody_who_asked_for_others(doors: Mapping[str, Translator]) -> None:
    ids = doors["one"].trace(TEXT, FORCED).target_ids[1:]
    asked = [*product(doors, (TEXT, "I am tired."), (ids, ids[:5], ids[::-1]))]
    for name, text, target in asked:
        assert_same(cache.trace_of(name, text, target), doors[name].trace(text, target))


def test_what_a_head_costs_is_that_of_the_model_sentence_and_way_asked_for(
    doors: Mapping[str, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "sizes", lambda _name: SIZES)
    found = {
        asked: cache.costs(*asked)  # type: ignore[arg-type]
        for asked in product(doors, (TEXT, "I am tired."), (FORCED, "Je suis."), ("removed", "uniform"))
    }
    for one, other in product(found, found):
        same = all(np.array_equal(found[one][kind], found[other][kind]) for kind in KINDS)
        assert same == (one == other)


def test_a_file_is_known_by_its_name_and_all_that_is_in_it(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that were read as one sort of file are not taken for another sort."""
    monkeypatch.setattr(cache, "_store", cache.Store(2**26, 900))
    content = files.write(trace, ".npz")
    kept = cache.keep_file("whole.npz", content)
    assert kept == cache.keep_file("whole.npz", content)
    with pytest.raises(files.FileError):
        cache.keep_file("whole.json", content)
    other = files.write(trace, ".safetensors")
    assert cache.keep_file("whole.safetensors", other) != kept
    assert_same(cache.trace(kept, ""), trace)


@pytest.mark.parametrize("place", [1, 3])
def test_a_snapshot_is_of_its_step(place: int) -> None:
    steps = cache.snapshots()
    step, folder = steps[place], MODELS / cache.MODEL
    for name, weights in checkpoint.load_snapshot(folder, step).state_dict().items():
        assert weights.equal(cache.snapshot(cache.MODEL, step).model.state_dict()[name]), name


def test_a_trace_of_a_snapshot_is_given_to_nobody_who_asked_for_another_step(
    doors: Mapping[str, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_step = {125: doors["one"], 427: doors["two"]}
    monkeypatch.setattr(cache, "snapshot", lambda _name, step: by_step[step])
    for text, target in product((TEXT, "I am tired."), (None, FORCED)):
        for step, door in by_step.items():
            assert_same(cache.trace_at("one", step, text, target), door.trace(text, target))


# --- where the reader stands ------------------------------------------------------------------------------


def test_an_address_counts_from_1_what_the_code_counts_from_0() -> None:
    place = view.controls(view.View("cross", 1, 4, 2, 6, SIZES, also="2,7", drawing="lines", faint=9))
    said = {name: place[name] for name in ("kind", "layer", "head", "row", "column", "also", "faint")}
    assert said == {
        "kind": "cross",
        "layer": 2,
        "head": 5,
        "row": 3,
        "column": 7,
        "also": "2,7",
        "faint": 9,
    }
    assert view.controls(standing("cross"))["column"] == 0  # the row's favourite


def test_gaps_count_from_1_in_an_address_and_a_press_turns_the_piece_that_was_pressed(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert view.parse_gaps("3,5") == (2, 4)
    assert view.parse_gaps("5,1,5") == (0, 4)
    assert view.parse_gaps("0") == ()
    pressed: list[dict[str, Any]] = []
    monkeypatch.setattr(view, "place", lambda **values: pressed.append(values))
    for piece in range(5):
        view.turn_gap(trace, piece)
        assert view.parse_gaps(pressed[-1]["gaps"]) == (piece,)


# --- before and after -------------------------------------------------------------------------------------


@pytest.fixture
def changed(translator: Translator) -> Trace:
    return translator.trace(TEXT, FORCED, OTHER)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stage_is_sent_what_was_before_and_then_what_came_after(
    trace: Trace, changed: Trace, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(picture.stage, "pack", lambda sets, _look: sets)
    monkeypatch.setattr(picture.component, "stage", lambda *all_: sent.append(all_))
    monkeypatch.setattr(picture.component, "wanted", lambda: None)
    monkeypatch.setattr(picture.download, "picture", lambda *_all: None)
    picture.attention(standing(kind), trace, changed)
    picture.attention(standing(kind), trace)
    (both, place, *_rest), (alone, *_other) = sent
    assert_array_equal(both[0][kind].weights, trace.weights(kind))
    assert_array_equal(both[1][kind].weights, changed.weights(kind))
    assert not np.array_equal(both[0][kind].weights, both[1][kind].weights)
    assert len(alone) == 1
    assert_array_equal(alone[0][kind].weights, trace.weights(kind))
    assert (place["kind"], place["layer"], place["head"], place["row"]) == (kind, 2, 1, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_stage_stand_before_after_and_after_less_before(
    trace: Trace, changed: Trace, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[go.Figure] = []
    monkeypatch.setattr(picture, "chart", lambda figure, *_all, **_more: drawn.append(figure))
    monkeypatch.setattr(picture.download, "picture", lambda *_all: None)
    picture.attention(standing(kind, still=True), trace, changed)
    one, other = (each.weights(kind)[1, 0] for each in (trace, changed))
    shown = [next(part.z for part in figure.data if part.name == "weights") for figure in drawn]
    for numbers, weights, whose in ((shown[0], one, trace), (shown[1], other, changed)):
        open_ = whose.allowed(kind)[1, 0]
        assert_array_equal(numbers[open_], weights[open_])
        assert np.isnan(numbers[~open_]).all()
    assert_array_equal(shown[2], other - one)
    limits = drawn[2].layout.coloraxis
    assert (limits.cmin, limits.cmax) == (-1, 1)
    scale = [colour for _at, colour in limits.colorscale]  # more is blue, less is red
    assert int(scale[0][1:3], 16) > int(scale[0][5:7], 16)
    assert int(scale[-1][1:3], 16) < int(scale[-1][5:7], 16)


def test_probabilities_stand_under_before_and_after_as_they_were(
    trace: Trace, changed: Trace, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[pd.DataFrame] = []
    said: list[str] = []
    monkeypatch.setattr(act.st, "dataframe", lambda table, **_more: tables.append(table))
    monkeypatch.setattr(act.st, "text", lambda text: said.append(text))
    scene = view.Scene(trace, standing("cross"), translator.trace)
    played = act.play(scene, OTHER)
    assert_same(played.before, trace)
    assert_same(played.after, changed)
    act.consequences(played, scene)
    (table,) = tables
    np.testing.assert_allclose(table["before"], np.exp(trace.piece_log_probs), rtol=1e-6)
    np.testing.assert_allclose(table["after"], np.exp(changed.piece_log_probs), rtol=1e-6)
    change = table["change of log p"].to_numpy()
    np.testing.assert_allclose(change, changed.piece_log_probs - trace.piece_log_probs, rtol=1e-6)
    assert tuple(table["piece"]) == trace.comes_out
    losses = [-float(each.piece_log_probs.mean()) for each in (trace, changed)]
    assert said[2:] == [f"before: {losses[0]:.3f}", f"after: {losses[1]:.3f}"]
    assert said[0] == f"before: {trace.translation}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_printed_panel_holds_the_numbers_of_its_title(trace: Trace, changed: Trace, kind: Kind) -> None:
    root = ET.fromstring(draw(Shot(trace, kind, 1, 0, 3, after=changed), PALETTES["light"]).encode())
    svg = "{http://www.w3.org/2000/svg}"

    def corner(shape: ET.Element) -> tuple[float, float]:
        return float(shape.get("x", 0)), float(shape.get("y", 0))

    words = ("Before", "After", "Difference")
    titles = {"".join(text.itertext()): corner(text) for text in root.iter(svg + "text")}
    found: dict[str, list[float]] = {word: [] for word in words}
    for rect in root.iter(svg + "rect"):
        name, colon, said = (rect.findtext(svg + "title") or "").rpartition(": ")
        if colon and ", " in name:
            (x, y), at = corner(rect), {word: titles[word] for word in words}
            panel = [word for word in words if at[word][0] <= x and at[word][1] <= y][-1]
            found[panel].append(0.0 if said.startswith("under") else float(said.replace("−", "-")))
    one, other = (Map(each, kind, 1, 0) for each in (trace, changed))
    for word, numbers in (
        ("Before", one.weights[one.allowed]),
        ("After", other.weights[other.allowed]),
        ("Difference", (other.weights - one.weights).ravel()),
    ):
        np.testing.assert_allclose(found[word], numbers, atol=1.01e-4)
    assert abs(other.weights - one.weights).max() > 0.01


# --- whose words and whose colours ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "asks", "is_asked"),
    [
        ("encoder", "English", "English"),
        ("decoder", "French, goes in → comes out", "French"),
        ("cross", "French, goes in → comes out", "English"),
    ],
)
def test_each_axis_says_whose_pieces_lie_along_it(trace: Trace, kind: Kind, asks: str, is_asked: str) -> None:
    look = Look(PALETTES["light"])
    layout = attention_map(Map(trace, kind, 0, 0), 0, 0, look).layout
    assert layout.xaxis.title.text == f"is asked (key): {is_asked}"
    assert layout.yaxis.title.text == f"asks (query): {asks}"
    assert f"Rows ask (query): {asks}. Columns are asked (key): {is_asked}." in facts(Map(trace, kind, 0, 0))
    sent = stage.maps(trace)[kind]
    assert sent.names == (asks.partition(",")[0], is_asked)
    whose = {"English": "source", "French": "target"}
    assert sent.sides == tuple(whose[name] for name in sent.names)
    assert (sent.comes_out is None) == (kind == "encoder")


@pytest.mark.parametrize("kind", KINDS)
def test_the_colours_of_weights_are_those_of_the_scale_that_is_fixed(trace: Trace, kind: Kind) -> None:
    """A heatmap off the figure's colour axis would take its colours from its own least and largest number."""
    one, palette = Map(trace, kind, 2, 1), PALETTES["light"]
    look = Look(palette)
    figures = [
        attention_map(one, 1, 2, look),
        head_grid(one, palette),
        signed_map(one, one.weights - 0.5, 1.0, 1, 2, look),
    ]
    for figure in figures:
        weights = next(part for part in figure.data if part.name == "weights")
        assert weights.coloraxis == "coloraxis"
        assert (weights.zmin, weights.zmax, weights.zauto, weights.colorscale) == (None,) * 4
        assert figure.layout.coloraxis.cmax == 1


# --- what is learned --------------------------------------------------------------------------------------


def test_a_translator_learns_each_piece_from_those_before_it_and_no_pad(tokenizer: Tokenizer) -> None:
    """The loss of a padded batch is the mean of -log p of the real pieces, worked out pair by pair."""
    model = random_model(vocabulary=tokenizer.size)
    batch = [
        (tokenizer.source(english), tokenizer.target(french))
        for english, french in ((TEXT, FORCED), ("What is it?", "Quel chat !"), ("I am tired.", "Je suis."))
    ]
    assert len({len(target) for _source, target in batch}) == len(batch)
    costs: list[float] = []
    for source, target in batch:
        for at in range(1, len(target)):  # each step sees no more than what came before
            logits = model(torch.tensor([source]), torch.tensor([target[:at]]))[0, -1].double()
            costs.append(float(logits.logsumexp(0) - logits[target[at]]))
    found = Translating(NEUTRAL).loss(model, batch, torch.device("cpu"), 0.0)
    assert found.item() == pytest.approx(sum(costs) / len(costs), rel=1e-5)
