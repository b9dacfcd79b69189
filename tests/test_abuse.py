import asyncio
import contextlib
import csv
import io
import json
import re
import socket
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from unittest.mock import patch
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Page
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from bench.reader import Reader
from deploy import audit, lock
from model import files
from model.trace import Trace
from model.translator import Translator
from tests.conftest import ROOT, assert_same, free_port
from tests.fuzz_files import drawn
from tests.test_architecture import imported
from tests.test_faults import started
from tests.test_models_page import every_tab
from tests.test_serve import awaited
from viz import cache, export, svg, view
from viz.pages import offers, pages
from viz.text import examples

T = TypeVar("T")
STREAM = Subprotocol("streamlit")
SCRIPT = "<script>alert(1)</script>"
HOSTILE = f"{SCRIPT} [x](javascript:alert(1)) $a$ `b` :red[c]"
NAMES = (
    *(SCRIPT, "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>"),
    *(
        '"onmouseover="alert(1)',
        "'-alert(1)-'",
        "<!--<script>",
        "--><b>",
        "]]><b>",
        "&lt;b&gt;",
        "&#60;b&#62;",
    ),
    *(
        "javascript:alert(1)",
        "{{constructor}}",
        "${alert(1)}",
        "</title><b>",
        "</style><b>",
        "<a href=//x>y</a>",
    ),
    *("=1+1", "@SUM(A1)", "+1", "-1", "=cmd|' /C calc'!A0", "＝1", "\t=1", " =1", "=HYPERLINK(1)"),
)

# --- markup and formulas ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("address", "params"), [*every_tab()], ids=lambda part: str(part))
def test_no_page_reads_a_readers_text_as_markup(address: str, params: dict[str, str]) -> None:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at._page_hash = calc_hash(address)
    for name, value in {"text": HOSTILE, "target": f"le chat {SCRIPT}", **params}.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    for element in (*at.markdown, *at.caption, *at.info, *at.warning, *at.error):
        assert not getattr(element, "allow_html", False)
        # An escape stands in front of whatever markdown would read as more than text.
        assert not re.search(r"(?<!\\)<script|(?<!\\)\]\(javascript|(?<!\\)\$a|(?<!\\):red\[", element.value)


@pytest.mark.parametrize("value", ["1e999", "-inf", "9" * 5000, "nan"])
@pytest.mark.parametrize("name", ["row", "column", "faint", "head", "layer"])
def test_a_number_without_end_in_the_address_is_told_and_the_usual_one_shown(name: str, value: str) -> None:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at.query_params[name] = value
    at.run()
    assert not at.exception
    assert f"asked for {name}" in at.warning[0].value
    assert at.number_input(key="row").value == examples()[0].row
    at.number_input(key="row").set_value(2).run()
    assert not at.warning


NUMBERED = ("masks", "positions", "decode", "heads", "training", "why", "head")


@pytest.mark.parametrize(
    ("address", "params"), [each for each in every_tab() if each[0] in NUMBERED], ids=lambda part: str(part)
)
def test_no_numbers_of_a_page_break_on_one_without_end(address: str, params: dict[str, str]) -> None:
    def opened(more: dict[str, str]) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        at._page_hash = calc_hash(address)
        for name, value in (params | more).items():
            at.query_params[name] = value
        at.run()
        assert not at.exception, more
        return at

    at = opened({"text": "I am a student."})
    own = {one.key for one in (*at.number_input, *at.slider)} - {"row", "column", "faint"}
    if own:
        opened({str(key): "1e999" for key in own})


def test_no_page_in_a_browser_runs_what_was_typed(page: Page, address: str) -> None:
    for where in ("explore", "head", "masks", "decode", "heads"):
        assert where in pages()
        page.goto(f"{address}{where}?text={quote(HOSTILE)}&target={quote('chat ' + SCRIPT)}")
        page.locator('[data-test-script-state="notRunning"]').wait_for()
        page.locator('[data-test-connection-state="CONNECTED"]').wait_for()
        page.wait_for_timeout(300)
    assert page.evaluate("document.title")  # the fixture fails at any dialog, error or foreign request


@pytest.mark.parametrize("name", NAMES)
def test_no_piece_breaks_out_of_a_file(name: str) -> None:
    trace = drawn(np.random.default_rng(0), ("encoder",), source=(name.strip() or "x", "b", "</s>"))
    shot = svg.Shot(trace, "encoder", 0, 0)
    drawing = export.content(shot, "svg").decode()
    page = export.content(shot, "html").decode()
    for text, scripts in ((drawing, 0), (page, 2)):
        assert len(re.findall("<script", text, re.IGNORECASE)) == scripts
        assert not re.search(r"<(img|a|iframe)[\s/>]", text)
        assert not re.search(r"<[^>]*\son\w+\s*=", text.partition("<script")[0])
    cells = [*csv.reader(io.StringIO(export.content(shot, "csv").decode("utf-8-sig")))]
    for line in cells[1:]:
        for cell in (line[4], line[7]):
            assert cell.lstrip(" \t")[0] not in "=+-@＝＋－＠"
            assert {cell, cell[1:]} & {*trace.source}


# --- names ------------------------------------------------------------------------------------------------


def traversals() -> list[str]:
    """Five hundred ways out of a folder, and names that are none."""
    steps = (
        "../",
        "..\\",
        "..%2f",
        "%2e%2e/",
        "..%252f",
        "..%c0%af",
        "....//",
        "/",
        "file:///",
        "\\\\host\\",
    )
    aims = (
        "etc/passwd",
        "app.py",
        ".streamlit/config.toml",
        "assets/models/en-fr/config.json",
        "en-fr",
        "proc/self/environ",
    )
    found = [step * depth + aim for step in steps for depth in (1, 2, 5, 8) for aim in aims]
    ends = (
        "\0",
        "%00",
        "/.",
        "/..",
        "#",
        "?",
        ";x",
        " ",
        "\n",
        "/",
        "\\",
        ".npz",
        "|ls",
        "`id`",
        "$(id)",
        "*",
        "~",
    )
    found += [f"en-fr{end}" for end in ends] + [f"{end}en-fr" for end in ends]
    found += [f"file-{'0' * 30}{end}" for end in ends] + [
        f"file-../{'0' * 27}",
        "file-" + "G" * 30,
        "FILE-" + "0" * 30,
    ]
    found += [
        "en-fr/../rnn",
        "./en-fr",
        "EN-FR",
        "en_fr",
        "",
        ".",
        "..",
        "con",
        "cheater",
        "x" * 4096,
        "ｅｎ-ｆｒ",
        "en‑fr",
    ]
    letters = ("%", "..", "/", "\\", "\0", "a", "en-fr", "~", ":", "\u2215", "\uff0e\uff0e", "\u202e")
    found += [one + two + three for one in letters for two in letters for three in ("/en-fr", "/../en-fr")]
    return list(dict.fromkeys(found))[:500]


def test_no_name_leads_out_of_the_models_that_are_offered() -> None:
    corpus = traversals()
    assert len(corpus) == 500
    names = [offer.name for offer in cache.models()]
    offered = offers(cache.sizes(), cache.models())
    for name in corpus:
        with patch.object(view.st, "query_params", {"model": name}):
            assert view.chosen_model(names) == cache.MODEL
        (said,) = view.judge({"model": name}, offered)
        assert "asked for model" in said


def test_no_name_of_a_file_is_a_path() -> None:
    trace = drawn(np.random.default_rng(0))
    content = files.write(trace, ".npz")
    for name in traversals():
        with contextlib.suppress(files.FileError):
            read = files.read(f"{name}.npz", content)
            assert str(ROOT) not in f"{read.text} {read.source}"
        assert re.fullmatch(r"headlight-[a-z0-9-]*\.csv", export.name("x" + name, name, "csv"))


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Any]]:
    port = free_port()
    process = started(port)
    url = f"http://127.0.0.1:{port}"
    awaited(f"{url}/readyz", lambda found: found == (200, "ready\n"))
    yield url, process
    process.kill()
    process.communicate()


def fetched(url: str, path: str, **headers: str) -> tuple[int, str]:
    """The raw path, which no client library has tidied up."""
    host, port = url.removeprefix("http://").split(":")
    head = {"Host": f"{host}:{port}", "Connection": "close", **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall("\r\n".join(lines).encode("latin-1", "replace"))
        said = b""
        while part := line.recv(65536):
            said += part
    return int(said.split(b" ", 2)[1]), said.decode("utf-8", "replace")


def test_no_path_of_the_server_leads_to_a_file_of_the_machine(server: tuple[str, Any]) -> None:
    url, _process = server
    paths = [re.sub(r"[\s\0]", "", quote(name, safe="/.%\\;?#~:")) for name in traversals()[::4]]
    paths = [f"/{path}" for path in paths] + [f"/media/{path}" for path in paths[::4]]
    paths += [f"/_stcore/bidi-components/x/{path}" for path in paths[::4]] + ["/app/static/../app.py"]
    secrets = ("root:x:", "from functools import", "fileWatcherType", '"n_layers"', "PATH=", str(ROOT))
    for path in paths:
        said = fetched(url, path)[1]
        assert not [secret for secret in (*secrets, "Traceback") if secret in said], path


# --- other pages, other hosts -----------------------------------------------------------------------------


def run(work: Coroutine[Any, Any, T]) -> T:
    """Beside the loop that a browser's fixture keeps in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def joined(url: str, origin: str | None, host: str | None = None) -> int:
    """What the websocket answers to a page from elsewhere: 101, or the status of a refusal."""
    name, _colon, port = url.removeprefix("http://").partition(":")
    try:
        async with connect(
            f"ws://{host or name}:{port}/_stcore/stream",
            origin=Origin(origin) if origin else None,
            subprotocols=[STREAM],
            host=name,  # where it goes, whatever the address calls it
            port=int(port),
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def test_a_page_from_elsewhere_gets_no_socket(server: tuple[str, Any]) -> None:
    url, _process = server
    assert run(joined(url, url)) == 101
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "https://localhost.evil.example",
    ):
        assert run(joined(url, origin)) == 403, origin


def test_a_page_from_elsewhere_puts_no_file(server: tuple[str, Any]) -> None:
    url, _process = server
    put = urllib.request.Request(f"{url}/_stcore/upload_file/a/b", data=b"x", method="PUT")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(put, timeout=10)
    assert refused.value.code in (400, 403)
    assert str(ROOT) not in refused.value.read().decode()


def test_where_hosts_are_named_another_name_is_refused() -> None:
    port = free_port()
    process = started(port, STREAMLIT_SERVER_ALLOWED_HOSTS="127.0.0.1")
    try:
        url = f"http://127.0.0.1:{port}"
        awaited(f"{url}/_stcore/health", lambda found: found[0] == 200)
        assert fetched(url, "/")[0] == 200
        assert run(joined(url, url)) == 101
        # The empty shell of a page is anybody's; what is typed and shown goes through the socket alone.
        assert run(joined(url, "http://rebound.example", "rebound.example")) == 403
    finally:
        process.kill()
        process.communicate()


async def crowd(url: str, count: int) -> tuple[int, float]:
    """How many sockets one client gets, and what a new reader then waits for her first page."""
    opened = []
    for _turn in range(count):
        opened.append(await connect(url.replace("http", "ws") + "/_stcore/stream", subprotocols=[STREAM]))
    reader = Reader(url)
    try:
        seconds = await reader.open()
        assert reader.last.translation
    finally:
        await reader.close()
        for each in opened:
            each.transport.abort()
    return len(opened), seconds


def test_five_hundred_sockets_of_one_client_keep_no_reader_out(server: tuple[str, Any]) -> None:
    """Nor are they refused: that is for the proxy, which knows how many a class has (deploy/README.md)."""
    count, seconds = run(crowd(server[0], 500))
    assert count == 500
    assert seconds < 20


# --- what one reader hears of another ---------------------------------------------------------------------


def test_what_a_reader_types_is_in_nobody_elses_page_in_no_log_and_in_no_metric() -> None:
    port = free_port()
    process = started(port)
    url = f"http://127.0.0.1:{port}"
    secret, number = "Zanzibarschnitzel", "4711081547"
    try:
        awaited(f"{url}/readyz", lambda found: found == (200, "ready\n"))

        async def visits() -> Reader:
            one, other = Reader(url), Reader(url)
            await one.open()
            await other.open()
            await one.act(text=f"I am {secret} {number}.")
            await one.act(text=f"{secret} " * 80)  # too long: said, and not logged
            wrong = Reader(url, query={"text": secret, "head": secret, "model": f"../{secret}"})
            await wrong.open()
            await other.act(text="I am a student.")
            for each in (one, wrong, other):
                await each.close()
            return other

        other = run(visits())
        shown = repr(other.last) + repr(other._kept)
        metrics = fetched(url, "/_stcore/metrics")[1]
    finally:
        process.terminate()
        out, _none = process.communicate(timeout=20)
    for where in (shown, metrics, out):
        assert secret not in where
        assert number not in where


def test_two_hundred_requests_to_two_models_at_once_are_answered_each_by_its_own() -> None:
    asked = [
        (name, f"Tom has {number} dogs.") for number in range(100) for name in (cache.MODEL, "rnn-attention")
    ]
    alone = {request: cache.door(request[0]).trace(request[1]) for request in asked[:40]}
    with patch.object(cache, "_store", cache.Store(2**24, 1e9)):  # too small for all: some are made twice
        start = threading.Barrier(8)

        def work(part: int) -> list[tuple[tuple[str, str], Trace]]:
            start.wait(30)
            order = asked[part::8] if part % 2 else asked[part::8][::-1]
            return [(request, cache.trace(*request)) for request in order]

        with ThreadPoolExecutor(8) as pool:
            found = dict(answer for part in pool.map(work, range(8)) for answer in part)
    assert len(found) == 200
    for request, trace in found.items():
        assert trace.text == request[1]
        assert trace.kinds == tuple(cache.config(request[0]).kinds)
    for request, trace in alone.items():
        again = found[request]
        assert again.translation == trace.translation
        for kind in trace.kinds:
            np.testing.assert_array_equal(again.weights(kind), trace.weights(kind))
        if request[0] == cache.MODEL:
            assert_same(again, trace)


def test_no_request_leaves_the_weights_or_a_flag_other_than_they_were() -> None:
    door = cache.door()
    assert isinstance(door, Translator)
    before = {name: tensor.clone() for name, tensor in door.model.state_dict().items()}
    for number in range(10):
        cache.trace(cache.MODEL, f"It is {number} o'clock.")
    for name, tensor in door.model.state_dict().items():
        assert tensor.equal(before[name]), name
    assert not any(module.training for module in door.model.modules())


def test_no_thread_of_our_own_knows_the_screen() -> None:
    for name in ("viz/line.py", "viz/warmup.py"):
        path = ROOT / name
        assert "Thread(" in path.read_text(encoding="utf-8")
        assert "streamlit" not in {each.partition(".")[0] for each in imported(path)}


# --- settings, packages -----------------------------------------------------------------------------------

SETTINGS = {  # what a server in front of a class must not have otherwise, all in .streamlit/config.toml
    "browser.gatherUsageStats": False,  # no telemetry
    "client.showErrorDetails": "none",  # no traceback and no path on a page
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "server.fileWatcherType": "none",
    "server.maxUploadSize": 20,
    "browser.serverAddress": "localhost",  # unset, an outside host is asked for it
}
SAFE = {"server.enableCORS": True, "server.enableXsrfProtection": True}  # Streamlit's own, which stay on


def test_the_settings_of_production_stand_in_one_file() -> None:
    written = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    for name, value in SETTINGS.items():
        section, option = name.split(".")
        assert written[section][option] == value, name
    import streamlit as st

    for name, value in SAFE.items():
        section, option = name.split(".")
        assert written.get(section, {}).get(option, value) == value
        assert st.get_option(name) == value


def pinned() -> dict[str, str]:
    """Every package that a requirements file pins, torch left out."""
    found = {}
    for path in ROOT.glob("requirements*.txt"):
        for name, version in re.findall(
            r"^([\w.-]+)==([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            found[lock.name(name)] = version
    assert found.pop("torch")
    return found


def test_every_pinned_package_is_locked_with_a_hash() -> None:
    text = lock.LOCK.read_text(encoding="utf-8")
    entries = lock.blocks(text)
    locked = {lock.name(block): block for block in entries}
    for name, version in pinned().items():
        assert locked[name].startswith(f"{name}=={version}"), name
    for block in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block
        assert not lock.APART.fullmatch(lock.name(block))
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash)", text, re.MULTILINE)  # no index, no links


def test_an_audit_says_clean_only_where_it_was_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    def database(faults: dict[str, list[str]], known: bool = True) -> audit.Ask:
        def ask(pins: Any) -> str:
            told = {**faults, audit.CANARY: ["CVE-0"] if known else []}
            said = [
                {"name": pin.partition("==")[0], "version": pin.partition("==")[2],
                 "vulns": [{"id": one} for one in told.get(pin, [])]}
                for pin in pins
            ]  # fmt: skip
            return json.dumps({"dependencies": said})

        return ask

    def away(_pins: Any) -> str:
        raise audit.UnauditedError("no route to host")

    assert audit.audit(["a==1", "b-c==2"], database({})) == 0
    assert audit.audit(["a==1", "b==2"], database({"b==2": ["CVE-1"]})) == 1
    assert "b==2: CVE-1" in capsys.readouterr().out
    for ask in (
        away,
        database({}, known=False),
        lambda _pins: "<html>",
        lambda _pins: '{"dependencies": []}',
    ):
        assert audit.audit(["a==1"], ask) == 2
        said = capsys.readouterr().out
        assert said.startswith("NOT AUDITED")
        assert "clean" not in said
    assert len(audit.pins()) > len(pinned())


def test_coverage_names_tests_that_there_are() -> None:
    table = (ROOT / "tests" / "COVERAGE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]+\d+) \| (.+?) \|", table, re.MULTILINE)
    assert len({row for row, _said in rows}) == len(rows) >= 60
    for row, said in rows:
        named = re.findall(r"`(\w+\.py)::(\w+)`", said)
        assert named or said.startswith("no test: "), row
        for file, name in named:
            assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), (row, file, name)


@pytest.mark.parametrize("name", ["x.npz", "x.json", "x.safetensors", "../x.pt"])
def test_a_refused_file_names_no_folder_of_the_server(name: str) -> None:
    with pytest.raises(files.FileError) as refused:
        files.read(name, b"PK")
    assert "/" not in str(refused.value).replace(name, "")
