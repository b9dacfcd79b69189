"""What the stage puts on its canvas is what the trace holds: colours, names, numbers, before and after.

The pixels and letters themselves are looked at, on a page of its own (`viz.export`), which needs no server
and runs the scripts of the app's stage.
"""

import math
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Locator, Page

from model.trace import KINDS, Cell, Change, Kind, Switch, Trace
from model.translator import Translator
from tests.conftest import FORCED, TEXT
from viz import cache
from viz.export import content
from viz.reading import Map, row_names
from viz.snapshots import shortened
from viz.svg.maps import Shot
from viz.theme import PALETTES

LIGHT = PALETTES["light"]
NEAR = 3  # of 255: 256 shades of a scale, and one rounding

# All that is written on a canvas, as [text, x, y], where x and y are of the point that the text hangs on.
LISTEN = """
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const at = this.getTransform().transformPoint(new DOMPoint(x, y));
  (window.written ??= []).push([text, at.x, at.y, this.canvas.className]);
  return write.apply(this, arguments);
};
"""

STAGE = "document.querySelector('.root').stage"
DRAWN = f"""() => {{
  const stage = {STAGE};
  window.written = [];
  stage.draw();
  const items = stage.layout.items.map(({{type, set, box, window, across, tall, tiles}}) =>
    ({{type, set, box, window, across, tall, tiles}}));
  return {{items, written: window.written.filter(([, , , canvas]) => canvas === 'base')}};
}}"""
PIXELS = f"""({{x, y, w, h}}) => {{
  const {{data}} = {STAGE}.base.getContext('2d').getImageData(x, y, w, h);
  return btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(''));  // numbers would take long
}}"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page without a network that must meet no error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, color_scheme="light")
    page = context.new_page()
    page.add_init_script(LISTEN)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    yield page
    context.close()
    assert troubles == []


@pytest.fixture(scope="module")
def own(translator: Translator) -> Trace:
    """A trace with pads on both sides and a cell that a reader blocked, so that every reason occurs."""
    blocked = frozenset({Cell("cross", 2, 1), Cell("encoder", 1, 3, layer=2, head=1)})
    return translator.trace(TEXT, FORCED, Change(source_pads=2, target_pads=1, blocked=blocked))


def opened(page: Page, folder: Path, shot: Shot) -> Page:
    path = folder / "page.html"
    path.write_bytes(content(shot, "html"))
    page.goto(path.as_uri())
    page.locator(".stage[aria-busy=false] .aloud").filter(has_text=re.compile(".")).wait_for()
    return page


def drawn(page: Page) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """The items of the layout, and what is written, after one drawing."""
    found = page.evaluate(DRAWN)
    return found["items"], found["written"]


def pixels(page: Page, box: dict[str, float]) -> NDArray[np.int64]:
    """(h, w, 3): red, green and blue of a box of the canvas, whose px are those of the screen."""
    whole = {name: round(box[name]) for name in ("x", "y", "w", "h")}
    flat = np.frombuffer(b64decode(page.evaluate(PIXELS, whole)), np.uint8)
    return flat.reshape(whole["h"], whole["w"], 4)[..., :3].astype(np.int64)


def at_middles(page: Page, box: dict[str, float], rows: int, columns: int) -> NDArray[np.int64]:
    """(rows, columns, 3): the colour in the middle of each cell of a box, off the lines between the cells."""
    left, top = math.floor(box["x"]), math.floor(box["y"])
    found = pixels(page, {"x": left, "y": top, "w": box["w"] + 1, "h": box["h"] + 1})
    y = [int(box["y"] - top + (row + 0.5) * box["h"] / rows) for row in range(rows)]
    x = [int(box["x"] - left + (column + 0.5) * box["w"] / columns) for column in range(columns)]
    return found[np.ix_(y, x)]


def colours(shares: NDArray[Any], stops: tuple[tuple[float, str], ...]) -> NDArray[np.float64]:
    """(..., 3): the colour of each share from 0 to 1 on a scale, straight between its stops."""
    places = [at for at, _colour in stops]
    channels = [[int(colour[i : i + 2], 16) for _at, colour in stops] for i in (1, 3, 5)]
    return np.stack([np.interp(shares, places, channel) for channel in channels], axis=-1)


def rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def assert_coloured(found: NDArray[np.int64], picture: Map) -> None:
    """Every open cell has its weight's colour on the one scale from 0 to 1."""
    open_ = picture.allowed
    wanted = colours(picture.weights, LIGHT.weights)
    off = abs(found - wanted).max(axis=-1)
    assert off[open_].max() <= NEAR, np.argwhere(open_ & (off > NEAR))[:5]


@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_of_every_head_has_the_colour_of_its_weight(
    page: Page, tmp_path: Path, own: Trace, kind: Kind
) -> None:
    opened(page, tmp_path, Shot(own, kind, 0, 0, 0, 0))
    page.locator(".sheet").focus()
    for layer in range(3):
        for head in range(2):
            page.locator(".aloud").filter(has_text=f"Head {head + 1} of layer {layer + 1}").wait_for()
            picture = Map(own, kind, layer, head)
            ((item, *_rest), _written) = drawn(page)
            assert item["type"] == "map"
            assert_coloured(at_middles(page, item["box"], *picture.weights.shape), picture)
            page.keyboard.press("ArrowRight" if head == 0 else "ArrowLeft")
            page.locator(".aloud").filter(has_text=f"Head {2 - head} of layer {layer + 1}").wait_for()
        page.keyboard.press("ArrowUp")


def test_the_mean_has_the_colours_of_the_mean(page: Page, tmp_path: Path, own: Trace) -> None:
    opened(page, tmp_path, Shot(own, "cross", 1, None))
    ((item, *_rest), _written) = drawn(page)
    picture = Map(own, "cross", 1, None)
    assert_coloured(at_middles(page, item["box"], *picture.weights.shape), picture)


@pytest.mark.parametrize("drawing", ["heads", "all"])
def test_small_maps_stand_in_their_places_on_the_scale_of_the_large_one(
    page: Page, tmp_path: Path, own: Trace, drawing: Any
) -> None:
    opened(page, tmp_path, Shot(own, "cross", 1, 1, drawing=drawing))
    (items, _written) = drawn(page)
    (item,) = [item for item in items if item["type"] == "tiles"]
    places = [(tile["layer"], tile["head"]) for tile in item["tiles"]]
    assert places == [
        (layer, head) for layer in ((1,) if drawing == "heads" else range(3)) for head in (0, 1)
    ]
    for tile in item["tiles"]:
        picture = Map(own, "cross", tile["layer"], tile["head"])
        assert_coloured(at_middles(page, tile, *picture.weights.shape), picture)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_that_may_not_be_looked_at_is_hatched_and_no_other_is(
    page: Page, tmp_path: Path, own: Trace, kind: Kind
) -> None:
    """A hatched cell is ground and strokes, an open one of a single colour, the lines between left out."""
    opened(page, tmp_path, Shot(own, kind, 2, 1, 0, 0))
    ((item, *_rest), _written) = drawn(page)
    picture, (box, across, tall) = Map(own, kind, 2, 1), (item["box"], item["across"], item["tall"])
    assert not picture.allowed.all()
    ground = np.array(rgb(LIGHT.blocked))
    whole = pixels(page, box)
    for (row, column), allowed in np.ndenumerate(picture.allowed):
        x, y = round(column * across), round(row * tall)
        cell = whole[y + 4 : y + int(tall) - 3, x + 4 : x + int(across) - 3]
        flat = cell.reshape(-1, 3)
        striped = len(np.unique(flat, axis=0)) > 1
        assert striped == (not allowed), (row, column)
        if not allowed:
            assert (flat == ground).all(axis=-1).mean() > 0.3
            assert (flat <= ground + 1).all()  # strokes are darker than the ground, in light colours


def beside(written: list[list[Any]], name: str, coordinate: int, at: float, box: dict[str, float]) -> bool:
    """Whether this name, or its beginning, is written outside of the box, this far down or across."""
    for text, *place, _canvas in written:
        outside = place[0] < box["x"] if coordinate else place[1] < box["y"]
        same = text == name or (text.endswith("…") and name.startswith(text[:-1]))
        if same and outside and abs(place[coordinate] - at) < 1:
            return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_and_column_carries_its_own_piece(
    page: Page, tmp_path: Path, own: Trace, kind: Kind
) -> None:
    opened(page, tmp_path, Shot(own, kind, 1, 0, 2, 3))
    ((item, *_rest), written) = drawn(page)
    box, (queries, keys) = item["box"], own.axes(kind)
    for row, piece in enumerate(queries):
        height = box["y"] + (row + 0.5) * item["tall"]
        assert beside(written, piece, 1, height, box), (row, piece)
        if kind != "encoder":
            assert beside(written, f" → {own.comes_out[row]}", 1, height, box), row
    for column, piece in enumerate(keys):
        assert beside(written, piece, 0, box["x"] + (column + 0.5) * item["across"], box), (column, piece)
    assert len({*keys}) > len(keys) / 2  # else names that changed places would not be noticed


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_in_the_cells_are_the_weights(page: Page, tmp_path: Path, own: Trace, kind: Kind) -> None:
    opened(page, tmp_path, Shot(own, kind, 2, 0, 2, 3, values=True))
    ((item, *_rest), written) = drawn(page)
    box, picture = item["box"], Map(own, kind, 2, 0)
    inside = {
        (int((y - box["y"]) / item["tall"]), int((x - box["x"]) / item["across"])): text
        for text, x, y, _canvas in written
        if box["x"] < x < box["x"] + box["w"] and box["y"] < y < box["y"] + box["h"]
    }
    wanted = {
        (int(row), int(column)): picture.weights[row, column] for row, column in np.argwhere(picture.allowed)
    }
    assert inside.keys() == wanted.keys()
    for cell, weight in wanted.items():
        assert float(inside[cell]) == pytest.approx(weight, abs=0.00501)


def test_before_after_and_difference_have_the_colours_of_two_traces(
    page: Page, tmp_path: Path, translator: Translator, trace: Trace
) -> None:
    """More is blue and less is red, on one scale from -1 to 1."""
    after = translator.trace(TEXT, FORCED, Change(look_ahead=Switch("all"), scale=False))
    opened(page, tmp_path, Shot(trace, "decoder", 1, 0, 2, 2, after=after))
    items, _written = drawn(page)
    one, other = Map(trace, "decoder", 1, 0), Map(after, "decoder", 1, 0)
    assert [item["set"] for item in items] == [0, 1, "difference"]
    shape = one.weights.shape
    found = [at_middles(page, item["box"], *shape) for item in items]
    assert_coloured(found[0], one)
    assert_coloured(found[1], other)
    difference = other.weights - one.weights
    assert min(difference.max(), -difference.min()) > 0.1
    off = abs(found[2] - colours(difference / 2 + 0.5, LIGHT.signed)).max(axis=-1)
    assert off.max() <= 2 * NEAR
    strong = abs(difference) > 0.1
    blue, red = found[2][..., 2], found[2][..., 0]
    np.testing.assert_array_equal((blue > red)[strong], (difference > 0)[strong])


def test_a_step_goes_on_by_one_and_the_address_says_where_the_reader_stands(
    page: Page, tmp_path: Path
) -> None:
    """In the middle of eight heads, three layers and many pieces: at an end, two steps would be as one."""
    trace = cache.trace(cache.MODEL, "The little girls are very happy.")
    opened(page, tmp_path, Shot(trace, "cross", 0, 2, 3, 2))
    page.locator(".sheet").focus()
    for key, layer, head, row, column in (
        ("ArrowUp", 2, 3, 4, 3),
        ("ArrowUp", 3, 3, 4, 3),
        ("ArrowUp", 3, 3, 4, 3),  # the last one
        ("ArrowDown", 2, 3, 4, 3),
        ("ArrowRight", 2, 4, 4, 3),
        ("ArrowRight", 2, 5, 4, 3),
        ("ArrowLeft", 2, 4, 4, 3),
        ("Shift+ArrowDown", 2, 4, 5, 3),
        ("Shift+ArrowUp", 2, 4, 4, 3),
        ("Shift+ArrowRight", 2, 4, 4, 4),
        ("Shift+ArrowLeft", 2, 4, 4, 3),
    ):
        page.keyboard.press(key)
        place = page.evaluate(f"() => {STAGE}.outside()")
        assert [place[name] for name in ("layer", "head", "row", "column")] == [layer, head, row, column]
        page.locator(".aloud").filter(
            has_text=re.compile(f"^Head {head} of layer {layer}, working")
        ).wait_for()


# --- films: maps as tables, in the app ----------------------------------------------------------------------


@pytest.fixture
def app(browser: Browser, address: str) -> Iterator[Page]:
    """A page of the served app, in light colours."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def assert_tinted(
    table: Locator, weights: NDArray[Any], allowed: NDArray[Any], names: list[tuple[str, str]]
) -> None:
    """The cells of a table have the colours of these weights, and say them with their names."""
    cells = table.locator("td.cell").evaluate_all(
        "cells => cells.map(cell => [cell.title, getComputedStyle(cell).backgroundColor])"
    )
    assert len(cells) == weights.size == len(names)
    wanted = colours(weights, LIGHT.weights).reshape(-1, 3)
    for (title, colour), name, weight, colour_wanted, open_ in zip(
        cells, names, weights.ravel().tolist(), wanted, allowed.ravel().tolist(), strict=True
    ):
        if open_:
            said, _colon, number = title.rpartition(": ")
            assert said == f"{name[0]}, {name[1]}"
            assert float(number.removeprefix("< ")) == pytest.approx(
                weight, abs=1.1e-4 if "<" in number else 6e-5
            )
            found = [int(channel) for channel in re.findall(r"\d+", colour)[:3]]
            assert abs(np.array(found) - colour_wanted).max() <= NEAR


def test_the_film_of_a_training_shows_the_map_of_the_step_that_is_pressed(app: Page, address: str) -> None:
    text, steps = "I am a student.", cache.snapshots()
    french = cache.trace(cache.MODEL, text).translation
    app.goto(f"{address}training?text={text.replace(' ', '+')}&kind=encoder&layer=2&head=3")
    for step in (steps[3], steps[-1]):
        app.get_by_role("button", name=f"{step:,}", exact=True).first.click()
        app.locator(".wrote li.chosen").filter(has_text=re.compile(f"^{step:,}: ")).wait_for()
        picture = Map(cache.trace_at(cache.MODEL, step, text, french), "encoder", 1, 2)
        names = [(query, key) for query in picture.trace.source for key in picture.trace.source]
        assert_tinted(app.locator(".film table.large"), picture.weights, picture.allowed, names)
        written = app.locator(".wrote li.chosen").inner_text()
        assert written.endswith(shortened(cache.translation_at(cache.MODEL, step, text)))


def test_the_film_of_a_translation_shows_the_rows_that_were_decoded(app: Page, address: str) -> None:
    trace = cache.trace(cache.MODEL, "You are tall.")
    app.goto(f"{address}decode?text=You+are+tall.&layer=2&head=3&dec_step=3")
    app.locator(".film .came").filter(has_text=re.compile(f"^{re.escape(trace.comes_out[2])}$")).wait_for()
    picture = Map(trace, "cross", 1, 2)
    table = app.locator(".film table.map").first
    names = [(row, key) for row in row_names(trace, "cross") for key in trace.source]
    assert table.locator("tbody th").all_text_contents() == row_names(trace, "cross")
    assert_tinted(table, picture.weights, picture.allowed, names)
    assert table.locator("tbody tr:visible").count() == 3
    shares = {line.split("\n")[0]: line for line in app.locator(".film .next li").all_inner_texts()}
    best = trace.candidates[2][0]
    assert f"{100 * np.exp(best.log_prob):.0f} %" in shares[best.piece]
