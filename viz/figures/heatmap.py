"""One head, large: queries down, keys across, a full bar at the end of each row."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.trace import Floats, asked, asks
from viz.figures.cells import READABLE, cells, ground, hatch, scale, sheet, signed_scale, window
from viz.reading import Map, language, number, outgoing, reason_name, reasons, row_names
from viz.text import _
from viz.theme import Palette, escape, label_size

HEIGHT = 400


@dataclass(frozen=True)
class Look:
    """How a map is drawn: its colours, whether numbers stand in the cells, and how much room it has."""

    palette: Palette
    values: bool = False
    narrow: bool = False  # a third of the page
    rows: bool = True  # name the rows in full; else by the piece that goes in, beside a map that has done so


def attention_map(picture: Map, query: int, key: int, look: Look) -> go.Figure:
    """The weights of `picture` (Q, K), with the chosen row and cell outlined.

    An invisible marker on every cell carries its exact weight, or why it is blocked, and takes the
    click (plotly reports none on heatmap cells); its customdata is [query, key].
    """
    palette = look.palette
    figure = sheet(palette, _height(picture))
    figure.add_traces(
        [
            ground(~picture.allowed, palette),
            cells(picture.weights, picture.allowed),
            hatch(~picture.allowed, palette),
            *_ends(picture, palette),
            _markers(picture, _weight_said(picture)),
        ]
    )
    figure.update_layout(coloraxis=scale(palette))
    _axes(figure, picture, query, key, look)
    for nothing in np.flatnonzero(picture.empty):
        figure.add_annotation(
            x=(picture.weights.shape[1] - 1) / 2,
            y=int(nothing),
            text=_("nothing allowed"),
            showarrow=False,
            bgcolor=palette.ground,
        )
    return figure


def signed_map(picture: Map, numbers: Floats, limit: float, query: int, key: int, look: Look) -> go.Figure:
    """Signed `numbers` (Q, K), scores or differences, on the axes of `picture`; colours from -limit to limit.

    Nothing is left out: a difference is a number in a blocked cell too. Markers as in `attention_map`.
    """
    names, keys = row_names(picture.trace, picture.kind), picture.trace.axes(picture.kind)[1]

    def said(query: int, key: int) -> str:
        return f"{escape(names[query])}, {escape(keys[key])}<br><b>{float(numbers[query, key]):+.4f}</b>"

    figure = sheet(look.palette, _height(picture))
    drawn = cells(numbers, np.ones(numbers.shape, bool))
    figure.add_traces([drawn, _markers(picture, said)])
    figure.update_layout(coloraxis=signed_scale(look.palette, limit))
    _axes(figure, picture, query, key, look)
    return figure


def _height(picture: Map) -> int:
    return max(HEIGHT, 130 + 17 * picture.weights.shape[0])


def _weight_said(picture: Map) -> Callable[[int, int], str]:
    """What a cell says of its weight, or of why it has none."""
    names = row_names(picture.trace, picture.kind)
    keys = picture.trace.axes(picture.kind)[1]
    why = reasons(picture.trace, picture.kind, picture.allowed)

    def said(query: int, key: int) -> str:
        name, asked = escape(names[query]), escape(keys[key])
        if why[query][key]:
            return f"{name}, {asked}<br>{reason_name(why[query][key])}"
        weight = number(float(picture.weights[query, key]))
        return f"{name}<br>" + _("reads {key}: {weight}").format(key=asked, weight=f"<b>{weight}</b>")

    return said


def _markers(picture: Map, said: Callable[[int, int], str]) -> go.Scatter:
    places = np.argwhere(np.ones(picture.weights.shape, bool)).astype(np.int16)
    return go.Scatter(
        x=places[:, 1],
        y=places[:, 0],
        customdata=places,
        mode="markers",
        marker={"symbol": "square", "size": 14, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertext=np.array([said(query, key) for query, key in places.tolist()]),
        hovertemplate="%{hovertext}<extra></extra>",
        name="cells",
    )


def _ends(picture: Map, palette: Palette) -> list[go.Bar]:
    """The bar at each row's end, on its track: as long as the row's sum, so always full."""
    sums = picture.weights.sum(axis=-1)
    shared = {"y": np.arange(len(sums)), "orientation": "h", "width": 0.4, "xaxis": "x2"}
    return [
        go.Bar(
            x=np.ones(len(sums)), marker={"color": palette.blocked}, hoverinfo="skip", name="track", **shared
        ),
        go.Bar(
            x=sums,
            marker={"color": palette.hatch},
            hovertemplate=_("row sum") + " %{x:.6f}<extra></extra>",
            name="row sums",
            **shared,
        ),
    ]


def _axes(figure: go.Figure, picture: Map, query: int, key: int, look: Look) -> None:
    palette = look.palette
    queries, keys = picture.trace.axes(picture.kind)
    out = outgoing(picture.trace, picture.kind)
    row_colour = palette.token(asks(picture.kind))
    key_colour = palette.token(asked(picture.kind))
    room = 120 if look.narrow else 600 if len(keys) > READABLE // 2 else 300
    size = label_size(len(keys), room + 40)
    if look.values:
        font = {"size": max(7, min(15, room // len(keys) // 2))}
        figure.update_traces(texttemplate="%{z:.2f}", textfont=font, selector={"name": "weights"})

    def row_label(index: int) -> str:
        label = _coloured(queries[index], row_colour, index == query)
        if out is not None and look.rows:
            label += f'<span style="color:{palette.quiet}"> → {escape(out[index])}</span>'
        return label + " "

    plain = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": False}
    wide = max(map(len, keys)) * size * len(keys) * 0.62 > room + 130
    figure.update_layout(
        dragmode="pan" if max(len(queries), len(keys)) > READABLE else False,
        xaxis={
            **plain,
            "domain": [0, 0.93],
            "side": "top",
            "tickvals": list(range(len(keys))),
            "ticktext": [_coloured(piece, key_colour, index == key) for index, piece in enumerate(keys)],
            "tickfont": {"size": size},
            "tickangle": (-90 if look.narrow else -50) if wide else 0,
            "range": window(len(keys), key),
            "title": {
                "text": _("is asked (key): {side}").format(
                    side=language(picture.trace.languages, asked(picture.kind))
                ),
                "standoff": 6,
            },
            "automargin": True,
        },
        yaxis={
            **plain,
            "tickvals": list(range(len(queries))),
            "ticktext": [row_label(index) for index in range(len(queries))],
            "tickfont": {"size": label_size(len(queries))},
            "range": window(len(queries), query)[::-1],
            "title": {"text": _asks(picture) if look.rows else "", "standoff": 8},
            "automargin": True,
        },
        xaxis2={**plain, "domain": [0.945, 1], "range": [0, 1], "showticklabels": False, "fixedrange": True},
    )
    quiet = {"size": 14, "color": palette.quiet}
    row, cell = (-0.5, len(keys) - 0.5, 1), (key - 0.5, key + 0.5, 3)
    figure.update_layout(
        barmode="overlay",
        xaxis_title_font=quiet,
        yaxis_title_font=quiet,
        shapes=[
            {
                "type": "rect", "x0": left, "x1": right, "y0": query - 0.5, "y1": query + 0.5,
                "line": {"color": palette.accent, "width": width},
            }
            for left, right, width in (row, cell)
        ],
    )  # fmt: skip


def _asks(picture: Map) -> str:
    side = language(picture.trace.languages, asks(picture.kind))
    said = _("asks (query): {side}").format(side=side)
    return said if outgoing(picture.trace, picture.kind) is None else said + _(", goes in → comes out")


def _coloured(piece: str, colour: str, chosen: bool) -> str:
    text = f'<span style="color:{colour}">{escape(piece)}</span>'
    return f"<b>{text}</b>" if chosen else text
