"""A printed picture is the trace: cell by cell, piece by piece, in any letters, and it is XML."""

import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from model.trace import KINDS, NEUTRAL, Cell, Change, Head, Kind, Switch, Trace
from model.translator import Translator
from tests.conftest import FORCED, ROOT, TEXT
from viz.export import DPI, PIXELS, png
from viz.reading import Map, aloud, facts, outgoing
from viz.svg import DRAWINGS, Drawing, Shot, TooLargeError, draw
from viz.svg.changed import changed
from viz.svg.maps import MOST
from viz.svg.sheet import fit, shades, width, wrap
from viz.theme import PALETTES, Mode

SVG = "{http://www.w3.org/2000/svg}"
LIGHT, DARK = PALETTES["light"], PALETTES["dark"]
HOSTILE = (
    "<script>alert(1)</script>", "&amp;", "\"'\"", "שלום", "e\u0301\u0327", "👩‍👩‍👧", "]]>", "\0\x0b\ud800",
    "-->", " \t\n", "𝔞", "{{7*7}}", "%s",
)  # fmt: skip


def read(picture: str) -> ET.Element:
    return ET.fromstring(picture.encode())


def said(root: ET.Element, tag: str) -> list[str]:
    """What stands beside each shape of a kind, or in each text."""
    if tag == "text":
        return [
            (each.text or "") + "".join(child.tail or "" for child in each) for each in root.iter(SVG + tag)
        ]
    return [each.findtext(SVG + "title") or "" for each in root.iter(SVG + tag)]


def back(colour: str, stops: tuple[tuple[float, str], ...]) -> float:
    """The number whose colour this is."""
    numbers = np.linspace(0, 1, 10_001)
    scale = shades(numbers, stops)
    channels = [(scale >> shift & 255).astype(int) for shift in (16, 8, 0)]
    asked = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    off = sum(abs(channel - one) for channel, one in zip(channels, asked, strict=True))
    return float(numbers[off == off.min()].mean())


def cells(root: ET.Element) -> list[tuple[str, str, str]]:
    """(what the cell says, its number in words, its colour) of the cells that say something."""
    found = []
    for rect in root.iter(SVG + "rect"):
        title = rect.findtext(SVG + "title") or ""
        if ": " in title:
            found.append((*title.rsplit(": ", 1), rect.get("fill", "")))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_cell_of_a_printed_map_holds_its_weight(trace: Trace, kind: Kind, mode: Mode) -> None:
    shot = Shot(trace, kind, 2, 1)
    found = cells(read(draw(shot, PALETTES[mode])))
    picture = shot.picture()
    queries, keys = trace.axes(kind)
    open_ = np.argwhere(picture.allowed).tolist()
    assert [name for name, _number, _colour in found] == [f"{queries[a]}, {keys[b]}" for a, b in open_]
    for (_name, number, colour), (a, b) in zip(found, open_, strict=True):
        weight = float(picture.weights[a, b])
        assert number == "under 0.0001" if 0 < weight < 1e-4 else float(number) == round(weight, 4)
        assert back(colour, PALETTES[mode].weights) == pytest.approx(weight, abs=0.012)


def test_a_cell_that_may_not_be_looked_at_is_hatched_and_says_why(trace: Trace) -> None:
    root = read(draw(Shot(trace, "decoder", 0, 0), LIGHT))
    blocked = sum(
        float(rect.get("width", 0)) * float(rect.get("height", 0))
        for rect in root.iter(SVG + "rect")
        if rect.get("fill") == LIGHT.blocked and rect.get("width") not in ("16", "21", "22")
    )
    one = next(rect for rect in root.iter(SVG + "rect") if rect.findtext(SVG + "title"))
    area = float(one.get("width", 0)) * float(one.get("height", 0))
    assert blocked == pytest.approx(area * (13 * 12 / 2), rel=0.05)  # the gaps lie between them
    assert any(path.get("stroke") == LIGHT.hatch for path in root.iter(SVG + "path"))
    assert "blocked: this row may not see the future" in said(root, "text")


def test_the_scale_axes_pieces_and_caption_stand_in_the_picture(trace: Trace) -> None:
    shot = Shot(trace, "cross", 1, 0, 4, 2)
    root = read(draw(shot, LIGHT))
    texts = said(root, "text")
    for word in ("0", "0.25", "0.5", "0.75", "1", "weight", "is asked (key): English"):
        assert word in texts, word
    assert "asks (query): French, goes in → comes out" in texts
    whole = " ".join(texts)
    assert aloud(shot.picture(), 4, 2) in whole
    assert facts(shot.picture()) in whole
    assert root.findtext(SVG + "title") == aloud(shot.picture(), 4, 2)
    for piece in (*trace.source, *trace.target, *trace.comes_out):
        assert piece in texts
    assert [
        rect.get("stroke-width") for rect in root.iter(SVG + "rect") if rect.get("stroke") == LIGHT.accent
    ] == ["1.5", "3"]
    assert root.get("width", "").endswith("mm")
    bold = {each.text for each in root.iter(SVG + "text") if each.get("font-weight")}
    assert bold == {trace.target[4], trace.source[2]}


def test_equal_pieces_each_have_their_row(translator: Translator) -> None:
    trace = translator.trace("the the the the the the")
    texts = said(read(draw(Shot(trace, "encoder", 0, 0), LIGHT)), "text")
    assert texts.count("the") == 2 * trace.source.count("the") > 2


@pytest.mark.parametrize("drawing", DRAWINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_any_piece_is_text_and_an_xml_reader_takes_it(trace: Trace, drawing: Drawing, kind: Kind) -> None:
    source = tuple(HOSTILE[index % len(HOSTILE)] for index in range(len(trace.source)))
    target = tuple(HOSTILE[index % len(HOSTILE)] for index in range(len(trace.target)))
    hostile = replace(trace, source=source, target=target, comes_out=target)
    picture = draw(Shot(hostile, kind, 0, 1, drawing=drawing, after=None), DARK)
    root = read(picture)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "title", "desc", "defs", "linearGradient", "stop", "rect", "path", "circle", "text", "g",
    }  # fmt: skip
    assert not re.search(r"<script|\bon\w+=|href|javascript:", picture.replace("&lt;script", ""))
    if drawing == "map":
        texts = said(root, "text")
        for piece in {*hostile.axes(kind)[0]}:
            clean = piece.replace("\0", "\ufffd").replace("\x0b", "\ufffd").replace("\ud800", "\ufffd")
            assert any(text == clean or (text.startswith(clean[:3]) and "…" in text) for text in texts), piece


@given(pieces=st.lists(st.text(max_size=30), min_size=7, max_size=7))
def test_any_text_at_all_makes_a_picture_that_is_xml(trace: Trace, pieces: list[str]) -> None:
    shot = Shot(replace(trace, source=tuple(pieces)), "cross", 0, 0, 1, 3, note=pieces[0])
    root = read(draw(shot, LIGHT))
    assert len(cells(root)) <= 13 * 7
    assert len([rect for rect in root.iter(SVG + "rect") if rect.findtext(SVG + "title")]) >= 13 * 7


@pytest.mark.parametrize(("drawing", "count"), [("heads", 2), ("all", 6)])
def test_small_maps_hold_every_head(trace: Trace, drawing: Drawing, count: int) -> None:
    root = read(draw(Shot(trace, "cross", 1, 0, drawing=drawing), LIGHT))
    groups = list(root.iter(SVG + "g"))
    assert len(groups) == count
    for index, group in enumerate(groups):
        layer, head = divmod(index, 2) if drawing == "all" else (1, index)
        weights = trace.weights("cross")[layer, head]
        np.testing.assert_allclose(painted(group, weights.shape), weights, atol=0.012)


def painted(group: ET.Element, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The numbers of the cells that paths fill, NaN where nothing is."""
    found = np.full(shape, np.nan)
    for path in group:
        number = back(path.get("fill", ""), LIGHT.weights)
        for x, y, wide in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d", "")):
            found[int(y), int(x) : int(x) + int(wide)] = number
    return found


def test_lines_hold_the_weights_that_are_not_too_faint(trace: Trace) -> None:
    shot = Shot(trace, "cross", 1, 0, 3, drawing="lines", faint=0.1)
    root = read(draw(shot, LIGHT))
    weights = shot.picture().weights
    drawn = [path for path in root.iter(SVG + "path") if path.findtext(SVG + "title")]
    assert len(drawn) == int((weights >= 0.1).sum())
    numbers = sorted(float((path.findtext(SVG + "title") or "").rsplit(": ", 1)[1]) for path in drawn)
    np.testing.assert_allclose(numbers, np.sort(weights[weights >= 0.1]), atol=5e-5)
    chosen = [path for path in drawn if path.get("stroke") == LIGHT.accent]
    assert len(chosen) == int((weights[3] >= 0.1).sum())
    assert any("not drawn; together they hold" in text for text in said(root, "text"))


def test_lines_of_several_heads_carry_their_numbers(trace: Trace) -> None:
    root = read(draw(Shot(trace, "cross", 1, 0, drawing="lines", also=(1,)), LIGHT))
    assert {"head 1", "head 2"} <= {*said(root, "text")}
    strokes = {path.get("stroke") for path in root.iter(SVG + "path") if path.findtext(SVG + "title")}
    assert strokes == {LIGHT.overlay[0], LIGHT.overlay[1]}


def test_before_after_and_difference_stand_on_one_scale(translator: Translator, trace: Trace) -> None:
    ids = trace.target_ids[1:]
    after = translator.trace(TEXT, ids, Change(look_ahead=Switch("all")))
    root = read(draw(Shot(trace, "decoder", 1, 0, after=after, note="Without the look-ahead mask."), LIGHT))
    texts = said(root, "text")
    assert {"Before", "After", "Difference", "−1", "change of weight"} <= {*texts}
    assert "Without the look-ahead mask." in texts
    assert "After: look-ahead mask off." in texts
    one, other = (Map(each, "decoder", 1, 0).weights for each in (trace, after))
    signed = [(number, colour) for _name, number, colour in cells(root) if number[0] in "+-"]
    difference = (other - one).ravel()
    assert len(signed) == difference.size
    for (number, colour), value in zip(signed, difference.tolist(), strict=True):
        assert float(number) == pytest.approx(value, abs=5.1e-5)
        assert 2 * back(colour, LIGHT.signed) - 1 == pytest.approx(value, abs=0.025)
    most = f"{abs(difference).max():.4f}"
    assert any(f"Largest change of a weight here: {most}." in text for text in [" ".join(texts)])


def test_a_row_with_nothing_allowed_says_so(translator: Translator) -> None:
    cells_ = frozenset(Cell("cross", 2, key) for key in range(7))
    trace = translator.trace(TEXT, FORCED, Change(blocked=cells_))
    texts = said(read(draw(Shot(trace, "cross", 0, 0, 2), LIGHT)), "text")
    assert "nothing allowed" in texts
    assert "blocked by you" in texts


def test_a_picture_says_everything_that_was_changed() -> None:
    heads = frozenset(Head("cross", 0, head) for head in range(8))
    change = Change(
        Switch("all"), Switch((0, 2)), blocked=frozenset({Cell("cross", 0, 0)}), removed=heads,
        uniform=frozenset({Head("decoder", 2, 4)}), positions="shuffled", seed=3, shift=5, scale=False,
        residual=False, norm=False, source_pads=2, target_pads=1,
    )  # fmt: skip
    first = ", ".join(f"cross-attention 1.{head}" for head in range(1, 7))
    assert changed(change) == [
        "padding mask of the encoder off", "padding mask of the decoder off in layers 1, 3",
        "cells blocked: 1", f"heads removed: {first}, and 2 more",
        "heads made even: decoder self-attention 3.5",
        "positions shuffled (seed 3)", "positions shifted by 5", "scores not divided by √d_k",
        "without the residual path", "without LayerNorm",
        "pads after the source: 2", "pads after the target: 1",
    ]  # fmt: skip
    assert changed(NEUTRAL) == changed(change, change) == []
    assert (
        len(fields(Change)) == len(changed(NEUTRAL, change)) + 3
    )  # but for two masks as they were, and the seed
    assert changed(NEUTRAL, change)[:2] == [
        "padding mask of the encoder on",
        "padding mask of the decoder on",
    ]


def test_a_mean_says_that_the_model_never_uses_it(trace: Trace) -> None:
    shot = Shot(trace, "cross", 1, None)
    root = read(draw(shot, LIGHT))
    assert "The mean over heads is a summary for the eye; the model never uses it." in said(root, "text")
    numbers = [number for _name, number, _colour in cells(root)]
    mean = trace.weights("cross")[1].mean(axis=0).ravel()
    assert [float(number) for number in numbers] == pytest.approx(mean.tolist(), abs=5.1e-5)


def long(trace: Trace, pieces: int) -> Trace:
    """The same trace with an encoder of so many pieces."""
    rng = np.random.default_rng(pieces)
    weights = rng.dirichlet(np.ones(pieces), size=(1, 1, pieces)).astype(np.float32)
    seen = replace(
        trace.seen("encoder"), weights=weights, allowed=np.ones(weights.shape, bool), scores=np.log(weights)
    )
    return replace(trace, attention={"encoder": seen}, source=("piece",) * pieces)


def test_of_many_cells_equal_neighbours_are_one_and_none_is_missing(trace: Trace) -> None:
    shot = Shot(long(trace, 101), "encoder", 0, 0)
    picture = draw(shot, LIGHT)
    (group,) = read(picture).iter(SVG + "g")
    np.testing.assert_allclose(painted(group, (101, 101)), shot.picture().weights, atol=0.012)
    assert len(picture) < 40 * 101 * 101


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_more_pieces_than_a_picture_holds_are_refused_in_a_sentence(trace: Trace, drawing: Drawing) -> None:
    many = MOST[drawing] + 1
    with pytest.raises(TooLargeError, match=rf"at most {many - 1} pieces along an axis; here are {many}\."):
        draw(Shot(long(trace, many), "encoder", 0, 0, drawing=drawing), LIGHT)


def test_no_row_name_covers_the_cells(trace: Trace) -> None:
    """What stands beside a map ends before the map begins, in letters as wide as Helvetica's."""
    wide = replace(trace, target=("WWWWWWWWWW",) * 13, comes_out=("MMMMMMMMMMMMMM",) * 13)
    root = read(draw(Shot(wide, "cross", 0, 0), LIGHT))
    left = min(float(rect.get("x", 0)) for rect in root.iter(SVG + "rect") if rect.findtext(SVG + "title"))
    out = outgoing(wide, "cross")
    assert out
    for text in root.iter(SVG + "text"):
        if text.text and text.text.startswith("MMM"):
            size = float(text.get("font-size", 0))
            assert float(text.get("x", 0)) + width(text.text, size) <= left


def test_text_is_measured_fitted_and_wrapped() -> None:
    assert width("iii", 10) < width("MMM", 10)
    assert width("e\u0301", 10) == width("é", 10) == width("e", 10)
    assert width("中", 10) == 10
    assert fit("abcdef", 10, 1000) == "abcdef"
    cut = fit("abcdef", 10, 25)
    assert cut.endswith("…")
    assert width(cut, 10) <= 25
    lines = wrap("one two three " + "x" * 90, 10, 100)
    assert all(width(line, 10) <= 100 for line in lines)
    assert "".join(lines).replace(" ", "") == "onetwothree" + "x" * 90


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_png_is_as_large_as_print_asks_and_holds_the_colours(trace: Trace, mode: Mode) -> None:
    palette = PALETTES[mode]
    shot = Shot(trace, "cross", 1, 0)
    picture = draw(shot, palette)
    image = Image.open(io.BytesIO(png(picture)))
    root = read(picture)
    wide, tall = map(float, (root.get("viewBox") or "").split()[2:])
    scale = DPI / 96
    assert abs(image.width - wide * scale) <= 1
    assert abs(image.height - tall * scale) <= 1
    assert image.info["dpi"] == pytest.approx((DPI, DPI), abs=0.1)
    pixels = image.convert("RGB")
    assert pixels.getpixel((2, 2)) == tuple(bytes.fromhex(palette.ground[1:]))
    for rect in [rect for rect in root.iter(SVG + "rect") if ": " in (rect.findtext(SVG + "title") or "")][
        ::7
    ]:
        x, y, w, h = (float(rect.get(name, 0)) for name in ("x", "y", "width", "height"))
        at = (round((x + w / 2) * scale), round((y + h / 2) * scale))
        assert pixels.getpixel(at) == tuple(bytes.fromhex(rect.get("fill", "")[1:]))


def test_letters_are_drawn_on_a_machine_without_fonts(trace: Trace) -> None:
    """The letters come with the app: nothing of the machine's own is needed for them."""
    code = (
        "import sys, resvg_py\n"
        "draw = resvg_py.svg_to_bytes\n"
        "resvg_py.svg_to_bytes = lambda **how: draw(**how, skip_system_fonts=True)\n"
        "from viz.export import png\n"
        "sys.stdout.buffer.write(png(sys.stdin.read()))"
    )
    picture = draw(Shot(trace, "cross", 1, 0), LIGHT)
    run = subprocess.run(
        [sys.executable, "-c", code], input=picture.encode(), capture_output=True, check=True, cwd=ROOT
    )
    image = Image.open(io.BytesIO(run.stdout)).convert("RGB")
    rgb = tuple(bytes.fromhex(LIGHT.source[1:]))  # the source's pieces, nothing else, have this colour
    assert (
        sum(
            image.getpixel((x, y)) == rgb for x in range(0, image.width, 2) for y in range(0, image.height, 2)
        )
        > 30
    )


def test_a_huge_picture_becomes_a_png_of_bounded_size() -> None:
    from viz.svg.sheet import Sheet

    image = Image.open(io.BytesIO(png(Sheet(LIGHT).svg(9000, 4000, "wide"))))
    assert image.width * image.height <= PIXELS * 1.001
    assert image.width / image.height == pytest.approx(9 / 4, rel=0.01)
