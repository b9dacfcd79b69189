"""Every page and tab in a browser: what axe finds in both themes; at every width, what is cut off or covered.

`python -m tests.browsers` prints a line for each look, with its findings, and fails where there is one. The
tests take a few of the same places: tests/test_browser_axe.py and tests/test_browser_widths.py.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import axe_playwright_python
from playwright.sync_api import Error, Page, sync_playwright

from tests.conftest import BROWSERS, FLAGS, free_port, served
from tests.test_models_page import every_tab
from viz.pages import decode, head, models, positions, training, why

MEASURE = Path(__file__).with_name("measure.js")
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
HARM = ("serious", "critical")
THEMES = ("light", "dark")


@dataclass(frozen=True)
class Size:
    """A viewport in CSS pixels."""

    width: int
    height: int


SIZES = {
    "360": Size(360, 740),
    "768": Size(768, 1024),
    "1440": Size(1440, 900),
    "200 %": Size(640, 360),  # of a window of 1280 x 720, zoomed
}


@dataclass(frozen=True)
class Spot:
    """A place of the app: a page, its parameters, and what is opened on it."""

    page: str
    params: Mapping[str, str]
    opened: str = ""  # the name of a button, or the text of a summary

    @property
    def query(self) -> str:
        return ("" if self.page == "explore" else self.page) + (
            "?" + urlencode(self.params) if self.params else ""
        )

    def __str__(self) -> str:
        return "/" + self.query + (f" [{self.opened}]" if self.opened else "")


POPOVERS = ("Model:", "Examples", "Find a head", "More")
# Beside each tab's first sight: what its controls uncover.
INSIDE: list[tuple[str, dict[str, tuple[str, ...]]]] = [
    (
        "explore",
        {"drawing": ("heads", "all", "lines"), "still": ("true",), "values": ("true",), "mean": ("true",)},
    ),
    ("explore", {"kind": ("encoder", "decoder")}),
    ("head", {"head_stage": tuple(map(str, head.OFFERS["head_stage"]))}),
    ("masks", {"look_ahead": ("false",), "source_pads": ("2",)}),
    ("positions", {"pos_picture": positions.OFFERS["pos_picture"]}),
    ("decode", {"dec_how": decode.OFFERS["dec_how"], "dec_words": ("true",)}),
    ("training", {"train_step": training.OFFERS["train_step"][:1]}),
    ("models", {"models_tab": tuple(models.TABS)}),
]


def spots(model: str = "en-fr") -> Iterator[Spot]:
    """Every page and tab with `model`; with the first one, also what is opened from the frame."""
    named = {} if model == "en-fr" else {"model": model}
    tabs = [(page, params) for page, params in every_tab() if page not in ("why", "models")]
    for tab in why.OFFERS["why_tab"]:
        tabs.append(("why", {"why_tab": tab}))
    for page, params in [*tabs, ("models", {})]:
        yield Spot(page, named | params)
    for name in POPOVERS:
        yield Spot("explore", named, name)
    if not named:
        for page, uncovered in INSIDE:
            for key, values in uncovered.items():
                for value in values:
                    yield Spot(page, {key: value})
        for part in why.OFFERS["why_cost"]:
            yield Spot("why", {"why_tab": "cost", "why_cost": part})
        for part in why.OFFERS["why_add"]:
            yield Spot("why", {"why_tab": "add & norm", "why_add": part})
        for part in why.OFFERS["why_history"]:
            yield Spot("why", {"why_tab": "history", "why_history": part})


def wait(page: Page) -> None:
    """Until the script has run, nothing it replaced is left, and the stage, where there is one, has drawn."""
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.wait_for_function(
        """() => !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')
            && [...document.querySelectorAll('*')].every(node =>
                !node.shadowRoot || !node.shadowRoot.querySelector('[aria-busy=true]'))"""
    )
    page.wait_for_timeout(400)
    page.locator('[data-test-script-state="notRunning"]').wait_for()


def go(page: Page, address: str, spot: Spot) -> None:
    page.goto(address + spot.query)
    page.locator(
        '[data-testid="stMainBlockContainer"] h1, .root, [data-testid="stTextInput"]'
    ).first.wait_for()
    wait(page)
    if spot.opened == "More":
        page.locator("summary").filter(has_text="More").first.click()
    elif spot.opened:
        page.locator('[data-testid="stPopover"] button').filter(has_text=spot.opened).click()
    if spot.opened:
        page.wait_for_timeout(600)
        wait(page)


# The name of a control that cannot be used is pale, and may be (WCAG 2.2, 1.4.3, "inactive"). Axe sees
# that of a disabled input, but not of Streamlit's segmented control, whose name is no <label>.
AXE_RUN = """async (harm) => {
    const idle = node => {
        const group = node.closest('[data-testid=stButtonGroup]');
        return group !== null && [...group.querySelectorAll('button')].every(button => button.disabled);
    };
    const found = await axe.run(document, {resultTypes: ['violations'], elementRef: true}), lines = [];
    for (const {id, nodes} of found.violations) for (const node of nodes) {
        if (!harm.includes(node.impact) || (id === 'color-contrast' && idle(node.element))) continue;
        const where = node.target.flat().join(' >> '), why = node.failureSummary.replace(/\\s+/g, ' ');
        lines.push(`${id} (${node.impact}): ${where}: ${node.html.slice(0, 160)}: ${why.slice(0, 240)}`);
    }
    return lines;
}"""


def offences(page: Page) -> list[str]:
    """What axe finds serious or critical on the whole page, open shadow roots included."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    found: list[str] = page.evaluate(AXE_RUN, HARM)
    return found


def faults(page: Page) -> list[str]:
    """What is cut off, lies over other text, scrolls sideways or is too small to read."""
    return page.evaluate(MEASURE.read_text(encoding="utf-8"))


LOOKS = (*THEMES, *SIZES)


def look(page: Page, at: str) -> list[str]:
    """The findings in one theme, or at one size. The page stays as it is, and is drawn anew by itself."""
    size = SIZES.get(at, Size(1280, 900))
    page.emulate_media(color_scheme="dark" if at == "dark" else "light")
    page.set_viewport_size({"width": size.width, "height": size.height})
    page.wait_for_timeout(
        600
    )  # until the page has noticed, and its script runs again where the theme is another
    wait(page)
    return offences(page) if at in THEMES else faults(page)


def sweep(looks: list[str], chosen: list[str], only: list[str], address: str, shots: Path | None) -> int:
    """How many findings there are."""
    path = next(filter(None, map(shutil.which, BROWSERS)))
    total = looked = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(90_000)
        for spot in (spot for name in chosen for spot in spots(name)):
            if not any(part in f"{spot.page} {spot}" for part in only):
                continue
            for at in looks:
                began, found = time.monotonic(), []
                try:
                    if at == looks[0]:
                        page.set_viewport_size({"width": 1280, "height": 900})
                        go(page, address, spot)
                    found = look(page, at)
                except Error as error:
                    found = [f"not looked at: {str(error).splitlines()[0]}"]
                if shots:
                    shots.mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=shots / f"{looked:03d}-{at.replace(' ', '')}.png")
                total, looked = total + len(found), looked + 1
                print(f"{spot} {at}: {len(found)} ({time.monotonic() - began:.1f} s)", flush=True)
                for line in found:
                    print(f"    {line}", flush=True)
        browser.close()
    print(f"{looked} looks, {total} findings")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("looks", nargs="*", metavar="LOOK", help=f"of {', '.join(LOOKS)}; else all of them")
    parser.add_argument("--models", nargs="+", default=["en-fr"], metavar="NAME")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="only places whose address holds one of these"
    )
    parser.add_argument("--at", help="the address of a server that runs; else one is started")
    parser.add_argument("--shots", type=Path, help="a folder for a picture of each place")
    asked = parser.parse_args()
    if asked.at:
        sys.exit(bool(sweep(asked.looks or [*LOOKS], asked.models, asked.only, asked.at, asked.shots)))
    port = free_port()
    with served(port):
        address = f"http://127.0.0.1:{port}/"
        sys.exit(bool(sweep(asked.looks or [*LOOKS], asked.models, asked.only, address, asked.shots)))


if __name__ == "__main__":
    main()
