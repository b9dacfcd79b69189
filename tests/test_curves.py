"""A figure of plotly on paper: its shapes stand where its numbers say; what is not known is refused."""

import io
import json
import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from model.trace import KINDS, Kind, Trace
from tests.test_svg import SVG, back, painted, read, said
from viz.export import ExportError, content_of
from viz.figures import Look, attention_lines, attention_map, head_grid
from viz.reading import Map
from viz.svg.curves import UntranslatableError, can, draw, rows
from viz.svg.described import formed, plain, rich
from viz.theme import PALETTES, escape

LIGHT, DARK = PALETTES["light"], PALETTES["dark"]
X, Y = np.array([1.0, 2, 4, 5, 8]), np.array([3.0, 1, 4, 1, 5])


def figure(*traces: Any, **layout: Any) -> go.Figure:
    return go.Figure(traces, {"height": 300, "template": None, **layout})


def points(d: str) -> np.ndarray:
    """The corners of a path."""
    return np.array([[float(x), float(y)] for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", d)])


def stroked(root: ET.Element, colour: str) -> list[ET.Element]:
    return [path for path in root.iter(SVG + "path") if path.get("stroke") == colour]


def straight(places: np.ndarray, numbers: np.ndarray) -> float:
    """How far places on paper are from lying as the numbers do, in px; and that they grow as these do."""
    slope, lift = np.polyfit(numbers, places, 1)
    assert abs(slope) > 1e-3
    return float(abs(slope * numbers + lift - places).max())


def test_points_of_a_line_lie_as_its_numbers_do() -> None:
    root = read(draw(figure(go.Scatter(x=X, y=Y, mode="lines", line={"color": LIGHT.accent})), LIGHT))
    (path,) = stroked(root, LIGHT.accent)
    found = points(path.get("d", ""))
    assert straight(found[:, 0], X) < 0.02
    assert straight(found[:, 1], Y) < 0.02
    assert found[0, 0] < found[-1, 0]
    assert found[Y.argmax(), 1] < found[Y.argmin(), 1]  # more is up


def test_a_tick_stands_at_its_number() -> None:
    plot = figure(go.Scatter(x=X, y=Y, mode="lines", line={"color": LIGHT.accent}))
    plot.update_layout(
        xaxis={"range": [0, 10], "tickvals": [2, 5], "ticktext": ["two", "<b>five</b>"]},
        yaxis={"range": [0, 6]},
    )
    root = read(draw(plot, LIGHT))
    found = points(stroked(root, LIGHT.accent)[0].get("d", ""))
    spans = {span.text: float(span.get("x", 0)) for span in root.iter(SVG + "tspan")}
    assert spans["two"] == pytest.approx(found[1, 0], abs=0.1)
    assert spans["five"] == pytest.approx(found[3, 0], abs=0.1)
    (bold,) = [span.text for span in root.iter(SVG + "tspan") if span.get("font-weight")]
    assert bold == "five"


def test_a_logarithmic_axis_is_one() -> None:
    numbers = np.array([1.0, 10, 100, 2000])
    plot = figure(go.Scatter(x=numbers, y=numbers, mode="lines", line={"color": LIGHT.accent}))
    plot.update_layout(xaxis={"type": "log"}, yaxis={"type": "log", "range": [0, 4]})
    plot.add_vline(x=100, line={"color": LIGHT.source})
    plot.add_annotation(
        x=2, y=1, text="hundred", showarrow=False, xanchor="left"
    )  # in powers of ten, as plotly has it
    root = read(draw(plot, LIGHT))
    found = points(stroked(root, LIGHT.accent)[0].get("d", ""))
    assert straight(found[:, 0], np.log10(numbers)) < 0.02
    assert straight(found[:, 1], np.log10(numbers)) < 0.02
    assert points(stroked(root, LIGHT.source)[0].get("d", ""))[:, 0] == pytest.approx(found[2, 0], abs=0.02)
    (note,) = [span for span in root.iter(SVG + "tspan") if span.text == "hundred"]
    assert float(note.get("x", 0)) == pytest.approx(found[2, 0], abs=0.02)


def test_a_gap_in_a_line_is_a_gap() -> None:
    line = go.Scatter(
        x=[0, 1, None, 2, 3], y=[0, 1, None, 1, math.nan], mode="lines", line={"color": LIGHT.accent}
    )
    (path,) = stroked(read(draw(figure(line), LIGHT)), LIGHT.accent)
    assert re.sub(r"[-\d. ]+", "", path.get("d", "")) == "MLM"


@pytest.mark.parametrize("way", ["v", "h"])
def test_bars_are_as_long_as_their_numbers(way: str) -> None:
    numbers = np.array([1.0, 4, 2.5])
    bar = {"x": ["a", "b", "c"], "y": numbers} if way == "v" else {"y": ["a", "b", "c"], "x": numbers}
    root = read(draw(figure(go.Bar(**bar, orientation=way, marker={"color": LIGHT.accent})), LIGHT))
    rects = [rect for rect in root.iter(SVG + "rect") if rect.get("fill") == LIGHT.accent]
    long, other = ("height", "width") if way == "v" else ("width", "height")
    lengths = np.array([float(rect.get(long, 0)) for rect in rects])
    np.testing.assert_allclose(lengths / lengths[0], numbers, rtol=2e-3)
    assert len({rect.get(other) for rect in rects}) == 1
    assert {span.text for span in root.iter(SVG + "tspan")} >= {"a", "b", "c"}


def test_stacked_bars_stand_on_each_other() -> None:
    colours = (LIGHT.accent, LIGHT.source)
    bars = [
        go.Bar(x=[n], y=["all"], orientation="h", marker={"color": c})
        for n, c in zip((2, 3), colours, strict=True)
    ]
    root = read(draw(figure(*bars, barmode="stack"), LIGHT))
    one, two = (
        next(rect for rect in root.iter(SVG + "rect") if rect.get("fill") == colour) for colour in colours
    )
    assert float(one.get("x", 0)) + float(one.get("width", 0)) == pytest.approx(
        float(two.get("x", 0)), abs=0.02
    )
    assert float(two.get("width", 0)) / float(one.get("width", 1)) == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize("upright", [True, False])
@pytest.mark.parametrize("gap", [0, 1])
def test_a_heatmap_holds_its_numbers_where_they_are(upright: bool, gap: int) -> None:
    z = np.random.default_rng(0).random((3, 5)).astype(np.float32)
    z[1, 2] = np.nan
    heat = go.Heatmap(z=z, xgap=gap, ygap=gap, coloraxis="coloraxis")
    scale = {"colorscale": [list(stop) for stop in LIGHT.weights], "cmin": 0, "cmax": 1, "showscale": False}
    ends = [-0.5, 2.5] if upright else [2.5, -0.5]
    root = read(draw(figure(heat, coloraxis=scale, yaxis={"range": ends}), LIGHT))
    shown = z[::-1] if upright else z  # the first row is the lowest where the axis grows upwards
    if gap:
        rects = [rect for rect in root.iter(SVG + "rect") if rect.findtext(SVG + "title")]
        order = np.argwhere(np.isfinite(shown)).tolist()
        assert len(rects) == len(order) == 14
        for rect, (row, column) in zip(rects, order, strict=True):
            assert back(rect.get("fill", ""), LIGHT.weights) == pytest.approx(shown[row, column], abs=0.012)
    else:
        (group,) = root.iter(SVG + "g")
        np.testing.assert_allclose(painted(group, (3, 5)), shown, atol=0.012)


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_of_a_page_is_on_paper_what_it_is_on_screen(trace: Trace, kind: Kind) -> None:
    picture = Map(trace, kind, 2, 1)
    root = read(draw(attention_map(picture, 1, 2, Look(LIGHT)), LIGHT, ["caption"]))
    rects = [rect for rect in root.iter(SVG + "rect") if rect.findtext(SVG + "title")]
    order = np.argwhere(picture.allowed).tolist()
    cells = rects[len(rects) - len(order) :]
    for rect, (row, column) in zip(cells, order, strict=True):
        assert back(rect.get("fill", ""), LIGHT.weights) == pytest.approx(
            picture.weights[row, column], abs=0.012
        )
    spans = {span.text for span in root.iter(SVG + "tspan")}
    assert {*trace.axes(kind)[1]} <= spans
    assert "caption" in said(root, "text")


def test_figures_of_the_light_theme_become_dark(trace: Trace) -> None:
    picture = Map(trace, "cross", 1, 0)
    for drawn in (
        attention_map(picture, 1, 2, Look(LIGHT)),
        attention_lines(picture, 1, LIGHT, 0.03),
        head_grid(picture, LIGHT),
    ):
        dark = draw(drawn, DARK)
        light_alone = {
            LIGHT.ground,
            LIGHT.text,
            LIGHT.source,
            LIGHT.target,
            LIGHT.accent,
            LIGHT.hatch,
            LIGHT.blocked,
        }
        assert not light_alone & {*re.findall(r"#[0-9a-f]{6}", dark)}
        assert DARK.ground in dark
        assert draw(drawn, LIGHT) == draw(
            go.Figure(json.loads(drawn.to_json())), LIGHT
        )  # as a browser gets it


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (go.Pie(values=[1]), "a trace of type pie"),
        (go.Scatter(x=[1], y=[1], fill="tozeroy"), "scatter.fill"),
        (go.Scatter(x=[1], y=[1], line={"shape": "spline"}), "a line that is not straight"),
        (go.Bar(x=[1], y=[1], error_y={"value": 1}), "bar.error_y"),
    ],
)
def test_what_is_not_known_is_refused_and_not_offered(trace: Any, why: str) -> None:
    assert not can(figure(trace))
    with pytest.raises(UntranslatableError, match=re.escape(why)):
        draw(figure(trace), LIGHT)
    with pytest.raises(ExportError, match=re.escape(why)):
        content_of(figure(trace), [], "svg")


def test_words_from_outside_stay_words() -> None:
    piece = "</text><script>alert(1)</script>&amp;"
    bar = go.Bar(x=[escape(piece)], y=[1], text=[escape(piece)], textposition="outside")
    drawn = figure(bar, annotations=[{"x": 0, "y": 1, "text": escape(piece), "showarrow": False}])
    root = read(draw(drawn, LIGHT, [piece]))
    assert not [each for each in root.iter() if "script" in each.tag]
    spans = [span.text for span in root.iter(SVG + "tspan")]
    assert spans.count(piece) == 3


@given(st.text())
def test_any_text_is_shown_as_it_is(text: str) -> None:
    assert plain(escape(text)).replace(" ", "") == text.replace(" ", "")


def test_plotlys_markup_is_read() -> None:
    lines = rich('<b>bold <span style="color:#123456">blue</span></b><br>a &lt;b&gt; <i>c</i>')
    assert [[(run.text, run.bold, run.colour) for run in line] for line in lines] == [
        [("bold ", True, ""), ("blue", True, "#123456")],
        [("a <b> ", False, ""), ("c", False, "")],
    ]


@pytest.mark.parametrize(
    ("value", "form", "exponent", "said"),
    [
        (1234567, ",d", "", "1,234,567"), (0.27, ".0%", "", "27%"), (1.5, "+.1f", "", "+1.5"),
        (0.001, ".0e", "", "1e−3"), (5000, "", "", "5000"), (20000, "", "", "20k"), (3e9, "", "SI", "3G"),
        (-2, "", "", "−2"), (0.05, "", "", "0.05"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_axes_write_them(value: float, form: str, exponent: str, said: str) -> None:
    assert formed(value, form, exponent) == said


def test_the_numbers_of_a_figure_come_with_its_names(trace: Trace) -> None:
    head, lines = rows(figure(go.Scatter(x=X, y=Y, name="one"), go.Scatter(x=X, y=2 * Y)))
    assert head == ["series", "x", "y"]
    assert lines[:5] == [["one", *pair] for pair in zip(X.tolist(), Y.tolist(), strict=True)]
    assert lines[5:] == [["2", *pair] for pair in zip(X.tolist(), (2 * Y).tolist(), strict=True)]
    picture = Map(trace, "decoder", 1, 0)
    head, lines = rows(attention_map(picture, 1, 2, Look(LIGHT)))
    assert head == ["series", "x", "y", "z"]
    found = [line for line in lines if line[0] == "weights"]
    assert [line[3] for line in found] == picture.weights[picture.allowed].tolist()
    assert found[0][1] == trace.target[0]


def test_a_figure_goes_out_in_each_form() -> None:
    drawn = figure(go.Scatter(x=X, y=Y, name="=1+1"))
    assert content_of(drawn, ["Said."], "svg").startswith(b"<svg")
    image = Image.open(io.BytesIO(content_of(drawn, ["Said."], "png", "dark"))).convert("RGB")
    assert image.getpixel((1, 1)) == tuple(bytes.fromhex(DARK.ground[1:]))
    assert b'"\'=1+1",1.0,3.0' in content_of(drawn, [], "csv")
    found = json.loads(content_of(drawn, ["Said."], "json"))
    assert found["said"] == ["Said."]
    assert found["rows"][1] == ["=1+1", 2.0, 1.0]
    assert can(drawn)
