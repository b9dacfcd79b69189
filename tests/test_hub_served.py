"""The Hub's own client fetches a model, from a Hub on this machine."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import constants

from model.hub import RefusedError, load, tiny

COMMIT = "c" * 40


@contextmanager
def hub(folder: Path, lies: bool = False) -> Iterator[SimpleNamespace]:
    """A Hub that offers the files of a folder, or says that they are smaller than they are."""
    seen = SimpleNamespace(asked=[], credentials=[], address="")

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path = self.path.partition("?")[0]
            seen.credentials.append(self.headers.get("Authorization"))
            if path.startswith("/api/models/owner/gone"):
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.end_headers()
                return
            if path.startswith("/api/models/owner/model"):
                names = [
                    {"rfilename": each.name, "size": 9 if lies else each.stat().st_size}
                    for each in sorted(folder.iterdir())
                ]
                told = {"id": "owner/model", "modelId": "owner/model", "sha": COMMIT, "siblings": names}
                self.send(json.dumps(told).encode(), body, "application/json")
                return
            file = folder / path.rpartition("/")[2]
            if not path.startswith("/owner/model/resolve/") or not file.is_file():
                self.send_error(404)
                return
            if body:
                seen.asked.append(file.name)
            self.send(file.read_bytes(), body, "application/octet-stream")

        def send(self, data: bytes, body: bool, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    seen.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Points the Hub's client to an address; a token lies about that must not be shown to anybody."""
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)

    def point(address: str) -> None:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        place = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", place)

    return point


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.save("gpt2", tmp_path_factory.mktemp("made") / "model")
    (folder / "modeling.py").write_text("raise SystemExit")
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    return folder


def test_a_model_is_fetched_and_opened_again_when_the_hub_is_gone(
    made: Path, tmp_path: Path, client: Callable[[str], None]
) -> None:
    told: list[tuple[str, float]] = []
    with hub(made) as seen:
        client(seen.address)
        door = load("owner/model", ["owner/model"], tmp_path, lambda step, share: told.append((step, share)))
    assert door.kinds == {"decoder": (3, 2)}
    assert "modeling.py" not in seen.asked
    assert "pytorch_model.bin" not in seen.asked
    assert seen.asked.count("model.safetensors") == 1
    assert {*seen.credentials} == {None}
    shares = [share for _step, share in told]
    assert shares == sorted(shares)
    assert ("download", 0.8) in told
    assert len({share for step, share in told if step == "download"}) > 4
    again = load("owner/model", ["owner/model"], tmp_path)  # where nobody answers any more
    assert again.trace("The cat").target == door.trace("The cat").target


def test_more_than_was_stated_is_not_taken(made: Path, tmp_path: Path, client: Callable[[str], None]) -> None:
    with hub(made, lies=True) as seen:
        client(seen.address)
        with pytest.raises(RefusedError) as caught:
            load("owner/model", ["owner/model"], tmp_path)
    assert caught.value.code == "large"
    assert not [*tmp_path.rglob("*.safetensors")]


def test_a_hub_that_is_not_there_is_said_so(tmp_path: Path, client: Callable[[str], None]) -> None:
    with hub(tmp_path) as seen:
        client(seen.address)
    with pytest.raises(RefusedError) as caught:
        load("owner/model", ["owner/model"], tmp_path)
    assert caught.value.code == "network"
    with hub(tmp_path) as seen:
        client(seen.address)
        with pytest.raises(RefusedError) as caught:
            load("owner/gone", ["owner/gone"], tmp_path)
    assert caught.value.code == "missing"
