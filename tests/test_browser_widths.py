"""A handful of pages at four widths; `python -m tests.browsers 360 768 1440 "200 %"` looks at all of them."""

import pytest
from playwright.sync_api import Browser, Page

from tests.browsers import SIZES, Spot, faults, go, look

SPOTS = [
    Spot("explore", {}),
    Spot("positions", {"pos_tab": "sum"}),
    Spot("masks", {"masks_tab": "switch", "model": "bert"}),
    Spot("models", {}),
]


@pytest.mark.parametrize("spot", SPOTS, ids=str)
def test_nothing_is_cut_off_or_lies_over_another_text(page: Page, address: str, spot: Spot) -> None:
    go(page, address, spot)
    assert {size: found for size in SIZES if (found := look(page, size))} == {}


def test_a_window_zoomed_to_twice_its_size_shows_everything(browser: Browser, address: str) -> None:
    size = SIZES["200 %"]
    context = browser.new_context(
        viewport={"width": size.width, "height": size.height}, device_scale_factor=2
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    go(page, address, Spot("explore", {"kind": "encoder"}))
    assert faults(page) == []
    # The picture is drawn in pixels of the screen, not blown up.
    canvas = page.locator(".sheet canvas").first
    assert canvas.evaluate("node => node.width / node.getBoundingClientRect().width") == pytest.approx(
        2, abs=0.02
    )
    context.close()


def test_what_is_cut_or_covered_is_seen(page: Page, address: str) -> None:
    go(page, address, Spot("about", {}))
    look(page, "768")
    page.evaluate(
        """() => {
            const [one, other] = document.querySelectorAll('[data-testid=stMain] li');
            other.style.cssText = `position: absolute; left: 0; top: 0`;
            one.style.position = 'relative';
            one.append(other);
            const wide = document.createElement('p');
            wide.style.cssText = 'white-space: nowrap; overflow: hidden; width: 60px';
            wide.textContent = 'cut off in its midst';
            one.parentElement.after(wide);
        }"""
    )
    found = faults(page)
    assert any(line.startswith("overlap:") for line in found)
    assert any(line.startswith('cut: "cut off in') for line in found)
