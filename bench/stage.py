"""The stage in a browser, beside bertviz and CircuitsVis on the same tensors.

A step is timed from event.timeStamp of the key to the first task after the animation frame that drew the
new picture. bertviz takes no keys: its step is a change of its layer select, from the dispatch of the event.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

from bench import peers
from bench.browser import chromium, fresh_page, served, streamlit
from bench.timing import Result, p95

STEPS = 24
WARM = 4  # steps before those that count
OPENINGS = 5
FRAME, TWO_FRAMES = 16.7, 33.0  # ms

SHAPE = {12: (12, 12), 64: (12, 12), 256: (3, 8)}  # layers and heads for so many pieces

USUAL, FAINT = 3, 5  # per cent under which lines are not drawn: on the page at first, and what must be fast
CHANGED = f"""async (layer) => {{
    const start = performance.now();
    ({peers.CHANGE_LAYER})(layer);
    return await probe.frame() - start;
}}"""
DRAWN = """() => probe.draws.length > 0 && probe.draws.at(-1).maps"""


def opened(page: Page, server: str, **place: Any) -> float:
    """Open the stage alone. Returns ms from opening the link until its first picture."""
    page.goto(f"{server}/?{urlencode(place)}")
    page.wait_for_function(DRAWN)
    first: float = page.evaluate("() => probe.draws.find((draw) => draw.maps).at")
    return first


def settled(page: Page) -> None:
    """Streamlit is done, and the stage has the keys."""
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(600)
    page.evaluate("() => probe.canvas.parentElement.focus()")


def stepped(page: Page, keys: Sequence[str]) -> list[float]:
    """ms from each key until its picture was painted. Every one must be another picture than before."""
    chance, times = random.Random(0), []
    before = page.evaluate("() => probe.pixels()")
    for key in keys:
        page.wait_for_timeout(60 + 60 * chance.random())  # anywhere between two frames
        drawn = page.evaluate("() => probe.draws.length")
        page.keyboard.press(key)
        page.wait_for_function("(drawn) => probe.draws.length > drawn", arg=drawn)
        times.append(page.evaluate("(drawn) => probe.draws[drawn].at - probe.acts.at(-1)", drawn))
        after = page.evaluate("() => probe.pixels()")
        assert after != before, f"{key} drew the same picture"
        before = after
    return times


def walk(drawing: str, heads: int, layers: int, steps: int) -> list[str]:
    """Keys that never stand still: head by head through one layer after the other, or layer by layer."""
    if drawing == "heads":
        there = ["ArrowUp"] * (layers - 1) + ["ArrowDown"] * (layers - 1)
    else:
        right, left = ["ArrowRight"] * (heads - 1), ["ArrowLeft"] * (heads - 1)
        there = [*right, "ArrowUp", *left, "ArrowDown"]
    return (there * steps)[:steps]


def steps(browser: Browser, server: str, count: int = STEPS) -> list[Result]:
    """A key until its picture, for each drawing and length."""
    results = []
    wanted = [("map", n) for n in SHAPE] + [("heads", n) for n in SHAPE] + [("all", 12), ("all", 64)]
    names = {"map": "one head", "heads": "the heads of a layer", "all": "all layers and heads"}
    for drawing, pieces in wanted:
        layers, heads = SHAPE[pieces]
        with fresh_page(browser) as page:
            opened(page, server, layers=layers, heads=heads, pieces=pieces, drawing=drawing)
            settled(page)
            times = stepped(page, walk(drawing, heads, layers, WARM + count))[WARM:]
        what = f"a step, {names[drawing]}, {layers} x {heads} x {pieces}"
        results.append(Result("stage", f"{what}: median", statistics.median(times), "ms", FRAME))
        results.append(Result("stage", f"{what}: 95 of 100", p95(times), "ms", TWO_FRAMES))
    return results


def growth(browser: Browser, server: str, count: int = 12) -> list[Result]:
    """Steps against the length of the input."""
    from bench.computing import SIZES, slopes

    medians = []
    for pieces in SIZES:
        with fresh_page(browser) as page:
            opened(page, server, layers=1, heads=8, pieces=pieces)
            settled(page)
            times = stepped(page, ((["ArrowRight"] * 7 + ["ArrowLeft"] * 7) * count)[: WARM + count])
            medians.append(statistics.median(times[WARM:]))
    slope, steepest = slopes(SIZES, medians)
    points = ", ".join(f"{pieces}: {value:.1f}" for pieces, value in zip(SIZES, medians, strict=True))
    return [
        Result("growth", f"a step: slope from {SIZES[0]} to {SIZES[-1]} pieces", slope, "", note=points),
        Result("growth", "a step: steepest doubling", steepest, "", 2.6, note="ms"),
    ]


def lines(browser: Browser, server: str, pages: str, count: int = STEPS) -> list[Result]:
    """A step to another layer, lines of 12 x 12 x 64: ours and those of bertviz' head_view, in turns.

    bertviz draws all heads of a layer over each other, so here all twelve are laid over each other, too.
    """
    layers, heads, pieces = 12, 12, 64
    place = {"layers": layers, "heads": heads, "pieces": pieces, "drawing": "lines"}
    place["also"] = ",".join(map(str, range(2, heads + 1)))
    keys = walk("heads", heads, layers, WARM + count)
    times: dict[int | str, list[float]] = {0: [], USUAL: [], FAINT: [], "bertviz": []}
    with ExitStack() as pages_open:
        ours = {faint: pages_open.enter_context(fresh_page(browser)) for faint in (0, USUAL, FAINT)}
        theirs = pages_open.enter_context(fresh_page(browser))
        for faint, page in ours.items():
            opened(page, server, **place, faint=faint)
            settled(page)
        theirs.goto(f"{pages}/head_view")
        theirs.wait_for_function("() => document.querySelectorAll('#vis line').length > 0")
        for turn, key in enumerate(keys, start=1):
            for faint, page in ours.items():
                times[faint] += stepped(page, [key])
            times["bertviz"].append(theirs.evaluate(CHANGED, turn % layers))
            theirs.wait_for_timeout(1500)  # its picture is still being put together, and would slow ours
    medians = {name: statistics.median(found[WARM:]) for name, found in times.items()}

    weights = peers.random_maps(layers, heads, pieces)

    def faster(faint: int, least: float | None) -> Result:
        what = f"lines 12 x 12 x 64, {f'from {faint} %' if faint else 'every line'}: faster than head_view"
        hidden = weights[weights < faint / 100].sum() / weights.sum()
        note = f"{medians[faint]:.0f} ms; {hidden:.0%} of the weight is under the threshold"
        return Result("stage", what, medians["bertviz"] / medians[faint], "×", least, True, note)

    return [
        Result("stage", "bertviz head_view 12 x 12 x 64, a step", medians["bertviz"], "ms"),
        faster(FAINT, 25),
        faster(USUAL, None),
        faster(0, 4),
    ]


def busy(page: Page, acts: Sequence[Callable[[], object]]) -> float:
    """Processor time in ms of the page's main thread, an act; scripts, layout and painting together.

    Unlike the time that passes, this hardly depends on what else the machine does.
    """
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    before = spent()
    for act in acts:
        act()
        page.wait_for_timeout(150)
    return 1000 * (spent() - before) / len(acts)


def openings(browser: Browser, server: str, pages: str, count: int = OPENINGS) -> list[Result]:
    """From the link of the overview 12 x 12 x 64 until it is painted, with an empty cache; and its bytes."""
    from viz.stage import Maps, pack

    layers, heads, pieces = 12, 12, 64
    ready = f"""() => probe.when(() => document.querySelectorAll('#vis line, svg line').length
        >= {layers * heads * pieces})"""

    def ours() -> float:
        with fresh_page(browser) as page:
            return opened(page, server, layers=layers, heads=heads, pieces=pieces, drawing="all")

    def theirs() -> float:
        with fresh_page(browser) as page:
            page.goto(f"{pages}/model_view", wait_until="commit")
            found: float = page.evaluate(ready)
            return found

    ours()  # the server computes its payload once
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(count):
        times["ours"].append(ours())
        if turn < max(3, count // 2):
            times["theirs"].append(theirs())
    mine, other = (statistics.median(each) for each in times.values())
    weights, names = peers.random_maps(layers, heads, pieces), tuple(peers.pieces_of(pieces))
    codes = (weights < 0).astype("uint8")
    sizes = {
        bits: len(pack([{"encoder": Maps(weights, codes, names, names)}], None, bits).bytes)
        for bits in (8, 16)
    }
    whole = len(peers.model_view(weights).encode())
    return [
        Result("stage", "overview 12 x 12 x 64, link to picture", mine, "ms", 1500),
        Result("stage", "bertviz model_view 12 x 12 x 64, link to picture", other, "ms"),
        Result("stage", "overview: faster than model_view", other / mine, "×", 5, True),
        *(
            Result(
                "stage",
                f"bertviz' bytes over ours, {bits} bits, no mask",
                whole / size,
                "×",
                25 if bits == 8 else 15,
                True,
                f"{whole / 1e6:.2f} MB and {size / 1e6:.2f} MB",
            )
            for bits, size in sizes.items()
        ),
    ]


def circuitsvis(browser: Browser, pages: str) -> list[Result]:
    """Stated only: it has no layers and its steps are clicks, so nothing of ours is quite the same."""
    with fresh_page(browser) as page:
        page.goto(f"{pages}/circuitsvis", wait_until="commit")
        ready = "() => probe.when(() => document.querySelectorAll('canvas').length >= 12)"
        first: float = page.evaluate(ready)
    return [Result("stage", "CircuitsVis, 12 heads of one layer x 64, link to picture", first, "ms")]


def measure(quick: bool = False, path: str | None = None) -> list[Result]:
    """All of it."""
    weights = peers.random_maps(12, 12, 64)
    pages = {
        "/head_view": peers.head_view(weights),
        "/model_view": peers.model_view(weights),
        "/circuitsvis": peers.heads_of_circuitsvis(weights),
    }
    parts: list[Callable[[Browser, str, str], list[Result]]] = [
        lambda browser, server, _pages: steps(browser, server, 8 if quick else STEPS),
        lambda browser, server, address: lines(browser, server, address, 5 if quick else STEPS),
        lambda browser, server, address: openings(browser, server, address, 2 if quick else OPENINGS),
        lambda browser, _server, address: circuitsvis(browser, address),
        lambda browser, server, _pages: growth(browser, server, 5 if quick else 12),
    ]
    with chromium(path) as browser, streamlit("bench/stage_app.py") as server, served(pages) as address:
        return [result for part in parts for result in part(browser, server, address)]
