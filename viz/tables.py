"""The numbers of a picture as frames, for screen readers and spreadsheets."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from model.trace import Trace
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
    rows, size = len(bare.target), len(bare.source)

    def moved(trace: Trace) -> float:
        return float(abs(trace.log_probs[:rows] - bare.log_probs).max())

    return pd.DataFrame(
        {
            _("pads"): [trace.change.source_pads for trace in masked],
            _("largest change of log p, masked"): [f"{moved(trace):.1e}" for trace in masked],
            _("not masked"): [f"{moved(trace):.2f}" for trace in unmasked],
            _("share read from pads, not masked"): [
                percent(float(trace.weights("encoder")[layer, :, :size, size:].sum(axis=-1).mean()))
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
    real = len(before.target) - before.change.target_pads
    logs = [trace.piece_log_probs[:real] for trace in (before, after)]
    return pd.DataFrame(
        {
            _("piece"): before.comes_out[:real],
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
