"""What all pictures share: token axes, hatching, the one scale of weights, the base layout.

Tokens sit at integer positions and are only labelled by their text: as plotly categories, equal words
would merge into one column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace import Flags, Floats
from viz.theme import FONT, Palette

READABLE = 40  # tokens along an axis that can still be read; beyond, a window is shown and moved


def sheet(palette: Palette, height: int) -> go.Figure:
    """An empty figure in the colours of the theme."""
    figure = go.Figure()
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "size": 15, "color": palette.text},
        showlegend=False,
        hovermode="closest",
        hoverdistance=-1,
        clickmode="event+select",
        dragmode=False,
        hoverlabel={"bgcolor": palette.ground, "font": {"color": palette.text, "size": 15}, "align": "left"},
    )
    return figure


def scale(palette: Palette) -> dict[str, Any]:
    """The one scale of weights, 0 to 1 on every head and layer, for a coloraxis."""
    return {"colorscale": [list(stop) for stop in palette.weights], "cmin": 0, "cmax": 1, "showscale": False}


def signed_scale(palette: Palette, limit: float) -> dict[str, Any]:
    """The scale of signed numbers, centred on 0, from -limit to limit."""
    return {
        "colorscale": [list(stop) for stop in palette.signed],
        "cmin": -limit,
        "cmax": limit,
        "showscale": False,
    }


def cells(weights: Floats, allowed: Flags) -> go.Heatmap:
    """The weights; a blocked cell is left out, since "may not look" must not read as "did not look"."""
    return go.Heatmap(
        z=np.where(allowed, weights, np.nan).astype(np.float32),
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverinfo="skip",
        name="weights",
    )


def ground(blocked: Flags, palette: Palette) -> go.Heatmap:
    """The ground of blocked cells, under their hatch."""
    return go.Heatmap(
        z=np.where(blocked, 0, np.nan),
        colorscale=[[0, palette.blocked], [1, palette.blocked]],
        showscale=False,
        hoverinfo="skip",
        name="ground",
    )


def hatch(blocked: Flags, palette: Palette, strokes: Sequence[float] = (-0.5, 0.0, 0.5)) -> go.Scatter:
    """Diagonal strokes through every blocked cell; `strokes` are the values of x + y in a cell."""
    cells = np.argwhere(blocked).astype(np.float32)  # (N, 2), query and key
    at = np.array(strokes, np.float32)
    left, right, gap = np.maximum(-0.5, at - 0.5), np.minimum(0.5, at + 0.5), np.full_like(at, np.nan)
    across = np.stack([left, right, gap], axis=-1)  # (strokes, 3): from, to, and a break in the line
    down = np.stack([at - left, at - right, gap], axis=-1)
    # Arrays, not lists: plotly checks a list number by number.
    x = (cells[:, 1, None, None] + across).ravel()
    y = (cells[:, 0, None, None] + down).ravel()
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": palette.hatch, "width": 1},
        hoverinfo="skip",
        name="hatch",
    )


def window(count: int, around: int) -> tuple[float, float]:
    """The range of an axis that shows all tokens, or the `READABLE` ones around one of them."""
    start = 0 if count <= READABLE else min(max(0, around - READABLE // 2), count - READABLE)
    return start - 0.5, start + min(count, READABLE) - 0.5
