"""The whole app in a browser, as a reader meets it: started, opened, typed into, changed."""

import random
import statistics
from itertools import product
from time import perf_counter
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

from bench.browser import chromium, fresh_page, streamlit
from bench.timing import Result, p95

SENTENCES = 20
OPENINGS = 5
MASKS = 8
SERVER, READY = "serve.py", "/readyz"
DRAWN = "() => probe.draws.length > 0 && probe.draws.at(-1).maps"
# ms from the first key or click after `probe.acts` was emptied until other maps than before are painted, and,
# where there is a translation, until that is another one too.
ANSWERED = """async ([maps, said]) => {
    const text = () => probe.find('.translation')?.textContent;
    const drawn = () => probe.draws.find((draw) => draw.maps && draw.maps !== maps);
    let seen = said === null ? 0 : null;
    await probe.when(() => {
        if (seen === null && text() && text() !== said) seen = performance.now();
        return seen !== null && drawn();
    });
    return Math.max(drawn().at, seen) - probe.acts[0];
}"""
NOW = """() => {
    const maps = probe.draws.at(-1).maps;
    probe.acts.length = probe.draws.length = 0;
    return [maps, probe.find('.translation')?.textContent ?? null];
}"""
ADJECTIVES = ("old", "young", "tall", "happy")
PEOPLE = ("man", "woman", "teacher", "doctor", "student")
SIGHTS = ("dog", "cat", "bird", "horse", "car")
PLACES = ("house", "station", "river", "school")


def sentences(count: int) -> list[str]:
    """Sentences of 12 words, none twice and in no order, so that no cache holds them."""
    every = [
        f"The {adjective} {person} often sees a {sight} near the {place} every morning."
        for adjective, person, sight, place in product(ADJECTIVES, PEOPLE, SIGHTS, PLACES)
    ]
    return random.Random(0).sample(every, count)


def started(browser: Browser, count: int = 3) -> list[Result]:
    """What `make run` starts, until the first picture in a browser that was waiting."""
    times = []
    for _start in range(count):
        start = perf_counter()
        with streamlit(SERVER) as server, fresh_page(browser) as page:
            page.goto(server)
            page.wait_for_function(DRAWN)
            times.append(perf_counter() - start)
    what = "from `make run` on installed dependencies to the first picture"
    return [Result("app", what, statistics.median(times), "s", 10, note=f"median of {count}")]


def opened(browser: Browser, server: str, count: int = OPENINGS) -> list[Result]:
    """A link until its picture: the server warm, the browser's cache empty."""
    times = []
    for _opening in range(count + 1):
        with fresh_page(browser) as page:
            page.goto(server)
            page.wait_for_function(DRAWN)
            times.append(page.evaluate("() => probe.draws.find((draw) => draw.maps).at"))
    note = f"median of {count}"
    return [
        Result(
            "app",
            "first picture from a link, server warm",
            statistics.median(times[1:]),
            "ms",
            1500,
            note=note,
        )
    ]


def typed(browser: Browser, server: str, count: int = SENTENCES) -> list[Result]:
    """Enter in the text box until the translation and the maps of another sentence are there."""
    times = []
    with fresh_page(browser) as page:
        page.goto(server)
        page.wait_for_function(DRAWN)
        box = page.get_by_label("English", exact=True)
        for text in sentences(count + 2):
            settled(page)
            box.fill(text)
            before = page.evaluate(NOW)
            box.press("Enter")
            times.append(page.evaluate(ANSWERED, before))
    note = f"{count} sentences"
    what = "a typed sentence of 12 words to translation and all maps on screen"
    return [
        Result("app", f"{what}: median", statistics.median(times[2:]), "ms", 500, note=note),
        Result("app", f"{what}: 95 of 100", p95(times[2:]), "ms"),
    ]


def masked(browser: Browser, server: str, count: int = MASKS) -> list[Result]:
    """The look-ahead mask switched off, for a sentence and a change never seen before."""
    times = []
    for number in range(count + 1):
        who = PEOPLE[number % len(PEOPLE)]
        text = (
            f"The old {who} who lives next door often talks about the weather and the price of {number} car."
        )
        with fresh_page(browser) as page:
            page.goto(f"{server}/masks?{urlencode({'kind': 'decoder', 'text': text})}")
            page.wait_for_function(DRAWN)
            settled(page)
            maps, _said = page.evaluate(NOW)
            page.evaluate("""() => document.querySelector('input[aria-label="look-ahead"]').click()""")
            times.append(page.evaluate(ANSWERED, [maps, None]))
    note = f"about 20 pieces, median of {count}"
    return [
        Result(
            "app", "a mask switched off: click to picture", statistics.median(times[1:]), "ms", 500, note=note
        )
    ]


def settled(page: Page) -> None:
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(700)


def measure(quick: bool = False, path: str | None = None) -> list[Result]:
    """All of it."""
    with chromium(path) as browser:
        results = started(browser, 1 if quick else 3)
        with streamlit(SERVER, READY) as server:
            results += opened(browser, server, 2 if quick else OPENINGS)
            results += typed(browser, server, 5 if quick else SENTENCES)
            results += masked(browser, server, 2 if quick else MASKS)
    return results
