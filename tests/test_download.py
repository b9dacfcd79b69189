"""The control that saves a picture: it makes nothing until it is asked, and then what is on the page."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import model
from tests.conftest import ROOT
from tests.test_browser import opened
from tests.test_svg import SVG, read
from viz import download, export, standalone, svg
from viz.download import shot_of
from viz.sizes import Sizes
from viz.svg import curves
from viz.theme import PALETTES
from viz.view import View

SENTENCE = "I am a student."
WORDS = "kind=cross&layer=2&head=3&row=2"


def refuse(*_args: Any, **_how: Any) -> Any:
    raise AssertionError("made without being asked")


@pytest.mark.parametrize(("page", "params"), [("explore", {"still": "true"}), ("why", {}), ("head", {})])
def test_a_page_makes_no_file_by_itself(
    monkeypatch: pytest.MonkeyPatch, page: str, params: dict[str, str]
) -> None:
    for where, name in ((export, "content"), (export, "content_of"), (export, "png"), (svg, "draw")):
        monkeypatch.setattr(where, name, refuse)
    for where, name in ((curves, "draw"), (curves, "can"), (curves, "rows"), (standalone, "html")):
        monkeypatch.setattr(where, name, refuse)
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at._page_hash = calc_hash(page)
    for name, value in params.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception


@pytest.mark.parametrize("page", ["head", "masks", "positions", "decode", "heads", "training", "why"])
def test_every_figure_of_a_page_can_be_printed(monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(download, "figure", lambda figure, key, said: drawn.update({key: (figure, said)}))
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at._page_hash = calc_hash(page)
    at.run()
    assert not at.exception
    for key, (figure, said) in drawn.items():
        assert curves.can(figure), key
        root = read(curves.draw(figure, PALETTES["dark"], [said]))
        wide, tall = map(float, (root.get("viewBox") or "").split()[2:])
        for shape in root.iter(f"{SVG}rect"):  # nothing lies outside the page
            assert -1 <= float(shape.get("x", 0)) <= wide + 1, key
            assert -1 <= float(shape.get("y", 0)) <= tall + 1, key


def test_the_saved_picture_is_that_of_the_page() -> None:
    trace = model.load("en-fr").trace(SENTENCE)
    sizes = Sizes("en-fr", {}, 64, "encoder-decoder", {})
    here = View("cross", 2, 1, 3, 2, sizes, drawing="lines", faint=5, also="1,4", values=True)
    shot = shot_of(here, trace, trace, "No mask.")
    assert (shot.kind, shot.layer, shot.head, shot.query, shot.key) == ("cross", 2, 1, 3, 2)
    assert (shot.drawing, shot.faint, shot.also, shot.values) == ("lines", 0.05, (0, 3), True)
    assert (shot.after, shot.note) == (trace, "No mask.")
    assert shot_of(View("cross", 0, 1, 0, None, sizes, mean=True), trace).head is None


def saved(page: Page, folder: Path, form: str, button: int = 0) -> tuple[str, bytes]:
    """Open the control, choose a form, and take the file."""
    drawer = page.get_by_test_id("stPopoverBody")
    if not drawer.is_visible():
        page.get_by_role("button", name="Save", exact=True).nth(button).click()
    drawer.get_by_text(form, exact=True).click()
    press = drawer.get_by_role("button", name=f"Save {form.upper() if len(form) < 5 else form}", exact=True)
    press.wait_for()
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    with page.expect_download() as coming:
        press.click()
    path = folder / form
    coming.value.save_as(path)
    return coming.value.suggested_filename, path.read_bytes()


def test_the_app_saves_what_is_on_the_stage_in_every_form(page: Page, address: str, tmp_path: Path) -> None:
    opened(page, address, f"?{WORDS}&text=I+am+a+student.")
    before = page.url
    trace = model.load("en-fr").trace(SENTENCE)
    asked = dict(pair.split("=") for pair in WORDS.split("&"))
    shot = export.shot_of(trace, asked)
    checks: dict[Any, Callable[[bytes], bool]] = {
        "png": lambda data: Image.open(io.BytesIO(data)).size[0] > 1000,
        "svg": lambda data: data == export.content(shot, "svg"),
        "html": lambda data: data == export.content(shot, "html", "light"),
        "csv": lambda data: data == export.content(shot, "csv"),
        "json": lambda data: json.loads(data)["about"]["heads"] == [3],
        "npz": lambda data: data.startswith(b"PK"),
        "safetensors": lambda data: data == export.content(shot, "safetensors"),
    }
    for form, right in checks.items():
        name, data = saved(page, tmp_path, form)
        assert name == export.name_of(shot, form)
        assert right(data), form
    assert page.url == before  # nothing of it is in the address
    found = json.loads((tmp_path / "json").read_bytes())
    np.testing.assert_allclose(found["weights"], trace.weights("cross")[1, 2], atol=1e-7)


def test_of_ten_quick_presses_every_file_is_whole(page: Page, address: str, tmp_path: Path) -> None:
    opened(page, address, f"?{WORDS}&text=I+am+a+student.")
    came, answers = [], []
    page.on("download", lambda each: came.append(each))
    page.on("response", lambda answer: answers.append(answer.status) if "/media/" in answer.url else None)
    _name, data = saved(page, tmp_path, "csv")
    press = page.get_by_role("button", name="Save CSV", exact=True)
    for _attempt in range(10):
        press.click()
    page.wait_for_timeout(2000)
    assert {*answers} == {200}  # none of them asks for a file that is gone
    for each in came:
        each.save_as(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == data


def test_a_figure_of_another_page_is_saved_in_the_readers_colours(
    page: Page, address: str, tmp_path: Path
) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(address + "why?text=I+am+a+student.")
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.get_by_role("button", name="Save", exact=True).first.wait_for()
    name, data = saved(page, tmp_path, "svg")
    assert name.startswith("headlight-why-")
    assert name.endswith("-i-am-a-student.svg")
    assert b"#14171c" in data
    assert b"#ffffff" not in data
