"""The line in front of the model: bounded, and fair to readers who ask seldom."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


class FullError(RuntimeError):
    """So many wait that one more would only wait in vain."""


@dataclass(frozen=True)
class _Ticket:
    reader: str
    order: int
    work: Callable[[], Any]
    answer: "Future[Any]"


@dataclass
class _Reader:
    used: float = 0.0  # seconds of work lately: every second forgives `share` of one
    seen: float = 0.0  # when this reader last asked


class Line:
    """Few workers, many readers: work runs beside the threads that ask for it.

    Who used the least lately goes first. A reader who used more than `burst` seconds gets no more than
    `share` of a worker while others are about; alone, a reader is never held back. One reader has one
    worker at a time. At most `most` wait.
    """

    ABOUT = 10.0  # seconds after asking in which a reader counts as there

    def __init__(
        self,
        workers: int = 1,
        most: int = 64,
        share: float = 0.2,
        burst: float = 2.5,  # more than a page asks for at once
        clock: Callable[[], float] = time.monotonic,
        cost: Callable[[], float] = time.perf_counter,  # how long others had to wait for it
    ) -> None:
        self.workers, self.most, self.share, self.burst = workers, most, share, burst
        self._clock, self._cost = clock, cost
        self._changed = threading.Condition()
        self._waiting: list[_Ticket] = []
        self._readers: dict[str, _Reader] = {}
        self._served: set[str] = set()
        self._orders = self._started = 0
        self._forgiven = clock()

    def ask(self, reader: str, work: Callable[[], T]) -> T:
        """The answer of `work`, when its turn has come. Raises FullError, and whatever `work` raises."""
        with self._changed:
            if len(self._waiting) >= self.most:
                raise FullError(f"{len(self._waiting)} wait already")
            self._orders += 1
            ticket = _Ticket(reader, self._orders, work, Future())
            self._waiting.append(ticket)
            self._readers.setdefault(reader, _Reader()).seen = self._clock()
            if self._started < self.workers:
                self._started += 1
                threading.Thread(target=self._serve, name="model", daemon=True).start()
            self._changed.notify()
        answer: T = ticket.answer.result()
        return answer

    def _serve(self) -> None:
        while True:
            with self._changed:
                ticket = self._next()
                while ticket is None:
                    # Somebody may only have to wait until enough is forgiven; nothing will wake us for that.
                    self._changed.wait(0.05 if self._waiting else None)
                    ticket = self._next()
                self._waiting.remove(ticket)
                self._served.add(ticket.reader)
            before = self._cost()
            try:
                ticket.answer.set_result(ticket.work())
            except BaseException as error:
                ticket.answer.set_exception(error)
            with self._changed:
                self._served.remove(ticket.reader)
                self._readers.setdefault(ticket.reader, _Reader()).used += self._cost() - before
                self._changed.notify()
            del ticket  # not to hold the answer until somebody asks again

    def _next(self) -> _Ticket | None:
        """Who is served now; nobody, where all that wait have to."""
        now = self._clock()
        forgiven, self._forgiven = self.share * (now - self._forgiven), now
        for name, reader in [*self._readers.items()]:
            reader.used = max(0.0, reader.used - forgiven)
            if not reader.used and now - reader.seen > self.ABOUT:
                del self._readers[name]
        about = {name for name, reader in self._readers.items() if now - reader.seen <= self.ABOUT}
        may = [
            ticket
            for ticket in self._waiting
            if ticket.reader not in self._served
            and (self._used(ticket) <= self.burst or about <= {ticket.reader})
        ]
        return min(may, key=lambda ticket: (self._used(ticket), ticket.order), default=None)

    def _used(self, ticket: _Ticket) -> float:
        reader = self._readers.get(ticket.reader)
        return reader.used if reader else 0.0
