"""A translation as a film: for each step what was read, the rows that were new, and what could come next.

Shapes: T steps, K keys, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model import words
from model.trace import Floats, Kind, Trace, asked
from viz import player
from viz.player import Reel
from viz.reading import Map, kind_name, language, percent
from viz.text import _
from viz.theme import Palette

NEXT = 10  # pieces that are shown, likeliest first

_FILM = player.component("film")


@dataclass(frozen=True)
class Next:
    """A piece that may come next."""

    piece: str
    share: float  # the model's probability
    drawn: float | None  # with which it is drawn, where pieces are drawn by lot
    chosen: bool
    end: bool  # </s>: to stop is a choice like any other
    never: bool  # a piece that no translation contains


@dataclass(frozen=True, eq=False)
class Rows:
    """One map by steps: row t is what step t saw, over the pieces or over the words there were then."""

    kind: Kind
    keys: tuple[str, ...]
    weights: Floats  # (T, K)  of a decoder, 0 for what was not there yet
    seen: tuple[int, ...]  # (T,): how many keys there were
    group: tuple[int, ...]  # (T,): the word that a row belongs to; rows of one word stand in one place
    labels: tuple[str, ...]  # (T,)


def rows(picture: Map, merged: bool) -> Rows:
    """The rows of a map, by pieces, or `merged` into words so far as these were written.

    Weights are summed over the pieces of a key word. A row is the mean over the pieces of the word that
    comes out, as far as they had come: the last row of a word is its row in `words.merge`.
    """
    trace, kind = picture.trace, picture.kind
    keys, spaces = trace.axes(kind)[1], trace.source_spaces if kind == "cross" else trace.target_spaces
    count = len(trace.target)
    if not merged:
        names = tuple(f"{a} → {b}" for a, b in zip(trace.target, trace.comes_out, strict=True))
        seen = tuple(range(1, count + 1)) if kind == "decoder" else (len(keys),) * count
        return Rows(kind, keys, picture.weights, seen, tuple(range(count)), names)
    columns = words.word_of(keys, spaces)
    group = words.word_of(trace.comes_out, (*trace.target_spaces[1:], False))
    summed = words.merge(picture.weights, np.arange(count), columns)
    mean, labels = np.empty_like(summed), []
    for step in range(count):
        mine = [row for row in range(step + 1) if group[row] == group[step]]
        mean[step] = summed[mine].mean(axis=0)
        labels.append("→ " + "".join(trace.comes_out[row] for row in mine))
    called = words.names(keys, columns)
    there = columns + 1 if kind == "decoder" else np.full(count, len(called))
    return Rows(kind, called, mean, tuple(there.tolist()), tuple(group.tolist()), tuple(labels))


def following(
    trace: Trace, step: int, name: Callable[[int], str], drawn: NDArray[np.float64] | None
) -> list[Next]:
    """The likeliest next pieces of a step, and </s> and the chosen one where they are not among them.

    `drawn` (V,) are the probabilities of a lot.
    """
    real = len(trace.out_ids) - trace.change.target_pads
    log_probs, out, end = trace.log_probs[step], trace.out_ids[step], trace.out_ids[real - 1]
    best = np.argsort(-log_probs, kind="stable")[:NEXT].tolist()
    ids = [*best, *(id_ for id_ in dict.fromkeys((out, end)) if id_ not in best)]
    return [
        Next(
            name(id_),
            float(np.exp(log_probs[id_])),
            None if drawn is None else float(drawn[id_]),
            id_ == out,
            id_ == end,
            id_ < 4 and id_ != end,
        )
        for id_ in ids
    ]


def show(
    parts: Sequence[Rows],
    trace: Trace,
    nexts: Sequence[Sequence[Next]],
    step: int,
    place: str,
    passes: Sequence[str],
    palette: Palette,
    follow: Callable[[int], None],
) -> None:
    """Draw the film at `step`, from 1. `place` names the head; `follow` is told of the step at rest."""
    passes = [f"{said} {place[0].upper()}{place[1:]}." for said in passes]
    maps = [
        {
            "title": kind_name(part.kind).capitalize(),
            "keys": part.keys,
            "side": asked(part.kind),
            "rows": [
                [round(float(weight), 6) for weight in row[:seen]]
                for row, seen in zip(part.weights, part.seen, strict=True)
            ],
            "group": part.group,
            "labels": part.labels,
        }
        for part in parts
    ]
    data: dict[str, Any] = {
        "goes": trace.target,
        "comes": trace.comes_out,
        "maps": maps,
        "next": [[asdict(each) for each in found] for found in nexts],
        "aloud": [_aloud(parts, trace, nexts, at) for at in range(len(trace.target))],
        "words": {
            "reads": _("The decoder reads"),
            "next": _("What may come next"),
            "never": _("never chosen: no translation contains it"),
            "end": _("to stop is a choice like any other"),
        },
    }
    steps = range(1, len(trace.target) + 1)
    label = _("The translation, piece by piece.")
    reel = Reel("dec_step", steps, list(map(str, steps)), passes, step - 1, label)
    player.play(_FILM, "film", reel, data, palette, follow)


def _aloud(parts: Sequence[Rows], trace: Trace, nexts: Sequence[Sequence[Next]], step: int) -> str:
    """One step as a sentence."""
    said = []
    for part in parts:
        row = part.weights[step, : part.seen[step]]
        key = int(row.argmax())
        text = (
            _('"{piece}" reads "{key}" most in the {language} ({share}).')
            if part.kind == "cross"
            else _('In the {language} so far it reads "{key}" most ({share}).')
        )
        name, share = language(trace.languages, asked(part.kind)), percent(float(row[key]))
        said.append(text.format(piece=trace.target[step], key=part.keys[key], language=name, share=share))
    (chosen,) = (each for each in nexts[step] if each.chosen)
    if trace.forced:
        out = _('Given: "{piece}", probability {share}.')
    elif chosen.end:
        out = _("Chosen: to stop, probability {share}.")
    else:
        out = _('Chosen: "{piece}", probability {share}.')
    said.append(out.format(piece=chosen.piece, share=percent(chosen.share)))
    return " ".join(said)
