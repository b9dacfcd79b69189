"""Choosing a model in a real browser: one step of history, a word hidden by a press, a file opened."""

import re
from pathlib import Path

import numpy as np
from playwright.sync_api import Page

from model import files
from model.config import GAP
from tests.test_browser import asked, opened, ready
from viz import cache
from viz.text import examples
from viz.view import parse_gaps


def drawn(page: Page, piece: str) -> None:
    """Wait until the stage holds a map with this piece."""
    page.wait_for_function(
        "piece => window.headlight && [...window.headlight.maps.values()].some(maps => "
        "Object.values(maps.kinds).some(kind => kind.queries.includes(piece)))",
        arg=piece,
    )
    ready(page)


def weights(page: Page, kind: str, layer: int, head: int) -> np.ndarray:
    found = asked(page, f"[...stage.maps.weights({{kind: '{kind}', layer: {layer}, head: {head}, set: 0}})]")
    assert isinstance(found, list)
    return np.array(found, np.float32)


def test_a_model_is_chosen_in_one_step_of_history_and_stays_on_the_next_page(
    page: Page, address: str
) -> None:
    opened(page, address)
    before = page.evaluate("history.length")
    page.get_by_role("button", name=re.compile("^Model: en-fr")).click()
    page.get_by_role("link", name="gpt", exact=True).click()
    page.get_by_label("English, a beginning").wait_for()
    first = examples("gpt")[0]
    drawn(page, first.text.split()[0])
    assert page.evaluate("history.length") == before + 1
    assert page.get_by_label("English, a beginning").input_value() == first.text
    trace = cache.trace("gpt", first.text)
    np.testing.assert_allclose(
        weights(page, "decoder", 0, 2), trace.weights("decoder")[0, 2].ravel(), atol=1e-6
    )
    page.get_by_role("link", name="Masks", exact=True).click()
    page.get_by_text("look-ahead", exact=True).wait_for()
    ready(page)
    assert "model=gpt" in page.url
    page.go_back()
    page.go_back()
    page.get_by_label("English", exact=True).wait_for()
    ready(page)
    assert "model" not in page.url
    assert page.get_by_label("English", exact=True).input_value() == examples()[0].text


def test_a_press_on_a_word_hides_it_from_the_model(page: Page, address: str) -> None:
    first = examples("bert")[0]
    opened(page, address, "?model=bert")
    gaps = parse_gaps(first.gaps)
    trace = cache.trace("bert", first.text, gaps)
    np.testing.assert_allclose(
        weights(page, "encoder", 1, 0), trace.weights("encoder")[1, 0].ravel(), atol=1e-6
    )
    page.get_by_role("button", name=re.compile("^" + trace.source[1])).first.click()
    page.wait_for_function("address => location.search.includes('gaps=2')", arg=address)
    more = cache.trace("bert", first.text, (1, *gaps))
    page.locator(".translation .hole").nth(len(gaps)).wait_for()
    ready(page)
    assert asked(page, "stage.maps.kinds.encoder.queries") == list(more.source)
    assert more.source[1] == GAP
    page.go_back()
    page.locator(".translation .hole").nth(len(gaps)).wait_for(state="detached")
    assert "gaps" not in page.url


def test_a_file_of_ones_own_is_opened_and_stepped_through(page: Page, address: str, tmp_path: Path) -> None:
    found = np.random.default_rng(7).random((5, 3, 7, 7)).astype(np.float32)
    found /= found.sum(axis=-1, keepdims=True)
    tokens = ["<b>bold</b>", "$x^2$", "a&amp;b", "</script>", "été", "猫", "."]
    files.save(tmp_path / "mine.safetensors", weights=found, source=tokens)
    (tmp_path / "bad.json").write_text('{"weights": [[0.5, 0.6], [0.5, 0.5]]}')
    page.goto(address + "models?models_tab=file")
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.locator("input[type=file]").set_input_files(tmp_path / "bad.json")
    page.get_by_text("Headlight reads", exact=False).first.wait_for()
    page.locator("input[type=file]").set_input_files(tmp_path / "mine.safetensors")
    page.get_by_role("link", name="Look at it").click()
    drawn(page, "été")
    assert re.search(r"/\?model=file-[0-9a-f]{30}$", page.url)
    assert asked(page, "stage.maps.kinds.encoder.queries") == tokens
    page.locator(".sheet").first.press("ArrowRight")
    ready(page)
    np.testing.assert_allclose(weights(page, "encoder", 4, 2), found[4, 2].ravel(), atol=1e-6)
