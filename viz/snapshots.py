"""One map at every snapshot of a training, what the model wrote then, and tables over all snapshots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.trace import asked, asks
from viz import player
from viz.player import Reel
from viz.reading import Map, facts, outgoing, reason_name, reasons
from viz.text import _
from viz.theme import Palette

LONG = 120  # characters of a translation that are shown; untrained weights repeat themselves up to the limit

_SNAPSHOTS = player.component("snapshots")


@dataclass(frozen=True)
class Track:
    """A share from 0 to 1 at each snapshot, what stands in the cells, and what is behind each number."""

    name: str
    shares: Sequence[float]
    shown: Sequence[str]
    said: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Tracks under one title."""

    title: str
    note: str
    tracks: Sequence[Track]


def show(
    pictures: Sequence[Map],
    steps: Sequence[int],
    said: Sequence[str],
    wrote: Sequence[str],
    tables: Sequence[Table],
    step: int,
    query: int,
    numbers: bool,
    palette: Palette,
    follow: Callable[[int], None],
) -> None:
    """Draw the map as it was at `step`, one of `steps`; the row `query` is framed.

    `pictures`, `said` and `wrote` hold a place for each of `steps`; `said` is read aloud.
    """
    first = pictures[0]
    rows, keys = first.trace.axes(first.kind)
    out = outgoing(first.trace, first.kind)
    why = [[reason_name(each) for each in row] for row in reasons(first.trace, first.kind, first.allowed)]
    data: dict[str, Any] = {
        "rows": rows,
        "out": out,
        "keys": keys,
        "sides": [asks(first.kind), asked(first.kind)],
        "weights": [np.round(picture.weights.astype(float), 6).tolist() for picture in pictures],
        "blocked": why,
        "chosen": query,
        "numbers": numbers,
        "said": list(said),
        "facts": [facts(picture) for picture in pictures],
        "wrote": [shortened(text) for text in wrote],
        "tables": [
            {
                "title": table.title,
                "note": table.note,
                "rows": [
                    {
                        "name": track.name,
                        "shares": [float(np.nan_to_num(share)) for share in track.shares],
                        "shown": list(track.shown),
                        "said": list(track.said),
                    }
                    for track in table.tracks
                ],
            }
            for table in tables
        ],
        "words": {"wrote": _("What it wrote by itself"), "map": first.name()},
    }
    labels = [f"{each:,}" for each in steps]
    bar = [_("step {step} of {last}").format(step=label, last=labels[-1]) for label in labels]
    reel = Reel(
        "train_step", steps, labels, bar, list(steps).index(step), _("The training, snapshot by snapshot.")
    )
    player.play(_SNAPSHOTS, "snapshots", reel, data, palette, follow)


def shortened(text: str) -> str:
    """A translation, cut where it is long, with how long it is."""
    if len(text) <= LONG:
        return text or _("(nothing)")
    said = _("{beginning} … ({count} words)")
    return said.format(beginning=text[:LONG].rsplit(" ", 1)[0], count=len(text.split()))
