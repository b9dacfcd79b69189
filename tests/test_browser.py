"""The real app in a real browser: type, step on the stage, read a weight, follow a link, go back."""

import re

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page

import model
from model.trace import Change, Kind, Switch, Trace
from tests.conftest import free_port, served
from viz.reading import Map, aloud, facts
from viz.text import examples

SENTENCE = "The dog sees a cat."
FIRST = examples()[0]


def opened(page: Page, address: str, query: str = "") -> Page:
    page.goto(address + query)
    ready(page)
    return page


def ready(page: Page) -> None:
    """Wait until the script has run and the stage has drawn."""
    page.locator(".stage[aria-busy=false] .aloud").filter(has_text=re.compile(".")).wait_for()
    page.locator('[data-test-script-state="notRunning"]').wait_for()


def read(page: Page, text: str) -> None:
    """Wait until the sentence above the map begins like this."""
    page.locator(".aloud").filter(has_text=re.compile("^" + re.escape(text))).first.wait_for()


def stated(page: Page, text: str) -> None:
    """Wait until a line under the map begins like this."""
    page.locator(".facts p").filter(has_text=re.compile("^" + re.escape(text))).first.wait_for()


def type_in(page: Page, text: str) -> None:
    box = page.get_by_label("English", exact=True)
    box.fill(text)
    box.press("Enter")
    page.wait_for_function(
        "piece => document.querySelector('.stApp') && window.headlight && [...headlight.maps.values()].some("
        "maps => maps.kinds.encoder.queries.includes(piece))",
        arg=text.split()[1],
    )
    ready(page)


def stage(page: Page) -> Locator:
    return page.locator(".sheet")


def asked(page: Page, what: str) -> object:
    """Something that the stage knows of itself."""
    return stage(page).evaluate(
        f"sheet => {{ const stage = sheet.getRootNode().querySelector('.root').stage; return {what}; }}"
    )


def place(page: Page) -> dict[str, object]:
    found = asked(page, "stage.outside()")
    assert isinstance(found, dict)
    return found


def heard(page: Page) -> None:
    """Wait until Python was told of every step, and answered."""
    for _attempt in range(100):
        page.wait_for_timeout(100)
        if asked(page, "!stage.timer && !stage.told.length"):
            break
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(200)


def point_at(page: Page, query: int, key: int, item: int = 0) -> tuple[float, float]:
    """Where the cell (query, key) of a map lies on the screen."""
    x, y = asked(  # type: ignore[misc]
        page,
        f"""(() => {{
            const {{box, window, across, tall}} = stage.layout.items[{item}];
            const {{left, top}} = sheet.getBoundingClientRect();
            const x = ({key} - window.column + 0.5) * across, y = ({query} - window.row + 0.5) * tall;
            return [left + box.x + x, top + box.y + y];
        }})()""",
    )
    return x, y


def search(page: Page) -> str:
    """The address's parameters in order; Streamlit keeps the order in which they came to it."""
    return "&".join(sorted(page.evaluate("location.search")[1:].split("&")))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return model.load("en-fr").trace(SENTENCE)


@pytest.fixture
def told(page: Page) -> list[int]:
    """The sizes of what the browser sends to the server, as it is sent."""
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(len(data))))
    return sent


def test_type_step_read_follow_and_go_back(page: Page, address: str, trace: Trace) -> None:
    opened(page, address)
    type_in(page, SENTENCE)
    page.locator("svg.map .kind[data-kind=encoder]").click()
    stated(page, "Encoder self-attention")

    page.mouse.click(5, 600)  # nothing has the focus but the page: the frame's own buttons hear the keys
    read(page, f"Head {FIRST.head} of layer {FIRST.layer}")
    page.keyboard.press("ArrowDown")
    read(page, f"Head {FIRST.head} of layer {FIRST.layer - 1}")
    heard(page)
    stage(page).focus()
    page.keyboard.press("ArrowUp")
    read(page, f"Head {FIRST.head} of layer {FIRST.layer}")
    page.keyboard.press("ArrowRight" if FIRST.head < 8 else "ArrowLeft")
    head = FIRST.head + 1 if FIRST.head < 8 else FIRST.head - 1
    read(page, f"Head {head} of layer {FIRST.layer}")

    weights = trace.weights("encoder")[FIRST.layer - 1, head - 1, 1]
    key = int(weights.argmax())
    page.mouse.move(*point_at(page, 1, key))
    page.locator(".tip").filter(has_text=f"{weights[key]:.4f}").wait_for()
    page.mouse.click(*point_at(page, 1, key))
    read(page, f'Head {head} of layer {FIRST.layer}, working on "dog", takes')
    heard(page)
    before = page.evaluate("location.href")

    page.get_by_role("button", name="Examples").click()
    example = examples()[1]
    page.get_by_role("link", name=example.text).click()
    page.locator(".translation").filter(has_text=example.french.split()[0]).wait_for()
    read(page, f"Head {example.head} of layer {example.layer}")
    page.go_back()
    read(page, f'Head {head} of layer {FIRST.layer}, working on "dog", takes')
    assert page.evaluate("location.href") == before


def test_what_the_stage_says_of_a_map_is_what_python_says(page: Page, address: str, trace: Trace) -> None:
    opened(page, address, f"?text={SENTENCE.replace(' ', '+')}&kind=decoder&layer=2&head=1&row=3&column=2")
    picture = Map(trace, "decoder", 1, 0)
    assert page.locator(".aloud").inner_text() == aloud(picture, 2, 1)
    assert re.sub(r"e-0?", "e-", facts(picture)) in page.locator(".facts").inner_text()


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_table_twin_holds_every_number_of_the_map(
    page: Page, address: str, trace: Trace, kind: Kind
) -> None:
    opened(page, address, f"?text={SENTENCE.replace(' ', '+')}&kind={kind}&layer=1&head=3")
    page.locator(".twin summary").click()
    rows = page.locator(".twin tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1).map(cell => cell.textContent))"
    )
    weights, allowed = trace.weights(kind)[0, 2], trace.allowed(kind)[0, 2]
    assert np.shape(rows) == weights.shape
    for (query, key), weight in np.ndenumerate(weights):
        said = rows[query][key]
        if allowed[query, key]:
            assert said == (f"{weight:.4f}" if weight >= 0.0001 else "under 0.0001")
        else:
            assert said == "blocked: this row may not see the future"


def test_no_step_of_a_burst_is_lost_and_the_server_hears_of_it_once(
    page: Page, address: str, told: list[int]
) -> None:
    opened(page, address, "?kind=cross&layer=1&head=1")
    stage(page).focus()
    entries, quiet = page.evaluate("history.length"), len(told)
    for key in ["ArrowRight"] * 7 + ["ArrowUp", "ArrowLeft"]:
        page.keyboard.press(key)
    assert (place(page)["layer"], place(page)["head"]) == (2, 7)
    assert len(told) == quiet
    heard(page)
    assert len(told) == quiet + 1
    assert search(page) == "head=7&layer=2"  # what stands at its default is left out
    assert page.get_by_role("radio", name="7", exact=True).get_attribute("aria-checked") == "true"
    assert page.evaluate("history.length") == entries
    assert (place(page)["layer"], place(page)["head"]) == (2, 7)


def test_steps_stand_through_another_page_back_forward_reload_and_elsewhere(
    page: Page, address: str, browser: Browser
) -> None:
    opened(page, address, "?kind=encoder&layer=1&head=1&row=2")
    stage(page).focus()
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    page.get_by_role("link", name="About").click()  # before Python was told
    page.get_by_role("heading", name="Attention is not explanation").wait_for()
    assert search(page) == "head=3&kind=encoder&layer=2&row=3"
    page.go_back()  # leaves the page, and replays no step
    read(page, "Head 3 of layer 2")
    page.go_forward()
    page.get_by_role("heading", name="Attention is not explanation").wait_for()
    page.go_back()
    read(page, "Head 3 of layer 2")
    page.reload()
    read(page, "Head 3 of layer 2")
    other = browser.new_context().new_page()
    other.goto(page.evaluate("location.href"))
    other.set_default_timeout(60_000)
    read(other, page.locator(".aloud").inner_text())
    other.context.close()


def test_a_click_in_the_frame_while_a_step_is_on_its_way_loses_neither(page: Page, address: str) -> None:
    opened(page, address, "?kind=encoder&layer=1&head=7")
    stage(page).focus()
    page.keyboard.press("ArrowUp")
    page.get_by_role("radio", name="5", exact=True).click()
    read(page, "Head 5 of layer 2")
    heard(page)
    assert search(page) == "head=5&kind=encoder&layer=2"
    page.get_by_role("radio", name="decoder").click()
    read(page, "Head 5 of layer 2")
    stated(page, "Decoder self-attention, head 5 of layer 2")


def test_a_step_made_while_the_server_was_gone_is_heard_when_it_is_back(browser: Browser) -> None:
    port, context = free_port(), browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    with served(port) as server:
        opened(page, f"http://127.0.0.1:{port}/", "?kind=encoder&layer=1&head=1")
        server.kill()
        page.wait_for_timeout(1000)
        stage(page).focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
            page.keyboard.press(key)
        read(page, "Head 3 of layer 2")
        page.wait_for_timeout(1000)
    with served(port):
        page.locator('[data-test-connection-state="CONNECTED"]').wait_for()
        heard(page)
        read(page, "Head 3 of layer 2")  # not thrown back
        stage(page).focus()
        page.keyboard.press("ArrowRight")
        page.locator('button[role="radio"][aria-checked="true"]').filter(has_text="4").wait_for()
        read(page, "Head 4 of layer 2")
        assert search(page) == "kind=encoder&layer=2"  # head 4 is where a reader arrives
    context.close()


def test_the_stage_keeps_its_keys_to_itself(page: Page, address: str) -> None:
    opened(page, address)
    stage(page).click(position={"x": 3, "y": 3})  # a click gives it the focus
    page.keyboard.press("c")
    page.keyboard.press("r")
    page.wait_for_timeout(500)
    assert page.get_by_role("dialog").count() == 0
    page.keyboard.press("ArrowRight")
    heard(page)
    assert place(page)["head"] == FIRST.head + 1  # once, not a second time by the frame's button


def test_on_a_phone_a_swipe_steps_and_a_tap_chooses(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    opened(page, address, "?kind=encoder&layer=1&head=2")
    stage(page).scroll_into_view_if_needed()
    box = stage(page).bounding_box()
    assert box is not None
    touch = page.context.new_cdp_session(page)
    at = {"x": box["x"] + 250, "y": box["y"] + 90}
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
    for by in (20, 60, 120):
        points = [{**at, "x": at["x"] - by}]
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    read(page, "Head 3 of layer 1")
    page.touchscreen.tap(*point_at(page, 1, 2))
    heard(page)
    assert (place(page)["row"], place(page)["column"]) == (2, 3)
    context.close()


def test_from_the_overview_a_click_opens_a_head(page: Page, address: str) -> None:
    opened(page, address, "?drawing=all&kind=encoder")
    tile = asked(page, "stage.layout.items[0].tiles.find(tile => tile.layer === 0 && tile.head === 5)")
    assert isinstance(tile, dict)
    stage(page).click(position={"x": tile["x"] + tile["w"] / 2, "y": tile["y"] + tile["h"] / 2})
    read(page, "Head 6 of layer 1")
    heard(page)
    assert place(page)["drawing"] == "map"
    assert search(page) == "head=6&kind=encoder&layer=1"


def test_lines_of_several_heads_say_what_they_hide(page: Page, address: str, trace: Trace) -> None:
    opened(
        page,
        address,
        f"?text={SENTENCE.replace(' ', '+')}&drawing=lines&kind=encoder&layer=2&head=4&also=7&faint=11",
    )
    said = page.locator(".facts").inner_text()
    for head in (4, 7):
        weights = trace.weights("encoder")[1, head - 1]
        share = weights[weights < 0.11].sum() / weights.sum()
        line = f"head {head} of layer 2: Lines under 11 % are not drawn; together they hold {100 * share:.0f}"
        assert line.removesuffix(f"{100 * share:.0f}") in said
        found = re.search(rf"head {head} of layer 2: .* hold ([\d.]+) % of all", said)
        assert found is not None
        assert float(found[1]) == pytest.approx(100 * share, abs=0.5)
    tile = asked(page, "stage.layout.items[1].tiles[0]")
    assert isinstance(tile, dict)
    stage(page).click(position={"x": tile["x"] + 9, "y": tile["y"] + 9})  # laid over the others
    assert {place(page)["head"], *str(place(page)["also"]).split(",")} == {4, "7", "1"}


def test_h_covers_what_is_pointed_at_until_it_is_pressed_again(page: Page, address: str) -> None:
    opened(page, address)
    for part, covered in (
        (stage(page), ".sheet"),
        (page.locator(".aloud"), ".said"),
        (page.locator(".translation .pieces"), ".pieces"),
        (page.locator(".translation .quiet"), ".translation .quiet"),
    ):
        part.hover()
        page.keyboard.press("h")
        page.locator(f"{covered}.covered").wait_for()
        assert page.locator(".covered").count() == (2 if covered in {".sheet", ".said"} else 1)
        page.keyboard.press("h")
        page.locator(f"{covered}:not(.covered)").wait_for()
        assert page.locator(".covered").count() == 0


def test_the_hall_shows_nothing_but_the_picture_in_large_type(page: Page, address: str) -> None:
    opened(page, address)
    stage(page).focus()
    page.keyboard.press("f")
    page.locator("dialog.hall[open]").wait_for()
    map_item = "stage.layout.items[0]"
    assert asked(page, "stage.layout.items.length") == 1
    assert asked(page, f"Math.min({map_item}.rows.size, {map_item}.columns.size)") >= 24  # type: ignore[operator]
    page.keyboard.press("ArrowLeft")
    page.locator(".where").filter(has_text=f"head {FIRST.head - 1} of layer {FIRST.layer}").wait_for()
    heard(page)
    assert "hall=true" in search(page)
    page.keyboard.press("Escape")
    page.locator("dialog.hall[open]").wait_for(state="detached")
    heard(page)
    assert "hall" not in search(page)
    read(page, f"Head {FIRST.head - 1} of layer {FIRST.layer}")


def test_before_after_and_difference_are_those_of_two_traces(page: Page, address: str) -> None:
    opened(
        page,
        address,
        "masks?kind=decoder&look_ahead=false&layer=2&head=3&row=2&column=4&text=Tom+loves+Mary.",
    )
    translator = model.load("en-fr")
    before = translator.trace("Tom loves Mary.")
    after = translator.trace("Tom loves Mary.", before.translation, Change(look_ahead=Switch("all")))
    one, other = (each.weights("decoder")[1, 2] for each in (before, after))
    assert f"{one[1, 3]:.4f} before and {other[1, 3]:.4f} after" in page.locator(".aloud").inner_text()
    page.mouse.move(*point_at(page, 1, 3, 2))
    page.locator(".tip").filter(has_text=f"+{other[1, 3] - one[1, 3]:.4f}").wait_for()
    page.mouse.move(*point_at(page, 1, 3, 0))
    page.locator(".tip").filter(has_text="blocked: this row may not see the future").wait_for()


def test_a_copied_address_opens_the_same_view_elsewhere(page: Page, address: str, browser: Browser) -> None:
    opened(page, address)
    type_in(page, SENTENCE)
    page.get_by_role("radio", name="decoder").click()
    stated(page, "Decoder self-attention")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.locator(".link").get_by_text("Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.evaluate("location.href")
    other = browser.new_context().new_page()
    other.set_default_timeout(60_000)
    other.goto(link)
    read(other, page.locator(".aloud").inner_text())
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


def test_start_again_leaves_nothing_of_what_was_chosen_and_back_returns(page: Page, address: str) -> None:
    opened(page, address, "masks?text=Tom+loves+Mary.&kind=decoder&look_ahead=false&source_pads=7&head=2")
    pads = "stage.maps.kinds.encoder.keys.filter(piece => piece === '<pad>').length"
    assert asked(page, pads) == 7
    page.get_by_role("link", name="Start again").click()
    read(page, f"Head {FIRST.head} of layer {FIRST.layer}")
    page.get_by_text("out of its depth").wait_for(state="detached")
    heard(page)
    assert search(page) == ""
    assert asked(page, pads) == 3
    page.go_back()
    read(page, "Head 2 of layer")
    page.get_by_text("out of its depth").wait_for()
    heard(page)
    assert asked(page, pads) == 7


def test_arrow_keys_in_a_text_box_move_the_caret_only(page: Page, address: str) -> None:
    opened(page, address, "?head=4")
    box = page.get_by_label("English", exact=True)
    box.click()
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        box.press(key)
    page.wait_for_timeout(1500)
    read(page, "Head 4 of")


def test_tokens_are_shown_letter_by_letter(page: Page, address: str) -> None:
    for still in ("", "&still=true"):
        page.goto(
            address + "?text=The+%3Cb%3Ecat%3C/b%3E+%26lt;+cat+%3Cscript%3Ealert(1)%3C/script%3E" + still
        )
        if still:
            page.locator(".xtick text").filter(has_text="&").first.wait_for()
            labels = page.locator(".js-plotly-plot").first.locator(".xtick text").all_text_contents()
        else:
            ready(page)
            page.locator(".twin summary").click()
            labels = page.locator(".twin thead th").all_text_contents()
        assert "".join(labels) == "The<b>cat</b>&lt;cat<script>alert(1)</script></s>"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, address: str, width: int, height: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    for drawing in ("map", "heads", "all", "lines"):
        opened(page, address, f"?text=The+little+girls+are+very+happy.&drawing={drawing}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = stage(page).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 1
        inside = "stage.layout.items.every(item => item.box.x + item.box.w <= sheet.clientWidth + 1)"
        assert asked(page, inside)
    context.close()
