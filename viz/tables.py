"""The numbers of a picture as frames, for screen readers and spreadsheets."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from model.heads import ROLES, Role, given
from model.trace import Head, Kind, Trace
from viz import roles
from viz.reading import Map, loss, percent, row_names
from viz.text import _


def weights(picture: Map) -> pd.DataFrame:
    """The map of `picture` as a table: a row a query, a column a key; blocked cells are empty.

    Names carry their place, since a word may stand twice.
    """
    keys = picture.trace.axes(picture.kind)[1]
    names = row_names(picture.trace, picture.kind)
    frame = pd.DataFrame(
        picture.weights,
        index=[f"{index + 1} {name}" for index, name in enumerate(names)],
        columns=[f"{index + 1} {key}" for index, key in enumerate(keys)],
    )
    return frame.where(picture.allowed)


def padding(bare: Trace, masked: Sequence[Trace], unmasked: Sequence[Trace], layer: int) -> pd.DataFrame:
    """What appended source pads change at the real positions of `bare`, with the padding masks and without.

    The last column is the share of the encoder's weight in one layer, over real rows and all heads,
    that goes to pads where nothing hides them.
    """
    rows, size = len(bare.log_probs), len(bare.source)
    kind: Kind = "encoder" if "encoder" in bare.kinds else "cross"
    queries = len(bare.axes(kind)[0])

    def moved(trace: Trace) -> float:
        return float(abs(trace.log_probs[:rows] - bare.log_probs).max())

    return pd.DataFrame(
        {
            _("pads"): [trace.change.source_pads for trace in masked],
            _("largest change of log p, masked"): [f"{moved(trace):.1e}" for trace in masked],
            _("not masked"): [f"{moved(trace):.2f}" for trace in unmasked],
            _("share read from pads, not masked"): [
                percent(float(trace.weights(kind)[layer, :, :queries, size:].sum(axis=-1).mean()))
                for trace in unmasked
            ],
        }
    )


def leak(masked: tuple[Trace, Trace], unmasked: tuple[Trace, Trace], place: int) -> pd.DataFrame:
    """How far the rows before `place` move when the piece that goes in there is another one."""

    def moved(pair: tuple[Trace, Trace]) -> list[float]:
        return [float(abs(pair[0].log_probs[row] - pair[1].log_probs[row]).max()) for row in range(place)]

    return pd.DataFrame(
        {
            _("row"): row_names(masked[0], "decoder")[:place],
            _("largest change of log p, masked"): [f"{change:.1g}" for change in moved(masked)],
            _("look-ahead off"): [f"{change:.2f}" for change in moved(unmasked)],
        }
    )


def piece_probabilities(before: Trace, after: Trace) -> pd.DataFrame:
    """Each piece that comes out, its probability in two traces of one target, and the change of its log."""
    if before.predicts == "target":
        real = len(before.target) - before.change.target_pads
        pieces = before.comes_out[:real]
    else:  # </s> is never guessed
        real = len(before.source) - before.change.source_pads - 1
        hidden = dict(zip(before.gaps, before.hidden, strict=True))
        pieces = tuple(hidden.get(at) or before.source[at] for at in range(real))
    logs = [trace.piece_log_probs[:real] for trace in (before, after)]
    return pd.DataFrame(
        {
            _("piece"): pieces,
            _("before"): np.exp(logs[0]),
            _("after"): np.exp(logs[1]),
            _("change of log p"): logs[1] - logs[0],
        }
    )


def exams(given: Mapping[str, Trace], alone: Mapping[str, Trace]) -> pd.DataFrame:
    """Models by name: their loss where the right target is given, and what they write by themselves."""
    return pd.DataFrame(
        {
            _("model"): list(given),
            _("loss, the French given"): [f"{loss(trace):.3f}" for trace in given.values()],
            _("translates by itself"): [
                trace.translation or _("(nothing: it stops at once)") for trace in alone.values()
            ],
        }
    )


def forcing(trace: Trace) -> pd.DataFrame:
    """The rows of a training step: what goes in, what should come out and how probable that was."""
    return pd.DataFrame(
        {
            _("goes in"): trace.target,
            _("should come out"): trace.comes_out,
            _("its probability"): [percent(float(share)) for share in np.exp(trace.piece_log_probs)],
            _("likeliest"): [row[0].piece for row in trace.candidates],
            _("loss, −log p"): [f"{-log:.3f}" for log in trace.piece_log_probs],
        }
    )


def sentence_scores(
    answers: Mapping[str, Sequence[str]], translations: Sequence[str], scores: Sequence[float]
) -> pd.DataFrame:
    """English sentences with their references, their translations and each one's BLEU."""
    return pd.DataFrame(
        {
            _("English"): list(answers),
            _("the model"): list(translations),
            _("references"): [" / ".join(each) for each in answers.values()],
            _("BLEU"): [f"{score:.1f}" for score in scores],
        }
    )


def head_numbers(measured: Mapping[str, float], head: Head, survey: Mapping[str, Any] | None) -> pd.DataFrame:
    """The measures of one head on this sentence, on the validation sentences, and of a random head."""
    rows = []
    for name, value in measured.items():
        row = {_("measure"): roles.measure_name(name)}
        row[_("here")] = "" if name == "importance" else roles.figure_of(value, name)
        if survey:
            one, random = roles.of(survey, head), survey["random"][head.kind]
            if name == "importance":
                row[_("validation")] = f"{one['removed']:+.3f} ± {one['removed_error']:.3f}"
                row[_("random")] = f"{np.mean([each['removed'] for each in survey['heads']]):+.3f}"
            else:
                row[_("validation")] = roles.figure_of(one[name], name)
                row[_("random")] = roles.figure_of(random[name], name)
        rows.append(row)
    return pd.DataFrame(rows)


def head_roles(now: Mapping[Head, Mapping[Role, float]], survey: Mapping[str, Any] | None) -> pd.DataFrame:
    """Each head, the rule that it follows most on the validation sentences, how often there and here."""
    rows = []
    for head, rates in now.items():
        here = given(rates)
        row = {_("head"): roles.said(head)}
        if survey:
            one = roles.of(survey, head)
            role = given({role: one[role] for role in ROLES if role in one})
            row[_("rule")] = roles.role_name(role) if role else _("none")
            row[_("on validation")] = percent(one[role]) if role else ""
            share = rates.get(role, math.nan) if role else math.nan
            row[_("the same, here")] = "" if math.isnan(share) else percent(share)
        row[_("rule here")] = roles.role_name(here) if here else _("none")
        row[_("all rules here")] = roles.summary(rates)
        rows.append(row)
    return pd.DataFrame(rows)


def alignment(found: Mapping[str, Any], read: str) -> pd.DataFrame:
    """Error rates of what aligns, the best first: on the half that chose the head, and on the other."""
    best, layers = found["best"][read], found["reads"][read]["layers"]
    layer = min(range(len(layers)), key=lambda index: layers[index]["choose"])
    lines = {
        _("best head ({place})").format(place=f"{best['layer'] + 1}.{best['head'] + 1}"): best,
        _("best layer's mean ({layer})").format(layer=layer + 1): layers[layer],
        _("the diagonal"): found["diagonal"],
        _("a random head"): found["random"],
    }
    if found.get("aligner"):
        lines[found["aligner"]["name"]] = found["aligner"]
    order = sorted(lines.items(), key=lambda line: float(line[1]["report"]))
    return pd.DataFrame(
        {
            _("aligner"): [name for name, _rates in order],
            _("choosing"): [f"{rates['choose']:.3f}" for _name, rates in order],
            _("reporting"): [f"{rates['report']:.3f}" for _name, rates in order],
        }
    )


def draws(seeds: Sequence[int], traces: Sequence[Trace], greedy: Trace) -> pd.DataFrame:
    """Translations drawn by lot, the model's probability of each, and whether it is the greedy one."""
    return pd.DataFrame(
        {
            _("draw"): list(seeds),
            _("translation"): [trace.translation or _("(nothing)") for trace in traces],
            _("the model's probability"): [percent(float(np.exp(trace.log_prob))) for trace in traces],
            _("log P"): [f"{trace.log_prob:.3f}" for trace in traces],
            _("the greedy one"): [
                _("yes") if trace.target_ids == greedy.target_ids else "" for trace in traces
            ],
        }
    )


def two_runs(forced: Trace, free: Trace, losses: Sequence[float | None]) -> pd.DataFrame:
    """Step by step: the teacher's piece and its loss twice, and what the model wrote by itself."""
    count = max(len(forced.target), len(free.target))

    def column(values: Sequence[object]) -> list[str]:
        shown = ["" if value is None else str(value) for value in values]
        return shown + [""] * (count - len(shown))

    return pd.DataFrame(
        {
            _("step"): range(1, count + 1),
            _("teacher"): column(forced.comes_out),
            _("loss, forced"): column([f"{-log:.3f}" for log in forced.piece_log_probs]),
            _("loss, free running"): column([None if each is None else f"{each:.3f}" for each in losses]),
            _("on its own"): column(free.comes_out),
            _("its loss"): column([f"{-log:.3f}" for log in free.piece_log_probs]),
        }
    )
