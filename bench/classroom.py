"""A class of readers on this machine: `python -m bench.classroom --readers 30 --seconds 600`.

Each reader is one websocket (`bench.reader`): it waits for the end of the run that it asked for and for the
translation in it, and draws nothing. What a step costs in the browser, `python -m bench` measures. Readers
and server share the cores.
"""

import argparse
import asyncio
import itertools
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.reader import BROKEN, Reader
from deploy.cluster import Cluster

HEADS, LAYERS = 8, 3
TYPES_EVERY = 20.0  # seconds between two sentences of one reader
TOLD_AFTER = 3  # steps a second apart: the stage tells its place every 2.5 s at most (SELDOM in stage.js)
WHO = "my sister,the old teacher,our neighbour,a young student,the doctor,your friend,the tall man,her mother"
DID = "sold,bought,found,wanted,lost,painted,forgot,saw,cleaned,hid,liked,broke"
WHAT = "the red car,a small house,his new watch,an old book,the last letter,two black cats,her bicycle"
WHEN = "yesterday,in the morning,before the war,after school,last week,when it rained,on Sunday,at night"
WHERE = "near the station,in Paris,behind the church,at home,in the garden,on the bridge,by the sea"
SLICE = 15.0  # seconds that she pastes, and does not
LONGEST = 9  # clauses, for who pastes the longest sentence over and over


def sentences(chance: random.Random) -> Iterator[str]:
    """Sentences of about twelve words, hardly ever twice the same: no cache holds them."""
    parts = [part.split(",") for part in (WHO, DID, WHAT, WHERE, WHEN)]
    while True:
        words = " ".join(chance.choice(part) for part in parts)
        yield words[0].upper() + words[1:] + "."


def long_sentences(chance: random.Random) -> Iterator[str]:
    """Sentences as long as the model reads: about sixty pieces."""
    parts = [part.split(",") for part in (WHO, DID, WHAT)]
    while True:
        clauses = (" ".join(chance.choice(part) for part in parts) for _clause in range(LONGEST))
        yield " and ".join(clauses)[:270] + "."


@dataclass
class Tally:
    """What was measured, in seconds, and what went wrong."""

    opening: list[float] = field(default_factory=list)
    sentence: list[float] = field(default_factory=list)
    place: list[float] = field(default_factory=list)
    steps: int = 0
    losses: int = 0  # connections that broke
    troubles: list[str] = field(default_factory=list)
    size: int = 0  # bytes received

    def report(self) -> dict[str, Any]:
        kinds = {"opening": self.opening, "sentence": self.sentence, "place": self.place}
        found: dict[str, Any] = {name: spread(times) for name, times in kinds.items() if times}
        found |= {
            "steps": self.steps,
            "connections_lost": self.losses,
            "errors": len(self.troubles),
            "troubles": sorted({*self.troubles})[:10],
        }
        return found | {"received_mb": round(self.size / 2**20, 1)}


def spread(times: list[float]) -> dict[str, float]:
    """Median, 95th percentile and largest, in ms."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    values = {"p50_ms": statistics.median(ordered), "p95_ms": p95, "max_ms": ordered[-1]}
    return {"count": len(ordered)} | {name: round(1000 * value, 1) for name, value in values.items()}


_seeds = itertools.count()


async def attend(url: str, over: Callable[[], bool], noted: Callable[[], Tally], steps: str) -> None:
    """One reader: opens the app, steps once a second, types a sentence every `TYPES_EVERY` seconds.

    What she does is noted where `noted` says when she begins it.
    """
    chance = random.Random(next(_seeds))  # nobody types what a class before has typed
    typed, reader = sentences(chance), Reader(url)
    await asyncio.sleep(chance.random() * 3)  # "open the link now"
    tally = noted()
    try:
        tally.opening.append(await reader.open())
        tally.size += reader.last.size
        types_at = time.perf_counter() + TYPES_EVERY * chance.random()
        for step in itertools.count(1):
            now, tally = time.perf_counter(), noted()
            if over():
                break
            if now >= types_at:
                types_at += TYPES_EVERY
                text = next(typed)
                before = reader.last.translation
                tally.sentence.append(await reader.act(text=text))
                tally.troubles += complaints(reader)
                if reader.last.translation == before:
                    tally.troubles.append("the translation did not change")
            else:
                tally.steps += 1  # in the browser; the server learns of it when a reader pauses
                if steps == "each" or (steps == "told" and step % TOLD_AFTER == 0):
                    head, layer = chance.randint(1, HEADS), chance.randint(1, LAYERS)
                    tally.place.append(await reader.rest(head=head, layer=layer))
                    tally.troubles += complaints(reader)
            tally.size += reader.last.size
            await reader.idle(max(0.0, 1 - (time.perf_counter() - now)))
    except (*BROKEN, KeyError) as error:
        tally.troubles.append(f"{type(error).__name__}: {error}")
    finally:
        tally.losses += reader.losses
        await reader.close()


class Paster:
    """Pastes another longest sentence as soon as the last is answered, `SLICE` seconds on and as many off.

    So that both halves of a class meet the same machine, whatever else runs on it.
    """

    def __init__(self) -> None:
        self.pasted, self.quiet, self.beside = Tally(), Tally(), Tally()
        self._start = time.perf_counter()

    @property
    def on(self) -> bool:
        return int((time.perf_counter() - self._start) / SLICE) % 2 == 1

    def noted(self) -> Tally:
        return self.beside if self.on else self.quiet

    async def paste(self, url: str, over: Callable[[], bool]) -> None:
        reader = Reader(url)
        typed = long_sentences(random.Random(-1))
        await reader.open()
        while not over():
            if self.on:
                self.pasted.sentence.append(await reader.act(text=next(typed)))
                self.pasted.troubles += complaints(reader)
            else:
                await reader.idle(0.1)
        await reader.close()

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "quiet": self.quiet.report(),
            "beside": self.beside.report(),
            "who_pastes": self.pasted.report(),
        }
        for name, act in {"ratio_sentence": "sentence", "ratio_place": "place"}.items():
            quiet, beside = getattr(self.quiet, act), getattr(self.beside, act)
            found[name] = round(statistics.median(beside) / statistics.median(quiet), 2)
        found["errors"] = sum(found[part]["errors"] for part in ("quiet", "beside", "who_pastes"))
        return found


def complaints(reader: Reader) -> list[str]:
    """What is wrong with what came: an exception on the page, or no translation."""
    found = ["exception on the page"] * reader.last.exceptions
    if not reader.last.translation:
        found.append("no translation: " + " ".join(reader.last.said)[:120])
    return found


def memory(pids: list[int]) -> list[float]:
    """Resident MB of each process; Linux only, elsewhere none."""
    found = []
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except OSError:
            continue
        line = next((line for line in status.splitlines() if line.startswith("VmRSS")), None)
        found += [int(line.split()[1]) / 1024] if line else []
    return found


def processor(pids: list[int]) -> float:
    """Seconds of processor that the processes have used; Linux only, elsewhere 0."""
    used = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


async def watch(cluster: Cluster, rss: list[list[float]], every: float = 1.0) -> None:
    while True:
        rss.append(memory([server.pid for server in cluster.servers]))
        await asyncio.sleep(every)


async def lesson(
    url: str,
    readers: int,
    over: Callable[[], bool],
    steps: str,
    *beside: Awaitable[None],
    noted: Callable[[], Tally] | None = None,
) -> Tally:
    """All readers at once, until it is over."""
    tally = Tally()
    attending = [attend(url, over, noted or (lambda: tally), steps) for _reader in range(readers)]
    await asyncio.gather(*attending, *beside)
    return tally


def after(seconds: float) -> Callable[[], bool]:
    """Whether so much time has passed since now."""
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


async def killed(cluster: Cluster, readers: int) -> dict[str, Any]:
    """SIGKILL one replica: does each reader see at her next action what she saw before, and how soon?"""
    chance = random.Random(0)
    typed = sentences(chance)
    class_ = [Reader(cluster.url, query={"text": next(typed)}) for _reader in range(readers)]

    async def looks(reader: Reader) -> tuple[int, str]:
        """A head that she looked at, and what she saw, before she went on to another one."""
        await reader.open()
        one, other = chance.sample(range(1, HEADS + 1), 2)
        await reader.rest(head=one)
        seen = reader.last.view
        await reader.rest(head=other)
        assert reader.last.view != seen
        return one, seen

    before = await asyncio.gather(*map(looks, class_))
    await asyncio.to_thread(cluster.kill, 0)

    async def again(reader: Reader, head: int, view: str) -> tuple[float, bool]:
        await reader.idle(chance.random() * 2)
        took = await reader.rest(head=head)
        return took, reader.last.view == view and not complaints(reader)

    outcomes = await asyncio.gather(
        *(again(reader, head, view) for reader, (head, view) in zip(class_, before, strict=True))
    )
    for reader in class_:
        await reader.close()
    return {
        "action": spread([took for took, _same in outcomes]),
        "lost_their_replica": sum(reader.losses > 0 for reader in class_),
        "errors": sum(not same for _took, same in outcomes),
    }


async def rolled(cluster: Cluster, readers: int) -> dict[str, Any]:
    """Restart one replica after the other under a class: is there an error, and how long does one wait?"""
    until = asyncio.get_running_loop().create_future()

    async def restart() -> None:
        await asyncio.sleep(4)
        for index in range(len(cluster.servers)):
            await asyncio.to_thread(cluster.restart, index)
        await asyncio.sleep(4)
        until.set_result(None)

    tally = await lesson(cluster.url, readers, until.done, "told", restart())
    return tally.report()


def sit_in(url: str, over: Callable[[], bool], count: int) -> list[float]:
    """Real browsers among the readers, each stepping once a second: how long each step took, in seconds."""
    from bench import stage  # brings the peers along, which a class does not need
    from bench.browser import chromium, fresh_page

    times: list[float] = []
    if not count:
        return times
    with chromium() as browser, ExitStack() as seats:
        pages = [seats.enter_context(fresh_page(browser)) for _seat in range(count)]
        for page in pages:
            page.goto(f"{url}/?kind=encoder&layer=1&head=1")
            page.wait_for_function(stage.DRAWN)
            stage.settled(page)
        for key in itertools.cycle(stage.walk("map", HEADS, LAYERS, 2 * HEADS)):
            begun = time.perf_counter()
            for page in pages:
                times += [ms / 1000 for ms in stage.stepped(page, [key])]
            if over():
                return times
            time.sleep(max(0.0, 1 - (time.perf_counter() - begun)))
    return times


async def classroom(cluster: Cluster, chosen: argparse.Namespace) -> dict[str, Any]:
    """The lesson, the memory it took, and what is left of that when everybody has gone."""
    rss: list[list[float]] = []
    watching = asyncio.create_task(watch(cluster, rss))
    url, readers, steps = cluster.url, chosen.readers, chosen.steps
    pids = [server.pid for server in cluster.servers]
    start, used = time.perf_counter(), processor(pids)
    if chosen.fault:
        found = await (killed if chosen.fault == "kill" else rolled)(cluster, readers)
    elif chosen.hog:
        over, paster = after(chosen.seconds), Paster()
        await lesson(url, readers, over, steps, paster.paste(url, over), noted=paster.noted)
        found = paster.report()
    else:
        over = after(chosen.seconds)
        seats = asyncio.create_task(asyncio.to_thread(sit_in, url, over, chosen.browsers))
        tally = await lesson(url, readers, over, steps)
        found = tally.report()
        found["errors"] += tally.losses
        if times := await seats:
            found["step_in_a_browser"] = spread(times)
    busy = (processor(pids) - used) / (time.perf_counter() - start)
    if not chosen.fault:  # which ends processes, and their count with them
        found["cores_busy"] = round(busy, 2)
    if chosen.after:
        await asyncio.sleep(chosen.after)
    watching.cancel()
    largest = [max(sample) for sample in rss if sample]
    if largest:
        half = largest[len(largest) // 4 :][: len(largest) // 4]  # once the caches are full
        found["rss_mb"] = {
            "start": round(largest[0]),
            "middle": round(statistics.median(half or largest)),
            "peak": round(max(largest)),
            "end": round(largest[-1]),
        }
    return found


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--readers", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--replicas", type=int, default=1, help="more than one: behind Caddy")
    parser.add_argument(
        "--port", type=int, default=8640, help="of the server that is started; replicas follow"
    )
    parser.add_argument(
        "--steps",
        choices=("told", "each"),
        default="told",
        help="what the server hears of a step a second: as much as the stage tells it, or each",
    )
    parser.add_argument(
        "--hog", action="store_true", help="with one who pastes the longest sentence, half the time"
    )
    parser.add_argument(
        "--browsers", type=int, default=0, help="so many real ones beside, whose steps are timed"
    )
    parser.add_argument("--fault", choices=("kill", "roll"), help="kill a replica, or restart each in turn")
    parser.add_argument(
        "--after", type=float, default=0, help="watch the memory so long; sessions end at 120 s"
    )
    parser.add_argument("--json", type=Path, help="where to write the results too")
    return parser.parse_args()


def main() -> None:
    chosen = parsed()
    with Cluster(chosen.replicas, chosen.port) as cluster:
        found = asyncio.run(classroom(cluster, chosen))
    setting = {
        name: getattr(chosen, name)
        for name in ("readers", "seconds", "replicas", "steps", "after", "browsers")
    }
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    text = json.dumps({"setting": setting | machine, **found}, indent=2)
    print(text)
    if chosen.json:
        chosen.json.write_text(text + "\n", encoding="utf-8")
    sys.exit(bool(found.get("errors")))


if __name__ == "__main__":
    main()
