"""The same head as lines between two columns of tokens: the darker, the more weight."""

import numpy as np
import plotly.graph_objects as go

from model.trace import asked, asks
from viz.figures.cells import sheet
from viz.figures.heatmap import HEIGHT
from viz.reading import Map, number, outgoing, row_names
from viz.text import _
from viz.theme import Palette, escape, label_size

STEPS = 12  # shades of opacity


def attention_lines(picture: Map, query: int, palette: Palette, faint: float) -> go.Figure:
    """Queries on the left, keys on the right; the chosen row's lines in the accent colour.

    Lines under `faint` are left out; `hidden` says how much weight that is. A marker in the middle
    of each line carries the exact weight and takes the click; its customdata is [query, key].
    """
    queries, keys = picture.trace.axes(picture.kind)
    figure = sheet(palette, HEIGHT)
    left, right = _places(len(queries)), _places(len(keys))
    drawn = np.argwhere(picture.weights >= max(faint, 1e-9)).tolist()
    shade = np.ceil(picture.weights * STEPS).astype(int)
    for chosen in (False, True):
        for step in range(1, STEPS + 1):
            lines = [(a, b) for a, b in drawn if (a == query) == chosen and shade[a, b] == step]
            if lines:
                figure.add_trace(
                    go.Scatter(
                        x=[x for _line in lines for x in (0, 1, None)],
                        y=[y for a, b in lines for y in (left[a], right[b], None)],
                        mode="lines",
                        line={
                            "color": palette.accent if chosen else palette.weights[3][1],
                            "width": 1 + 4 * step / STEPS,
                        },
                        opacity=step / STEPS,
                        hoverinfo="skip",
                        name=f"weight {step}",
                    )
                )
    names = row_names(picture.trace, picture.kind)
    figure.add_trace(
        go.Scatter(
            x=[0.5] * len(drawn),
            y=[(left[a] + right[b]) / 2 for a, b in drawn],
            customdata=drawn,
            mode="markers",
            marker={"size": 14, "opacity": 0},
            selected={"marker": {"opacity": 0}},
            unselected={"marker": {"opacity": 0}},
            hovertext=[
                f"{escape(names[a])}<br>"
                + _("reads {key}: {weight}").format(
                    key=escape(keys[b]), weight=f"<b>{number(float(picture.weights[a, b]))}</b>"
                )
                for a, b in drawn
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            name="cells",
        )
    )
    _column(figure, queries, left, -0.02, "right", palette.token(asks(picture.kind)), query)
    _column(figure, keys, right, 1.02, "left", palette.token(asked(picture.kind)), None)
    out = outgoing(picture.trace, picture.kind)
    heads = [
        (-0.02, "right", _("asks (query)") if out is None else _("goes in (query)")),
        (1.02, "left", _("is asked (key)")),
    ]
    for x, anchor, text in heads:
        figure.add_annotation(
            x=x, y=-0.06, text=text, xanchor=anchor, yanchor="bottom", showarrow=False,
            font={"size": 14, "color": palette.quiet},
        )  # fmt: skip
    plain = {"visible": False, "fixedrange": True}
    figure.update_layout(xaxis={**plain, "range": [-0.45, 1.45]}, yaxis={**plain, "range": [1.05, -0.16]})
    return figure


def hidden(picture: Map, faint: float) -> float:
    """The share of all weight that lies on lines too faint to be drawn."""
    weights = picture.weights
    return float(weights[weights < faint].sum() / max(weights.sum(), 1e-9))


def _places(count: int) -> np.ndarray:
    return np.linspace(0, 1, count) if count > 1 else np.array([0.5])


def _column(
    figure: go.Figure,
    pieces: tuple[str, ...],
    places: np.ndarray,
    x: float,
    anchor: str,
    colour: str,
    chosen: int | None,
) -> None:
    for index, (piece, y) in enumerate(zip(pieces, places, strict=True)):
        text = escape(piece)
        figure.add_annotation(
            x=x, y=y, text=f"<b>{text}</b>" if index == chosen else text, xanchor=anchor, yanchor="middle",
            showarrow=False, font={"size": label_size(len(pieces)), "color": colour},
        )  # fmt: skip
