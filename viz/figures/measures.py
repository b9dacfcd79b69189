"""Bars and curves: the weights of one row, what was measured over a width or a temperature, times.

Shapes: K keys, N places along an axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.trace import Floats
from viz.figures.cells import sheet
from viz.figures.stages import BARS, PLAIN
from viz.theme import Palette, escape


@dataclass(frozen=True)
class Row:
    """One row of weights (K,) as bars."""

    name: str
    weights: Floats


def row_bars(
    rows: Sequence[Row], names: Sequence[str], colour: str, palette: Palette, chosen: int | None = None
) -> go.Figure:
    """Weights over the keys, on one scale from 0 to 1; the last row is filled, the others are outlines."""
    figure = sheet(palette, 330)
    places = np.arange(len(names))
    labels = [f'<span style="color:{colour}">{escape(name)}</span>' for name in names]
    if chosen is not None:
        labels[chosen] = f"<b>{labels[chosen]}</b>"
    for row in rows:
        last = row is rows[-1]
        figure.add_trace(
            go.Bar(
                x=places,
                y=row.weights.astype(np.float32),
                width=0.62 if last else 0.84,
                marker={
                    "color": palette.weights[2][1] if last else "rgba(0,0,0,0)",
                    "line": {"color": palette.weights[2][1] if last else palette.quiet, "width": 2},
                },
                text=[f"{weight:.2f}" for weight in row.weights] if last and len(names) <= 16 else None,
                textposition="outside",
                textfont={"size": 15},
                cliponaxis=False,
                customdata=[escape(name) for name in names],
                hovertemplate=f"{row.name}<br>%{{customdata}}: <b>%{{y:.4f}}</b><extra></extra>",
                name=row.name,
            )
        )
    figure.update_layout(
        barmode="overlay",
        **BARS,
        hovermode="x",
        xaxis={
            **PLAIN,
            "tickvals": places.tolist(),
            "ticktext": labels,
            "tickfont": {"size": 16 if len(names) <= 12 else 12},
            "tickangle": -90 if len(names) > 16 else -50 if sum(map(len, names)) > 60 else 0,
            "automargin": True,
        },
        yaxis={
            **PLAIN,
            "range": (0, 1.12),
            "tickvals": [0, 0.5, 1],
            "showgrid": True,
            "gridcolor": palette.blocked,
            "automargin": True,
        },
    )  # fmt: skip
    return figure


@dataclass(frozen=True)
class Line:
    """A measured quantity (N,) over an axis; `dotted` is a curve that theory gives."""

    name: str
    y: Sequence[float]
    dotted: bool = False
    named_at: int = -1  # the point that the name stands at, to its right; the last: above it
    below: bool = False  # the name stands under the line


def curves(
    x: Sequence[float],
    lines: Sequence[Line],
    palette: Palette,
    titles: tuple[str, str],
    marks: dict[float, str],
    at: float,
    logarithmic: bool = False,
) -> go.Figure:
    """Lines over a logarithmic x, named marks on that axis, and the reader's place as an upright line.

    `logarithmic` makes y so too: a power law is then a straight line.
    """
    figure = sheet(palette, 340)
    colours = iter((palette.weights[3][1], palette.text))
    for line in lines:
        colour = palette.quiet if line.dotted else next(colours)
        figure.add_trace(
            go.Scatter(
                x=list(x),
                y=list(line.y),
                mode="lines" if line.dotted else "lines+markers",
                line={"color": colour, "width": 2, "dash": "dot" if line.dotted else "solid"},
                marker={"size": 9},
                hovertemplate=f"{line.name}<br>{titles[0]} %{{x}}: <b>%{{y:.4f}}</b><extra></extra>",
                name=line.name,
            )
        )
        x_at, y_at = x[line.named_at], line.y[line.named_at]
        figure.add_annotation(
            x=np.log10(x_at),
            y=np.log10(y_at) if logarithmic else y_at,
            text=line.name,
            showarrow=False,
            xanchor="right" if line.named_at == -1 else "left",
            yanchor="top" if line.below else "bottom",
            yshift=-4 if line.below else 4,
            xshift=0 if line.named_at == -1 else 6,
            font={"size": 15, "color": colour},
        )
    for place, name in marks.items():
        figure.add_vline(x=place, line={"color": palette.hatch, "width": 1, "dash": "dash"})
        figure.add_annotation(
            x=np.log10(place), y=0, yref="paper", text=name, showarrow=False, textangle=-90, xanchor="right",
            yanchor="bottom", font={"size": 12, "color": palette.quiet},
        )  # fmt: skip
    figure.add_vline(x=at, line={"color": palette.accent, "width": 2})
    axis = {**PLAIN, "showgrid": True, "gridcolor": palette.blocked, "automargin": True}
    figure.update_layout(
        xaxis={**axis, "type": "log", "title": {"text": titles[0]}, "tickvals": _few(x)},
        yaxis={**axis, "title": {"text": titles[1]}, "rangemode": "tozero"},
    )
    if logarithmic:
        figure.update_layout(yaxis={"type": "log", "tickvals": [2**power for power in range(11)]})
    return figure


def _few(x: Sequence[float]) -> list[float]:
    """Ticks that do not touch: some of the places, from the first to the last."""
    return [x[index] for index in sorted({round(each) for each in np.linspace(0, len(x) - 1, 6)})]


def time_bars(names: Sequence[str], microseconds: Sequence[float], palette: Palette) -> go.Figure:
    """Two times as two bars, from 0."""
    figure = sheet(palette, 190)
    figure.add_trace(
        go.Bar(
            x=list(microseconds),
            y=list(names),
            orientation="h",
            marker={"color": palette.weights[2][1]},
            text=[f" {value:,.1f} µs" for value in microseconds],
            textposition="outside",
            textfont={"size": 16},
            hovertemplate="%{y}: <b>%{x:.4f} µs</b><extra></extra>",
            name="times",
        )
    )
    figure.update_layout(
        **BARS,
        xaxis={**PLAIN, "range": (0, 1.25 * max(microseconds)), "showticklabels": False},
        yaxis={**PLAIN, "automargin": True, "autorange": "reversed", "tickfont": {"size": 16}},
    )
    return figure
