"""Random walks in a real browser: after each step, Back and Forward the numbers are those of the address.

`python -m tests.test_fuzz_browser --walks 20` walks further than the tests do.
"""

import argparse
import random
import shutil
from functools import cache as remembered
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import model
from model.trace import Trace
from tests.conftest import BROWSERS, FLAGS, free_port, served
from tests.test_browser import asked, heard, opened, place, stage
from viz import cache, view

NAMES = ("en-fr", "rnn-attention", "gpt", "bert")  # those with attention
SENTENCES = ("I am a student.", "The dog sees a cat.", "She is <b>not</b> at school today.")
KEYS = (
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "ArrowDown",
    "Shift+ArrowDown",
    "Shift+ArrowUp",
    "Shift+ArrowRight",
)
GO = """text => {
    const url = new URL(location.href);
    url.searchParams.set('text', text);
    history.pushState({}, '', url);
    window.dispatchEvent(new PopStateEvent('popstate'));
}"""  # as a link of the app does


def walk(page: Page, address: str, number: int, steps: int = 10) -> int:
    """One walk of links, keys, Back and Forward; returns how many pictures were compared."""
    lot, back, forward = random.Random(number), 0, 0
    name = NAMES[number % len(NAMES)]
    query = {"text": lot.choice(SENTENCES), **({"model": name} if name != cache.MODEL else {})}
    opened(page, address, "?" + "&".join(f"{key}={value.replace(' ', '+')}" for key, value in query.items()))
    compared(page)
    for _step in range(steps):
        act = lot.random()
        if act < 0.25 and back:
            page.go_back()
            back, forward = back - 1, forward + 1
        elif act < 0.45 and forward:
            page.go_forward()
            back, forward = back + 1, forward - 1
        elif act < 0.6:
            now = parse_qs(urlsplit(page.url).query).get("text", [""])[0]
            page.evaluate(GO, lot.choice([text for text in SENTENCES if text != now]))
            back, forward = back + 1, 0
        else:
            stage(page).focus()
            for _press in range(lot.randrange(1, 4)):
                page.keyboard.press(lot.choice(KEYS))
        heard(page)
        compared(page)
    return steps + 1


def compared(page: Page) -> None:
    """The numbers on the stage are those of the model at the place that the address says."""
    shown, here = np.zeros((0, 0)), {}
    for _attempt in range(100):
        params = {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}
        usual = view.controls(view.at_first(cache.sizes(params.get("model", cache.MODEL))))
        here = place(page)
        there = {name: params.get(name, str(usual[name])) for name in ("kind", "layer", "head")}
        shown = numbers(page, here)
        weights = traced(params).weights(there["kind"])[int(there["layer"]) - 1, int(there["head"]) - 1]  # type: ignore[arg-type]
        if {name: str(here[name]) for name in there} == there and shown.shape == weights.shape:
            np.testing.assert_allclose(shown, weights, atol=2e-5)  # 16 bits of a long sentence
            return
        page.wait_for_timeout(100)
    raise AssertionError((page.url, here, shown.shape))


@remembered
def door(name: str) -> Any:
    return model.load(name)


def traced(params: dict[str, str]) -> Trace:
    """What the model itself says at an address."""
    name = params.get("model", cache.MODEL)
    first = view.opening(cache.sizes(name))
    text = params.get("text", first.text)
    if name != "bert":
        return door(name).trace(text)
    gaps = view.parse_gaps(params.get("gaps", first.gaps))
    pieces = len(door(name).trace(text).source) - 1
    return door(name).trace(text, [gap for gap in gaps if gap < pieces])


def numbers(page: Page, here: dict[str, object]) -> np.ndarray:
    """What the stage holds of the map that it shows, (Q, K)."""
    found = asked(
        page,
        f"""(() => {{
            const kind = stage.maps?.kinds['{here["kind"]}'];
            if (!kind) return [0, 0, []];
            const layer = {here["layer"]} - 1, head = {here["head"]} - 1;
            const weights = stage.maps.weights({{set: 0, kind: '{here["kind"]}', layer, head}});
            return [kind.queries.length, kind.keys.length, [...weights]];
        }})()""",
    )
    queries, keys, flat = found  # type: ignore[misc]
    return np.array(flat, np.float64).reshape(queries, keys)


@pytest.mark.parametrize("number", range(2))
def test_a_random_walk_shows_what_its_addresses_say(page: Page, address: str, number: int) -> None:
    assert walk(page, address, number) == 11


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--walks", type=int, default=20)
    asked_for = parser.parse_args()
    port, compared_ = free_port(), 0
    path = next(filter(None, map(shutil.which, BROWSERS)))
    with served(port), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for number in range(asked_for.walks):
            compared_ += _walked(browser, f"http://127.0.0.1:{port}/", number)
            print(f"walk {number}: {compared_} pictures so far, all as their addresses say", flush=True)


def _walked(browser: Browser, address: str, number: int) -> int:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    try:
        return walk(page, address, number)
    finally:
        context.close()


if __name__ == "__main__":
    main()
