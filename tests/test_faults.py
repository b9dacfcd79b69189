"""What goes wrong around the app: damaged models, full disks, taken ports, odd machines, cut lines, an end.

Each is said in a plain sentence, pages that need no model go on, and nothing half done is left.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, sync_playwright
from safetensors.numpy import load_file, save_file
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from bench.reader import Reader
from model import checkpoint, doors, reader
from model.checkpoint import CHECKSUMS, CONFIG, TOKENIZER, WEIGHTS, CheckpointError
from tests.conftest import BROWSERS, FLAGS, ROOT, free_port, served
from tests.test_browser import heard, opened, place, stage
from tests.test_serve import awaited
from viz import cache
from viz.warmup import Warmup

USUAL, OTHER = "en-fr", "rnn"
SAID = "The trained model cannot be read on this server."

# --- damaged models ---------------------------------------------------------------------------------------


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The shipped models, copied to where they can be damaged, and an app that has loaded none."""
    folder = tmp_path / "models"
    for name in (USUAL, OTHER):
        shutil.copytree(
            ROOT / "assets" / "models" / name, folder / name, ignore=shutil.ignore_patterns("snap*")
        )
    for where in (cache, reader, doors):
        monkeypatch.setattr(where, "MODELS", folder)
    monkeypatch.setattr(cache, "warmup", Warmup(cache.warm))
    monkeypatch.setattr(cache, "_store", cache.Store(10**8, 1e9))
    forget()
    yield folder
    forget()


def forget() -> None:
    cache._loaded.cache_clear()
    for kept in (cache.config, cache.curves):
        getattr(kept, "cache_clear", lambda: None)()
    for data in (cache.surveyed, cache.alignment, cache.search, cache.snapshot):
        data.clear()


def cut(share: float) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[: int(share * len(content))])

    return damage


def flipped(seed: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        lot = np.random.default_rng(seed)
        name = (WEIGHTS, WEIGHTS, TOKENIZER, CONFIG)[seed % 4]
        content = bytearray((folder / name).read_bytes())
        content[lot.integers(len(content))] ^= 1 << int(lot.integers(8))
        (folder / name).write_bytes(content)

    return damage


def gone(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def emptied(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(b"")


def sealed(damage: Callable[[Path], None]) -> Callable[[Path], None]:
    """The damage came before the checksums, which then fit it."""

    def both(folder: Path) -> None:
        damage(folder)
        checkpoint.seal(folder)

    return both


def resized(folder: Path) -> None:
    """A config of another model's sizes."""
    sizes = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(sizes | {"d_model": 2 * sizes["d_model"]}))


def reshaped(folder: Path) -> None:
    """One matrix with a row less."""
    tensors = load_file(folder / WEIGHTS)
    name = max(tensors, key=lambda each: tensors[each].size)
    save_file(tensors | {name: tensors[name][:-1].copy()}, folder / WEIGHTS)


def endless(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    name = sorted(tensors)[0]
    tensors[name].flat[0] = np.inf
    save_file(tensors, folder / WEIGHTS)


def other_tokenizer(folder: Path) -> None:
    """A tokenizer of another size: some pieces would be read as others, some not at all."""
    whole = json.loads((folder / TOKENIZER).read_text())
    last = max(whole["model"]["vocab"], key=whole["model"]["vocab"].__getitem__)
    del whole["model"]["vocab"][last]
    whole["model"]["merges"] = [pair for pair in whole["model"]["merges"] if "".join(pair) != last]
    (folder / TOKENIZER).write_text(json.dumps(whole))


def no_tokenizer(folder: Path) -> None:
    (folder / TOKENIZER).write_text("{}")


DAMAGE: dict[str, Callable[[Path], None]] = {
    **{f"{name} is gone": gone(name) for name in (WEIGHTS, CONFIG, TOKENIZER, CHECKSUMS)},
    **{f"{name} is empty": emptied(name) for name in (WEIGHTS, CONFIG, TOKENIZER, CHECKSUMS)},
    **{f"weights cut at {share}": cut(share) for share in (1e-7, 1e-5, 0.001, 0.25, 0.5, 0.999999)},
    **{f"weights cut at {at}, under their own checksum": sealed(cut(at)) for at in (0, 1e-5, 0.5, 0.99999)},
    "another tokenizer": other_tokenizer,
    "a tokenizer of another size, under its own checksum": sealed(other_tokenizer),
    "no tokenizer in the file, under its own checksum": sealed(no_tokenizer),
    "a config of other sizes, under its own checksum": sealed(resized),
    "a matrix of another shape, under its own checksum": sealed(reshaped),
    "a weight without end, under its own checksum": sealed(endless),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("name", [USUAL, OTHER])
def test_a_damaged_model_is_refused_and_named(
    models: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(models / name)
    with pytest.raises(CheckpointError, match=name):
        checkpoint.load(models / name)


@pytest.mark.parametrize("seed", range(20))
def test_one_flipped_bit_is_refused(models: Path, seed: int) -> None:
    flipped(seed)(models / USUAL)
    with pytest.raises(CheckpointError, match="SHA-256"):
        checkpoint.load(models / USUAL)


def page(address: str, **params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at._page_hash = calc_hash(address)
    for name, value in params.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception, (address, params)
    return at


def said(at: AppTest) -> str:
    return "\n".join(part.value for part in (*at.info, *at.warning, *at.markdown)).replace("\\", "")


FEW = ["weights.safetensors is gone", "config.json is gone", "config.json is empty", "weights cut at 0.5",
       "weights cut at 0.5, under their own checksum", "a weight without end, under its own checksum",
       "a tokenizer of another size, under its own checksum"]  # fmt: skip


@pytest.mark.parametrize("damage", FEW)
def test_without_the_usual_model_the_server_is_not_ready_and_pages_that_need_none_go_on(
    models: Path, damage: str
) -> None:
    DAMAGE[damage](models / USUAL)
    reason = cache.warm()
    assert reason.startswith("the model did not load: ")
    assert USUAL in reason
    assert str(models) not in reason
    assert SAID in said(page("explore"))
    assert "Attention is not explanation" in said(page("about"))
    for address in ("why", "models"):
        at = page(address)
        assert len(at.markdown) + len(at.get("bidi_component")) > 0, address


@pytest.mark.parametrize("damage", FEW)
def test_without_another_model_only_that_one_is_not_ready(models: Path, damage: str) -> None:
    DAMAGE[damage](models / OTHER)
    assert cache.warm() == ""
    found = said(page("explore", model=OTHER))
    told = f'asked for model "{OTHER}"' if damage.startswith("config.json is") else SAID
    assert told in found
    usual = page("explore", still="true")
    assert not usual.info
    assert len(usual.get("plotly_chart")) == 2


@pytest.mark.parametrize("beside", ["heads.json", "alignment.json", "history.csv", "README.md"])
@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\0", b"{}", b"[[1", None])
def test_what_only_lies_beside_a_model_is_missed_and_breaks_no_page(
    models: Path, beside: str, damage: bytes | None
) -> None:
    file = models / USUAL / beside
    file.unlink() if damage is None else file.write_bytes(damage)
    for address, params in (("heads", {"heads_tab": "rules"}), ("heads", {"heads_tab": "align"}),
                            ("training", {"train_tab": "curves"}), ("about", {})):  # fmt: skip
        page(address, **params)


# --- disks ------------------------------------------------------------------------------------------------


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write says EFBIG, as a full disk says ENOSPC


@pytest.mark.parametrize("form", ["svg", "png", "html", "csv", "npz"])
def test_a_disk_that_fills_up_leaves_no_half_file(tmp_path: Path, form: str) -> None:
    out = tmp_path / f"picture.{form}"
    command = [sys.executable, "-m", "viz.export", "I am a student.", "--out", str(out)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, preexec_fn=limited, env=environment, check=False
    )
    assert ran.returncode == 1, ran.stderr
    assert "no room left" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert [*tmp_path.iterdir()] == []
    out.write_bytes(b"what was there before")
    subprocess.run(command, cwd=ROOT, capture_output=True, preexec_fn=limited, env=environment, check=False)
    assert out.read_bytes() == b"what was there before"


# --- machines ---------------------------------------------------------------------------------------------


def started(port: int, **environment: str | None) -> "subprocess.Popen[str]":
    """The server with some variables set, and those that are None left out."""
    options = [f"--server.port={port}", "--server.headless=true", "--server.address=127.0.0.1"]
    kept = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    return subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "serve.py", *options],
        cwd=ROOT, env=kept, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_a_port_that_is_taken_is_said_and_ends_the_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = started(port)
        out, _none = server.communicate(timeout=60)
    assert server.returncode != 0
    assert str(port) in out
    assert "in use" in out or "not available" in out
    assert "Traceback" not in out


ODD: dict[str, dict[str, str | None]] = {
    "no home": {"HOME": None},
    "a home that cannot be written to": {"HOME": "/proc"},
    "a home that is not there": {"HOME": "/nowhere/at/all"},
    "a C locale": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("environment", ODD.values(), ids=ODD)
def test_the_server_gets_ready_on_an_odd_machine_and_ends_when_it_is_told(
    environment: dict[str, str | None],
) -> None:
    port = free_port()
    server = started(port, **environment)
    try:
        url = f"http://127.0.0.1:{port}"
        awaited(f"{url}/readyz", lambda found: found == (200, "ready\n"))

        async def visit() -> Reader:
            reader_ = Reader(url, query={"text": "Été: l'âme, <b>où</b> 猫?"})
            await reader_.open()
            await reader_.close()
            return reader_

        visited = asyncio.run(visit())
        assert visited.last.exceptions == 0
        assert visited.last.translation
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_an_end_under_load_is_in_time_and_without_an_error() -> None:
    port = free_port()
    server = started(port, HEADLIGHT_DRAIN="1")
    url = f"http://127.0.0.1:{port}"
    try:
        awaited(f"{url}/readyz", lambda found: found == (200, "ready\n"))
        ended = threading.Event()

        async def load() -> None:
            readers = [Reader(url) for _reader in range(4)]
            for each in readers:
                await each.open()

            async def types(each: Reader, number: int) -> None:
                turn = 0
                while not ended.is_set():
                    turn += 1
                    try:
                        async with asyncio.timeout(2):
                            await each.act(text=f"Tom has {number} cats and {turn} dogs.")
                    except Exception:
                        return  # the server has gone

            await asyncio.gather(*(types(each, number) for number, each in enumerate(readers)))

        class_ = threading.Thread(target=lambda: asyncio.run(load()), daemon=True)
        class_.start()
        time.sleep(4)
        start = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert awaited(f"{url}/readyz", lambda found: found[0] != 200)[0] in (0, 503)
        out, _none = server.communicate(timeout=15)
        ended.set()
        assert time.monotonic() - start < 15
        assert server.returncode in (0, -signal.SIGTERM), out
        assert "Traceback" not in out, out
    finally:
        server.kill()


# --- lines ------------------------------------------------------------------------------------------------


class Line:
    """A plain relay in front of a server, which can be cut: bytes then go neither way."""

    def __init__(self, port: int) -> None:
        self.to, self.cut = port, threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                near, _address = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                while self.cut.is_set():
                    time.sleep(0.05)
                other.sendall(data)
        except OSError:
            pass
        finally:
            one.close()
            other.close()

    def close(self) -> None:
        self._listening.close()


def cut_for(seconds: float, browser: Browser, address: str) -> None:
    """Step on the stage with the line cut: the screen shows it, and the server hears of it afterwards."""
    line = Line(int(address.rstrip("/").rpartition(":")[2]))
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        opened(page, f"http://127.0.0.1:{line.port}/", "?kind=encoder&layer=1&head=1&text=I+am+a+student.")
        line.cut.set()
        stage(page).focus()
        for key in ("ArrowRight", "ArrowUp"):
            page.keyboard.press(key)
        page.wait_for_timeout(1000 * seconds)
        assert (place(page)["layer"], place(page)["head"]) == (2, 2)
        line.cut.clear()
        page.locator('[data-test-connection-state="CONNECTED"]').wait_for()
        heard(page)
        assert (place(page)["layer"], place(page)["head"]) == (2, 2)
        page.keyboard.press("ArrowRight")
        heard(page)
        assert (place(page)["layer"], place(page)["head"]) == (2, 3)
        assert "head=3" in page.url
        assert page.get_by_role("radiogroup", name="Head").get_by_role("radio", name="3").is_checked()
        assert page.get_by_label("English", exact=True).input_value() == "I am a student."
    finally:
        context.close()
        line.close()


def test_a_line_that_was_cut_for_five_seconds_loses_nothing(browser: Browser, address: str) -> None:
    cut_for(5, browser, address)


def main() -> None:
    """Cut the line for longer than a test may take."""
    parser = argparse.ArgumentParser(prog="python -m tests.test_faults", description=main.__doc__)
    parser.add_argument("--seconds", type=float, nargs="+", default=[60, 600])
    asked = parser.parse_args()
    port = free_port()
    with served(port), sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)))
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for seconds in asked.seconds:
            cut_for(seconds, browser, f"http://127.0.0.1:{port}/")
            print(f"cut for {seconds:.0f} s: view, sentence and address stand, and steps go on", flush=True)


if __name__ == "__main__":
    main()
