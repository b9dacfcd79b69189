"""All heads of a layer, small, on the scale of the large map."""

import math

import numpy as np
import plotly.graph_objects as go

from model.trace import Flags, Floats
from viz.figures.cells import cells, ground, hatch, scale, sheet
from viz.reading import Map, favourite, percent
from viz.text import _
from viz.theme import Palette, escape

HEIGHT = 400
COLUMNS = 4
GAP = 2  # cells between two heads; above each, one more for its number


def head_grid(picture: Map, palette: Palette) -> go.Figure:
    """Every head of `picture`'s layer as one mosaic; the chosen one is framed.

    One marker a head takes the click; its customdata is [head].
    """
    weights = picture.trace.weights(picture.kind)[picture.layer]  # (H, Q, K)
    allowed = picture.trace.allowed(picture.kind)[picture.layer]
    heads, rows, columns = weights.shape
    lift = max(1, round(rows * 0.16))
    corners = [
        (head // COLUMNS * (rows + GAP + lift) + lift, head % COLUMNS * (columns + GAP))
        for head in range(heads)
    ]
    mosaic, open_, shut = _mosaic(weights, allowed, corners)
    figure = sheet(palette, HEIGHT)
    figure.add_traces(
        [
            ground(shut, palette),
            cells(mosaic, open_),
            hatch(shut, palette, strokes=(0.0,)),
            _targets(picture, corners, (rows, columns)),
        ]
    )
    figure.update_traces(xgap=0, ygap=0, selector={"name": "weights"})
    frames, numbers = [], []
    for head, (top, left) in enumerate(corners):
        chosen = head == picture.head
        x, y = left - 0.5, top - 0.5
        frames.append({
            "type": "rect", "x0": x, "x1": x + columns, "y0": y, "y1": y + rows,
            "line": {"color": palette.accent if chosen else palette.hatch, "width": 3 if chosen else 1},
        })  # fmt: skip
        numbers.append({
            "x": x, "y": y, "xanchor": "left", "yanchor": "bottom", "showarrow": False,
            "text": f"<b>{head + 1}</b>" if chosen else f"{head + 1}",
            "font": {"size": 15, "color": palette.accent if chosen else palette.quiet},
        })  # fmt: skip
    wide, tall = COLUMNS * (columns + GAP) - GAP, math.ceil(heads / COLUMNS) * (rows + GAP + lift) - GAP
    plain = {"visible": False, "fixedrange": True}
    figure.update_layout(
        shapes=frames,
        annotations=numbers,
        xaxis={**plain, "range": [-0.7, wide - 0.3]},
        yaxis={**plain, "range": [tall - 0.3, -0.7]},
        coloraxis=scale(palette)
        | {
            "showscale": True,
            "colorbar": {
                "orientation": "h",
                "thickness": 12,
                "len": 0.6,
                "y": 0,
                "yanchor": "top",
                "tickvals": [0, 0.25, 0.5, 0.75, 1],
                "title": {"text": _("weight"), "side": "top"},
                "outlinewidth": 0,
            },
        },
    )
    return figure


def _mosaic(weights: Floats, allowed: Flags, corners: list[tuple[int, int]]) -> tuple[Floats, Flags, Flags]:
    """Weights, the cells that may be looked at and the blocked ones, on one sheet; between heads neither."""
    _heads, rows, columns = weights.shape
    shape = max(top for top, _left in corners) + rows, max(left for _top, left in corners) + columns
    mosaic = np.zeros(shape, np.float32)
    open_, shut = np.zeros(shape, bool), np.zeros(shape, bool)
    for head, (top, left) in enumerate(corners):
        place = slice(top, top + rows), slice(left, left + columns)
        mosaic[place], open_[place], shut[place] = weights[head], allowed[head], ~allowed[head]
    return mosaic, open_, shut


def _targets(picture: Map, corners: list[tuple[int, int]], size: tuple[int, int]) -> go.Scatter:
    rows, columns = size
    queries, keys = picture.trace.axes(picture.kind)
    said = []
    for head in range(len(corners)):
        one = Map(picture.trace, picture.kind, picture.layer, head)
        query = int(one.weights.max(axis=-1).argmax())
        key = favourite(one, query)
        said.append(
            f"<b>{_('head {head}').format(head=head + 1)}</b><br>"
            + _("sharpest row: {query} reads {key}, {share}").format(
                query=escape(queries[query]),
                key=escape(keys[key]),
                share=percent(float(one.weights[query, key])),
            )
        )
    return go.Scatter(
        x=[left + (columns - 1) / 2 for _top, left in corners],
        y=[top + (rows - 1) / 2 for top, _left in corners],
        customdata=[[head] for head in range(len(corners))],
        mode="markers",
        marker={"symbol": "square", "size": 60, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertext=said,
        hovertemplate="%{hovertext}<extra></extra>",
        name="heads",
    )
