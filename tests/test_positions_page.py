"""The Positions page: its pictures hold the encoding and the trace, and what it claims is so."""

import json
import math
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from model import experiments
from model.positions import sinusoids
from model.trace import KINDS, Change, Kind, Trace
from model.translator import Translator
from tests.conftest import FORCED, TEXT
from tests.test_figures import matrix, sent, trace_of
from viz import cache, order
from viz.figures.positions import (
    curves,
    dimension_map,
    norm_bars,
    numbered,
    parts,
    products,
    rotation,
    shift_curve,
    twin_grid,
    twin_rows,
    vector,
)
from viz.text import prose
from viz.theme import PALETTES

ROOT = Path(__file__).parent.parent
LIGHT = PALETTES["light"]
OFF = Change(positions="off")
N, D = 61, 22  # positions, dimensions
TWINS = "The cat looks at the cat."
FRENCH_TWINS = "Le chat regarde le chat. Le chien."


@pytest.fixture(scope="module")
def encoding() -> np.ndarray:
    return experiments.encoding(N, D)


def numbers(values: Any) -> np.ndarray:
    """A list of numbers as the browser decodes it."""
    if isinstance(values, dict):
        return matrix(values | {"shape": values.get("shape", str(-1))}).ravel()
    return np.array(values)


# --- the encoding -----------------------------------------------------------------------------------------


def test_the_encoding_is_the_models_own(encoding: np.ndarray) -> None:
    assert encoding.shape == (N, D)
    np.testing.assert_array_equal(encoding, sinusoids(torch.arange(N), D).numpy())


@pytest.mark.parametrize("width", [22, 256, 512])
def test_each_pair_turns_by_the_papers_angle(width: int) -> None:
    by_hand = [10_000 ** (-2 * i / width) for i in range(width // 2)]
    np.testing.assert_allclose(experiments.turns(width), by_hand, rtol=1e-6)


def test_every_cell_of_the_map_is_the_encoding(encoding: np.ndarray) -> None:
    figure = dimension_map(encoding, 1.0, LIGHT, 7)
    np.testing.assert_array_equal(matrix(trace_of(figure, "numbers")["z"]), encoding)
    axis = sent(figure)["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (-1, 1)
    (frame,) = sent(figure)["layout"]["shapes"]
    assert (frame["y0"], frame["y1"]) == (6.5, 7.5)


def test_curves_are_columns_with_their_wavelengths(encoding: np.ndarray) -> None:
    wavelengths = 2 * math.pi / experiments.turns(D)
    figure = curves(encoding, (0, 5, 21), wavelengths, 3, LIGHT)
    for dimension in (0, 5, 21):
        drawn = numbers(trace_of(figure, f"dimension {dimension}")["y"])
        np.testing.assert_array_equal(drawn, encoding[:, dimension])
    said = [note["text"] for note in sent(figure)["layout"]["annotations"]]
    assert said[0] == "sin, dimension 0: one wave in 6.3 positions"
    length = 2 * math.pi * 10_000 ** (20 / 22)
    assert said[2] == f"cos, dimension 21: one wave in {length:,.1f} positions"
    assert not sent(curves(encoding, (), wavelengths, 3, LIGHT))["data"]


def test_the_vector_is_a_row_and_products_are_dot_products(encoding: np.ndarray) -> None:
    np.testing.assert_array_equal(numbers(trace_of(vector(encoding, 13, LIGHT), "vector")["y"]), encoding[13])
    drawn = trace_of(products(encoding, 13, LIGHT), "products")
    by_hand = [float(np.dot(row.astype(float), encoding[13].astype(float))) for row in encoding]
    np.testing.assert_allclose(numbers(drawn["y"]), by_hand, atol=1e-5)
    np.testing.assert_array_equal(numbers(drawn["x"]), np.arange(N) - 13)
    reflected = numbers(drawn["y"])[:27]  # distances -13 to 13
    np.testing.assert_allclose(reflected, reflected[::-1], atol=1e-5)


# --- the rotation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 1, 5, 31])
@pytest.mark.parametrize("pair", [0, 3, 10])
def test_the_rotation_takes_each_position_on_by_the_offset(
    encoding: np.ndarray, pair: int, offset: int
) -> None:
    angle = offset * 10_000 ** (-2 * pair / D)
    turn = order.turn(encoding, pair, offset)
    by_hand = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    np.testing.assert_allclose(turn, by_hand, atol=1e-6)
    here = encoding[:, 2 * pair : 2 * pair + 2]
    for position in range(N - offset):
        np.testing.assert_allclose(turn @ here[position], here[position + offset], atol=1e-6)
    assert order.turned_apart(encoding, offset, [pair]) <= 1e-6


def test_the_check_finds_what_is_no_rotation(encoding: np.ndarray) -> None:
    bent = encoding.copy()
    bent[17, 4] += 0.25
    assert order.turned_apart(bent, 5, [2]) == pytest.approx(0.25, abs=0.01)
    assert order.turned_apart(bent, 5, [1]) <= 1e-6
    assert order.turned_apart(bent, 5, range(D // 2)) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(("pair", "at", "offset"), [(0, 0, 0), (0, 2, 11), (3, 7, 5), (10, 1, 40)])
def test_the_points_on_the_circle_are_the_encoding(
    encoding: np.ndarray, pair: int, at: int, offset: int
) -> None:
    angle = offset * float(experiments.turns(D)[pair])
    figure = rotation(encoding, pair, at, offset, angle, LIGHT)
    for name, position in (("from", at), ("to", at + offset)):
        point = trace_of(figure, name)
        sine, cosine = encoding[position, 2 * pair : 2 * pair + 2]
        assert point["y"] == pytest.approx([sine])
        assert point["x"] == pytest.approx([cosine])
        assert f"position {position}: sin {sine:+.4f}, cos {cosine:+.4f}" in point["hovertext"][0]
    arc = trace_of(figure, "angle")
    ends = [math.atan2(numbers(arc["y"])[i], numbers(arc["x"])[i]) for i in (0, -1)]
    start = math.atan2(*encoding[at, 2 * pair : 2 * pair + 2])
    assert ends[0] == pytest.approx(start, abs=1e-5)
    turned = ends[1] - ends[0] - min(angle, 2 * math.pi)
    assert math.remainder(turned, 2 * math.pi) == pytest.approx(0, abs=1e-5)
    between = numbers(trace_of(figure, "between")["x"])
    np.testing.assert_array_equal(between, encoding[at + 1 : at + offset, 2 * pair + 1])


# --- what is added ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_sum_is_embedding_times_the_root_plus_position(
    trace: Trace, translator: Translator, encoding: np.ndarray, side: str
) -> None:
    embedding = trace.embedding(side)
    ids = trace.source_ids if side == "source" else trace.target_ids
    table = translator.model.embedding.weight.numpy()
    np.testing.assert_allclose(embedding.pieces, table[list(ids)] * math.sqrt(D), atol=1e-6)
    np.testing.assert_array_equal(embedding.positions, encoding[: len(ids)])
    np.testing.assert_allclose(embedding.sum, embedding.pieces + embedding.positions, atol=1e-6)
    for part in (embedding.pieces, embedding.positions, embedding.sum):
        figure = dimension_map(part, 4.0, LIGHT, 2, numbered([str(id_) for id_ in ids]))
        np.testing.assert_array_equal(matrix(trace_of(figure, "numbers")["z"]), part)
        assert len(sent(figure)["layout"]["yaxis"]["ticktext"]) == len(ids)


def test_norms_and_shares_are_those_of_each_piece(trace: Trace) -> None:
    embedding = trace.embedding("source")
    lengths, parts = order.norms(embedding), order.shares(embedding)
    for row in range(len(trace.source)):
        piece, position, total = (
            vectors[row].astype(float) for vectors in (embedding.pieces, embedding.positions, embedding.sum)
        )
        by_hand = [math.sqrt(float(v @ v)) for v in (piece, position, total)]
        np.testing.assert_allclose(lengths[row], by_hand, rtol=1e-5)
        shares = [float(total @ v) / float(total @ total) for v in (piece, position)]
        np.testing.assert_allclose(parts[row], shares, atol=1e-5)
    np.testing.assert_allclose(parts.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(lengths[:, 1], math.sqrt(D / 2), rtol=1e-5)
    figure = norm_bars(embedding, trace.source, LIGHT, 0)
    for name, column in (("embedding × √d", 0), ("position", 1)):
        np.testing.assert_array_equal(numbers(trace_of(figure, name)["x"]), lengths[:, column])


# --- words swapped ----------------------------------------------------------------------------------------


def swapped(translator: Translator, trace: Trace, first: int, second: int, change: Change) -> Trace:
    text, places = order.swap(trace, first, second)
    other = translator.trace(text, FORCED, change)
    assert order.same_pieces(trace, other, places)
    return order.put_back(other, places)


def test_words_are_what_a_reader_counts(translator: Translator) -> None:
    trace = translator.trace("Don't look at Tom's unseen cats, (me) !")
    words = order.words(trace)
    assert [word.text for word in words][-7:] == ["unseen", "cats", ",", "(", "me", ")", "!"]
    assert "".join(" " * word.space + word.text for word in words).strip() == trace.text
    assert [index for word in words for index in range(word.start, word.stop)] == [
        *range(len(trace.source) - 1)
    ]
    assert len(order.words(translator.trace("."))) == 1
    assert len(order.words(translator.trace("A cat.", change=Change(source_pads=3)))) == 3


@pytest.mark.parametrize(("first", "second"), [*combinations(range(1, 5), 2)])
def test_without_positions_swapping_words_only_permutes(
    translator: Translator, first: int, second: int
) -> None:
    before = translator.trace(TEXT, FORCED, OFF)
    after = swapped(translator, before, first, second, OFF)
    assert after.source == before.source
    assert after.source_ids == before.source_ids
    for kind in KINDS:
        for name in ("q", "k", "v", "scores", "weights", "output"):
            mine, theirs = getattr(before.stages(kind), name), getattr(after.stages(kind), name)
            np.testing.assert_allclose(mine, theirs, atol=1e-5, err_msg=f"{kind} {name}")
    np.testing.assert_allclose(before.embedding("source").sum, after.embedding("source").sum, atol=1e-6)
    np.testing.assert_allclose(before.piece_log_probs, after.piece_log_probs, atol=1e-4)


def test_the_swapped_map_itself_is_not_the_same_map(translator: Translator) -> None:
    before = translator.trace(TEXT, FORCED, OFF)
    text, places = order.swap(before, 1, 4)
    assert text == "The me looks at cat."
    weights = translator.trace(text, FORCED, OFF).weights("encoder")
    assert abs(weights - before.weights("encoder")).max() > 0.01
    np.testing.assert_allclose(weights, before.weights("encoder")[..., places, :][..., places], atol=1e-5)


def test_words_of_several_pieces_are_put_back_too(translator: Translator) -> None:
    before = translator.trace("The unseen cat looks at Mary.", FORCED, OFF)
    words = order.words(before)
    for first, second in combinations(range(1, len(words) - 1), 2):
        after = swapped(translator, before, first, second, OFF)
        assert after.source == before.source
        np.testing.assert_allclose(after.weights("encoder"), before.weights("encoder"), atol=1e-5)
    assert len({word.stop - word.start for word in words}) > 1  # else no order would differ from its inverse


def test_with_positions_swapping_words_does_more(translator: Translator) -> None:
    before = translator.trace(TEXT, FORCED)
    after = swapped(translator, before, 1, 4, Change())
    assert abs(after.weights("encoder") - before.weights("encoder")).max() > 0.01


def test_words_that_cannot_be_lined_up_are_found_out(translator: Translator) -> None:
    trace = translator.trace("A cat.")
    text, places = order.swap(trace, 0, 2)  # the full stop opens the sentence, and is another piece there
    assert not order.same_pieces(trace, translator.trace(text), places)


# --- twins ------------------------------------------------------------------------------------------------


def test_twins_are_equal_without_positions_and_apart_with_them(translator: Translator) -> None:
    on, off = translator.trace(TWINS, FRENCH_TWINS), translator.trace(TWINS, FRENCH_TWINS, OFF)
    pairs = order.twins(on, "encoder")
    assert pairs
    for first, second in pairs:
        assert on.source[first] == on.source[second]
        apart = order.apart(off, "encoder", (first, second))
        assert apart.shape == (3, 2)
        assert apart.max() <= 1e-6
        assert order.apart(on, "encoder", (first, second)).min() > 1e-3
        by_hand = abs(on.weights("encoder")[1, 0, first] - on.weights("encoder")[1, 0, second]).max()
        assert order.apart(on, "encoder", (first, second))[1, 0] == by_hand


def test_the_decoder_keeps_some_order_through_its_mask(translator: Translator) -> None:
    off = translator.trace(TWINS, FRENCH_TWINS, OFF)
    (pair, *_others) = order.twins(off, "decoder")
    assert off.target[pair[0]] == off.target[pair[1]]
    assert order.apart(off, "decoder", pair).min() > 1e-3
    assert order.apart(off, "cross", pair).max() > 0


def test_special_pieces_have_no_twins(translator: Translator) -> None:
    trace = translator.trace("A cat.", change=Change(source_pads=3))
    assert order.twins(trace, "encoder") == ()
    unknown = translator.trace("🙂 🙂")
    assert order.twins(unknown, "encoder") == ((0, 1),)
    assert len(order.twins(translator.trace("cat cat cat"), "encoder")) >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_rows_are_the_traces_and_blocked_cells_are_no_weights(
    translator: Translator, kind: Kind
) -> None:
    trace = translator.trace(TWINS, FRENCH_TWINS, OFF)
    (pair, *_others) = order.twins(trace, kind)
    rows, allowed = trace.weights(kind)[2, 1][list(pair)], trace.allowed(kind)[2, 1][list(pair)]
    figure = twin_rows(rows, allowed, trace.axes(kind)[1], ["one", "two"], LIGHT)
    drawn = matrix(trace_of(figure, "weights")["z"])
    np.testing.assert_array_equal(drawn[allowed], rows[allowed])
    assert np.isnan(drawn[~allowed]).all()
    assert bool(trace_of(figure, "hatch")["x"]) == (kind == "decoder")


def test_a_long_row_is_shown_in_parts_that_miss_no_column_and_crowd_none() -> None:
    for count in (1, 7, 16, 17, 40, 64):
        shown = [list(range(count))[part] for part in parts(count)]
        assert [column for part in shown for column in part] == list(range(count))
        assert max(map(len, shown)) <= 16
        assert max(map(len, shown)) - min(map(len, shown)) < len(shown)
    figure = twin_rows(np.zeros((2, 16)), np.ones((2, 16), bool), ["piece"] * 16, ["a", "b"], LIGHT)
    assert "texttemplate" not in trace_of(figure, "weights")
    assert len(sent(figure)["layout"]["xaxis"]["ticktext"]) == 16


def test_the_grid_of_layers_and_heads_holds_the_distances_and_leads_there(translator: Translator) -> None:
    on = translator.trace(TWINS, FRENCH_TWINS)
    apart = order.apart(on, "encoder", order.twins(on, "encoder")[0])
    figure = twin_grid(apart, 2, 1, LIGHT)
    np.testing.assert_array_equal(matrix(trace_of(figure, "distances")["z"]), apart)
    heads = trace_of(figure, "heads")
    assert [tuple(place) for place in heads["customdata"]] == list(np.ndindex(3, 2))
    assert list(zip(heads["y"], heads["x"], strict=True)) == list(np.ndindex(3, 2))
    zero = trace_of(twin_grid(np.zeros((3, 2), np.float32), 0, None, LIGHT), "distances")
    assert zero["text"] == [["0", "0"]] * 3


def test_the_loss_by_shift_is_drawn_as_measured() -> None:
    figure = shift_curve({0: 1.5, 64: 2.5, 512: 4.25}, 64, 64, LIGHT)
    curve = trace_of(figure, "losses")
    assert curve["x"] == [0, 64, 512]
    assert curve["y"] == [1.5, 2.5, 4.25]
    (line,) = sent(figure)["layout"]["shapes"]
    assert line["x0"] == line["x1"] == 64


def test_places_are_read_back_from_the_encodings(translator: Translator, encoding: np.ndarray) -> None:
    shuffled = translator.trace(TEXT, FORCED, Change(positions="shuffled", seed=4))
    places = order.places(shuffled.embedding("source").positions, encoding)
    assert sorted(places) == list(range(7))
    assert places == np.random.default_rng(4).permutation(7).tolist()
    shifted = translator.trace(TEXT, FORCED, Change(shift=23))
    assert order.places(shifted.embedding("source").positions, encoding) == list(range(23, 30))


# --- the page ---------------------------------------------------------------------------------------------

STATES: list[dict[str, str]] = [
    {},
    {"pos_way": "on"},
    {"pos_way": "shuffled", "pos_seed": "7"},
    {"pos_way": "shifted", "pos_shift": "3"},
    {"pos_way": "beyond", "pos_beyond": "512"},
    {"pos_try": "swap"},
    {"pos_try": "swap", "pos_swap": "on", "pos_first": "2", "pos_second": "99"},
    {"pos_try": "twins"},
    {"pos_tab": "sum"},
    {"pos_tab": "encoding"},
    {"pos_tab": "encoding", "pos_picture": "curves", "pos_count": "128"},
    {"pos_tab": "encoding", "pos_picture": "vector", "pos_at": "511"},
    {"pos_tab": "encoding", "pos_picture": "distance", "pos_count": "512"},
    {"pos_tab": "rotation", "pos_k": "64", "pos_pair": "0", "pos_from": "11"},
]


def opened(**params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at._page_hash = calc_hash("positions")  # AppTest switches to pages that are files, and ours are not
    for name, value in params.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def pictures(at: AppTest) -> list[Any]:
    """What is drawn: figures, and the stage of an act."""
    return [
        *at.get("plotly_chart"),
        *(part for part in at.get("bidi_component") if part.proto.component_name == "headlight_stage"),
    ]


def said(at: AppTest) -> str:
    parts = [*at.markdown, *at.caption, *at.text, *at.info, *at.latex]
    return "\n".join(part.value.replace("\\", "") for part in parts)


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_draws_on_a_typed_sentence_on_a_full_stop_and_from_a_link_alone(kind: Kind) -> None:
    for state in STATES:
        for text in ({"text": "The dog sees the dog."}, {"text": "."}, {}):
            at = opened(kind=kind, **state, **text)
            assert pictures(at) or at.info, (state, text)


def test_the_first_visit_shows_one_switch_and_one_picture() -> None:
    at = opened()
    assert at.segmented_control(key="pos_way").value == "off"
    assert len(pictures(at)) == 2  # the act; the decoder waits in an expander
    assert "expect worse, not better" in said(at)


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ({}, OFF),
        ({"pos_way": "on"}, Change()),
        ({"pos_way": "shuffled", "pos_seed": "5"}, Change(positions="shuffled", seed=5)),
        ({"pos_way": "shifted", "pos_shift": "9"}, Change(shift=9)),
        ({"pos_way": "beyond", "pos_beyond": "256"}, Change(shift=256)),
    ],
)
def test_each_way_shows_the_trace_of_its_change(state: dict[str, str], change: Change) -> None:
    text = "I am a student."
    at = opened(text=text, kind="encoder", layer="2", head="3", still="true", **state)
    before = cache.trace(cache.MODEL, text)
    after = cache.trace(cache.MODEL, text, before.translation, change)
    drawn = [json.loads(chart.proto.spec)["data"] for chart in at.get("plotly_chart")[:3]]
    maps = [matrix(next(trace["z"] for trace in data if trace["name"] == "weights")) for data in drawn]
    first, second = before.weights("encoder")[1, 2], after.weights("encoder")[1, 2]
    for shown, weights in zip(maps, (first, second, second - first), strict=True):
        np.testing.assert_allclose(shown, weights, atol=1e-6)


def test_what_is_done_moves_no_other_tab() -> None:
    at = opened(kind="encoder", text="The big dog saw a big cat.")
    at.segmented_control(key="pos_way").set_value("beyond").run()
    assert not at.exception
    assert "positions 64 to 72, not 0 to 8" in said(at)
    assert "Training sentences had at most 64 pieces" in said(at)
    losses = re.search(r"by 0 the loss is ([.\d]+); by 64, ([.\d]+);", said(at))
    shown = [line.value for line in at.text if line.value.startswith(("before: ", "after: "))][2:]
    assert losses is not None
    assert shown == [f"before: {losses[1]}", f"after: {losses[2]}"]
    at.segmented_control(key="pos_tab").set_value("rotation").run()
    assert "largest difference" in said(at)
    two, seven = experiments.encoding(8, 256)[[2, 7], 16:18]
    (formula,) = [each.value for each in at.markdown if "pmatrix" in each.value]
    for number in (*two, *seven):
        assert f"{number:.4f}" in formula
    at.segmented_control(key="pos_tab").set_value("experiment").run()
    at.segmented_control(key="pos_try").set_value("twins").run()
    assert not at.exception
    assert re.search("Equal (to the last digit|but for rounding)", said(at))
    assert "Two rows of the encoder self-attention are called big." in said(at)


def test_swapping_says_what_was_swapped_and_how_little_moved() -> None:
    at = opened(kind="encoder", text="Tom loves Mary.", pos_try="swap")
    assert "swapped: Mary loves Tom." in said(at)
    assert "nothing else happened" in said(at)
    lines = [line.value.partition(": ") for line in at.text if ": " in line.value]
    typed = [after for before, _colon, after in lines if before == "as typed"]
    other = [after for before, _colon, after in lines if before == "swapped"]
    assert typed == other[-1:]  # without positions both are one sentence to the model


def test_odd_words_and_same_words_are_told() -> None:
    assert "Choose two different words" in said(opened(text=".", pos_try="swap"))
    at = opened(text="-5 cats.", pos_try="swap", pos_first="1", pos_second="2")
    assert "cut into other pieces" in said(at)


BAD = "pos_tab=x pos_way=<b> pos_try=swap' pos_shift=-9 pos_seed=1e9 pos_beyond=65 pos_k=99999 pos_pair=128"
MORE = "pos_from=٣ pos_dims=999 pos_count=0 pos_at=nan pos_first=0 pos_second=-1 pos_twin=x pos_swap=perhaps"


@pytest.mark.parametrize("bad", [*BAD.split(), *MORE.split()])
def test_a_bad_value_in_the_address_is_told_and_the_usual_one_shown(bad: str) -> None:
    name, _equals, value = bad.partition("=")
    needs = {
        "pos_shift": {"pos_way": "shifted"},
        "pos_seed": {"pos_way": "shuffled"},
        "pos_beyond": {"pos_way": "beyond"},
        "pos_k": {"pos_tab": "rotation"},
        "pos_pair": {"pos_tab": "rotation"},
        "pos_from": {"pos_tab": "rotation"},
        "pos_dims": {"pos_tab": "encoding", "pos_picture": "curves"},
        "pos_count": {"pos_tab": "encoding"},
        "pos_at": {"pos_tab": "encoding"},
        "pos_first": {"pos_try": "swap"},
        "pos_second": {"pos_try": "swap"},
        "pos_swap": {"pos_try": "swap"},
        "pos_twin": {"pos_try": "twins", "kind": "encoder", "text": "a cat a cat"},
    }
    at = opened(**{**needs.get(name, {}), name: value})
    assert pictures(at)
    (warning,) = at.warning
    assert f'asked for {name} "{value}"' in warning.value.replace("\\", "")


def test_a_number_that_this_sentence_does_not_reach_is_told() -> None:
    at = opened(text="Tom loves Mary.", pos_try="swap", pos_first="1", pos_second="9")
    assert not at.warning
    assert "There is no word 9: the sentence has 4, marks included." in said(at)
    at = opened(text="a cat a cat", kind="encoder", pos_try="twins", pos_twin="7")
    assert "There is no pair 7 here; the last one is shown." in said(at)
    at = opened(pos_tab="encoding", pos_count="64", pos_at="500")
    assert "Only positions 0 to 63 are shown; the last one is marked." in said(at)
    reached = opened(text="Tom loves Mary.", pos_try="swap", pos_first="1", pos_second="3")
    assert "There is no word" not in said(reached)


def test_every_explanation_that_the_page_shows_is_written() -> None:
    for section in ("Why", "Decoder", "Swap", "Twins", "Kinds", "Sum", "Share", "Formula", "Rotation"):
        assert prose("positions")[section]
    for picture in ("map", "curves", "vector", "distance"):
        assert prose("positions")[picture]


def test_a_translation_that_reads_back_as_other_pieces_keeps_those_that_the_model_chose() -> None:
    text = "<b>שלום</b> 🙂 $x$ *a*"
    trace = cache.trace(cache.MODEL, text)
    again = cache.trace(cache.MODEL, text, trace.translation or None)
    assert trace.target_ids != again.target_ids  # else this sentence tests nothing
    at = opened(text=text, pos_way="off", still="true", kind="decoder")
    first, second = (json.loads(chart.proto.spec)["layout"]["xaxis"] for chart in at.get("plotly_chart")[:2])
    assert len(first["ticktext"]) == len(second["ticktext"]) == len(trace.target)
