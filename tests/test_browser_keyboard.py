"""By keys alone: every part of the app is reached, seen to have the focus, worked, and left again."""

from playwright.sync_api import Page

from tests.browsers import wait
from tests.test_browser import SENTENCE, opened, place, read, stated
from tests.test_models_browser import drawn
from viz.text import examples

# Where the focus is, through open shadow roots; and how that place and what is around it are drawn, settled.
LOOK = """() => {
    for (const animation of document.getAnimations()) try { animation.finish(); } catch {}
    let node = document.activeElement;
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
    const drawn = node => ['', '::before', '::after'].map(part => {
        const style = getComputedStyle(node, part || null);
        return [style.outlineStyle === 'none' ? '' : style.outline, style.boxShadow, style.borderColor,
            style.borderBottomColor, style.backgroundColor, style.color, style.fill, style.stroke].join();
    }).join();
    const last = window.headlightLast;
    const differs = (each, at) => each.isConnected && drawn(each) !== last.drawn[at];
    const lit = last ? last.nodes.some(differs) : true;  // of the one that had the focus before
    const nodes = [];
    const up = at => at.parentElement ?? at.getRootNode().host;
    for (let at = node; at && nodes.length < 4; at = up(at)) nodes.push(at);
    if (node instanceof SVGElement) nodes.push(...node.children);
    window.headlightLast = {nodes, drawn: nodes.map(drawn)};
    const box = node.getBoundingClientRect();
    const copy = node.cloneNode(true);
    for (const icon of copy.querySelectorAll('[data-testid=stIconMaterial], noscript, script')) icon.remove();
    const label = node.getAttribute('aria-label') || node.labels?.[0]?.textContent;
    const name = node.dataset?.testid === 'stMain' ? 'main' : label || copy.textContent;
    return {
        name: name.trim().replace(/\\s+/g, ' '), tag: node.tagName, role: node.getAttribute('role'), lit,
        classes: node.getAttribute('class') ?? '',
        inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
        start: node === document.body || node === document.documentElement,
    };
}"""


def focus(page: Page) -> dict[str, object]:
    found: dict[str, object] = page.evaluate(LOOK)
    return found


def matches(found: dict[str, object], name: str) -> bool:
    return str(found["name"]).startswith(name) or name in str(found["classes"]).split()


def tab_to(page: Page, name: str, key: str = "Tab", most: int = 90) -> None:
    """Press Tab until the focus is on what is so named (or is of this class)."""
    passed = []
    for _press in range(most):
        page.keyboard.press(key)
        found = focus(page)
        if matches(found, name):
            return
        passed.append(str(found["name"])[:20])
    raise AssertionError(f"Tab does not lead to {name!r}, but to {passed}")


def restart(page: Page) -> None:
    """The focus back to the top of the document, as after loading: a walk does not begin in the middle."""
    page.evaluate(
        "document.activeElement?.blur?.(); window.headlightLast = null; getSelection().removeAllRanges()"
    )


def test_tab_passes_everything_in_order_and_the_focus_is_seen_everywhere(page: Page, address: str) -> None:
    opened(page, address)
    walked = [focus(page)]
    while len(walked) < 120:
        page.keyboard.press("Tab")
        walked.append(focus(page))
        if walked[-1]["start"]:
            break
    assert walked[-1]["start"], "the focus never leaves the page again"
    names = [str(one["name"]) or str(one["classes"]) for one in walked[1:-1]]
    unseen = [name for name, after in zip(names, walked[2:], strict=True) if not after["lit"]]
    assert unseen == []
    assert [name for name, one in zip(names, walked[1:-1], strict=True) if not one["inside"]] == []
    order = [
        "Explore",
        "About",
        "English",
        "Model: en-fr",
        "Examples",
        "Find a head",
        "Start again",
        "Copy link",
    ]
    order += ["encoder", "One head", "More"]
    at = -1
    for name in order:
        at = next(i for i, found in enumerate(names) if i > at and found.startswith(name))
    assert any("sheet" in str(one["classes"]) for one in walked)
    assert any("masked" in name for name in names), "the map of the model"


def test_a_sentence_is_typed_its_maps_stepped_and_another_page_opened(page: Page, address: str) -> None:
    opened(page, address)
    tab_to(page, "English")
    page.keyboard.press("Control+a")
    page.keyboard.type(SENTENCE)
    page.keyboard.press("Enter")
    drawn(page, SENTENCE.split()[1])

    tab_to(page, "sheet")
    before = place(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    after = place(page)
    assert (after["head"], after["layer"]) == (int(str(before["head"])) - 1, int(str(before["layer"])) - 1)
    assert after["row"] == int(str(before["row"])) + 1
    page.keyboard.press("Tab")
    assert not matches(focus(page), "sheet")  # no trap: neither forward
    page.keyboard.press("Shift+Tab")
    assert matches(focus(page), "sheet")
    page.keyboard.press("Shift+Tab")
    assert not matches(focus(page), "sheet")  # nor back
    wait(page)

    tab_to(page, "encoder", key="Shift+Tab")  # the three are one stop, arrows go through them
    page.keyboard.press("ArrowRight")
    assert matches(focus(page), "decoder")
    page.keyboard.press("Enter")
    stated(page, "Decoder self-attention")
    read(page, f"Head {after['head']} of layer {after['layer']}")

    tab_to(page, "Copy link", key="Shift+Tab")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("Enter")
    page.get_by_text("Copied", exact=True).wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    assert "kind=decoder" in link

    tab_to(page, "Masks", key="Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_text("look-ahead", exact=True).wait_for()
    wait(page)
    assert "/masks" in page.url
    assert "kind=decoder" in page.url


def test_a_model_is_chosen_and_a_word_hidden_from_it(page: Page, address: str) -> None:
    opened(page, address)
    tab_to(page, "Model: en-fr")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="bert", exact=True).wait_for()
    tab_to(page, "bert")
    page.keyboard.press("Enter")
    first = examples("bert")[0]
    page.get_by_label("English, any piece can be hidden").wait_for()
    drawn(page, first.text.split()[0])
    holes = page.locator(".translation .hole").count()
    restart(page)
    tab_to(page, "English, any")
    tab_to(page, "piece")
    page.keyboard.press("Enter")
    page.locator(".translation .hole").nth(holes).wait_for()
    wait(page)
    assert "gaps=" in page.url


def test_more_opens_and_a_french_sentence_is_forced(page: Page, address: str) -> None:
    opened(page, address)
    tab_to(page, "More")
    page.keyboard.press("Enter")
    page.get_by_role("textbox", name="A French sentence of your own").wait_for()
    tab_to(page, "A French sentence")
    page.keyboard.type("Elle est noire.")
    page.keyboard.press("Enter")
    drawn(page, "Elle")
    page.wait_for_function("location.search.includes('target=')")
    page.locator(".translation").filter(has_text="est").wait_for()
