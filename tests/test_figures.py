"""What is drawn is what was traced: cell by cell, label by label."""

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from numpy.typing import NDArray

from model.trace import KINDS, Cell, Change, Kind, Trace
from model.translator import Translator
from tests.conftest import FORCED, TEXT
from viz import tables
from viz.figures import Look, attention_lines, attention_map, head_grid
from viz.figures.cells import READABLE, window
from viz.figures.grid import COLUMNS
from viz.figures.lines import hidden
from viz.reading import Map, row_names
from viz.theme import PALETTES, escape

LIGHT = PALETTES["light"]
LOOK = Look(LIGHT)
places = pytest.mark.parametrize(
    ("kind", "layer", "head"), [(kind, layer, head) for kind in KINDS for layer, head in ((0, 1), (2, 0))]
)


def sent(figure: go.Figure) -> dict[str, Any]:
    """The figure as the browser gets it, its packed arrays unpacked but for the cells of heatmaps."""
    return json.loads(figure.to_json(), object_hook=_unpacked)


def _unpacked(value: dict[str, Any]) -> Any:
    for name in ("x", "y", "customdata"):
        if isinstance(value.get(name), dict):
            packed = value[name]
            flat = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
            sizes = [int(size) for size in packed.get("shape", str(flat.size)).split(",")]
            value[name] = flat.reshape(sizes).tolist()
    return value


def trace_of(figure: go.Figure, name: str) -> dict[str, Any]:
    (found,) = [trace for trace in sent(figure)["data"] if trace["name"] == name]
    return found


def matrix(z: Any) -> NDArray[np.float32]:
    """A heatmap's z as the browser decodes it; None and NaN are gaps."""
    if isinstance(z, dict):
        flat = np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"])
        return flat.reshape([int(size) for size in z["shape"].split(",")])
    return np.array([[np.nan if cell is None else cell for cell in row] for row in z], np.float32)


@places
def test_every_cell_of_the_map_holds_its_weight(trace: Trace, kind: Kind, layer: int, head: int) -> None:
    shown = matrix(trace_of(attention_map(Map(trace, kind, layer, head), 1, 2, LOOK), "weights")["z"])
    weights, allowed = trace.weights(kind)[layer, head], trace.allowed(kind)[layer, head]
    assert shown.dtype == np.float32
    np.testing.assert_array_equal(shown[allowed], weights[allowed])
    assert np.isnan(shown[~allowed]).all()


@places
def test_every_cell_of_the_small_maps_holds_its_weight(
    trace: Trace, kind: Kind, layer: int, head: int
) -> None:
    shown = matrix(trace_of(head_grid(Map(trace, kind, layer, head), LIGHT), "weights")["z"])
    weights, allowed = trace.weights(kind)[layer], trace.allowed(kind)[layer]
    heads, rows, columns = weights.shape
    frames = sent(head_grid(Map(trace, kind, layer, head), LIGHT))["layout"]["shapes"]
    assert len(frames) == heads
    for number, frame in enumerate(frames):
        top, left = int(frame["y0"] + 0.5), int(frame["x0"] + 0.5)
        tile = shown[top : top + rows, left : left + columns]
        np.testing.assert_array_equal(tile[allowed[number]], weights[number][allowed[number]])
        assert np.isnan(tile[~allowed[number]]).all()
        assert frame["line"]["color"] == (LIGHT.accent if number == head else LIGHT.hatch)
    assert np.isfinite(shown).sum() == allowed.sum()  # nothing is drawn between the heads


def test_one_colour_means_one_weight_in_every_picture(trace: Trace) -> None:
    for kind in KINDS:
        for layer in range(3):
            picture = Map(trace, kind, layer, 0)
            axes = [
                sent(f)["layout"]["coloraxis"]
                for f in (attention_map(picture, 0, 0, LOOK), head_grid(picture, LIGHT))
            ]
            assert [(axis["cmin"], axis["cmax"]) for axis in axes] == [(0, 1), (0, 1)]
            assert axes[0]["colorscale"] == axes[1]["colorscale"]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_scale_of_weights_never_turns_back_in_lightness(mode: Any) -> None:
    def lightness(colour: str) -> float:
        channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    steps = np.diff([lightness(colour) for _at, colour in PALETTES[mode].weights])
    assert (steps < 0).all() if mode == "light" else (steps > 0).all()


@places
def test_labels_are_the_tokens_in_order_and_never_merge(
    trace: Trace, kind: Kind, layer: int, head: int
) -> None:
    layout = sent(attention_map(Map(trace, kind, layer, head), 1, 2, LOOK))["layout"]
    queries, keys = trace.axes(kind)
    assert layout["xaxis"]["tickvals"] == list(range(len(keys)))
    assert layout["yaxis"]["tickvals"] == list(range(len(queries)))
    for label, key in zip(layout["xaxis"]["ticktext"], keys, strict=True):
        assert f">{escape(key)}</span>" in label
    for index, (label, query) in enumerate(zip(layout["yaxis"]["ticktext"], queries, strict=True)):
        assert f">{escape(query)}</span>" in label
        assert (f"→ {escape(trace.comes_out[index])}</span>" in label) == (kind != "encoder")
    first, last = layout["yaxis"]["range"]
    assert first > last  # the first query is on top


def test_token_text_is_never_read_as_markup(translator: Translator) -> None:
    trace = translator.trace("<b> &lt; <br>", "<i> & </i>")
    for figure in (
        attention_map(Map(trace, "cross", 0, 0), 0, 0, LOOK),
        attention_lines(Map(trace, "cross", 0, 0), 0, LIGHT, 0.03),
    ):
        labels = json.dumps(sent(figure), ensure_ascii=False)
        assert "&lt;" in labels
        assert "&amp;" in labels
        for piece in {*trace.source, *trace.target} & {"<", "&"}:
            assert f">{piece}<" not in labels


@places
def test_hovering_tells_the_exact_weight_or_why_there_is_none(
    trace: Trace, kind: Kind, layer: int, head: int
) -> None:
    cells = trace_of(attention_map(Map(trace, kind, layer, head), 1, 2, LOOK), "cells")
    for (query, key), said in zip(cells["customdata"], cells["hovertext"], strict=True):
        if trace.allowed(kind)[layer, head, query, key]:
            weight = float(trace.weights(kind)[layer, head, query, key])
            assert ("under 0.0001" if 0 < weight < 0.0001 else f"{weight:.4f}") in said
        else:
            assert "blocked: this row may not see the future" in said


def test_each_blocked_cell_names_its_reason_and_is_hatched(translator: Translator) -> None:
    change = Change(target_pads=2, blocked=frozenset({Cell("decoder", 3, 1)}))
    trace = translator.trace(TEXT, FORCED, change)
    figure = attention_map(Map(trace, "decoder", 1, 1), 0, 0, LOOK)
    said = dict(
        zip(
            map(tuple, trace_of(figure, "cells")["customdata"]),
            trace_of(figure, "cells")["hovertext"],
            strict=True,
        )
    )
    real, size = len(trace.target) - 2, len(trace.target)
    assert "blocked by you" in said[3, 1]
    assert "blocked: this row may not see the future" in said[0, real - 1]
    assert "blocked: a pad, and in the future" in said[0, real]
    assert "blocked: a pad, nothing to read" in said[size - 1, real]
    hatch = trace_of(figure, "hatch")
    blocked = np.argwhere(~trace.allowed("decoder")[1, 1]).tolist()
    strokes = [(round(y), round(x)) for x, y in _middles(hatch)]
    assert {tuple(cell) for cell in blocked} == set(strokes)


def _middles(lines: dict[str, Any]) -> list[tuple[float, float]]:
    x, y = lines["x"], lines["y"]
    return [((x[i] + x[i + 1]) / 2, (y[i] + y[i + 1]) / 2) for i in range(0, len(x), 3)]


def test_the_bar_at_a_rows_end_is_the_rows_sum_and_an_empty_row_says_so(translator: Translator) -> None:
    nothing = frozenset(Cell("cross", 2, key) for key in range(7))
    trace = translator.trace(TEXT, FORCED, Change(blocked=nothing))
    picture = Map(trace, "cross", 0, 1)
    figure = attention_map(picture, 0, 0, LOOK)
    sums = np.array(picture.weights.sum(axis=-1))
    assert sums[2] == 0
    np.testing.assert_allclose(np.delete(sums, 2), 1, atol=1e-5)
    np.testing.assert_array_equal(np.array(trace_of(figure, "row sums")["x"], np.float32), sums)
    assert [note["y"] for note in sent(figure)["layout"]["annotations"]] == [2]
    assert sent(figure)["layout"]["annotations"][0]["text"] == "nothing allowed"


@pytest.mark.parametrize("faint", [0.03, 0.17])
@places
def test_lines_are_the_weights_and_what_is_not_drawn_is_counted(
    trace: Trace, kind: Kind, layer: int, head: int, faint: float
) -> None:
    picture = Map(trace, kind, layer, head)
    weights = picture.weights
    cells = trace_of(attention_lines(picture, 1, LIGHT, faint), "cells")
    assert sorted(map(tuple, cells["customdata"])) == sorted(
        map(tuple, np.argwhere(weights >= faint).tolist())
    )
    for (query, key), said in zip(cells["customdata"], cells["hovertext"], strict=True):
        assert f"{float(weights[query, key]):.4f}" in said
    drawn = weights[weights >= faint].sum()
    assert hidden(picture, faint) == pytest.approx(1 - drawn / weights.sum(), abs=1e-6)


def test_the_mean_is_the_mean_over_heads(trace: Trace) -> None:
    mean = Map(trace, "cross", 1, None)
    np.testing.assert_allclose(mean.weights, trace.weights("cross")[1].mean(axis=0), atol=1e-7)
    assert "the mean of all 2 heads of layer 2" in mean.name()
    frames = sent(head_grid(mean, LIGHT))["layout"]["shapes"]
    assert {frame["line"]["color"] for frame in frames} == {LIGHT.hatch}  # no head is the chosen one


@places
def test_the_table_twin_holds_the_same_numbers(trace: Trace, kind: Kind, layer: int, head: int) -> None:
    picture = Map(trace, kind, layer, head)
    frame = tables.weights(picture)
    assert frame.shape == picture.weights.shape
    assert frame.index.is_unique
    assert frame.columns.is_unique
    assert [name.split(" ", 1)[1] for name in frame.index] == row_names(trace, kind)
    np.testing.assert_array_equal(frame.to_numpy()[picture.allowed], picture.weights[picture.allowed])
    assert frame.isna().to_numpy()[~picture.allowed].all()


@pytest.mark.parametrize("around", [0, 17, 59])
def test_a_long_sentence_is_shown_through_a_window_that_holds_the_chosen_piece(around: int) -> None:
    first, last = window(61, around)
    assert last - first == READABLE
    assert -0.5 <= first <= around <= last <= 60.5
    assert window(7, 3) == (-0.5, 6.5)


def test_clicks_lead_to_the_cell_and_to_the_head(trace: Trace) -> None:
    picture = Map(trace, "cross", 0, 1)
    cells = trace_of(attention_map(picture, 0, 0, LOOK), "cells")
    where = [(y, x) for y, x in zip(cells["y"], cells["x"], strict=True)]
    assert where == [tuple(place) for place in cells["customdata"]]
    heads = trace_of(head_grid(picture, LIGHT), "heads")["customdata"]
    assert heads == [[head] for head in range(trace.weights("cross").shape[1])]
    assert COLUMNS > 1


def test_upright_labels_of_a_narrow_map_leave_each_other_room(translator: Translator) -> None:
    trace = translator.trace(TEXT, FORCED, Change(source_pads=5))
    figure = attention_map(Map(trace, "cross", 0, 0), 0, 0, Look(LIGHT, narrow=True))
    axis = sent(figure)["layout"]["xaxis"]
    assert axis["tickangle"] == -90
    assert axis["tickfont"]["size"] * len(axis["tickvals"]) <= 170  # px that the smallest such map is wide
