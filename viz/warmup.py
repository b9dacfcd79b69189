"""Once, beside the server: make ready what no reader should wait for. Imports nothing heavy itself."""

import threading
from collections.abc import Callable


class Warmup:
    """Runs `work` once in a thread of its own; `work` returns why it failed, or nothing."""

    def __init__(self, work: Callable[[], str]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure = ""

    def start(self) -> None:
        """Begin, unless somebody did."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Begin, unless somebody did, and return when it has ended, well or not."""
        self.start()
        self._ended.wait()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    @property
    def failure(self) -> str:
        """Why it ended in vain; empty while it runs, and where it did not."""
        return self._failure

    def _run(self) -> None:
        try:
            self._failure = self._work()
        except Exception as error:
            self._failure = type(error).__name__
            raise
        finally:
            self._ended.set()


def _warm() -> str:
    from viz import cache  # brings torch; the server answers meanwhile

    return cache.warm()


warmup = Warmup(_warm)
