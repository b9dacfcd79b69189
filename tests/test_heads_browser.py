"""The page of heads in a real browser: a click on a small map, and on a number."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page

SENTENCE = "text=The+dog+sees+a+cat."


def idle(page: Page) -> None:
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(700)


def asked(page: Page) -> dict[str, str]:
    """What the address holds now."""
    query = parse_qs(urlsplit(page.evaluate("location.href")).query)
    return {name: values[-1] for name, values in query.items()}


def click(page: Page, customdata: list[int]) -> None:
    """Click the marker of the first figure that stands for `customdata`."""
    place = """(wanted) => {
        const plot = document.querySelector('.js-plotly-plot'), box = plot.getBoundingClientRect();
        const {xaxis, yaxis} = plot._fullLayout;
        for (const trace of plot._fullData) {
            const at = Array.from(trace.customdata || [], (each) => Array.from(each).join());
            const index = at.indexOf(wanted.join());
            if (index >= 0) return [box.x + xaxis._offset + xaxis.d2p(trace.x[index]),
                                    box.y + yaxis._offset + yaxis.d2p(trace.y[index])];
        }
    }"""
    for _attempt in range(20):  # a figure that is drawn anew under the pointer does not notice it
        page.mouse.move(5, 600)
        page.mouse.move(*page.evaluate(place, customdata))
        page.wait_for_timeout(300)
        if page.locator(".hovertext").first.is_visible():
            break
    page.mouse.click(*page.evaluate(place, customdata))
    page.wait_for_timeout(500)
    idle(page)


def opened(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 1700})  # the figure is in sight as a whole
    page.goto(address)
    page.locator(".js-plotly-plot").first.wait_for()
    idle(page)


def test_a_click_on_a_small_map_makes_that_head_the_large_one_here_and_in_explore(
    page: Page, address: str
) -> None:
    opened(page, f"{address}heads?{SENTENCE}&kind=encoder&layer=2&head=3")
    click(page, [17])  # in the order of place: layer 3, head 2
    assert asked(page)["head"] == "2"
    page.get_by_text("Head 2 of layer 3, working on").first.wait_for()
    page.get_by_role("link", name="Explore").click()
    page.locator("canvas").first.wait_for()
    idle(page)
    assert asked(page)["head"] == "2"
    assert asked(page)["kind"] == "encoder"


def test_heads_are_removed_and_put_back_by_clicks_and_the_link_holds_them(page: Page, address: str) -> None:
    opened(page, f"{address}heads?{SENTENCE}&heads_tab=remove")
    click(page, [2, 0, 7])
    page.get_by_text("Attention before and after").wait_for()
    click(page, [1, 1, 0])
    assert asked(page)["heads_removed"] == "d2.1 c1.8"
    click(page, [2, 0, 7])
    assert asked(page)["heads_removed"] == "d2.1"
