"""One after the other, or all at once: the hidden states of a recurrent network beside a Transformer's rows.

A tick is what must wait for the tick before it: one state of each direction, or one pass of a stack.
Shapes: S source, T target pieces, N the numbers of a state.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from model.trace import Floats, Side, Trace
from viz import player
from viz.player import Reel
from viz.text import _
from viz.theme import Palette

SHOWN = 12  # numbers of a state that are drawn

_RACE = player.component("race")


@dataclass(frozen=True)
class State:
    """What stands over one piece: a few of its numbers, each with the tick at which it is there."""

    piece: str
    side: Side
    numbers: Sequence[float]  # -1 to 1
    ticks: Sequence[int]  # of each number: the two directions of a reader end at different ticks
    reads: Sequence[float] | None = None  # the weights (S,) with which its step looked at the source


@dataclass(frozen=True)
class Runner:
    """One model on the track."""

    title: str
    states: Sequence[State]

    @property
    def last(self) -> int:
        return max(max(state.ticks) for state in self.states)


def recurrent(trace: Trace, title: str) -> Runner:
    """Two directions read at once, a state a tick each; then the decoder writes, a state a tick."""
    source, count = trace.states["source"], len(trace.source)
    half = source.shape[1] // 2
    forward, backward = _few(source[:, :half], SHOWN // 2), _few(source[:, half:], SHOWN // 2)
    read = [
        State(piece, "source", [*there, *back], [at + 1] * len(there) + [count - at] * len(back))
        for at, (piece, there, back) in enumerate(
            zip(trace.source, forward.tolist(), backward.tolist(), strict=True)
        )
    ]
    rows = trace.weights("cross")[0, 0].tolist() if "cross" in trace.kinds else [None] * len(trace.target)
    written = [
        State(piece, "target", numbers, [count + at + 1] * len(numbers), row)
        for at, (piece, numbers, row) in enumerate(
            zip(trace.comes_out, _few(trace.states["target"], SHOWN).tolist(), rows, strict=True)
        )
    ]
    return Runner(title, [*read, *written])


def transformer(trace: Trace, title: str, forced: bool) -> Runner:
    """The encoder's rows in one pass; the decoder's too where the target is given, else a piece a pass."""
    sides = (("source", trace.source, 0), ("target", trace.comes_out, 1))
    states = []
    for side, pieces, begun in sides:
        rows = _few(trace.feeds[side].out[-1], SHOWN).tolist()  # type: ignore[index]
        for at, (piece, numbers) in enumerate(zip(pieces, rows, strict=True)):
            tick = 1 if not begun else 2 if forced else at + 2
            states.append(State(piece, side, numbers, [tick] * len(numbers)))  # type: ignore[arg-type]
    return Runner(title, states)


def _few(states: Floats, count: int) -> Floats:
    """(T, N) -> (T, at most `count`): at even distances, scaled to -1 to 1 by the largest of them."""
    few = states[:, np.unique(np.linspace(0, states.shape[1] - 1, count).astype(int))]
    return np.round(few / max(float(abs(few).max()), 1e-9), 3)


def show(runners: Sequence[Runner], tick: int, palette: Palette, follow: Callable[[int], None]) -> None:
    """Draw the track at `tick`, from 1."""
    last = max(runner.last for runner in runners)
    ticks = range(1, last + 1)
    done = [_("{title} is done after {count}.").format(title=each.title, count=each.last) for each in runners]
    bar = [
        " ".join(
            [_("Tick {tick} of {last}.").format(tick=at, last=last)]
            + [said for said, each in zip(done, runners, strict=True) if at >= each.last]
        )
        for at in ticks
    ]
    data: dict[str, Any] = {
        "runners": [
            {"title": each.title, "last": each.last, "states": [asdict(state) for state in each.states]}
            for each in runners
        ],
        "words": {
            "waits": _("not there yet"),
            "there": _("there since tick {tick}"),
            "reads": _("reads {key}: {weight}"),
        },
    }
    label = _("Both models on the same sentence, tick by tick.")
    reel = Reel("dec_tick", ticks, list(map(str, ticks)), bar, min(tick, last) - 1, label)
    player.play(_RACE, "race", reel, data, palette, follow)
