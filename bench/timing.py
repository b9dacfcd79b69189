"""What a measurement is: times taken in turns, results with what must hold, and the machine they are from."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "numpy", "streamlit", "plotly", "transformers", "bertviz", "circuitsvis", "playwright")


@dataclass(frozen=True)
class Result:
    """One measured figure. `limit` is what must hold, None for a figure that is only stated."""

    part: str
    what: str
    value: float
    unit: str
    limit: float | None = None
    least: bool = False  # the value must be at least the limit, not at most
    note: str = ""

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.least else self.value <= self.limit

    @property
    def goal(self) -> str:
        return "" if self.limit is None else f"{'≥' if self.least else '≤'} {said(self.limit, self.unit)}"


def said(value: float, unit: str) -> str:
    """A figure as a reader wants it: three digits, or whole where it is large."""
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def in_turns(
    acts: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each act, `repeats` times in turns, so that what else the machine does meets all alike.

    The first two turns pay for memory and are not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in acts}
    for turn in range(repeats + 2):
        for name, act in acts.items():
            start = clock()
            act()
            if turn > 1:
                times[name].append(clock() - start)
    return times


def ratio(times: Mapping[str, Sequence[float]], one: str, other: str) -> float:
    """Median of `one` over median of `other`."""
    return statistics.median(times[one]) / statistics.median(times[other])


def p95(values: Sequence[float]) -> float:
    """The smallest value that at least 95 of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-95 * len(ordered) // 100) - 1)]


def machine() -> dict[str, Any]:
    """The facts without which a figure says little, taken before anything is measured."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def report(results: Sequence[Result], facts: Mapping[str, Any]) -> dict[str, Any]:
    """All of it as JSON."""
    return {
        "machine": dict(facts),
        "results": [asdict(result) | {"holds": result.holds} for result in results],
    }


def plain(results: Sequence[Result]) -> str:
    """For a terminal, a line a figure."""
    lines = []
    for result in results:
        mark = "" if result.limit is None else ("yes" if result.holds else "NO")
        note = f"  ({result.note})" if result.note else ""
        figure = said(result.value, result.unit)
        lines.append(f"{result.part:8}{result.what:66}{figure:>14}  {result.goal:>12} {mark:4}{note}")
    return "\n".join(lines)


def markdown(results: Sequence[Result]) -> str:
    """For the README."""
    lines = ["| what | measured | must be |", "|---|---|---|"]
    lines += [f"| {each.what} | {said(each.value, each.unit)} | {each.goal} |" for each in results]
    return "\n".join(lines)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
