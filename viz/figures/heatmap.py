"""One head, large: queries down, keys across, a full bar at the end of each row."""

from typing import Literal

import numpy as np
import plotly.graph_objects as go

from viz.figures.cells import READABLE, cells, ground, hatch, scale, sheet, window
from viz.reading import Map, number, outgoing, reason_name, reasons, row_names, side
from viz.text import _
from viz.theme import Palette, escape, label_size

HEIGHT = 400


def attention_map(picture: Map, query: int, key: int, palette: Palette, values: bool = False) -> go.Figure:
    """The weights of `picture` (Q, K), with the chosen row and cell outlined.

    An invisible marker on every cell carries its exact weight, or why it is blocked, and takes the
    click (plotly reports none on heatmap cells); its customdata is [query, key]. `values` prints the
    weights into the cells.
    """
    queries, keys = picture.trace.axes(picture.kind)
    columns = len(keys)
    figure = sheet(palette, max(HEIGHT, 130 + 17 * len(queries)))
    figure.add_traces(
        [
            ground(~picture.allowed, palette),
            cells(picture.weights, picture.allowed),
            hatch(~picture.allowed, palette),
            *_ends(picture, palette),
            _markers(picture),
        ]
    )
    if values:
        size = max(7, min(15, (600 if columns > READABLE // 2 else 300) // columns // 2))
        figure.update_traces(texttemplate="%{z:.2f}", textfont={"size": size}, selector={"name": "weights"})
    _axes(figure, picture, query, key, palette)
    for nothing in np.flatnonzero(picture.empty):
        figure.add_annotation(
            x=(columns - 1) / 2,
            y=int(nothing),
            text=_("nothing allowed"),
            showarrow=False,
            bgcolor=palette.ground,
        )
    figure.add_shape(
        type="rect", x0=-0.5, x1=columns - 0.5, y0=query - 0.5, y1=query + 0.5,
        line={"color": palette.accent, "width": 1},
    )  # fmt: skip
    figure.add_shape(
        type="rect", x0=key - 0.5, x1=key + 0.5, y0=query - 0.5, y1=query + 0.5,
        line={"color": palette.accent, "width": 3},
    )  # fmt: skip
    return figure


def _markers(picture: Map) -> go.Scatter:
    names = row_names(picture.trace, picture.kind)
    keys = picture.trace.axes(picture.kind)[1]
    why = reasons(picture.trace, picture.kind, picture.allowed)
    places = [(query, key) for query in range(len(names)) for key in range(len(keys))]

    def said(query: int, key: int) -> str:
        name, asked = escape(names[query]), escape(keys[key])
        if why[query][key]:
            return f"{name}, {asked}<br>{reason_name(why[query][key])}"
        weight = number(float(picture.weights[query, key]))
        return f"{name}<br>" + _("reads {key}: {weight}").format(key=asked, weight=f"<b>{weight}</b>")

    return go.Scatter(
        x=[key for _query, key in places],
        y=[query for query, _key in places],
        customdata=places,
        mode="markers",
        marker={"symbol": "square", "size": 14, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertext=[said(query, key) for query, key in places],
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


def _axes(figure: go.Figure, picture: Map, query: int, key: int, palette: Palette) -> None:
    queries, keys = picture.trace.axes(picture.kind)
    out = outgoing(picture.trace, picture.kind)
    row_colour = palette.token(side(picture.kind, "query"))
    key_colour = palette.token(side(picture.kind, "key"))

    def row_label(index: int) -> str:
        label = _coloured(queries[index], row_colour, index == query)
        if out is not None:
            label += f'<span style="color:{palette.quiet}"> → {escape(out[index])}</span>'
        return label + " "

    plain = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": False}
    wide = max(map(len, keys)) * label_size(len(keys)) * len(keys) * 0.62 > 430
    figure.update_layout(
        coloraxis=scale(palette),
        dragmode="pan" if max(len(queries), len(keys)) > READABLE else False,
        xaxis={
            **plain,
            "domain": [0, 0.93],
            "side": "top",
            "tickvals": list(range(len(keys))),
            "ticktext": [_coloured(piece, key_colour, index == key) for index, piece in enumerate(keys)],
            "tickfont": {"size": label_size(len(keys))},
            "tickangle": -50 if wide else 0,
            "range": window(len(keys), key),
            "title": {
                "text": _("is asked (key): {side}").format(side=_language(picture, "key")),
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
            "title": {"text": _asks(picture), "standoff": 8},
            "automargin": True,
        },
        xaxis2={**plain, "domain": [0.945, 1], "range": [0, 1], "showticklabels": False, "fixedrange": True},
    )
    figure.update_layout(barmode="overlay")
    for axis in ("xaxis", "yaxis"):
        figure.layout[axis].title.font = {"size": 14, "color": palette.quiet}


def _asks(picture: Map) -> str:
    asks = _("asks (query): {side}").format(side=_language(picture, "query"))
    return asks if picture.kind == "encoder" else asks + _(", goes in → comes out")


def _language(picture: Map, axis: Literal["query", "key"]) -> str:
    return _("English") if side(picture.kind, axis) == "source" else _("French")


def _coloured(piece: str, colour: str, chosen: bool) -> str:
    text = f'<span style="color:{colour}">{escape(piece)}</span>'
    return f"<b>{text}</b>" if chosen else text
