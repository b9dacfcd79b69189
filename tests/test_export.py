"""What leaves the app: numbers as they were traced, names that any disk takes, a page that asks nobody."""

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from model import files
from model.trace import KINDS, Change, Switch, Trace
from model.translator import Translator
from tests.conftest import ROOT, TEXT, assert_same
from viz import export, standalone
from viz.component import stage_words
from viz.export import ExportError, content, defused, main, name, name_of, save, shot_of, slug
from viz.reading import Map, aloud
from viz.svg import DRAWINGS, Drawing, Shot

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =cmd|'/c calc'!A1", "＝1")
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


# --- numbers ------------------------------------------------------------------------------------------------


def rows(data: bytes) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_csv_holds_every_weight_bit_for_bit_beside_its_pieces(trace: Trace, kind: Any) -> None:
    data = content(Shot(trace, kind, 2, 1), "csv")
    assert data.startswith(b"\xef\xbb\xbf")  # or Excel reads accents as other letters
    queries, keys = trace.axes(kind)
    lines = rows(data)
    weights = trace.weights(kind)[2, 1]
    np.testing.assert_array_equal(
        np.array([line["weight"] for line in lines], np.float32).reshape(weights.shape), weights
    )
    allowed = np.array([line["allowed"] == "true" for line in lines]).reshape(weights.shape)
    np.testing.assert_array_equal(allowed, trace.allowed(kind)[2, 1])
    assert [(line["query"], line["key"]) for line in lines] == [
        (defused(a), defused(b)) for a in queries for b in keys
    ]
    assert {(line["kind"], line["layer"], line["head"]) for line in lines} == {(kind, "3", "2")}
    assert (lines[-1]["row"], lines[-1]["column"]) == (str(len(queries)), str(len(keys)))
    out = [line["comes out"] for line in lines[:: len(keys)]]
    assert out == ([""] * len(queries) if kind == "encoder" else [*map(defused, trace.comes_out)])


@pytest.mark.parametrize(("drawing", "count"), [("map", 1), ("lines", 1), ("heads", 2), ("all", 6)])
def test_a_csv_holds_all_that_is_drawn(trace: Trace, drawing: Drawing, count: int) -> None:
    assert len(rows(content(Shot(trace, "cross", 1, 0, drawing=drawing), "csv"))) == count * 13 * 7


def test_before_and_after_stand_side_by_side(translator: Translator, trace: Trace) -> None:
    after = translator.trace(TEXT, trace.target_ids[1:], Change(look_ahead=Switch("all")))
    shot = Shot(trace, "decoder", 1, 0, after=after)
    lines = rows(content(shot, "csv"))
    one, other = (each.weights("decoder")[1, 0].ravel() for each in (trace, after))
    assert np.array([line["weight"] for line in lines], np.float32).tolist() == one.tolist()
    assert np.array([line["weight after"] for line in lines], np.float32).tolist() == other.tolist()
    found = np.array([line["difference"] for line in lines], np.float32)
    np.testing.assert_array_equal(found, other - one)
    assert (found < 0).any()  # a number below 0 is no formula: it stands as it is
    assert not any(line["difference"].startswith("'") for line in lines)
    both = json.loads(content(shot, "json"))
    np.testing.assert_allclose(both["after"]["weights"], other.reshape(13, 13), atol=1e-7)


@pytest.mark.parametrize("piece", FORMULAS)
def test_a_piece_that_looks_like_a_formula_is_text_to_a_spreadsheet(trace: Trace, piece: str) -> None:
    hostile = replace(trace, source=(piece,) * 7, target=(piece,) * 13, comes_out=(piece,) * 13)
    text = content(Shot(hostile, "cross", 0, 0), "csv").decode("utf-8-sig")
    for line in csv.reader(io.StringIO(text, newline="")):
        for cell in line:
            assert cell.lstrip(" ")[:1] not in {*"=+-@\t\r＝＋－＠"}, cell
    assert "'" + piece in {line["query"] for line in rows(text.encode("utf-8-sig"))}


@given(st.text(max_size=9))
def test_any_text_comes_back_from_a_csv(text: str) -> None:
    data = export.csv(["a", "b"], [[text, 1]])
    (line,) = rows(data)
    assert line["b"] == "1"
    assert line["a"] == defused(text).replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    assert line["a"].removeprefix("'") == text.removeprefix("'").replace("\0", "\ufffd").encode(
        "utf-8", "replace"
    ).decode()  # fmt: skip


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_json_holds_what_is_drawn(trace: Trace, drawing: Drawing) -> None:
    found = json.loads(content(Shot(trace, "cross", 1, 0, drawing=drawing, also=(1,)), "json"))
    whole = trace.weights("cross")
    weights = {"map": whole[1, 0], "lines": whole[1], "heads": whole[1], "all": whole}[drawing]
    np.testing.assert_array_equal(np.array(found["weights"], np.float32), weights)
    allowed = {"map": (1, 0), "lines": (1,), "heads": (1,), "all": ()}[drawing]
    np.testing.assert_array_equal(found["mask"], trace.allowed("cross")[allowed])
    assert (found["queries"], found["keys"]) == ([*trace.target], [*trace.source])
    about = found["about"]
    assert (about["text"], found["kind"]) == (trace.text, "cross")
    assert about["comes_out"] == [*trace.comes_out]
    assert about.get("layer") == (None if drawing == "all" else 2)
    assert about["heads"] == ([1] if drawing == "map" else [1, 2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drawing", DRAWINGS)
def test_json_that_went_out_comes_in_again(trace: Trace, drawing: Drawing, kind: Any) -> None:
    found = json.loads(content(Shot(trace, kind, 1, 0, drawing=drawing, also=(1,)), "json"))
    again = files.read("map.json", json.dumps(found).encode())
    assert again.kinds == (kind,)
    whole, allowed = trace.weights(kind), trace.allowed(kind)
    drawn = {"map": np.s_[1:2, :1], "lines": np.s_[1:2], "heads": np.s_[1:2], "all": np.s_[:]}[drawing]
    np.testing.assert_array_equal(again.weights(kind), whole[drawn])
    np.testing.assert_array_equal(again.allowed(kind), allowed[drawn])
    assert again.axes(kind) == trace.axes(kind)


@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_the_whole_trace_comes_in_again_bit_for_bit(trace: Trace, form: Any) -> None:
    shot = Shot(trace, "cross", 1, 0)
    assert_same(files.read(name_of(shot, form), content(shot, form)), trace)


def test_json_knows_no_nan(trace: Trace) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    data = export.written({"numbers": np.array([[1, np.nan], [np.inf, 0.1]], np.float32)})
    assert json.loads(data, parse_constant=refuse) == {"numbers": [[1, None], [None, 0.1]]}


# --- names and files ----------------------------------------------------------------------------------------


def test_a_file_is_named_after_what_it_holds(trace: Trace) -> None:
    assert (
        name_of(Shot(trace, "cross", 2, 0), "svg") == "headlight-cross-layer-3-head-1-the-cat-looks-at-me.svg"
    )
    mean = Shot(trace, "decoder", 0, None, drawing="lines", after=trace)
    assert name_of(mean, "png") == "headlight-decoder-layer-1-mean-lines-before-after-the-cat-looks-at-me.png"
    assert (
        name_of(Shot(trace, "encoder", 0, 1, drawing="all"), "csv")
        == "headlight-encoder-all-the-cat-looks-at-me.csv"
    )
    assert name_of(Shot(trace, "encoder", 0, 1), "npz") == "headlight-trace-the-cat-looks-at-me.npz"
    assert slug("L'élève où ça ?", 40) == "l-eleve-ou-ca"


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_disk_takes_the_name(what: str, sentence: str) -> None:
    found = name(what, sentence, "svg")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.svg", found), found
    assert len(found) <= 120
    assert found.split(".")[0].split("-")[0] == "headlight"
    assert found.split(".")[0] not in DEVICES


def test_a_file_is_written_whole_and_is_as_readable_as_any(tmp_path: Path) -> None:
    path = tmp_path / "map.svg"
    path.write_bytes(b"old")
    save(path, b"new" * 10_000)
    assert path.read_bytes() == b"new" * 10_000
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    assert {each.name for each in tmp_path.iterdir()} == {"map.svg", "plain"}


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "There is no room left for {path}. Nothing was written."),
        (errno.EROFS, "Nothing may be written into the folder {folder}."),
        (errno.EIO, "{path} cannot be written: Input/output error."),
    ],
)
def test_a_full_disk_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    path = tmp_path / "map.svg"
    path.write_bytes(b"old")

    def full(_file: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExportError, match=re.escape(said.format(path=path, folder=tmp_path))):
        save(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["map.svg"]


def test_a_disk_that_ends_in_the_middle_of_a_file_leaves_none(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from viz.export import ExportError, save\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (999, 999))\n"
        "try:\n"
        "    save(Path(sys.argv[1]), b'x' * 5000)\n"
        "except ExportError as error:\n"
        "    print(error)\n"
    )
    path = tmp_path / "map.svg"
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout == f"There is no room left for {path}. Nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="There is no folder"):
        save(tmp_path / "nowhere" / "map.svg", b"")


# --- the command --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"layer": "4"}, 'The view asks for layer "4", but there is only: 1 to 3.'),
        ({"head": "0"}, 'The view asks for head "0", but there is only: 1 to 2.'),
        (
            {"kind": "sideways"},
            'The view asks for kind "sideways", but there is only: encoder, decoder, cross.',
        ),
        ({"row": "x" * 99}, f'The view asks for row "{"x" * 20}", but there is only: 1 to 13.'),
        ({"also": "1,9"}, 'The view asks for also "9", but there is only: 1 to 2.'),
        ({"mean": "yes"}, 'The view asks for mean "yes", but there is only: true, false.'),
    ],
)
def test_a_view_that_the_model_has_not_is_refused(trace: Trace, params: dict[str, str], said: str) -> None:
    with pytest.raises(ExportError, match=re.escape(said)):
        shot_of(trace, params)


def test_a_view_is_counted_as_in_an_address(trace: Trace) -> None:
    params = {"kind": "cross", "layer": "3", "head": "2", "row": "13", "column": "7", "drawing": "lines"}
    shot = shot_of(trace, params | {"faint": "5", "also": "1", "values": "true", "hall": "true"})
    assert (shot.kind, shot.layer, shot.head, shot.query, shot.key) == ("cross", 2, 1, 12, 6)
    assert (shot.drawing, shot.faint, shot.also, shot.values) == ("lines", 0.05, (0,), True)
    assert shot_of(trace, {}) == Shot(trace, "cross", 0, 0, 0, None)
    assert shot_of(trace, {"mean": "true"}).head is None
    assert shot_of(trace, {"column": "0"}).key is None


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that the command wrote, on a machine that has no browser."""
    folder = tmp_path_factory.mktemp("out")
    code = (
        "import sys, viz.export\n"
        "for form in ('svg', 'png', 'html', 'csv', 'json'):\n"
        "    out = ['--out', f'{sys.argv[1]}/map.{form}']\n"
        "    view = ['--view', 'kind=cross&layer=3&head=1']\n"
        "    assert viz.export.main(['I am a student.', *view, *out]) == 0, form\n"
        "assert viz.export.main(['A cat.', '--out', f'{sys.argv[1]}/dark.svg', '--dark']) == 0\n"
        "assert viz.export.main(['', '--out', f'{sys.argv[1]}/empty.svg']) == 1\n"
        "assert viz.export.main(['A cat.', '--out', f'{sys.argv[1]}/map.gif']) == 1\n"
        "assert viz.export.main(['A cat.', '--view', 'layer=99', '--out', f'{sys.argv[1]}/far.svg']) == 1\n"
        "assert viz.export.main(['--view', 'http://localhost/head?text=A+cat.&kind=encoder', '--out',"
        " f'{sys.argv[1]}/link.json']) == 0\n"
        "out = ['--model', '../en-fr', '--out', f'{sys.argv[1]}/away.json']\n"
        "assert viz.export.main(['A cat.', *out]) == 1\n"
        "assert viz.export.main(['A cat.', '--out', f'{sys.argv[1]}/whole.npz']) == 0\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=ROOT,
        env={**os.environ, "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.splitlines() == [
        "There is nothing to read in the English sentence yet: type a few words.",
        'Nothing is known of files that end in ".gif", only of: svg, png, html, csv, json, npz, safetensors.',
        'The view asks for layer "99", but there is only: 1 to 3.',
        run.stderr.splitlines()[-1],
    ]
    assert run.stderr.splitlines()[-1].startswith("There is no model ../en-fr, only: en-fr")
    return folder


def test_the_command_writes_every_form_without_a_browser(alone: Path) -> None:
    import model

    assert {each.name for each in alone.iterdir()} == {
        *(f"map.{form}" for form in ("svg", "png", "html", "csv", "json")),
        "dark.svg", "link.json", "whole.npz",
    }  # fmt: skip
    shown = model.load("en-fr").trace("I am a student.")
    found = json.loads((alone / "map.json").read_bytes())
    np.testing.assert_allclose(found["weights"], shown.weights("cross")[2, 0], atol=1e-7)
    assert (alone / "map.png").read_bytes().startswith(b"\x89PNG")
    assert "#14171c" in (alone / "dark.svg").read_text()
    link = json.loads((alone / "link.json").read_bytes())
    assert (link["about"]["text"], link["kind"]) == ("A cat.", "encoder")


def test_a_folder_without_leave_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, trace: Trace
) -> None:
    from viz import cache

    monkeypatch.setattr(cache, "trace", lambda *_: trace)
    monkeypatch.setattr(cache, "ready", lambda: True)
    assert main(["A cat.", "--out", str(tmp_path / "no" / "map.svg")]) == 1
    assert capsys.readouterr().err == f"There is no folder {tmp_path / 'no'}.\n"


# --- a page of its own --------------------------------------------------------------------------------------


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A page without a network that must meet no error, and ask for no other file."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(30_000)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda asked: troubles.append(asked.url) if "/page.html" not in asked.url else None)
    yield page
    context.close()
    assert troubles == []


def opened(page: Page, folder: Path, shot: Shot, query: str = "") -> Page:
    path = folder / "page.html"
    path.write_bytes(content(shot, "html"))
    page.goto(path.as_uri() + query)
    page.locator(".stage[aria-busy=false] .aloud").filter(has_text=re.compile(".")).wait_for()
    return page


def reads(page: Page, text: str) -> None:
    page.locator(".aloud").filter(has_text=re.compile("^" + re.escape(text))).wait_for()


ALL = """() => { const {maps} = document.querySelector('.root').stage, found = {};
for (const [kind, {layers, heads}] of Object.entries(maps.kinds))
  for (let layer = 0; layer < layers; layer += 1)
    for (let head = 0; head < heads; head += 1)
      found[`${kind}.${layer}.${head}`] = [...maps.weights({set: 0, kind, layer, head})];
return found; }"""


def test_a_page_of_its_own_holds_the_trace_and_is_stepped_without_a_network(
    offline: Page, tmp_path: Path, trace: Trace
) -> None:
    page = opened(offline, tmp_path, Shot(trace, "cross", 1, 0, 4))
    for place, numbers in page.evaluate(ALL).items():
        kind, layer, head = place.split(".")
        weights = trace.weights(kind)[int(layer), int(head)]
        np.testing.assert_array_equal(np.array(numbers, np.float32).reshape(weights.shape), weights)

    def at(kind: Any, layer: int, head: int | None, query: int = 4) -> None:
        picture = Map(trace, kind, layer, head)
        reads(page, aloud(picture, query, int(picture.weights[query].argmax())))

    at("cross", 1, 0)
    page.keyboard.press("ArrowRight")  # nothing has the focus
    at("cross", 1, 1)
    page.keyboard.press("ArrowUp")
    at("cross", 2, 1)
    page.locator(".sheet").focus()
    page.keyboard.press("Shift+ArrowDown")
    at("cross", 2, 1, 5)
    page.get_by_role("radio", name="decoder self-attention").click()
    at("decoder", 2, 1, 5)
    page.get_by_role("button", name="Previous layer").click()
    at("decoder", 1, 1, 5)
    page.get_by_label("Head").first.select_option("1")
    at("decoder", 1, 0, 5)
    page.get_by_role("button", name="Mean of all heads").click()
    at("decoder", 1, None, 5)
    page.wait_for_function("() => location.search.includes('mean=true')")
    page.reload()
    at("decoder", 1, None, 5)


def test_the_hall_is_left_by_escape_and_the_picture_stands_on_the_page_again(
    offline: Page, tmp_path: Path, trace: Trace
) -> None:
    page = opened(offline, tmp_path, Shot(trace, "cross", 1, 0, 4))
    page.keyboard.press("f")
    page.locator("dialog.hall[open] .sheet").wait_for()
    page.keyboard.press("ArrowRight")
    page.locator(".where").filter(has_text="head 2 of layer 2").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog.hall[open]").wait_for(state="detached")
    page.locator("main .stage > .sheet").wait_for()
    page.keyboard.press("ArrowLeft")
    reads(page, "Head 1 of layer 2")


def test_a_page_of_its_own_is_light_or_dark(offline: Page, tmp_path: Path, trace: Trace) -> None:
    page = opened(offline, tmp_path, Shot(trace, "cross", 1, 0, 4))
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.keyboard.press("ArrowRight")
    before = page.locator(".aloud").inner_text()
    page.get_by_role("button", name="Dark").click()
    page.wait_for_function(f"() => {ground} === 'rgb(20, 23, 28)'")
    assert page.locator(".aloud").inner_text() == before  # the reader stays in place
    page.emulate_media(color_scheme="dark")
    page.reload()
    page.wait_for_function(f"() => {ground} === 'rgb(20, 23, 28)'")


def test_no_piece_breaks_out_of_the_page(offline: Page, tmp_path: Path, trace: Trace) -> None:
    piece = "</script><script>alert(1)</script><!--"
    hostile = replace(
        trace, text=piece + "\ud800", translation=piece, source=(piece,) * 7, comes_out=(piece,) * 13,
        target=("<img src=x onerror=alert(1)>",) * 13,
    )  # fmt: skip
    page = opened(
        offline, tmp_path, Shot(hostile, "cross", 1, 0, note=piece), "?kind=__proto__&head=99&layer=x"
    )
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == piece + "?"
    assert piece in page.locator(".aloud").inner_text()
    page.locator(".twin summary").click()
    assert page.locator(".twin th[scope=col]").first.inner_text() == piece


def test_a_script_that_is_not_the_pages_own_does_not_run(
    browser: Browser, tmp_path: Path, trace: Trace
) -> None:
    context = browser.new_context(offline=True)
    page = opened(context.new_page(), tmp_path, Shot(trace, "cross", 1, 0))
    refused = page.evaluate(
        """() => new Promise((answer) => {
            document.addEventListener('securitypolicyviolation', (event) => answer(event.violatedDirective));
            const script = document.createElement('script');
            script.textContent = 'window.ran = true';
            document.body.append(script);
        })"""
    )
    assert refused.startswith("script-src")
    assert page.evaluate("window.ran") is None
    context.close()


@given(st.text())
def test_any_text_stays_inside_its_script_element(text: str) -> None:
    held = standalone.in_script({"text": text})
    assert not {"<", ">", "&", "\u2028", "\u2029"} & {*held}
    assert held.isascii()
    assert json.loads(held) == {"text": text}


def test_before_and_after_are_stepped_too(
    offline: Page, tmp_path: Path, translator: Translator, trace: Trace
) -> None:
    after = translator.trace(TEXT, trace.target_ids[1:], Change(look_ahead=Switch("all")))
    page = opened(offline, tmp_path, Shot(trace, "decoder", 1, 0, 2, after=after))
    one, other = (Map(each, "decoder", 1, 0) for each in (trace, after))
    key = int(one.weights[2].argmax())
    said = page.locator(".aloud").inner_text()
    assert f"{one.weights[2, key]:.4f} before" in said
    assert f"{other.weights[2, key]:.4f} after" in said


def test_more_pieces_than_the_stage_draws_are_refused(trace: Trace) -> None:
    weights = np.full((1, 1, 513, 513), 1 / 513, np.float32)
    seen = replace(trace.seen("encoder"), weights=weights, allowed=weights > 0, scores=weights)
    shot = Shot(replace(trace, attention={"encoder": seen}, source=("a",) * 513), "encoder", 0, 0)
    with pytest.raises(ExportError, match="513 pieces"):
        content(shot, "html")


def test_the_policy_of_a_page_names_its_own_scripts_and_nothing_else(trace: Trace) -> None:
    page = standalone.html(Shot(trace, "cross", 1, 0), stage_words())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[\w+/=]{44}'; style-src 'sha256-[\w+/=]{44}'; "
        r"base-uri 'none'; form-action 'none'",
        policy[1],
    )
    assert "http:" not in page.replace("http://www.w3.org", "")
    assert "https:" not in page
