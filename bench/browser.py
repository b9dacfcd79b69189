"""A browser that tells when something was painted, and servers for it: the app's, and one for plain pages."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

# Runs before the page's own scripts. `probe.draws` holds, for every drawing of a stage, when the first task
# after that animation frame ran: what was drawn has then been handed to the compositor. `probe.frame()`
# resolves at the same point of the next frame. `probe.acts` holds event.timeStamp of every key and click.
PROBE = """
window.probe = {draws: [], acts: []};
{
    const task = (act) => {
        const channel = new MessageChannel();
        channel.port1.onmessage = act;
        channel.port2.postMessage(null);
    };
    const now = (done) => () => done(performance.now());
    probe.frame = () => new Promise((done) => requestAnimationFrame(() => task(now(done))));
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        if (this.canvas.className === 'base') {
            probe.canvas = this.canvas;
            const maps = [...headlight.maps.keys()].length && [...headlight.maps.keys()].at(-1);
            task(() => probe.draws.push({at: performance.now(), maps}));
        }
        return clear.apply(this, box);
    };
    for (const type of ['keydown', 'click']) {
        document.addEventListener(type, (event) => probe.acts.push(event.timeStamp), true);
    }
    probe.find = (selector, root = document) => {  // also inside components
        const inside = (found, node) => found ?? (node.shadowRoot && probe.find(selector, node.shadowRoot));
        return root.querySelector(selector) ?? [...root.querySelectorAll('*')].reduce(inside, null);
    };
    probe.pixels = () => {  // a digest of the picture
        const {width, height} = probe.canvas;
        const image = probe.canvas.getContext('2d').getImageData(0, 0, width, height);
        const words = new Uint32Array(image.data.buffer);
        let sum = 0;
        for (let i = 0; i < words.length; i += 1) sum = (Math.imul(sum, 31) + words[i]) | 0;
        return sum;
    };
    probe.when = (ready) => new Promise((done) => {
        const look = () => (ready() ? task(now(done)) : requestAnimationFrame(look));
        look();
    });
}
"""


def found_browser() -> str | None:
    """A Chromium on this machine."""
    return os.environ.get("HEADLIGHT_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def chromium(path: str | None = None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path or found_browser(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def fresh_page(browser: Browser) -> Iterator[Page]:
    """A page with nothing in its cache, and the probe."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        context.add_init_script(PROBE)
        page = context.new_page()
        page.set_default_timeout(60_000)
        yield page
    finally:
        context.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def streamlit(script: str, ready: str = "/_stcore/health") -> Iterator[str]:
    """A Streamlit server of `script` on a free port, once `ready` answers 200. Yields its address."""
    port = free_port()
    options = [f"--server.port={port}", "--server.headless=true", "--server.address=127.0.0.1"]
    command = [sys.executable, "-m", "streamlit", "run", script, *options]
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(address + ready)
        yield address
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def wait_for(url: str, seconds: float = 90) -> None:
    """Return when `url` answers 200."""
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@contextmanager
def served(pages: Mapping[str, str]) -> Iterator[str]:
    """Pages by their paths, from memory, uncompressed. Yields the address."""
    bodies = {path: page.encode() for path, page in pages.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bodies.get(self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
