"""The real app in a real browser: type, step, read a weight, follow a link, go back."""

import re

import pytest
from playwright.sync_api import Browser, Page

import model
from viz.text import examples

SENTENCE = "The dog sees a cat."


def opened(page: Page, address: str, query: str = "") -> Page:
    page.goto(address + query)
    page.locator(".js-plotly-plot").nth(1).wait_for()
    return page


def read(page: Page, text: str) -> None:
    """Wait until the sentence above the map begins like this."""
    page.locator("p").filter(has_text=re.compile("^" + re.escape(text))).first.wait_for()


def type_in(page: Page, text: str) -> None:
    box = page.get_by_label("English", exact=True)
    box.fill(text)
    box.press("Enter")
    page.locator(".xtick text").filter(has_text=text.split()[1]).first.wait_for()


def settle(page: Page) -> None:
    """Wait until the script has run and the maps that it replaced are gone: a stale one takes no click."""
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(1200)


def point_at(page: Page, query: int, key: int) -> tuple[float, float]:
    """Where the cell (query, key) of the large map lies on the screen."""
    x, y = page.evaluate(
        """([query, key]) => {
            const plot = document.querySelectorAll('.js-plotly-plot')[0];
            const box = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout;
            return [box.x + xaxis._offset + xaxis.d2p(key), box.y + yaxis._offset + yaxis.d2p(query)];
        }""",
        [query, key],
    )
    return x, y


def test_type_step_read_follow_and_go_back(page: Page, address: str) -> None:
    opened(page, address)
    type_in(page, SENTENCE)
    page.locator("svg.map .kind[data-kind=encoder]").click()
    page.locator("text=/^Encoder self-attention/").first.wait_for()

    page.mouse.click(5, 600)  # nothing has the focus but the page
    first = examples()[0]
    read(page, f"Head {first.head} of layer {first.layer}")
    page.keyboard.press("ArrowDown")
    read(page, f"Head {first.head} of layer {first.layer - 1}")
    page.keyboard.press("ArrowUp")
    read(page, f"Head {first.head} of layer {first.layer}")
    page.keyboard.press("ArrowRight" if first.head < 8 else "ArrowLeft")
    head = first.head + 1 if first.head < 8 else first.head - 1
    read(page, f"Head {head} of layer {first.layer}")

    weights = model.load("en-fr").trace(SENTENCE).weights("encoder")[first.layer - 1, head - 1, 1]
    key = int(weights.argmax())
    settle(page)
    label = page.locator(".hovertext").filter(has_text=f"{weights[key]:.4f}").first
    for _attempt in range(20):  # a map that is drawn anew under the pointer does not notice it
        page.mouse.move(5, 600)
        page.mouse.move(*point_at(page, 1, key))
        page.wait_for_timeout(500)
        if label.is_visible():
            break
    assert label.is_visible()
    page.mouse.click(*point_at(page, 1, key))
    read(page, f'Head {head} of layer {first.layer}, working on "dog", takes')
    before = page.url

    page.get_by_role("button", name="Examples").click()
    example = examples()[1]
    page.get_by_role("link", name=example.text).click()
    page.locator(".translation").filter(has_text=example.french.split()[0]).wait_for()
    read(page, f"Head {example.head} of layer {example.layer}")
    page.go_back()
    read(page, f'Head {head} of layer {first.layer}, working on "dog", takes')
    assert page.evaluate("location.href") == before


def test_a_copied_address_opens_the_same_view_elsewhere(page: Page, address: str, browser: Browser) -> None:
    opened(page, address)
    type_in(page, SENTENCE)
    page.get_by_role("radio", name="decoder").click()
    page.locator("text=/^Decoder self-attention/").first.wait_for()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.locator(".link").get_by_text("Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.evaluate("location.href")
    sentence = page.locator("p").filter(has_text="working on").first.inner_text()
    other = browser.new_context().new_page()
    other.goto(link)
    other.locator(".js-plotly-plot").nth(1).wait_for(timeout=60_000)
    assert other.locator("p").filter(has_text="working on").first.inner_text() == sentence
    other.context.close()


def test_where_the_clipboard_is_refused_the_link_is_shown_and_selected(page: Page, address: str) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    opened(page, address, "?head=2")
    page.get_by_role("button", name="Copy link").click()
    shown = page.get_by_label("Link to this view")
    shown.wait_for()
    assert shown.input_value() == page.evaluate("location.href")
    assert shown.evaluate("box => box.selectionEnd - box.selectionStart") == len(shown.input_value())


def test_changing_the_page_keeps_the_place_and_back_returns_to_it(page: Page, address: str) -> None:
    opened(page, address, "?text=Tom+loves+Mary.&kind=encoder&layer=1&head=3")
    read(page, "Head 3 of layer 1")
    page.get_by_role("link", name="About").click()
    page.get_by_role("heading", name="Attention is not explanation").wait_for()
    assert "head=3" in page.evaluate("location.search")
    page.go_back()
    read(page, "Head 3 of layer 1")


def test_arrow_keys_in_a_text_box_move_the_caret_only(page: Page, address: str) -> None:
    opened(page, address, "?head=4")
    box = page.get_by_label("English", exact=True)
    box.click()
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        box.press(key)
    page.wait_for_timeout(1500)
    read(page, "Head 4 of")


def test_tokens_are_shown_letter_by_letter(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_label("English", exact=True).fill("The <b>cat</b> &lt; cat <script>alert(1)</script>")
    page.get_by_label("English", exact=True).press("Enter")
    page.locator(".xtick text").filter(has_text="&").first.wait_for()
    labels = page.locator(".js-plotly-plot").first.locator(".xtick text").all_text_contents()
    assert "".join(labels) == "The<b>cat</b>&lt;cat<script>alert(1)</script></s>"


def test_a_mask_is_switched_off_and_another_drawn_by_clicks(page: Page, address: str) -> None:
    page.goto(address + "masks?kind=decoder&text=Tom+loves+Mary.")
    page.locator(".js-plotly-plot").nth(2).wait_for()
    page.get_by_text("look-ahead", exact=True).first.click()
    page.get_by_text("out of its depth").wait_for()
    page.get_by_role("radio", name="draw").click()
    line = page.get_by_label("Blocked cells, row:columns")
    line.wait_for()
    page.locator(".js-plotly-plot").nth(3).wait_for()
    for query, key, text in ((1, 2, "2:3"), (-1, 0, "*:1 2:3"), (1, 2, "*:1")):
        settle(page)
        page.mouse.click(*point_at(page, query, key))
        page.wait_for_function("([box, text]) => box.value === text", arg=[line.element_handle(), text])
    assert "blocked=%2A%3A1" in page.evaluate("location.search")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, address: str, width: int, height: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address + "?text=The+little+girls+are+very+happy.")
    page.locator(".js-plotly-plot").nth(1).wait_for(timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for plot in page.locator(".js-plotly-plot").all():
        box = plot.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 1
    context.close()
