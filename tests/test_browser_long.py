"""Maps of 509 pieces on the stage: sent layer by layer, as they are looked at."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests import long_app
from tests.conftest import free_port, served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    port = free_port()
    with served(port, "tests/long_app.py"):
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{port}/")
        yield page
        page.context.close()


def test_a_layer_is_sent_when_it_is_looked_at(page: Page) -> None:
    weights = long_app.weights()
    loaded = "root => [...Array(6).keys()].filter(layer => root.stage.maps.has('encoder', layer)).length"
    root = page.locator(".root").filter(has=page.locator(".stage"))
    page.locator(".aloud").filter(has_text="Head 1 of layer 1").wait_for()
    assert root.evaluate(loaded) == 1
    page.locator(".sheet").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    page.locator(".aloud").filter(has_text="Head 2 of layer 2").wait_for()
    shown = root.evaluate("root => root.stage.maps.weights(root.stage.at())[1 * 509 + 2]")
    assert shown == pytest.approx(weights[1, 1, 1, 2], abs=0.5001 / 65535)
    assert root.evaluate(loaded) == 2
    page.get_by_role("radio", name="All layers").click()
    page.wait_for_function(
        "root => root.stage.layout.items[0].tiles?.length === 18", arg=root.element_handle()
    )
    assert root.evaluate(loaded) == 6
    page.get_by_role("radio", name="One head").click()
    page.get_by_text("40 of 509 pieces are shown").wait_for()
    for _press in range(12):
        page.get_by_role("button", name="Wider").click()
    page.get_by_text("pieces are shown").wait_for(state="detached")  # now all of them
    rows = root.evaluate("root => root.stage.layout.items[0].window.rows")
    assert rows == 509
