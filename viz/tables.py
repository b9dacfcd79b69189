"""The numbers of a picture as frames, for screen readers and spreadsheets."""

import numpy as np
import pandas as pd

from model.trace import Trace
from viz.reading import Map, row_names
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
