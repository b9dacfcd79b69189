"""A reader without a browser: Streamlit's own messages over its websocket. It renders nothing."""

import asyncio
import hashlib
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

PATIENCE = 30.0  # seconds after which an answer counts as lost
TEXTS = ("markdown", "text", "alert", "heading")
BROKEN = (OSError, ConnectionClosed, InvalidHandshake, TimeoutError, EOFError)


@dataclass
class Run:
    """What one run of the app sent: its elements by place, and whether it ended as it should."""

    elements: dict[tuple[int, ...], tuple[str, bytes]] = field(default_factory=dict)
    ids: dict[str, tuple[str, str]] = field(default_factory=dict)  # key of a widget: (element, id)
    given: dict[str, WidgetState | None] = field(default_factory=dict)  # controls that the app has set
    said: list[str] = field(default_factory=list)
    translation: str = ""
    exceptions: int = 0
    size: int = 0  # bytes received

    @property
    def view(self) -> str:
        """A digest of all that is on the page: two runs with the same one show the same."""
        digest = hashlib.sha256()
        for place in sorted(self.elements):
            digest.update(repr((place, *self.elements[place])).encode())
        return digest.hexdigest()[:16]


@dataclass
class Reader:
    """One tab: its cookie, its address, what it set. `url` is the server's, such as http://127.0.0.1:8501."""

    url: str
    page: str = ""
    query: dict[str, str] = field(default_factory=dict)
    cookie: str = ""
    session: str = ""
    losses: int = 0  # how often the connection broke
    last: Run = field(default_factory=Run)
    _socket: ClientConnection | None = None
    _states: dict[str, WidgetState] = field(default_factory=dict)
    _keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    _kept: dict[str, tuple[ForwardMsg, int]] = field(
        default_factory=dict
    )  # large messages, as a browser does
    _runs: int = 0
    _hash: str = ""

    async def open(self) -> float:
        """Follow a link: the page itself, the websocket, the first run. Seconds until it has ended."""
        start = time.perf_counter()
        await self._ask("/")
        await self._connect()
        await self._run()
        return time.perf_counter() - start

    async def rest(self, **place: int) -> float:
        """Write a new place into the address, as the stage does when a reader rests; wait for the run.

        To Streamlit that is a Back button: it reads all bound controls from the address again. Seconds.
        """
        self.query |= {key: str(value) for key, value in place.items()}
        return await self._answered(address=True)

    async def act(self, **values: str) -> float:
        """Set controls by key, as a click would, and wait until the run has ended. Seconds."""
        for key, value in values.items():
            element, id_ = self._keys[key]
            state = WidgetState(id=id_)
            if element == "button_group":
                state.string_array_value.data.append(value)
            elif element == "number_input":
                state.int_value = int(value)
            else:
                state.string_value = value
            self._states[key] = state
            self.query[key] = value  # a browser writes bound controls into its address by itself
        return await self._answered()

    async def _answered(self, address: bool = False) -> float:
        """Ask for a run until it has ended: a tab whose connection breaks comes back and asks again."""
        start = time.perf_counter()
        while True:
            try:
                if self._socket is None:
                    await self._connect()
                await self._run(address)
                return time.perf_counter() - start
            except BROKEN:
                self.losses += 1
                self._socket = None
                if time.perf_counter() - start > PATIENCE:
                    raise
                await asyncio.sleep(0.2)

    async def idle(self, seconds: float) -> None:
        """Wait as a tab does: it answers pings, and comes back by itself when the connection breaks."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if self._socket is None:
                try:
                    await self._connect()
                except BROKEN:
                    await asyncio.sleep(min(left, 0.5))
                continue
            with suppress(TimeoutError):
                try:
                    async with asyncio.timeout(left):
                        await self._socket.recv()
                except ConnectionClosed:
                    self.losses += 1
                    self._socket = None

    async def close(self) -> None:
        if self._socket:
            await self._socket.close()
            self._socket = None

    async def _ask(self, path: str) -> None:
        """An ordinary request, which brings the cookie of the proxy."""
        request = urllib.request.Request(self.url + path, headers={"Cookie": self.cookie})

        def ask() -> list[str]:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                answer.read()
                return answer.headers.get_all("Set-Cookie") or []

        for line in await asyncio.to_thread(ask):
            for name, morsel in SimpleCookie(line).items():
                jar = dict(pair.split("=", 1) for pair in self.cookie.split("; ") if pair)
                self.cookie = "; ".join(f"{n}={v}" for n, v in {**jar, name: morsel.value}.items())

    async def _connect(self) -> None:
        if self._hash:  # a tab that comes back asks first whether the server is well
            await self._ask("/_stcore/health")
        parts = urlsplit(self.url)
        protocols = [Subprotocol("streamlit"), Subprotocol("none")]
        protocols += [Subprotocol(self.session)] if self.session else []
        self._socket = await connect(
            f"ws://{parts.netloc}/_stcore/stream",
            subprotocols=protocols,
            origin=None,
            additional_headers={"Cookie": self.cookie},
            max_size=None,
            compression=None,
            proxy=None,
            open_timeout=PATIENCE,
        )

    async def _run(self, address: bool = False) -> None:
        """Ask for a run with all that was set, or that the address says, and read until it has ended."""
        assert self._socket
        message = BackMsg()
        state = message.rerun_script
        state.query_string = urlencode(self.query)
        state.page_name = self.page if not self._hash else ""
        state.page_script_hash = self._hash
        state.is_history_navigation = address
        state.widget_states.widgets.extend(self._states.values())
        self._runs += 1
        self._kept = {name: kept for name, kept in self._kept.items() if kept[1] >= self._runs - 3}
        state.cached_message_hashes.extend(self._kept)
        await self._socket.send(message.SerializeToString())
        run, begun = Run(), False
        async with asyncio.timeout(PATIENCE):
            while True:
                data = await self._socket.recv()
                assert isinstance(data, bytes)
                got = ForwardMsg.FromString(data)
                run.size += len(data)
                match got.WhichOneof("type"):
                    case "new_session":
                        # The run before may have been cut short for this one: only this one counts.
                        run, begun = Run(size=run.size), True
                        self.session = got.new_session.initialize.session_id or self.session
                        self._hash = got.new_session.page_script_hash
                    case "ref_hash":
                        if got.ref_hash in self._kept:
                            kept = ForwardMsg()
                            kept.CopyFrom(self._kept[got.ref_hash][0])
                            kept.metadata.CopyFrom(got.metadata)
                            self._kept[got.ref_hash] = (kept, self._runs)
                            _read(kept, run)
                    case "delta":
                        if got.metadata.cacheable:
                            self._kept[got.hash] = (got, self._runs)
                        _read(got, run)
                    case "script_finished" if begun:
                        break
        self.last = run
        self._keys |= run.ids
        for key, given in run.given.items():
            self._states.pop(key, None)
            if given:
                self._states[key] = given


def _read(message: ForwardMsg, run: Run) -> None:
    place = tuple(message.metadata.delta_path)
    if message.delta.WhichOneof("type") != "new_element":
        return
    element = message.delta.new_element
    kind = element.WhichOneof("type") or ""
    shown: Any = getattr(element, kind) if kind else None
    id_ = getattr(shown, "id", "")
    if isinstance(id_, str) and id_.startswith("$$ID-"):
        key = id_.split("-", 2)[2]
        run.ids[key] = (kind, id_)
        if getattr(shown, "set_value", False):
            run.given[key] = _given(kind, shown)
    run.exceptions += kind == "exception"
    if kind in TEXTS:
        run.said.append(shown.body)
        run.elements[place] = kind, shown.body.encode()
    elif kind == "plotly_chart":
        run.elements[place] = kind, shown.spec.encode()
    elif kind == "bidi_component":
        name = shown.component_name.rpartition("_")[2]
        if name == "translation":
            run.translation = shown.json
        run.elements[place] = name, shown.json.encode() + shown.bytes
    else:
        run.elements.pop(place, None)


def _given(kind: str, shown: Any) -> WidgetState | None:
    """The state of a control to which the app gave a value: the browser's own from then on."""
    state = WidgetState(id=shown.id)
    if kind == "button_group":
        state.string_array_value.data.extend(shown.raw_values)
    elif kind == "text_input":
        state.string_value = shown.value
    elif kind == "number_input":
        state.int_value = int(shown.value)
    else:
        return None
    return state
