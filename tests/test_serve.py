"""The app as a server: ready or not and why, a fair line in front of the model, a bounded store behind."""

import asyncio
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from starlette.requests import Request
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import model
import serve
from bench import classroom
from bench.reader import Reader
from model.trace import NEUTRAL, Change, Switch
from viz import cache
from viz.line import FullError, Line
from viz.warmup import Warmup

ROOT = Path(__file__).parent.parent


# --- the line ---------------------------------------------------------------------------------------------


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A line whose one worker is held, so that who comes next can be seen."""

    def __init__(self, **options: float) -> None:
        self.clock, self.served = Clock(), list[str]()
        self.line = Line(clock=self.clock, cost=self.clock, **options)  # type: ignore[arg-type]
        self._threads: list[threading.Thread] = []

    def hold(self) -> Callable[[], None]:
        """Somebody is being served, until what is returned is called."""
        go, begun = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            go.wait(10)

        self._ask("somebody", work)
        assert begun.wait(10)
        return go.set

    def ask(self, reader: str, cost: float = 0.0) -> None:
        before = len(self.line._waiting)

        def work() -> None:
            self.served.append(reader)
            self.clock.now += cost

        self._ask(reader, work)
        while len(self.line._waiting) == before:
            time.sleep(0.001)

    def spend(self, reader: str, cost: float) -> None:
        """A reader asks for so many seconds of work, and gets them."""

        def work() -> None:
            self.clock.now += cost

        self.line.ask(reader, work)

    def end(self) -> list[str]:
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        return self.served

    def _ask(self, reader: str, work: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=self.line.ask, args=(reader, work)))
        self._threads[-1].start()


def test_who_asks_first_is_served_first() -> None:
    desk = Desk()
    go = desk.hold()
    for reader in "abcd":
        desk.ask(reader)
    go()
    assert desk.end() == [*"abcd"]


def test_who_used_more_lately_lets_the_others_go_first() -> None:
    desk = Desk(burst=100.0)
    go = desk.hold()
    desk.ask("a", cost=3.0)
    go()
    desk.end()
    go = desk.hold()
    for reader in "abc":
        desk.ask(reader)
    go()
    assert desk.end() == [*"a", *"bca"]


def test_who_pastes_over_and_over_gets_a_share_and_no_more_while_others_are_about() -> None:
    desk = Desk(share=0.2, burst=1.0)
    desk.line.ask("other", lambda: None)
    desk.spend("greedy", 3.0)
    desk._ask("greedy", lambda: desk.served.append("greedy"))
    time.sleep(0.3)
    assert desk.served == []  # nobody is before her, and still she waits
    desk.line.ask("other", lambda: desk.served.append("other"))
    assert desk.served == ["other"]
    desk.clock.now += 6.5
    desk.line.ask("other", lambda: None)  # still there
    time.sleep(0.2)
    assert desk.served == ["other"]
    desk.clock.now += 0.6  # 3 + 6.5 + 0.6 seconds forgave two of her three: one is left, the burst
    assert desk.end() == ["other", "greedy"]


def test_a_reader_alone_is_never_held_back() -> None:
    desk = Desk(share=0.01, burst=0.1)
    for _turn in range(5):
        desk.spend("alone", 50.0)
    assert desk.clock.now == 250


def test_a_full_line_says_so_at_once() -> None:
    desk = Desk(most=2)
    go = desk.hold()
    desk.ask("a")
    desk.ask("b")
    with pytest.raises(FullError):
        desk.line.ask("c", lambda: None)
    go()
    assert desk.end() == ["a", "b"]
    assert desk.line.ask("c", lambda: "an answer") == "an answer"


def test_a_failure_comes_back_to_who_asked_and_ends_no_worker() -> None:
    line = Line()

    def fails() -> None:
        raise ValueError("this one")

    for _turn in range(3):
        with pytest.raises(ValueError, match="this one"):
            line.ask("a", fails)
    assert line.ask("a", lambda: 7) == 7


def test_readers_who_left_are_forgotten() -> None:
    desk = Desk()
    for number in range(50):
        desk.line.ask(f"reader {number}", lambda: None)
    desk.clock.now += 60
    desk.line.ask("late", lambda: None)
    assert {*desk.line._readers} == {"late"}


# --- the store --------------------------------------------------------------------------------------------


def test_the_store_is_bounded_by_bytes_and_drops_what_was_longest_not_asked_for() -> None:
    store = cache.Store(most=3000, forget=1e9)
    made: list[str] = []

    def get(name: str) -> None:
        store.get(name, lambda: made.append(name) or np.zeros(1000, np.uint8))

    for name in "abcacdca":
        get(name)
        assert store.size <= 3000
    assert made == [*"abcd"]  # b went for d
    get("b")
    assert made == [*"abcdb"]


def test_what_nobody_asks_for_is_forgotten() -> None:
    clock = Clock()
    store = cache.Store(most=10**9, forget=60, clock=clock)
    store.get("a", lambda: np.zeros(10, np.uint8))
    clock.now = 59
    store.get("b", lambda: np.zeros(10, np.uint8))
    assert store.size == 20
    clock.now = 61
    store.get("b", lambda: pytest.fail("b is there"))
    assert store.size == 10


def test_who_asks_for_what_is_being_made_waits_for_it() -> None:
    store, go, made = cache.Store(10**9, 1e9), threading.Event(), list[int]()

    def make() -> np.ndarray:
        made.append(1)
        go.wait(10)
        return np.zeros(3)

    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(store.get("a", make))) for _reader in range(9)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    go.set()
    for thread in threads:
        thread.join(10)
    assert made == [1]
    assert len(found) == 9
    assert len({*map(id, found)}) == 1


def test_a_failure_is_told_to_all_that_wait_and_not_kept() -> None:
    store = cache.Store(10**9, 1e9)
    with pytest.raises(ZeroDivisionError):
        store.get("a", lambda: 1 / 0)
    assert store.get("a", lambda: 5) == 5


def test_all_readers_share_one_read_only_trace_and_its_key_is_all_that_goes_in() -> None:
    text = "The dog sees a cat."
    first = cache.trace(cache.MODEL, text)
    assert cache.trace(cache.MODEL, text) is first
    off = Change(look_ahead=Switch("all"))
    others = [
        cache.trace(cache.MODEL, "The dog sees a cat!"),
        cache.trace(cache.MODEL, text, first.translation),
        cache.trace(cache.MODEL, text, first.translation, off),
        cache.trace(cache.CHEATER, text),
    ]
    assert len({id(trace) for trace in (first, *others)}) == 5
    assert [trace.change for trace in others] == [NEUTRAL, NEUTRAL, off, NEUTRAL]
    assert [trace.forced for trace in others] == [False, True, True, False]
    with pytest.raises(ValueError, match="read-only"):
        first.log_probs[0] = 0
    assert cache.nbytes(first) > sum(first.weights(kind).nbytes for kind in ("encoder", "decoder", "cross"))


# --- the warm-up ------------------------------------------------------------------------------------------


def answer() -> tuple[int, str]:
    response = asyncio.run(serve.readyz(Request({"type": "http"})))
    return response.status_code, bytes(response.body).decode()


def test_ready_is_said_only_after_a_warm_up_that_succeeded(monkeypatch: pytest.MonkeyPatch) -> None:
    go, ran = threading.Event(), list[int]()

    def work() -> str:
        ran.append(1)
        go.wait(10)
        return ""

    warmup = Warmup(work)
    monkeypatch.setattr(serve, "warmup", warmup)
    assert answer() == (503, "warming up\n")
    warmup.start()
    warmup.start()
    assert answer() == (503, "warming up\n")
    go.set()
    warmup.wait()
    assert answer() == (200, "ready\n")
    assert ran == [1]
    monkeypatch.setattr(serve, "warmup", Warmup(lambda: "no weights"))
    serve.warmup.wait()
    assert answer() == (503, "no weights\n")


def test_a_server_that_ends_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    draining = threading.Event()
    draining.set()
    monkeypatch.setattr(serve, "draining", draining)
    assert answer() == (503, "ending\n")


def test_torch_has_the_threads_that_the_cache_says() -> None:
    code = "import torch; from viz import cache; cache.door(); print(torch.get_num_threads())"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert int(ran.stdout) == cache.THREADS == 1


def test_a_page_that_needs_no_model_does_not_wait_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(cache, "warmup", Warmup(lambda: str(go.wait(30) or "")))
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=20)
    at._page_hash = calc_hash("about")
    at.run()
    go.set()
    assert not at.exception
    assert any("Attention is not explanation" in element.value for element in at.markdown)
    assert at.text_input(key="text").value  # in its frame, which fills when the model is there


def test_streamlit_knows_every_setting() -> None:
    chosen = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    for section, options in chosen.items():
        for name, value in options.items():
            if not isinstance(value, dict):
                assert st.get_option(f"{section}.{name}") == value, f"{section}.{name}"


def test_where_the_line_is_full_the_page_says_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_reader: str, _work: object) -> None:
        raise FullError

    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    monkeypatch.setattr(cache._line, "ask", full)
    at.text_input(key="text").set_value("Nobody has typed this before.").run()
    assert not at.exception
    assert "Very many readers" in at.info[0].value
    monkeypatch.undo()
    at.button(key="retry").click().run()
    assert not at.info
    assert at.text_input(key="text").value == "Nobody has typed this before."


# --- as a process -----------------------------------------------------------------------------------------


def served(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    options = [f"--server.port={port}", "--server.headless=true", "--server.address=127.0.0.1"]
    command = [sys.executable, "-m", "streamlit", "run", "serve.py", *options]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def asked(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def awaited(url: str, wanted: Callable[[tuple[int, str]], bool]) -> tuple[int, str]:
    for _attempt in range(300):
        found = asked(url)
        if wanted(found):
            return found
        time.sleep(0.2)
    raise TimeoutError(found)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The app beside a checkpoint with one bit that fell over."""
    for name in ("app.py", "serve.py", "viz", "model", ".streamlit"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "assets", tmp_path / "assets", ignore=shutil.ignore_patterns("snapshots"))
    weights = tmp_path / "assets" / "models" / "en-fr" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    return tmp_path


def test_damaged_weights_keep_the_server_up_and_say_so(broken: Path, port: int) -> None:
    server = served(broken, port)
    try:
        url = f"http://127.0.0.1:{port}"
        status, said = awaited(f"{url}/readyz", lambda found: "warming" not in found[1] and found[0] > 0)
        assert status == 503
        assert "en-fr: the SHA-256 of weights.safetensors" in said
        assert "/" not in said
        assert asked(f"{url}/_stcore/health") == (200, "ok")

        async def visits() -> tuple[Reader, Reader]:
            first, about = Reader(url), Reader(url, page="about")
            for reader in (first, about):
                await reader.open()
                await reader.close()
            return first, about

        first, about = asyncio.run(visits())
        assert first.last.exceptions == about.last.exceptions == 0
        assert any("trained model cannot be read" in line for line in first.last.said)
        assert any("Attention is not explanation" in line for line in about.last.said)
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    return number


def test_a_small_class_gets_its_translations(port: int) -> None:
    server = served(ROOT, port)
    try:
        url = f"http://127.0.0.1:{port}"
        awaited(f"{url}/readyz", lambda found: found == (200, "ready\n"))
        tally = asyncio.run(classroom.lesson(url, 6, classroom.after(8), "told"))
        assert tally.troubles == []
        assert tally.losses == 0
        assert len(tally.opening) == 6
        assert tally.sentence
        assert tally.steps > 12
        assert max(classroom.memory([server.pid]), default=0) < 1200
    finally:
        server.terminate()
        assert server.wait(20) in (0, -15, 143)


def test_a_class_types_sentences_that_no_cache_holds() -> None:
    chance = classroom.random.Random(0)
    typed = classroom.sentences(chance)
    texts = [next(typed) for _sentence in range(500)]
    assert len({*texts}) > 490
    translator = model.load("en-fr")
    lengths = [len(translator.tokenizer.encode(text)) for text in texts]
    assert 10 <= sum(lengths) / len(lengths) <= 20
    longest = classroom.long_sentences(chance)
    lengths = [len(translator.tokenizer.encode(next(longest))) for _sentence in range(50)]
    assert min(lengths) > 45
    assert max(lengths) < 64
