"""Masks as pictures: open cells plain, blocked ones hatched, the way maps show them."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.trace import Flags
from viz.figures.cells import ground, hatch, scale, sheet
from viz.text import _
from viz.theme import Palette, escape, label_size

LEGIBLE = 16  # columns whose cells hold a word
STRIP = 130  # px of a mask with one row; each of a few more takes 45


def mask_map(
    allowed: Flags,
    rows: Sequence[str],
    keys: Sequence[str],
    palette: Palette,
    words: Sequence[Sequence[str]] | None = None,
) -> go.Figure:
    """A mask (Q, K): True is open. `words` (Q, K) are printed where they fit, told on hover."""
    queries, columns = allowed.shape
    printed = words if columns <= LEGIBLE else None
    figure = sheet(palette, STRIP + 45 * (queries - 1) if queries < 5 else max(330, 110 + 17 * queries))
    figure.add_traces(
        [
            ground(~allowed, palette),
            go.Heatmap(
                z=np.where(allowed, 1.0, np.nan).astype(np.float32),
                colorscale=[[0, palette.weights[1][1]], [1, palette.weights[1][1]]],
                showscale=False,
                xgap=1,
                ygap=1,
                hoverinfo="skip",
                name="open",
            ),
            hatch(~allowed, palette),
            go.Scatter(
                x=[key for _query in range(queries) for key in range(columns)],
                y=[query for query in range(queries) for _key in range(columns)],
                customdata=[[query, key] for query in range(queries) for key in range(columns)],
                mode="markers+text" if printed else "markers",
                marker={"symbol": "square", "size": 14, "opacity": 0},
                text=[escape(word) for line in printed for word in line] if printed else None,
                textfont={"size": print_size([word for line in printed for word in line], columns)}
                if printed
                else None,
                selected={"marker": {"opacity": 0}},
                unselected={"marker": {"opacity": 0}},
                hovertext=[
                    f"{escape(rows[query])}, {escape(keys[key])}<br>"
                    + (_("open") if open_ else _("blocked"))
                    + (f": {escape(words[query][key])}" if words and words[query][key] else "")
                    for (query, key), open_ in np.ndenumerate(allowed)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
                name="cells",
            ),
        ]
    )
    plain = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}
    figure.update_layout(
        xaxis={
            **plain,
            "side": "top",
            "tickvals": list(range(columns)),
            "ticktext": [escape(key) for key in keys],
            "tickfont": {"size": label_size(columns)},
            "tickangle": -90 if columns > LEGIBLE else -50 if columns * max(map(len, keys)) > 36 else 0,
            "range": (-0.5, columns - 0.5),
            "automargin": True,
        },
        yaxis={
            **plain,
            "tickvals": list(range(queries)),
            "ticktext": [escape(row) + " " for row in rows],
            "tickfont": {"size": label_size(queries)},
            "range": (queries - 0.5, -0.5),
            "automargin": True,
        },
    )
    return figure


def mask_editor(
    allowed: Flags, rows: Sequence[str], keys: Sequence[str], palette: Palette, drag: bool
) -> go.Figure:
    """A mask (Q, K) to draw on, by clicks or by dragged boxes; numbers at the edge take a row or a column.

    Their customdata is [query, -1] and [-1, key].
    """
    queries, columns = allowed.shape
    figure = mask_map(allowed, rows, keys, palette)
    edge = [(query, -1) for query in range(queries)] + [(-1, key) for key in range(columns)]
    figure.add_scatter(
        x=[key for _query, key in edge],
        y=[query for query, _key in edge],
        customdata=edge,
        mode="markers+text",
        marker={"symbol": "square", "size": 14, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        text=[str(max(place) + 1) for place in edge],
        textfont={"size": 13, "color": palette.accent},
        hovertext=[_("the whole row") if key < 0 else _("the whole column") for _query, key in edge],
        hovertemplate="%{hovertext}<extra></extra>",
        name="edge",
    )
    figure.update_xaxes(range=(-1.5, columns - 0.5))
    figure.update_yaxes(range=(queries - 0.5, -1.5))
    return figure.update_layout(dragmode="select" if drag else False)


def print_size(words: Sequence[str], columns: int) -> int:
    """Type size in px at which `words` do not lie over one another in so many cells, on a phone as well."""
    halves = max(
        (len(word) - word.count(".") / 2 for word in words), default=1
    )  # in half ems, as figures are
    return max(10, min(18, int(400 / (columns * max(halves, 1)))))


def _hundredths(weight: float) -> str:
    """A weight in no more signs than two decimals ask for: .98, and 0 and 1 alone."""
    said = "" if np.isnan(weight) else f"{weight:.2f}"
    return {"0.00": "0", "1.00": "1"}.get(said, said.removeprefix("0"))


def number_map(
    weights: NDArray[np.floating], rows: Sequence[str], keys: Sequence[str], palette: Palette
) -> go.Figure:
    """Weights (Q, K) as numbers in coloured cells, and each row's sum behind them.

    A NaN is named as what it is, on no colour.
    """
    numbers = np.hstack([weights, weights.sum(axis=-1, keepdims=True, dtype=np.float64)]).astype(np.float32)
    few = numbers.shape[1] <= LEGIBLE  # else a number is told on hover only
    printed = [[_hundredths(n) for n in line] for line in numbers.tolist()]
    words = [["NaN" if np.isnan(n) else "" if few else f"{n:.4f}" for n in line] for line in numbers]
    figure = mask_map(np.ones(numbers.shape, bool), rows, [*keys, _("sum")], palette, words)
    figure.update_traces(
        z=numbers,
        colorscale=None,
        coloraxis="coloraxis",
        text=printed,
        texttemplate="%{text}" if few else None,
        textfont={"size": print_size([word for line in printed for word in line], numbers.shape[1])},
        selector={"name": "open"},
    )
    return figure.update_layout(coloraxis=scale(palette))
