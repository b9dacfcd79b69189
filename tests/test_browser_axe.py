"""axe-core on a few pages, in both themes; `python -m tests.browsers light dark` looks at all of them."""

import pytest
from playwright.sync_api import Page

from tests.browsers import THEMES, Spot, go, look, offences

SPOTS = [
    Spot("explore", {"mean": "true"}),
    Spot("masks", {"model": "gpt"}),
    Spot("decode", {"dec_tab": "beam"}),
    Spot("models", {"model": "bert"}),
]


@pytest.mark.parametrize("spot", SPOTS, ids=str)
def test_axe_finds_nothing_serious_in_either_theme(page: Page, address: str, spot: Spot) -> None:
    go(page, address, spot)
    assert {theme: found for theme in THEMES if (found := look(page, theme))} == {}


def test_what_is_opened_holds_nothing_serious_either_and_axe_looks_into_components(
    page: Page, address: str
) -> None:
    go(page, address, Spot("explore", {}, "Model:"))
    assert offences(page) == []
    page.locator(".models th[scope=row]").first.evaluate("node => { node.style.color = '#ccc'; }")
    (found,) = offences(page)
    assert found.startswith("color-contrast (serious)")
    page.keyboard.press("Escape")
    page.locator(".models").wait_for(state="detached")
    page.locator(".sheet").first.evaluate("node => node.append(document.createElement('img'))")
    assert [line.split()[0] for line in offences(page)] == ["image-alt"]


def test_a_theme_that_changes_under_an_open_page_changes_its_pictures_too(page: Page, address: str) -> None:
    go(page, address, Spot("explore", {}))
    colours = {}
    for theme in ("light", "dark", "light"):
        assert look(page, theme) == []
        colours[theme] = page.locator(".translation .piece").first.evaluate(
            "node => getComputedStyle(node).color"
        )
    assert len({*colours.values()}) == 2
