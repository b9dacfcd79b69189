"""The numbers of a picture as frames, for screen readers and spreadsheets."""

import pandas as pd

from viz.reading import Map, row_names


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
