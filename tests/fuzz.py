"""What no reader would type, through all that the app does with it: `python -m tests.fuzz text`.

    text    texts of all planes through encode, trace, sentence, payload, SVG, figure and files
    pages   random texts, addresses and orders of widgets through the app, by AppTest
    walks   model, sentence, kind, layer, head, row, changes and undo: address -> state -> address

Nine texts in ten go to random models of each of the five shapes with a small vocabulary, in which
nearly every character is unknown; each tenth to a shipped one. An SVG, which is slow, is made of one text in
`SELDOM`; plotly's figures and the files, which are slower, of one in `RARELY`. A run goes on where it was
stopped: what was done stands in `--report`, a JSON file. Every chunk of inputs has a number, which is its
seed: `--chunk N` runs one alone.
"""

import argparse
import csv
import html
import io
import json
import random
import re
import sys
import time
import unicodedata
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import model
from model import files
from model.build import build
from model.config import GAP, SPECIAL, Config
from model.continuer import Continuer
from model.filler import Filler
from model.reader import MODELS
from model.recurrent_translator import RecurrentTranslator
from model.tokenizer import Tokenizer, clean, join
from model.trace import NEUTRAL, Change, TextError, Trace
from model.translator import Translator
from viz import export, sentence, stage, svg, tables
from viz.figures import Look, attention_lines, attention_map, head_grid
from viz.reading import Map, aloud, facts, find, loss, resting, roles, row_names
from viz.theme import PALETTES

SELDOM, RARELY = 4, 64  # one text in so many is printed as SVG; drawn by plotly and saved in every form
ROOT = Path(__file__).parent.parent
LIGHT = PALETTES["light"]
SVG = "{http://www.w3.org/2000/svg}"
ACTIVE = ("script", "foreignObject", "image", "a", "use", "animate", "set")

# Pieces of text that broke somebody's tool, or might.
SEEDS = (
    *(
        "",
        " ",
        "\t\n",
        "\u200b",
        "\u3164",
        "\u2800",
        "\ufe0f",
        "\u034f",
        "\u00a0",
        "\0",
        "a\0b",
        "\ud800",
        "\udfff",
        "a\ud800b",
        "\ufffe",
        "\ufffd",
        "\ufffc",
    ),
    *(
        "<b>x</b>",
        "a<br>b",
        "&lt;s&gt;",
        "&amp;",
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
    ),
    *(
        "a<b<c & d",
        "javascript:alert(1)",
        "']}};alert(1)//",
        "{{7*7}}",
        "${7*7}",
        "%s%n",
        "{0}",
        "{text}",
        "<!--",
        "]]>",
    ),
    *(
        "$x^2$",
        r"\frac{1}{2}",
        r"\(a\)",
        "$$",
        "_a_ *b* ~~c~~ `d`",
        ":smile: :red[x]",
        "[a](javascript:b)",
        "# h",
        "|-|",
    ),
    *(
        "<s>",
        "</s>",
        "<pad>",
        "<unk>",
        GAP,
        "[MASK",
        "[mask]",
        "\u2581",
        "\u2423",
        "▁▁a",
        "=1+1",
        "+a",
        "-1",
        "@SUM(A1)",
    ),
    *(
        "👩‍👩‍👧‍👦",
        "🏳️‍🌈",
        "🇫🇷🇫",
        "👍🏿",
        "❤️",
        "1️⃣",
        "e\u0301\u0301",
        "\u0301",
        "़",
        "a" + "\u0300" * 40,
        "\u1112\u1161\u11ab",
    ),
    *(
        "שלום עולם",
        "مرحبا",
        "\u202eabc\u202c",
        "\u2066x\u2069",
        "\u061c",
        "中文字",
        "ไทย",
        "ﬁ",
        "ǅ",
        "ẞ",
        "İ",
        "K",
        "Å",
        "²③",
    ),
    *(
        "..",
        "../../etc/passwd",
        "C:\\x",
        "\u2028",
        "\u2029",
        "\x85",
        "\x1b[31m",
        "\r",
        "1e999",
        "nan",
        "-0",
        "٣",
        "１２",
    ),
    *(
        "aujourd'hui",
        "qu'est-ce",
        "o'clock",
        "don't",
        "-",
        "--",
        "’",
        "…",
        "«»",
        "a-b",
        "l'",
        "'s",
        "\ue000",
        "\U000e0041",
    ),
    *(
        "I am a student.",
        "The cat looks at me.",
        "long " * 70,
        "z" * 70,
        "z" * 1001,
        "\U0001d51e" * 3,
        "\u0dc4" * 30,
    ),
)
anything = st.text(st.characters(exclude_categories=()), max_size=24)  # lone surrogates too
texts = st.one_of(
    anything,
    st.lists(st.one_of(st.sampled_from(SEEDS), anything), max_size=6).map("".join),
    st.lists(st.sampled_from(SEEDS), max_size=8).map(" ".join),
)

# --- the models -------------------------------------------------------------------------------------------

SAMPLE = (
    "I am a student. | The cat looks at me. | Je suis à l'école. | J'aime le chat. | It's 8 o'clock. | don't"
)
SHAPES = (
    *(
        ("encoder-decoder", "attention"),
        ("encoder-decoder", "recurrent attention"),
        ("encoder-decoder", "recurrent"),
    ),
    *(("decoder", "attention"), ("encoder", "attention")),
)
DOORS = {"decoder": Continuer, "encoder": Filler}
NAMES = ("en-fr", "rnn-attention", "rnn", "gpt", "bert")  # as `viz.cache.SHIPPED`; a test compares
SHIPPED = tuple(name for name in NAMES if (MODELS / name / "config.json").is_file())


@cache
def tiny() -> tuple[Any, ...]:
    """A random model of each shape, behind its door. 2 layers, 3 heads of width 2, 29 pieces at most."""
    made = []
    for shape, material in SHAPES:
        torch.manual_seed(0)
        special = (*SPECIAL, GAP) if shape == "encoder" else SPECIAL
        tokenizer = Tokenizer.train(SAMPLE.split("|"), size=67, special=special)
        layers, heads = (2, 3) if material == "attention" else (1, 1)
        config = Config(tokenizer.size, layers, 6, heads, 7, 0.1, 29, shape, material)  # type: ignore[arg-type]
        network: Any = build(config).eval().requires_grad_(False)
        door: Any = RecurrentTranslator if config.recurrent else DOORS.get(shape, Translator)
        made.append(door(f"{shape}, {material}", network, tokenizer))
    return tuple(made)


@cache
def shipped() -> tuple[Any, ...]:
    return tuple(model.load(name) for name in SHIPPED)


# --- one text ---------------------------------------------------------------------------------------------


def look(door: Any, text: str, forced: bool, turn: int = 0) -> str:
    """Take a text through everything and assert what must be true of it; says how it ended.

    `turn` counts texts: what is slow is done at some turns only, all of it at 0.
    """
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert all(character == " " or unicodedata.category(character)[0] != "C" for character in cleaned)
    assert join(door.tokenizer.encode(text)) == cleaned
    try:
        trace = door.trace(text, text if forced and not isinstance(door, Filler) else None)
    except TextError as error:
        refused(error, door, text, cleaned)
        return error.code
    told(door, trace, text, cleaned)
    numbers(trace)
    drawn(trace, turn)
    return "read"


def refused(error: TextError, door: Any, text: str, cleaned: str) -> None:
    """A text is refused for a reason, and the reason's numbers are its own."""
    if error.code == "huge":
        assert len(text) >= error.got > error.limit == 1000
    elif error.code == "long":
        # A typed [MASK] is one piece of the gap filler, and more of another's.
        assert len(door.tokenizer.encode(text)) >= error.got > error.limit == door.config.max_pieces - 1
    else:
        assert not cleaned


def told(door: Any, trace: Trace, text: str, cleaned: str) -> None:
    """Label equals token: the pieces spell what was typed, and nothing else."""
    assert trace.text == cleaned
    if trace.source:
        typed, spaces = trace.source[:-1], trace.source_spaces
        assert trace.source[-1] == "</s>"
    else:
        typed, spaces = trace.target[1 : 1 + trace.given], trace.target_spaces[1:]
        assert trace.target[0] == "<s>"
    spelled = "".join(" " * space + piece for piece, space in zip(typed, spaces, strict=False)).removeprefix(
        " "
    )
    assert spelled == cleaned
    assert len(trace.gaps) == (text.count(GAP) if isinstance(door, Filler) else 0)
    for piece in (*trace.source, *trace.target, *trace.comes_out, *trace.unknown):
        assert piece
        assert not set(piece) & {*"\n\r\t\0 "}, piece
        piece.encode()
    if trace.predicts == "target":
        assert trace.target[1:] == trace.comes_out[:-1]
        assert trace.comes_out[-1] == "</s>"


def numbers(trace: Trace) -> None:
    """Rows sum to 1, what is blocked weighs nothing, and nothing is without end."""
    for kind in trace.kinds:
        seen = trace.stages(kind)
        for name in ("weights", "scores", "q", "k", "v", "output"):
            assert np.isfinite(getattr(seen, name)).all(), (kind, name)
        assert not seen.weights[~seen.allowed].any()
        sums = seen.weights.sum(axis=-1, dtype=np.float64)
        assert (abs(sums - 1) <= 1e-5)[~trace.empty(kind)].all()
        assert seen.weights.shape[2:] == tuple(map(len, trace.axes(kind)))
    for array in (trace.log_probs, trace.piece_log_probs, *trace.states.values()):
        assert np.isfinite(array).all()
    assert np.isfinite(loss(trace))


def drawn(trace: Trace, turn: int) -> None:
    """All that is shown holds the trace's pieces and finite numbers."""
    said: list[dict[str, Any]] = []
    with patch.object(sentence.component, "sentence", lambda data, _turn: said.append(data)):
        sentence.show(trace, LIGHT, lambda _place: None)
    json.dumps(said, allow_nan=False)
    payload = stage.pack([stage.maps(trace)])
    size = int.from_bytes(payload.bytes[:4], "little")
    header = json.loads(payload.bytes[4 : 4 + size])
    for role in roles(trace.kinds) if trace.kinds else ():
        assert np.isfinite(find(trace, role).score)
    for kind in trace.kinds:
        queries, keys = trace.axes(kind)
        sent = header["kinds"][kind]
        assert (tuple(sent["queries"]), tuple(sent["keys"])) == (queries, keys)
        picture = Map(trace, kind, trace.weights(kind).shape[0] - 1, 0)
        for line in (aloud(picture, 0, len(keys) - 1), facts(picture), *map(str, resting(picture))):
            finite(line, trace)
    if trace.kinds:
        shot = svg.Shot(trace, trace.kinds[-1], 0, 0)
        if turn % SELDOM == 0:
            printed(shot)
        if turn % RARELY == 0:
            plotted(trace)
            filed(shot)


def printed(shot: svg.Shot) -> None:
    """The SVG is XML, nothing in it runs, and each open cell is named by its two pieces, in their order."""
    root = ET.fromstring(svg.draw(shot, LIGHT).encode())
    assert not {each.tag.removeprefix(SVG) for each in root.iter()} & {*ACTIVE}
    queries, keys = shot.trace.axes(shot.kind)
    titles = [rect.findtext(SVG + "title") or "" for rect in root.iter(SVG + "rect")]
    wanted = [f"{queries[a]}, {keys[b]}" for a, b in np.argwhere(shot.picture().allowed).tolist()]
    assert [title.rpartition(": ")[0] for title in titles if ": " in title] == wanted


def plotted(trace: Trace) -> None:
    """Plotly's labels, read back from its markup, are the pieces."""
    for kind in trace.kinds:
        picture = Map(trace, kind, 0, 0)
        layout = json.loads(attention_map(picture, 0, 0, Look(LIGHT)).to_json())["layout"]
        assert [_unmarked(label) for label in layout["xaxis"]["ticktext"]] == [*trace.axes(kind)[1]]
        rows = [_unmarked(label) for label in layout["yaxis"]["ticktext"]]
        assert [row.removesuffix(" ") for row in rows] == row_names(trace, kind)
        for figure in (head_grid(picture, LIGHT), attention_lines(picture, 0, LIGHT, 0.03)):
            json.loads(figure.to_json(), parse_constant=_no_constant)
        frame = tables.weights(picture)
        assert [name.partition(" ")[2] for name in frame.columns] == [*trace.axes(kind)[1]]


def _unmarked(label: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", label))


def filed(shot: svg.Shot) -> None:
    """What is saved can be read again, and runs nothing."""
    lines = [*csv.reader(io.StringIO(export.content(shot, "csv").decode("utf-8-sig")))]
    queries, keys = shot.trace.axes(shot.kind)
    for line, (row, column) in zip(lines[1:], np.ndindex(len(queries), len(keys)), strict=True):
        for cell, piece in ((line[4], queries[row]), (line[7], keys[column])):
            assert cell in (piece, "'" + piece)
            assert cell[0] not in "=+-@＝＋－＠"
    whole = json.loads(export.content(shot, "json"), parse_constant=_no_constant)
    assert (whole["queries"], whole["keys"]) == ([*queries], [*keys])
    page = export.content(shot, "html").decode().lower()
    assert page.count("<script") == page.count("</script") == 2  # its numbers, and its own
    assert "<!--" not in page.partition("<script")[2]  # what would turn the end of a script into its text
    assert re.fullmatch(r"headlight-[a-z0-9-]*\.csv", export.name_of(shot, "csv"))
    files.read("again.npz", export.content(shot, "npz"))


def _no_constant(constant: str) -> None:
    raise AssertionError(f"{constant} in JSON")


def finite(said: str, trace: Trace) -> None:
    """No number without end in a sentence, apart from what a reader typed."""
    for piece in sorted({*trace.source, *trace.target, *trace.comes_out}, key=len, reverse=True):
        said = said.replace(f'"{piece}"', "")
    assert not re.search(r"(?<!\w)(nan|inf|infinity)(?!\w)", said, re.IGNORECASE), said


# --- many texts -------------------------------------------------------------------------------------------


def text_chunk(number: int, count: int) -> Counter[str]:
    """`count` texts, each to one model; how they ended. The number is the seed."""
    ended: Counter[str] = Counter()
    turn = iter(range(number * count, (number + 1) * count))

    @_drawing(number, count)
    @given(texts, st.booleans())
    def run(text: str, forced: bool) -> None:
        at = next(turn, 0)
        doors = shipped() if at % 10 == 0 else tiny()
        ended[look(doors[at // 10 % len(doors)], text, forced, at)] += 1

    run()
    return ended


def _drawing(number: int, count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """So many examples of one seed; nothing is kept or hurried, and a failure is shown as it came."""
    options = settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], derandomize=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    return lambda function: seed(number)(options(function))


# --- pages ------------------------------------------------------------------------------------------------

GARBAGE = (
    *(
        "-1",
        "0",
        "99",
        "1e3",
        "nan",
        "٣",
        "3.0",
        "",
        " ",
        "1,2",
        "true",
        "None",
        "../x",
        "<b>",
        "a\0b",
        "%00",
        "x" * 5000,
    ),
    *(
        "file-" + "0" * 30,
        "en-fr",
        "gpt",
        "encoder",
        "cross",
        "False",
        "\u202e",
        "$x$",
        "[MASK]",
        "'",
        '"',
        "\n",
    ),
)


def wild(lot: random.Random) -> str:
    """A text that a browser can send: without lone surrogates, which UTF-8 has not."""
    said = "".join(
        lot.choice(SEEDS) if lot.random() < 0.6 else chr(lot.randrange(0x110000))
        for _part in range(lot.randrange(5))
    )
    return said.encode("utf-8", "replace").decode().replace("\ufffd", "")  # which stands for what is no text


def page_chunk(number: int, count: int) -> Counter[str]:
    """`count` runs of the app: an address, then presses and entries in any order. The number is the seed."""
    from streamlit.testing.v1 import AppTest
    from streamlit.util import calc_hash

    from viz import cache
    from viz.pages import offers, pages

    lot, ended, ran = random.Random(number), Counter[str](), 0
    while ran < count:
        name = lot.choice(SHIPPED)
        offered = offers(cache.sizes(name), cache.models())
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        page = lot.choice([*pages()])
        at._page_hash = calc_hash(page)
        at.query_params["model"] = name
        for param in lot.sample([*offered, "text", "target", "also", "gaps", "nonsense"], lot.randrange(6)):
            good = lot.choice(offered[param]) if param in offered else wild(lot)
            at.query_params[param] = good if lot.random() < 0.7 else lot.choice(GARBAGE)
        story: list[Any] = [page, dict(at.query_params)]
        for _step in range(lot.randrange(1, 6)):
            at.run()
            ran += 1
            ended[page] += 1
            _judged(at, story)
            if ran >= count or not (done := _pressed(at, lot)):
                break
            story.append(done)
    return ended


def _judged(at: Any, story: list[Any]) -> None:
    """What a page may never show."""
    assert not at.exception, (story, [error.message for error in at.exception])
    for element in (*at.info, *at.warning, *at.error):
        assert "Traceback" not in element.value, (story, element.value)
        assert str(ROOT) not in element.value, (story, element.value)
    assert not at.error, (story, [error.value for error in at.error])


def _pressed(at: Any, lot: random.Random) -> str:
    """Use one of the widgets on the page; says which and how, or nothing where there is none."""
    kinds = (
        "text_input",
        "text_area",
        "number_input",
        "toggle",
        "checkbox",
        "slider",
        "select_slider",
        "selectbox",
    )
    kinds += ("radio", "segmented_control", "pills", "multiselect", "button")
    found = [
        (kind, one) for kind in kinds for one in getattr(at, kind) if not getattr(one, "disabled", False)
    ]
    if not found:
        return ""
    kind, one = lot.choice(found)
    if kind == "button":
        one.click()
        return f"press {one.key}"
    value: Any
    if kind in ("text_input", "text_area"):
        value = wild(lot)
    elif kind in ("toggle", "checkbox"):
        value = not one.value
    elif kind == "number_input" or (kind == "slider" and not isinstance(one.value, (list, tuple))):
        share = lot.choice((0.0, 1.0, lot.random()))
        value = type(one.value)(one.min + share * (one.max - one.min)) if one.value is not None else one.min
    elif kind in ("selectbox", "radio", "segmented_control", "select_slider") and not isinstance(
        one.value, list
    ):
        if not one.options or isinstance(one.value, tuple):
            return f"look at {one.key}"
        option = lot.choice(one.options)  # the label; only of plain options is it the value
        if not isinstance(one.value, str) and not (option.isdecimal() and isinstance(one.value, int)):
            return f"look at {one.key}"
        one.set_value(option if isinstance(one.value, str) else int(option))
        return f"{one.key} = {option}"
    else:
        return f"look at {one.key}"
    one.set_value(value)
    return f"{one.key} = {value!r:.60}"


# --- walks ------------------------------------------------------------------------------------------------


@dataclass
class Spot:
    """Where a reader stands, and all that her address says."""

    model: str
    text: str
    here: Any  # view.View
    change: Change = NEUTRAL


def written(spot: Spot) -> dict[str, str]:
    """The address: what stands where a reader arrives is left out."""
    from viz import cache, view

    now, usual = view.controls(spot.here), view.controls(view.at_first(spot.here.sizes))
    params = {name: _word(value) for name, value in now.items() if value != usual[name]}
    params |= {"values": "true"} if spot.here.values else {}
    params |= {"model": spot.model} if spot.model != cache.MODEL else {}
    return params | ({"text": spot.text} if spot.text != view.opening(spot.here.sizes).text else {})


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read(params: dict[str, str]) -> Spot:
    """The state that an address holds, by the app's own gates: `chosen_model` and `judge` have the word."""
    from viz import cache, view
    from viz.pages import offers

    asked = params.get("model", cache.MODEL)
    name = asked if asked in SHIPPED else cache.MODEL
    sizes = cache.sizes(name)
    assert view.judge(params, offers(sizes, cache.models())) == [], params
    usual = {key: _word(value) for key, value in view.controls(view.at_first(sizes)).items()}
    held = {"values": "false", **usual, **params}
    column = int(held["column"])
    here = view.View(
        held["kind"], int(held["layer"]) - 1, int(held["head"]) - 1, int(held["row"]) - 1,  # type: ignore[arg-type]
        column - 1 if column else None, sizes, held["mean"] == "true", held["drawing"],  # type: ignore[arg-type]
        held["values"] == "true", int(held["faint"]), held["also"], held["hall"] == "true",
    )  # fmt: skip
    return Spot(name, held.get("text", view.opening(sizes).text), here)


def stepped(spot: Spot, lot: random.Random) -> Spot:
    """The reader does one thing."""
    from viz import cache, view

    here, sizes = spot.here, spot.here.sizes
    do = lot.choice(
        ("model", "text", "kind", "layer", "head", "row", "column", "drawing", "flag", "faint", "also")
    )
    if do == "model":
        other = cache.sizes(lot.choice(SHIPPED))
        return Spot(other.model, view.opening(other).text, view.at_first(other))
    if do == "text":
        return replace(spot, text=lot.choice((wild(lot), "I am a student.", "The dog sees a cat.")))
    moves: dict[str, Any] = {
        "kind": lambda: lot.choice([*sizes.kinds] or [here.kind]),
        "layer": lambda: lot.randrange(sizes.kinds.get(here.kind, (1, 1))[0]),
        "head": lambda: lot.randrange(sizes.kinds.get(here.kind, (1, 1))[1]),
        "row": lambda: lot.randrange(sizes.pieces),
        "column": lambda: lot.choice((None, lot.randrange(sizes.pieces))),
        "drawing": lambda: lot.choice(view.DRAWINGS),
        "faint": lambda: lot.randrange(view.FAINTEST + 1),
        "also": lambda: ",".join(str(lot.randrange(1, 9)) for _head in range(lot.randrange(4))),
    }
    if do == "flag":
        flag = lot.choice(("mean", "values", "hall"))
        return replace(spot, here=replace(here, **{flag: not getattr(here, flag)}))
    moved = replace(here, **{do: moves[do]()})
    if do == "kind" and sizes.kinds:
        layers, heads = sizes.kinds[moved.kind]
        moved = replace(moved, layer=min(moved.layer, layers - 1), head=min(moved.head, heads - 1))
    return replace(spot, here=moved)


def changed(door: Any, lot: random.Random) -> Change:
    """Something that a laboratory can do to this model."""
    from model.trace import Cell, Head, Switch

    layers, heads = (door.config.n_layers, door.config.n_heads)
    kinds = door.config.kinds
    ways: dict[str, Any] = {
        "look_ahead": lambda: Switch("all"),
        "source_pads": lambda: lot.randrange(1, 4),
        "target_pads": lambda: lot.randrange(1, 4),
        "removed": lambda: frozenset({Head(lot.choice(kinds), lot.randrange(layers), lot.randrange(heads))}),
        "uniform": lambda: frozenset({Head(lot.choice(kinds), lot.randrange(layers), lot.randrange(heads))}),
        "blocked": lambda: frozenset({Cell(lot.choice(kinds), 0, lot.randrange(2))}),
        "positions": lambda: "off",
        "scale": lambda: False,
        "norm": lambda: False,
    }
    name = lot.choice(sorted({*ways} & door.config.changes))
    return Change(**{name: ways[name]()})


def walk(number: int, steps: int = 30) -> int:
    """One walk: after each step the address says the state and nothing else; each undo is what was before.

    Returns how many addresses were read back.
    """
    from viz import cache, view

    lot, asked = random.Random(number), 0
    spot = Spot(cache.MODEL, view.opening(cache.sizes()).text, view.at_first(cache.sizes()))
    past = [spot]
    for _step in range(steps):
        if lot.random() < 0.25 and len(past) > 1:
            past.pop()  # undo, or Back
            spot = past[-1]
        else:
            spot = stepped(spot, lot)
            past.append(spot)
        params = written(spot)
        back = read(params)
        assert back == spot, (params, back, spot)
        assert written(back) == params
        assert dict(parse_qsl(urlencode(params), keep_blank_values=True)) == params
        asked += 1
    door = lot.choice(tiny())
    if door.config.kinds:
        before = door.trace("I am a student.")
        change = changed(door, lot)
        after = door.trace(
            "I am a student.", None if isinstance(door, Filler) else before.translation, change
        )
        assert after.change == change
        again = door.trace("I am a student.")
        for kind in before.kinds:  # undone: what it was, bit for bit
            np.testing.assert_array_equal(before.weights(kind), again.weights(kind))
    return asked


def opened(number: int) -> None:
    """What the app itself makes of a random address is the state that the address says."""
    from streamlit.testing.v1 import AppTest

    from viz import cache, view
    from viz.pages import explore

    lot = random.Random(number)
    spot = Spot(cache.MODEL, view.opening(cache.sizes()).text, view.at_first(cache.sizes()))
    for _step in range(12):
        spot = stepped(spot, lot)
    spot = replace(spot, text="I am a student.")
    seen: list[Any] = []
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in written(spot).items():
        at.query_params[name] = value
    with patch.object(explore, "draw", lambda scene: seen.append(scene.here)):
        at.run()
    assert not at.exception, written(spot)
    assert not at.warning, (written(spot), [each.value for each in at.warning])
    assert seen == [spot.here], (written(spot), seen, spot.here)


def walk_chunk(number: int, count: int) -> Counter[str]:
    """`count` walks, and one in twenty opened in the app."""
    ended: Counter[str] = Counter()
    for each in range(number * count, (number + 1) * count):
        ended["addresses"] += walk(each)
        ended["walks"] += 1
        if each % 20 == 0:
            opened(each)
            ended["opened"] += 1
    return ended


# --- the command ------------------------------------------------------------------------------------------

CHUNKS: dict[
    str, tuple[Callable[[int, int], Counter[str]], int, int]
] = {  # how, size of a chunk, how many in all
    "text": (text_chunk, 500, 100_000),
    "pages": (page_chunk, 50, 5_000),
    "walks": (walk_chunk, 20, 2_000),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=CHUNKS)
    parser.add_argument("--count", type=int, help="inputs in all, those of earlier runs included")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no chunk begins after so many")
    parser.add_argument("--report", type=Path, default=ROOT / "runs" / "fuzz.json")
    parser.add_argument("--chunk", type=int, help="run this chunk alone, and keep no report")
    parser.add_argument("--part", default="1/1", help="1/2: every second chunk, for a second process")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    chunk, size, usual = CHUNKS[asked.what]
    if asked.chunk is not None:
        print(chunk(asked.chunk, size))
        return
    part, parts = (int(number) for number in asked.part.split("/"))
    part -= 1
    name = asked.what if parts == 1 else f"{asked.what}, part {part + 1} of {parts}"
    begun, last = time.monotonic(), -(-(asked.count or usual) // size)
    report = json.loads(asked.report.read_text()) if asked.report.is_file() else {}
    for number in range(part, last, parts):
        done = report.get(name, {"chunks": [], "ended": {}, "seconds": 0.0})
        if number in done["chunks"]:
            continue
        if time.monotonic() - begun > asked.seconds:
            break
        start = time.monotonic()
        try:
            ended = chunk(number, size)
        except BaseException:
            print(f"chunk {number}: python -m tests.fuzz {asked.what} --chunk {number}", file=sys.stderr)
            raise
        done = {
            "chunks": [*done["chunks"], number],
            "ended": dict(Counter(done["ended"]) + ended),
            "seconds": round(done["seconds"] + time.monotonic() - start, 1),
        }
        # Another process may have written its own part meanwhile.
        report = json.loads(asked.report.read_text()) if asked.report.is_file() else {}
        report[name] = done
        asked.report.parent.mkdir(parents=True, exist_ok=True)
        fresh = asked.report.with_name(f"{asked.report.name}.{part}")
        fresh.write_text(json.dumps(report, indent=1) + "\n")
        fresh.replace(asked.report)
    for each, done in report.items():
        print(
            f"{each}: {size_of(each) * len(done['chunks'])} inputs, {done['ended']}, {done['seconds']:.0f} s"
        )


def size_of(name: str) -> int:
    return CHUNKS[name.partition(",")[0]][1]


if __name__ == "__main__":
    main()
