"""The laboratories in a real browser: step, read a number, come back to what was chosen, fit a phone."""

from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import Browser, Page

import model

SENTENCE = "The dog sees a cat."
TEXT = "text=The+dog+sees+a+cat."


def idle(page: Page) -> None:
    """Wait until the script has run, and what it replaced is gone."""
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(700)


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    page.locator(".js-plotly-plot, canvas").first.wait_for()
    idle(page)
    return page


def asked(page: Page) -> dict[str, str]:
    """What the address holds now."""
    return {
        name: values[-1] for name, values in parse_qs(urlsplit(page.evaluate("location.href")).query).items()
    }


def heading(page: Page, text: str) -> None:
    page.get_by_role("heading", name=text).wait_for()


def point(page: Page, x: float, y: float) -> None:
    """Point at a place of the first figure, in its own units, until its label shows."""
    place = """([x, y]) => {
        const plot = document.querySelector('.js-plotly-plot'), box = plot.getBoundingClientRect();
        const {xaxis, yaxis} = plot._fullLayout;
        return [box.x + xaxis._offset + xaxis.d2p(x), box.y + yaxis._offset + yaxis.d2p(y)];
    }"""
    for _attempt in range(20):  # a figure that is drawn anew under the pointer does not notice it
        page.mouse.move(5, 600)
        page.mouse.move(*page.evaluate(place, [x, y]))
        page.wait_for_timeout(300)
        if page.locator(".hovertext").first.is_visible():
            return


def test_one_head_is_stepped_by_keys_and_buttons_and_told_to_four_digits(page: Page, address: str) -> None:
    opened(page, f"{address}head?{TEXT}&kind=encoder&layer=2&head=3&row=2")
    heading(page, "1. What enters")
    page.mouse.click(5, 600)  # nothing has the focus but the page
    page.keyboard.press("PageDown")
    heading(page, "2. Queries, keys, values")
    idle(page)
    page.get_by_role("button", name="‹").last.click()
    heading(page, "1. What enters")
    idle(page)
    entering = model.load("en-fr").trace(SENTENCE).entering("encoder", 1)
    row = page.evaluate("document.querySelector('.js-plotly-plot')._fullData[0].y[1]")
    page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()
    point(page, 5, row)
    shown = page.locator(".hovertext").first.text_content() or ""
    assert f"{entering[1, 5]:.4f}".replace("-", "−") in shown.replace("-", "−")
    assert "dimension 6" in shown


def test_a_click_on_a_score_chooses_its_pair(page: Page, address: str) -> None:
    trace = model.load("en-fr").trace(SENTENCE)
    key = trace.source.index("cat")
    opened(page, f"{address}head?{TEXT}&kind=encoder&layer=1&head=2&row=2&head_stage=3")
    page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()
    for _attempt in range(5):
        point(page, key, 1)
        page.mouse.down()
        page.mouse.up()
        idle(page)
        if asked(page).get("column") == str(key + 1):
            break
    assert asked(page)["column"] == str(key + 1)
    page.get_by_text('"dog" asks "cat"').wait_for()
    stages = trace.stages("encoder")
    product = f"{float(stages.q[0, 1, 1] @ stages.k[0, 1, key]):.4f}".replace("-", "−")
    heading(page, f"q · k = {product}")


def test_bars_name_the_place_that_is_pointed_at(page: Page, address: str) -> None:
    opened(page, f"{address}positions?pos_tab=encoding&pos_picture=vector")
    box = page.get_by_label("Position", exact=True)
    box.fill("7")
    box.press("Enter")
    page.get_by_text("The vector of position 7: 256 numbers").wait_for()
    idle(page)
    page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()
    value = float(np.sin(7))
    point(page, 0, value / 2)
    assert f"{value:+.4f}" in (page.locator(".hovertext").first.text_content() or "").replace("−", "-")


def test_a_laboratory_keeps_what_was_chosen_while_another_page_is_looked_at(
    page: Page, address: str, browser: Browser
) -> None:
    opened(page, f"{address}positions?text=Tom+loves+Mary.&kind=encoder")
    page.get_by_role("radio", name="rotation").click()
    box = page.get_by_label("Position p")
    box.wait_for()
    idle(page)
    box.fill("9")
    box.press("Enter")
    page.get_by_text("Position 9 and position 14").wait_for()
    idle(page)
    left = asked(page)
    assert (left["pos_tab"], left["pos_from"]) == ("rotation", "9")

    page.get_by_role("link", name="About").click()
    heading(page, "Attention is not explanation")
    idle(page)
    assert asked(page) == {"text": "Tom loves Mary.", "kind": "encoder"}
    page.go_back()  # one step, straight to where the reader was
    page.get_by_text("Position 9 and position 14").wait_for()
    assert asked(page) == left
    idle(page)

    page.get_by_role("link", name="One head").click()
    heading(page, "1. What enters")
    idle(page)
    assert "pos_tab" not in asked(page)
    page.get_by_role("link", name="Positions").click()
    page.get_by_text("Position 9 and position 14").wait_for()
    assert asked(page) == left

    other = browser.new_context().new_page()
    opened(other, page.evaluate("location.href"))
    other.get_by_text("Position 9 and position 14").wait_for()
    other.context.close()


def test_switches_survive_a_sentence_that_cannot_be_read(page: Page, address: str) -> None:
    opened(
        page, f"{address}masks?text=Tom+loves+Mary.&kind=decoder&look_ahead=false&source_pads=7&switched=1"
    )
    page.get_by_text("out of its depth").wait_for()
    box = page.get_by_label("English", exact=True)
    for text in ("", "Tom loves Mary."):
        box.fill(text)
        box.press("Enter")
        idle(page)
    page.get_by_text("One layer without the mask is enough to leak").wait_for()
    found = asked(page)
    assert (found["look_ahead"], found["source_pads"], found["switched"]) == ("false", "7", "1")


NARROW = [
    *(f"head?kind=cross&head_stage={stage}" for stage in (1, 3, 8)),
    "head?head_tab=root",
    "positions?pos_try=twins&kind=encoder",
    *(f"positions?pos_tab={tab}" for tab in ("sum", "rotation")),
    "masks?masks_tab=build",
]


def test_nothing_of_a_laboratory_is_wider_than_a_phone(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(60_000)
    for path in NARROW:
        mark = "&" if "?" in path else "?"
        opened(page, f"{address}{path}{mark}text=The+big+dog+saw+a+big+cat.")
        wide = page.evaluate(
            """() => [...document.querySelectorAll('button, label, p, .js-plotly-plot, canvas')]
                .filter(part => part.getBoundingClientRect().right > innerWidth + 1 && part.offsetParent)
                .map(part => part.textContent.slice(0, 40))"""
        )
        cut = page.evaluate(
            """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot =>
                [...plot.querySelectorAll('text')].filter(text =>
                    text.getBoundingClientRect().right > plot.getBoundingClientRect().right + 1
                ).map(text => text.textContent))"""
        )
        assert (path, wide, cut) == (path, [], [])
    context.close()
