"""The app as a server: `streamlit run serve.py`.

/readyz answers 200 once the warm-up has succeeded, else 503 and why. Asked to end (SIGTERM), it answers
503 first, so that a proxy sends nobody new, and ends when `HEADLIGHT_DRAIN` seconds have passed.
"""

import asyncio
import os
import signal
import threading
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from viz.warmup import warmup

DRAIN = float(os.environ.get("HEADLIGHT_DRAIN", "0"))
draining = threading.Event()


async def readyz(_request: Request) -> PlainTextResponse:
    """Whether readers may be sent here, in plain text."""
    if draining.is_set():
        return PlainTextResponse("ending\n", 503)
    if warmup.failure:
        return PlainTextResponse(f"{warmup.failure}\n", 503)
    if not warmup.ended:
        return PlainTextResponse("warming up\n", 503)
    return PlainTextResponse("ready\n")


def drain(loop: asyncio.AbstractEventLoop) -> None:
    """Put the draining before whatever ends the server on SIGTERM; a second one ends it at once."""
    end: Any = signal.getsignal(signal.SIGTERM)

    def begin(number: int, frame: FrameType | None) -> None:
        if DRAIN and not draining.is_set():
            loop.call_soon_threadsafe(loop.call_later, DRAIN, end, number, None)
        else:
            end(number, frame)
        draining.set()

    if callable(end) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, begin)


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    warmup.start()
    drain(asyncio.get_running_loop())
    if not st.get_option("server.headless"):  # Streamlit opens a browser for a script, but not for an App
        webbrowser.open(f"http://localhost:{st.get_option('server.port')}")
    yield {}


app = st.App(Path(__file__).parent / "app.py", lifespan=lifespan, routes=[Route("/readyz", readyz)])
