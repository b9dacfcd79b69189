"""The stages of one head: vectors as bands of cells, where q, k and v come from, masked scores.

All vectors are signed numbers on the diverging scale, centred on 0; hovering tells them to four digits.
Shapes: H heads, Q queries, K keys, D d_model, d width of a head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace import Floats
from viz.figures.cells import ground, hatch, sheet, signed_scale
from viz.figures.heatmap import Look, signed_map
from viz.reading import Map, reason_name, reasons, row_names
from viz.text import _
from viz.theme import Palette, escape

ROWS = 16  # tokens that a band shows; of a longer sentence, those around the chosen one
# In px. Under the boundless distance of `sheet` plotly names the last bar, wherever one points.
BARS: dict[str, Any] = {"hoverdistance": 20}
PLAIN = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}


@dataclass(frozen=True)
class Band:
    """One matrix of vectors: a row a token, a column a dimension."""

    title: str
    numbers: Floats  # (T, n)
    names: Sequence[str]
    colour: str  # of the names
    limit: float  # colours go from -limit to limit
    chosen: int | None = None  # the row that is framed
    values: bool = False  # numbers in the cells; for bands of few columns


def largest(*numbers: Floats) -> float:
    """The largest absolute value: the limit of a scale that several bands share."""
    return max((float(abs(each).max()) for each in numbers if each.size), default=0) or 1.0


def first_row(count: int, around: int | None) -> int:
    """The first of the `ROWS` rows that are shown."""
    return 0 if count <= ROWS or around is None else min(max(0, around - ROWS // 2), count - ROWS)


def bands(parts: Sequence[Band], palette: Palette) -> go.Figure:
    """Matrices one above the other on one axis of dimensions, counted from 1."""
    starts, at, ticks, labels = [], 0.0, [], []
    figure = sheet(palette, ROWS)  # its height follows below
    width = max(part.numbers.shape[1] for part in parts)
    for part in parts:
        start = first_row(len(part.numbers), part.chosen)
        numbers = part.numbers[start : start + ROWS]
        names = part.names[start : start + ROWS]
        at += 1.3  # room for the title
        starts.append(at)
        y = [at + row for row in range(len(numbers))]
        figure.add_trace(_band(part, numbers, y, palette))
        figure.add_annotation(
            x=-0.5, y=at - 0.55, text=f"<b>{part.title}</b>", showarrow=False, xanchor="left",
            yanchor="bottom", font={"size": 15},
        )  # fmt: skip
        for row, name in enumerate(names):
            chosen = start + row == part.chosen
            labels.append(_coloured(name, part.colour, chosen) + " ")
            ticks.append(y[row])
            if chosen:
                figure.add_shape(
                    type="rect", x0=-0.5, x1=part.numbers.shape[1] - 0.5, y0=y[row] - 0.5, y1=y[row] + 0.5,
                    line={"color": palette.accent, "width": 2},
                )  # fmt: skip
        at += len(numbers)
    unit = 26 if at < 14 else 20 if at < 40 else 18
    figure.update_layout(
        height=round(24 + unit * at),
        xaxis={**PLAIN, "range": (-0.5, width - 0.5), "showticklabels": False},
        yaxis={
            **PLAIN,
            "range": (at - 0.4, -0.2),
            "tickvals": ticks,
            "ticktext": labels,
            "tickfont": {"size": min(16, unit - 4)},
            "automargin": True,
        },
    )
    return figure


def _band(part: Band, numbers: Floats, y: Sequence[float], palette: Palette) -> go.Heatmap:
    return go.Heatmap(
        z=numbers.astype(np.float32),
        x=np.arange(numbers.shape[1]),
        y=list(y),
        **_colours(palette, part.limit),
        ygap=1,
        xgap=1 if numbers.shape[1] <= 64 else 0,
        texttemplate="%{z:.2f}" if part.values else None,
        textfont={"size": 12},
        customdata=np.broadcast_to(np.arange(1, numbers.shape[1] + 1, dtype=np.int16), numbers.shape),
        hovertemplate="%{y}, "
        + _("dimension {number}").format(number="%{customdata}")
        + "<br><b>%{z:.4f}</b><extra></extra>",
        name=part.title,
    )


def matrix(numbers: Floats, name: str, limit: float, palette: Palette) -> go.Figure:
    """A learned matrix (rows, columns) in whole, small; rows and columns count from 1."""
    rows, columns = numbers.shape
    figure = sheet(palette, 280)
    figure.add_trace(
        go.Heatmap(
            z=numbers.astype(np.float32),
            x=np.arange(1, columns + 1),
            y=np.arange(1, rows + 1),
            **_colours(palette, limit),
            hovertemplate=_("row {row}, column {column}").format(row="%{y}", column="%{x}")
            + "<br><b>%{z:.4f}</b><extra></extra>",
            name=name,
        )
    )
    hidden = {**PLAIN, "showticklabels": False}
    figure.update_layout(
        xaxis={**hidden, "range": (0.5, columns + 0.5)}, yaxis={**hidden, "range": (rows + 0.5, 0.5)}
    )
    return figure


def _colours(palette: Palette, limit: float) -> dict[str, object]:
    """The signed scale under a heatmap's own names."""
    scale = signed_scale(palette, limit)
    return {
        "colorscale": scale["colorscale"],
        "zmin": scale["cmin"],
        "zmax": scale["cmax"],
        "showscale": False,
    }


def strips(
    heads: Floats, names: Sequence[str], colour: str, row: int, head: int, palette: Palette
) -> go.Figure:
    """The outputs of all heads (H, Q, d) side by side, Z1 to Zh; the chosen head and row are framed."""
    count, _queries, width = heads.shape
    gap = max(1, width // 8)
    start, limit = first_row(heads.shape[1], row), largest(heads)
    shown = heads[:, start : start + ROWS]
    rows = shown.shape[1]
    figure = sheet(palette, 60 + max(14, min(26, 360 // rows)) * rows)
    for number in range(count):
        left = number * (width + gap)
        band = Band(f"Z{number + 1}", shown[number], names, colour, limit)
        strip = _band(band, shown[number], range(rows), palette)
        strip.update(x=left + np.arange(width), xgap=0)
        figure.add_trace(strip)
        chosen = number == head
        figure.add_annotation(
            x=left + (width - 1) / 2, y=-0.6, yanchor="bottom", showarrow=False,
            text=f"<b>Z{number + 1}</b>" if chosen else f"Z{number + 1}",
            font={"size": 16, "color": palette.accent if chosen else palette.text},
        )  # fmt: skip
        figure.add_shape(
            type="rect", x0=left - 0.5, x1=left + width - 0.5, y0=-0.5, y1=rows - 0.5,
            line={"color": palette.accent if chosen else palette.hatch, "width": 3 if chosen else 1},
        )  # fmt: skip
    all_ = count * (width + gap) - gap
    figure.add_shape(
        type="rect", x0=-0.5, x1=all_ - 0.5, y0=row - start - 0.5, y1=row - start + 0.5,
        line={"color": palette.accent, "width": 1},
    )  # fmt: skip
    figure.update_layout(
        xaxis={**PLAIN, "range": (-0.7, all_ - 0.3), "showticklabels": False},
        yaxis={
            **PLAIN,
            "range": (rows - 0.4, -1.6),
            "tickvals": list(range(rows)),
            "ticktext": [_coloured(name, colour, False) + " " for name in names[start : start + ROWS]],
            "automargin": True,
        },
    )
    return figure


def masked_scores(picture: Map, scores: Floats, query: int, key: int, look: Look) -> go.Figure:
    """Scores (Q, K) on the signed scale, the blocked cells hatched: they go on as -inf."""
    figure = signed_map(picture, scores, largest(scores), query, key, look)
    why = reasons(picture.trace, picture.kind, picture.allowed)
    names, keys = row_names(picture.trace, picture.kind), picture.trace.axes(picture.kind)[1]
    (marks,) = figure.select_traces({"name": "cells"})
    (drawn,) = figure.select_traces({"name": "weights"})
    drawn.z = np.where(picture.allowed, scores, np.nan).astype(np.float32)
    marks.hovertext = [
        f"{escape(names[a])}, {escape(keys[b])}<br>{reason_name(why[a][b])}: −∞" if why[a][b] else said
        for (a, b), said in zip(marks.customdata, marks.hovertext, strict=True)
    ]
    figure.add_traces([ground(~picture.allowed, look.palette), hatch(~picture.allowed, look.palette)])
    return figure


@dataclass(frozen=True)
class Source:
    """Where some of q, k and v come from: a box with its words, in the colour of its sentence."""

    words: str  # with <br>
    colour: str
    makes: str  # of "qkv"


def sources(parts: Sequence[Source], palette: Palette) -> go.Figure:
    """X, the three matrices and what they make: an arrow each, from the box that it comes from."""
    figure = sheet(palette, 240)
    high = {"q": 2.0, "k": 1.0, "v": 0.0}
    said = {"q": _("q: asks"), "k": _("k: is asked"), "v": _("v: is taken")}
    for part in parts:
        middle = sum(high[letter] for letter in part.makes) / len(part.makes)
        half = 0.4 + 0.5 * (len(part.makes) - 1)
        _box(figure, (0, 4.1), (middle - half, middle + half), part.words, part.colour, 14)
        for letter in part.makes:
            y = high[letter]
            _arrow(figure, (4.15, y), (4.95, y), part.colour)
            _box(
                figure,
                (5.0, 6.4),
                (y - 0.35, y + 0.35),
                f"<i>W</i><sup>{letter.upper()}</sup>",
                palette.hatch,
                16,
            )
            _arrow(figure, (6.45, y), (7.2, y), part.colour)
            figure.add_annotation(
                x=7.3, y=y, text=f"<b>{said[letter]}</b>", showarrow=False, xanchor="left",
                font={"size": 16, "color": part.colour},
            )  # fmt: skip
    hidden = {**PLAIN, "visible": False}
    figure.update_layout(xaxis={**hidden, "range": (-0.05, 10)}, yaxis={**hidden, "range": (-0.5, 2.5)})
    return figure


def _box(
    figure: go.Figure, x: tuple[float, float], y: tuple[float, float], words: str, colour: str, size: int
) -> None:
    figure.add_shape(type="rect", x0=x[0], x1=x[1], y0=y[0], y1=y[1], line={"color": colour, "width": 2})
    figure.add_annotation(
        x=sum(x) / 2, y=sum(y) / 2, text=words, showarrow=False, font={"size": size}, align="center"
    )


def _arrow(figure: go.Figure, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    figure.add_annotation(
        x=end[0], y=end[1], ax=start[0], ay=start[1], xref="x", yref="y", axref="x", ayref="y", text="",
        showarrow=True, arrowhead=2, arrowwidth=2, arrowcolor=colour,
    )  # fmt: skip


def _coloured(piece: str, colour: str, chosen: bool) -> str:
    text = f'<span style="color:{colour}">{escape(piece)}</span>'
    return f"<b>{text}</b>" if chosen else text
