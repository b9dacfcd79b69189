"""Positions as pictures: encodings, what they add to a sentence, and how they turn.

Positions and dimensions count from 0, as in the paper's formula.
Shapes: L layers, H heads, K keys, T pieces, N positions, D d_model.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.trace import Embedding, Flags, Floats
from viz.figures.cells import READABLE, cells, ground, hatch, scale, sheet, signed_scale, window
from viz.figures.stages import BARS
from viz.order import norms, shares
from viz.reading import percent
from viz.text import _
from viz.theme import Palette, escape, label_size

PLAIN: dict[str, Any] = {
    "showgrid": False,
    "zeroline": False,
    "showline": False,
    "ticks": "",
    "fixedrange": True,
    "automargin": True,
}
CROWDED = 16  # columns that two maps side by side can show with their numbers
LEGIBLE = 10  # columns whose numbers fit a phone
NARROW = 270  # px that a phone leaves for columns
DOTS = 80  # positions up to which each one is marked on a curve


def numbered(pieces: Sequence[str], first: int = 0) -> list[str]:
    """Names that tell equal pieces apart: the place, counted from `first`, then the piece."""
    return [f"{index} {piece}" for index, piece in enumerate(pieces, first)]


def _title(text: str, palette: Palette) -> dict[str, Any]:
    return {"text": text, "standoff": 8, "font": {"size": 14, "color": palette.quiet}}


def dimension_map(
    numbers: Floats, limit: float, palette: Palette, chosen: int, names: Sequence[str] | None = None
) -> go.Figure:
    """Vectors (T, D), one a row, in colours from -limit to limit; `names` of the rows where they have any."""
    count, width = numbers.shape
    figure = sheet(palette, 430 if names is None else max(190, 70 + 21 * min(count, READABLE)))
    figure.add_trace(
        go.Heatmap(
            z=numbers,
            coloraxis="coloraxis",
            hovertemplate=_("position")
            + " %{y}, "
            + _("dimension")
            + " %{x}<br><b>%{z:+.4f}</b><extra></extra>",
            name="numbers",
        )
    )
    rows: dict[str, Any] = {"title": _title(_("position"), palette), "range": [count - 0.5, -0.5]}
    if names is not None:
        shown = [
            f"<b>{escape(name)}</b>" if index == chosen else escape(name) for index, name in enumerate(names)
        ]
        rows = {
            "tickvals": list(range(count)),
            "ticktext": [name + " " for name in shown],
            "tickfont": {"size": label_size(count)},
            "range": window(count, chosen)[::-1],
        }
    figure.update_layout(
        xaxis={
            **PLAIN,
            "title": _title(_("dimension"), palette) | {"standoff": 20},
            "range": [-0.5, width - 0.5],
        },
        yaxis={**PLAIN, "fixedrange": count <= READABLE or names is None, **rows},
        dragmode="pan" if names is not None and count > READABLE else False,
        coloraxis=signed_scale(palette, limit)
        | {
            "showscale": names is None,  # else three maps side by side share it, and say so
            "colorbar": {
                "orientation": "h",
                "thickness": 10,
                "len": 0.7,
                "y": 1,
                "yanchor": "bottom",
                "outlinewidth": 0,
                "tickvals": [-limit, 0, limit],
                "tickformat": "+.1f",
            },
        },
    )
    _frame(figure, -0.5, width - 0.5, chosen, palette)
    return figure


def norm_bars(embedding: Embedding, pieces: Sequence[str], palette: Palette, chosen: int) -> go.Figure:
    """For each piece the length of its embedding and of its position, and a mark at that of their sum."""
    lengths, parts = norms(embedding), shares(embedding)
    names = numbered(pieces)
    count = len(names)
    figure = sheet(palette, max(240, 120 + (30 if count <= CROWDED else 20) * min(count, READABLE)))
    places = np.arange(count)
    said = [
        f"<b>{escape(name)}</b><br>"
        + _("embedding × √d: length {length:.2f}, share of the sum {share}").format(
            length=row[0], share=percent(float(part[0]))
        )
        + "<br>"
        + _("position: length {length:.2f}, share of the sum {share}").format(
            length=row[1], share=percent(float(part[1]))
        )
        + "<br>"
        + _("sum: length {length:.2f}").format(length=row[2])
        for name, row, part in zip(names, lengths, parts, strict=True)
    ]
    shared = {
        "orientation": "h",
        "width": 0.36,
        "hovertext": said,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    figure.add_traces(
        [
            go.Bar(
                y=places - 0.2,
                x=lengths[:, 0],
                name=_("embedding × √d"),
                marker={"color": palette.quiet},
                **shared,
            ),
            go.Bar(
                y=places + 0.2,
                x=lengths[:, 1],
                name=_("position"),
                marker={"color": palette.hatch},
                **shared,
            ),
            go.Scatter(
                y=places,
                x=lengths[:, 2],
                mode="markers+text",
                marker={
                    "symbol": "line-ns",
                    "size": 24 if count <= CROWDED else 14,
                    "line": {"width": 3, "color": palette.text},
                },
                text=["  " + percent(float(part[1])) for part in parts],
                textposition="middle right",
                textfont={"color": palette.quiet},
                name=_("sum, and the share of the position in it"),
                hovertext=said,
                hovertemplate="%{hovertext}<extra></extra>",
            ),
        ]
    )
    figure.update_layout(
        barmode="overlay",
        **BARS,
        showlegend=True,
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "itemclick": False},
        xaxis={
            **PLAIN,
            "title": _title(_("length (Euclidean norm)"), palette),
            "range": [0, 1.3 * float(lengths.max())],
        },
        yaxis={
            **PLAIN,
            "tickvals": list(range(count)),
            "ticktext": [
                (f"<b>{escape(name)}</b>" if index == chosen else escape(name)) + " "
                for index, name in enumerate(names)
            ],
            "tickfont": {"size": label_size(count, 500)},
            "range": window(count, chosen)[::-1],
            "fixedrange": count <= READABLE,
        },
        dragmode="pan" if count > READABLE else False,
    )
    return figure


def curves(
    encoding: Floats, dimensions: Sequence[int], wavelengths: NDArray[np.float64], at: int, palette: Palette
) -> go.Figure:
    """One strip for each chosen dimension of `encoding` (N, D); the position `at` is marked on all."""
    count, strips = len(encoding), max(1, len(dimensions))
    figure = sheet(palette, 90 + 110 * strips)
    positions = np.arange(count)
    for row, dimension in enumerate(dimensions):
        axis = f"y{row + 1}" if row else "y"
        values = encoding[:, dimension]
        figure.add_trace(
            go.Scatter(
                x=positions,
                y=values,
                yaxis=axis,
                mode="lines+markers" if count <= DOTS else "lines",
                line={"color": palette.text, "width": 1.5},
                marker={"size": 5},
                hovertemplate=_("position") + " %{x}<br><b>%{y:+.4f}</b><extra></extra>",
                name=f"dimension {dimension}",
            )
        )
        if at < count:
            figure.add_trace(
                go.Scatter(
                    x=[at],
                    y=values[[at]],
                    yaxis=axis,
                    mode="markers",
                    marker={"size": 11, "color": palette.accent},
                    hoverinfo="skip",
                    name="chosen",
                )
            )
        wave = _("{function}, dimension {dimension}: one wave in {length:,.1f} positions").format(
            function="cos" if dimension % 2 else "sin",
            dimension=dimension,
            length=wavelengths[dimension // 2],
        )
        top = 1 - row / strips
        figure.add_annotation(
            xref="paper", yref="paper", x=0, y=top, text=wave, showarrow=False, xanchor="left",
            yanchor="top", font={"size": 15, "color": palette.quiet},
        )  # fmt: skip
        figure.update_layout(
            {
                "yaxis" + axis[1:]: {
                    **PLAIN,
                    "domain": [top - 0.78 / strips, top - 0.26 / strips],
                    "range": [-1.15, 1.15],
                    "tickvals": [-1, 0, 1],
                    "tickfont": {"size": 13},
                    "zeroline": True,
                    "zerolinecolor": palette.hatch,
                }
            }
        )
    figure.update_layout(
        xaxis={
            **PLAIN,
            "title": _title(_("position"), palette),
            "range": [-0.02 * count, 1.02 * count - 1],
            "anchor": "free",
            "position": 0,
        }
    )
    return figure


def vector(encoding: Floats, at: int, palette: Palette) -> go.Figure:
    """The encoding (D,) of the position `at`: a bar for each dimension."""
    figure = sheet(palette, 330)
    values = encoding[at]
    figure.add_trace(
        go.Bar(
            x=np.arange(len(values)),
            y=values,
            marker={"color": values, "coloraxis": "coloraxis", "line": {"width": 0}},
            hovertemplate=_("dimension") + " %{x}<br><b>%{y:+.4f}</b><extra></extra>",
            name="vector",
        )
    )
    figure.update_layout(
        bargap=0,
        **BARS,
        hovermode="x",
        coloraxis=signed_scale(palette, 1.0),
        xaxis={**PLAIN, "title": _title(_("dimension (even: sin, odd: cos)"), palette)},
        yaxis={
            **PLAIN,
            "range": [-1.05, 1.05],
            "tickvals": [-1, 0, 1],
            "zeroline": True,
            "zerolinecolor": palette.hatch,
        },
    )
    return figure


def products(encoding: Floats, at: int, palette: Palette) -> go.Figure:
    """The dot product of the encoding of `at` with every other, by distance; at 0 its own squared length."""
    figure = sheet(palette, 330)
    distances = np.arange(len(encoding)) - at
    values = encoding @ encoding[at]
    figure.add_trace(
        go.Scatter(
            x=distances,
            y=values,
            mode="lines+markers" if len(values) <= DOTS else "lines",
            line={"color": palette.text, "width": 1.5},
            marker={"size": 5},
            hovertemplate=_("distance") + " %{x:+d}<br><b>%{y:.3f}</b><extra></extra>",
            name="products",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=[0],
            y=values[[at]],
            mode="markers",
            marker={"size": 11, "color": palette.accent},
            hoverinfo="skip",
            name="chosen",
        )
    )
    figure.update_layout(
        xaxis={**PLAIN, "title": _title(_("distance from position {at}").format(at=at), palette)},
        yaxis={
            **PLAIN,
            "title": _title(_("dot product"), palette),
            "zeroline": True,
            "zerolinecolor": palette.hatch,
            "rangemode": "tozero",
        },
    )
    return figure


def rotation(encoding: Floats, pair: int, at: int, offset: int, angle: float, palette: Palette) -> go.Figure:
    """One pair of dimensions as points on a circle: `at`, `at + offset`, the positions between, the angle.

    Across lies the cosine (dimension 2 pair + 1), up the sine (2 pair), so that angles open to the left.
    """
    figure = sheet(palette, 430)
    circle = np.linspace(0, 2 * np.pi, 181)
    points = encoding[at : at + offset + 1, 2 * pair : 2 * pair + 2]
    start = math.atan2(points[0, 0], points[0, 1])
    # However often the pair turns, the arc is drawn once round at most.
    sweep = start + np.linspace(0, min(angle, 2 * np.pi), 91)
    figure.add_traces(
        [
            _line(np.cos(circle), np.sin(circle), palette.hatch, 1, "circle"),
            _line(0.35 * np.cos(sweep), 0.35 * np.sin(sweep), palette.accent, 2, "angle"),
            go.Scatter(
                x=points[1:-1, 1],
                y=points[1:-1, 0],
                mode="markers",
                marker={"size": 6, "color": palette.hatch},
                hovertext=[str(at + step) for step in range(1, offset)],
                hovertemplate=_("position") + " %{hovertext}<extra></extra>",
                name="between",
            ),
        ]
    )
    # The farther label goes last, so that it stays legible where both points meet.
    for position, point, colour, name in (
        (at, points[0], palette.text, "from"),
        (at + offset, points[-1], palette.accent, "to"),
    ):
        sine, cosine = (float(part) for part in point)
        figure.add_trace(_line(np.array([0, cosine]), np.array([0, sine]), colour, 2, f"{name} line"))
        figure.add_trace(
            go.Scatter(
                x=[cosine],
                y=[sine],
                mode="markers",
                marker={"size": 13, "color": colour},
                hovertext=[_("position {at}: sin {sine:+.4f}, cos {cosine:+.4f}").format(
                    at=position, sine=sine, cosine=cosine
                )],
                hovertemplate="%{hovertext}<extra></extra>",
                name=name,
            )
        )  # fmt: skip
        if name == "from" or offset:
            far = 1.22 if name == "to" else 1.14
            figure.add_annotation(
                x=far * cosine, y=far * sine, text=f"<b>{position}</b>", showarrow=False,
                font={"size": 18, "color": colour},
            )  # fmt: skip
    side = {**PLAIN, "range": [-1.35, 1.35], "zeroline": True, "zerolinecolor": palette.hatch}
    ticks = {"tickvals": [-1, 0, 1], "tickfont": {"size": 13}}
    figure.update_layout(
        xaxis={
            **side,
            **ticks,
            "title": _title(_("dimension {dimension}: cos").format(dimension=2 * pair + 1), palette),
            "constrain": "domain",
        },
        yaxis={
            **side,
            **ticks,
            "title": _title(_("dimension {dimension}: sin").format(dimension=2 * pair), palette),
            "scaleanchor": "x",
            "constrain": "domain",
        },
    )
    return figure


def shift_curve(losses: Mapping[int, float], longest: int, chosen: int, palette: Palette) -> go.Figure:
    """The loss by how far the sentence was shifted; beyond the line no position was met in training."""
    figure = sheet(palette, 300)
    shifts, values = list(losses), list(losses.values())
    figure.add_trace(
        go.Scatter(
            x=shifts,
            y=values,
            mode="lines+markers",
            line={"color": palette.text, "width": 1.5},
            marker={"size": [13 if shift == chosen else 7 for shift in shifts],
                    "color": [palette.accent if shift == chosen else palette.text for shift in shifts]},
            hovertemplate=_("shifted by") + " %{x}<br>" + _("loss") + " <b>%{y:.3f}</b><extra></extra>",
            name="losses",
        )
    )  # fmt: skip
    figure.add_shape(
        type="line", x0=longest, x1=longest, y0=0, y1=1, yref="paper",
        line={"color": palette.hatch, "width": 2, "dash": "dash"},
    )  # fmt: skip
    figure.add_annotation(
        x=longest, y=1, yref="paper", text=" " + _("longest in training"), showarrow=False,
        xanchor="left", yanchor="top", font={"size": 14, "color": palette.quiet},
    )  # fmt: skip
    figure.update_layout(
        xaxis={**PLAIN, "title": _title(_("shifted by k"), palette)},
        yaxis={
            **PLAIN,
            "title": _title(_("loss on the translation before"), palette),
            "range": [0, 1.15 * max(values)],
            "zeroline": True,
            "zerolinecolor": palette.hatch,
        },
    )
    return figure


def parts(count: int) -> list[slice]:
    """Columns in parts of equal length that even a phone can label."""
    some = -(-count // CROWDED) or 1
    length = -(-count // some)
    return [slice(start, min(start + length, count)) for start in range(0, count, length)]


def twin_rows(
    rows: Floats, allowed: Flags, keys: Sequence[str], names: Sequence[str], palette: Palette
) -> go.Figure:
    """The rows (2, K) of two equal pieces, one under the other, with numbers where they fit; blocked hatched.

    Of a long sentence a part: see `parts`.
    """
    count = len(keys)
    figure = sheet(palette, 190)
    drawn = cells(rows, allowed)
    drawn.update(hoverinfo="z", hovertemplate="<b>%{z:.8f}</b><extra></extra>")
    if count <= LEGIBLE:
        drawn.update(texttemplate="%{z:.2f}", textfont={"size": min(15, 130 // count)})
    figure.add_traces([ground(~allowed, palette), drawn, hatch(~allowed, palette)])
    size = min(16, label_size(count))
    wide = max(map(len, keys)) * size * count * 0.62 > NARROW
    figure.update_layout(
        coloraxis=scale(palette),
        xaxis={
            **PLAIN,
            "side": "top",
            "tickvals": list(range(count)),
            "ticktext": [escape(key) for key in keys],
            "tickfont": {"size": size},
            "tickangle": -90 if wide else 0,
        },
        yaxis={
            **PLAIN,
            "tickvals": [0, 1],
            "ticktext": [escape(name) + " " for name in names],
            "tickfont": {"size": 17},
            "range": [1.5, -0.5],
        },
    )
    return figure


def twin_grid(distances: Floats, layer: int, head: int | None, palette: Palette) -> go.Figure:
    """How far two rows are apart in every layer and head (L, H); a marker on each takes the click.

    Its customdata is [layer, head]. An exact 0 is written 0.
    """
    layers, heads = distances.shape
    figure = sheet(palette, 120 + 42 * layers)
    figure.add_trace(
        go.Heatmap(
            z=distances,
            coloraxis="coloraxis",
            xgap=2,
            ygap=2,
            text=[[_short(float(value)) for value in row] for row in distances],
            texttemplate="%{text}",
            textfont={"size": max(9, min(15, 130 // heads))},
            hoverinfo="skip",
            name="distances",
        )
    )
    places = [(row, column) for row in range(layers) for column in range(heads)]
    figure.add_trace(
        go.Scatter(
            x=[column for _row, column in places],
            y=[row for row, _column in places],
            customdata=places,
            mode="markers",
            marker={"symbol": "square", "size": 22, "opacity": 0},
            selected={"marker": {"opacity": 0}},
            unselected={"marker": {"opacity": 0}},
            hovertext=[
                _("layer {layer}, head {head}").format(layer=row + 1, head=column + 1)
                + f"<br><b>{float(distances[row, column]):.1e}</b>"
                for row, column in places
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            name="heads",
        )
    )
    figure.update_layout(
        coloraxis=scale(palette),
        xaxis={
            **PLAIN,
            "side": "top",
            "title": _title(_("head"), palette),
            "tickvals": list(range(heads)),
            "ticktext": [str(number + 1) for number in range(heads)],
        },
        yaxis={
            **PLAIN,
            "title": _title(_("layer"), palette),
            "tickvals": list(range(layers)),
            "ticktext": [f"{number + 1} " for number in range(layers)],
            "range": [layers - 0.5, -0.5],
        },
    )
    if head is not None:
        _frame(figure, head - 0.5, head + 0.5, layer, palette, 3)
    return figure


def _short(distance: float) -> str:
    return (
        "0"
        if distance == 0
        else f"{distance:.2f}"
        if distance >= 0.005
        else f"{distance:.0e}".replace("e-0", "e-")
    )


def _line(x: NDArray[np.floating], y: NDArray[np.floating], colour: str, width: int, name: str) -> go.Scatter:
    return go.Scatter(
        x=x, y=y, mode="lines", line={"color": colour, "width": width}, hoverinfo="skip", name=name
    )


def _frame(figure: go.Figure, left: float, right: float, row: int, palette: Palette, width: int = 2) -> None:
    figure.add_shape(
        type="rect", x0=left, x1=right, y0=row - 0.5, y1=row + 0.5,
        line={"color": palette.accent, "width": width},
    )  # fmt: skip
