"""Time what a reader waits for: `python -m bench`, with `--browser PATH` from click to picture too."""

import argparse
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

import model
from model.trace import Change, Switch
from viz.figures import Look, attention_map, head_grid, signed_map
from viz.reading import Map
from viz.theme import PALETTES

ROOT = Path(__file__).parent.parent
SENTENCE = "The old man who lives next door often talks about the weather and the price of bread today."
LOOK = Look(PALETTES["light"])
REPEATS = 15


def timed(act: Callable[[], object]) -> float:
    """Median time in ms over `REPEATS` calls, after one to warm up."""
    act()
    times = []
    for _repeat in range(REPEATS):
        start = time.perf_counter()
        act()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def server() -> None:
    """What the server computes: a trace, a step, a change."""
    translator = model.load("en-fr")
    before = translator.trace(SENTENCE)
    off = Change(look_ahead=Switch("all"))
    after = translator.trace(SENTENCE, before.translation, off)
    one, other = Map(before, "decoder", 1, 2), Map(after, "decoder", 1, 2)

    def changed() -> None:
        translator.trace(SENTENCE, before.translation, off)
        translator.trace(SENTENCE, None, off)
        for picture in (one, other):
            attention_map(picture, 1, 1, LOOK).to_json()
        signed_map(one, other.weights - one.weights, 1.0, 1, 1, LOOK).to_json()

    def step() -> None:
        attention_map(one, 1, 1, LOOK).to_json()
        head_grid(one, LOOK.palette).to_json()

    acts: dict[str, Callable[[], object]] = {
        "translate and trace": lambda: translator.trace(SENTENCE),
        "translate alone": lambda: translator.translate(SENTENCE),
        "a step: large and small maps": step,
        "a change: traces and three maps": changed,
    }
    print(
        f"{len(before.source)} English, {len(before.target)} French pieces, {torch.get_num_threads()} threads"
    )
    for name, act in acts.items():
        print(f"{name:32}{timed(act):7.1f} ms")


def browser(path: str) -> None:
    """From a click on the look-ahead switch to the changed picture, in a browser on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--server.port={port}", "--server.headless=true", "--server.address=127.0.0.1"]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        for _attempt in range(120):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.5)
        with sync_playwright() as playwright:
            page = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]).new_page()
            page.goto(f"http://127.0.0.1:{port}/masks?kind=decoder&text={SENTENCE.replace(' ', '+')}")
            page.locator(".js-plotly-plot").nth(2).wait_for(timeout=60_000)
            page.wait_for_timeout(3000)
            fresh, known = _clicks(page)
            print(f"click to picture, first time  {fresh:6.0f} ms")
            print(
                f"click to picture, known change {statistics.median(known):5.0f} ms (median of {len(known)})"
            )
    finally:
        process.terminate()
        process.wait()


def _clicks(page: Page) -> tuple[float, list[float]]:
    """Times in ms from a click until the third map of the page is another one, and drawn."""
    script = """() => new Promise(done => {
        const third = () => document.querySelectorAll('.js-plotly-plot')[2];
        const before = third(), start = performance.now();
        const look = () => {
            const drawn = third() && third() !== before && third().querySelector('.heatmaplayer image');
            if (drawn) done(performance.now() - start);
            else requestAnimationFrame(look);
        };
        document.querySelectorAll('input[type=checkbox]')[2].click();
        look();
    })"""
    times = []
    for _click in range(9):
        times.append(page.evaluate(script))
        page.wait_for_timeout(1500)
    return times[0], times[1:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", metavar="PATH", help="a Chromium, to time what is seen")
    chosen = parser.parse_args()
    server()
    if chosen.browser:
        browser(chosen.browser)
