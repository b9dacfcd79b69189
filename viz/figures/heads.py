"""Many heads at once: thumbnails in any order, one number a head, shares of rules, arcs, what layers mixed.

Shapes: L layers, H heads, Q queries, K keys, N rows, M columns. A marker a head takes the click.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace import KINDS, Flags, Floats, Head, Kind
from model.words import Link, Links
from viz.figures.cells import cells, ground, hatch, scale, sheet, signed_scale
from viz.figures.stages import BARS, PLAIN
from viz.reading import kind_name, number, percent
from viz.roles import said, short
from viz.text import _
from viz.theme import Palette, escape, label_size

ACROSS = 8  # thumbnails in a line
GAP = 2  # cells between two of them
STROKES = 5000  # blocked cells; of more, only the ground is drawn: their hatch would be grey in grey
STEPS = 8  # shades of an arc
BEND = np.linspace(0, 1, 17)


@dataclass(frozen=True)
class Thumbnail:
    """One head, small."""

    head: Head
    weights: Floats  # (Q, K)
    allowed: Flags
    value: str = ""  # what stands beside its name
    said: str = ""  # what it says when pointed at


def thumbnails(of: Sequence[Thumbnail], chosen: Head, palette: Palette) -> go.Figure:
    """Heads of one kind in the order given, as one mosaic on the scale of every map.

    customdata is the place in the order, [index].
    """
    rows, columns = of[0].weights.shape
    lift = max(2, math.ceil(rows * 0.22))  # room for the name above
    wide, tall = columns + GAP, rows + GAP + lift
    corners = [(index // ACROSS * tall + lift, index % ACROSS * wide) for index in range(len(of))]
    lines = math.ceil(len(of) / ACROSS)
    figure = sheet(palette, round(min(900, max(170, 128 * min(1.6, rows / columns)) * lines + 30)))
    mosaic = np.full((lines * tall, min(ACROSS, len(of)) * wide), np.nan, np.float32)
    shut = np.zeros(mosaic.shape, bool)
    for thumbnail, (top, left) in zip(of, corners, strict=True):
        place = slice(top, top + rows), slice(left, left + columns)
        mosaic[place], shut[place] = thumbnail.weights, ~thumbnail.allowed
    figure.add_traces(
        [
            ground(shut, palette),
            cells(mosaic, ~shut),
            *([hatch(shut, palette, strokes=(0.0,))] if shut.sum() < STROKES else []),
            _targets(
                np.array([[left + (columns - 1) / 2, top + (rows - 1) / 2] for top, left in corners]),
                [[index] for index in range(len(of))],
                [f"<b>{said(one.head)}</b><br>{one.said}" for one in of],
            ),
        ]
    )
    figure.update_traces(xgap=0, ygap=0, selector={"name": "weights"})
    shapes, names = [], []
    for one, (top, left) in zip(of, corners, strict=True):
        here = one.head == chosen
        shapes.append({
            "type": "rect", "x0": left - 0.5, "x1": left + columns - 0.5, "y0": top - 0.5,
            "y1": top + rows - 0.5, "line": {"color": palette.accent if here else palette.hatch,
                                             "width": 3 if here else 1},
        })  # fmt: skip
        name = f"<b>{short(one.head)}</b>" if here else short(one.head)
        names.append({
            "x": left - 0.5, "y": top - 0.5, "xanchor": "left", "yanchor": "bottom", "showarrow": False,
            "text": name + f"<br><span style='color:{palette.quiet}'>{one.value}</span>" * bool(one.value),
            "align": "left",
            "font": {"size": 13, "color": palette.accent if here else palette.text},
        })  # fmt: skip
    hidden = {"visible": False, "fixedrange": True}
    figure.update_layout(
        shapes=shapes,
        annotations=names,
        coloraxis=scale(palette),
        xaxis={**hidden, "range": [-1, mosaic.shape[1] - GAP]},
        yaxis={**hidden, "range": [mosaic.shape[0] - GAP, -1]},
    )
    return figure


def tiles(
    values: Mapping[Kind, Floats], struck: frozenset[Head], chosen: Head, palette: Palette
) -> go.Figure:
    """One signed number a head (L, H), all kinds; struck heads are crossed out.

    Printed in thousandths; colours run to the largest number in either direction.
    customdata is [kind, layer, head].
    """
    layers, heads = next(iter(values.values())).shape
    figure = sheet(palette, 44 * len(values) * (layers + 1))
    table = np.full((len(values) * (layers + 1), heads), np.nan, np.float32)
    places = []
    for index, kind in enumerate(values):
        top = index * (layers + 1) + 1
        table[top : top + layers] = values[kind]
        places += [(Head(kind, layer, head), top + layer) for layer in range(layers) for head in range(heads)]
        figure.add_annotation(
            x=-0.5, y=top - 0.6, xanchor="left", yanchor="bottom", showarrow=False,
            text=kind_name(kind), font={"size": 15, "color": palette.quiet},
        )  # fmt: skip
    limit = float(max(np.nanmax(abs(table)), 1e-6))
    figure.add_traces(
        [
            go.Heatmap(
                z=table,
                coloraxis="coloraxis",
                xgap=2,
                ygap=2,
                hoverinfo="skip",
                text=np.where(
                    np.isnan(table), "", np.rint(1000 * np.nan_to_num(table)).astype(int).astype(str)
                ),
                texttemplate="%{text}",
                textfont={"size": 13},
                hoverongaps=False,
                name="values",
            ),
            _targets(
                np.array([[head.head, row] for head, row in places]),
                [[KINDS.index(head.kind), head.layer, head.head] for head, _row in places],
                [
                    f"<b>{said(head)}</b><br>{float(values[head.kind][head.layer, head.head]):+.4f}"
                    + ("<br>" + _("removed") if head in struck else "")
                    for head, _row in places
                ],
            ),
        ]
    )
    shapes = []
    for head, row in places:
        box = {"x0": head.head - 0.5, "x1": head.head + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        if head == chosen:
            line = {"color": palette.accent, "width": 3}
            shapes.append({"type": "rect", **box, "line": line})
        if head in struck:
            line = {"color": palette.accent, "width": 4}
            shapes.append({"type": "line", **box, "line": line})
            shapes.append({"type": "line", **box, "y0": row + 0.5, "y1": row - 0.5, "line": line})
    ticks = [(row, head.layer + 1) for head, row in places if head.head == 0]
    figure.update_layout(
        shapes=shapes,
        coloraxis=signed_scale(palette, limit),
        xaxis=_across(heads, palette),
        yaxis={
            **PLAIN,
            "tickvals": [row for row, _layer in ticks],
            "ticktext": [f"{layer} " for _row, layer in ticks],
            "title": {"text": _("layer"), "font": {"size": 14, "color": palette.quiet}},
            "range": [len(table) - 0.5, -0.2],
            "automargin": True,
        },
    )
    return figure


def shares(
    values: Floats, rows: Sequence[Head | str], columns: Sequence[str], chosen: Head, palette: Palette
) -> go.Figure:
    """Shares from 0 to 1 (N, M), a row a head or a name, a column a rule; NaN where none was asked.

    customdata is [row].
    """
    figure = sheet(palette, 70 + 19 * len(rows))
    names = [short(row) if isinstance(row, Head) else row for row in rows]
    figure.add_traces(
        [
            _printed(values, "%{z:.0%}", "shares"),
            _targets(
                np.array([[column, row] for row in range(len(rows)) for column in range(len(columns))]),
                [[row] for row in range(len(rows)) for _column in columns],
                [
                    f"<b>{said(row) if isinstance(row, Head) else row}</b><br>{escape(column)}: "
                    + (_("not asked") if math.isnan(share) else percent(float(share)))
                    for row, line in zip(rows, values, strict=True)
                    for column, share in zip(columns, line, strict=True)
                ],
                size=16,
            ),
        ]
    )
    at = [index for index, row in enumerate(rows) if row == chosen]
    figure.update_layout(
        coloraxis=scale(palette),
        shapes=[
            {
                "type": "rect", "x0": -0.5, "x1": len(columns) - 0.5, "y0": index - 0.5, "y1": index + 0.5,
                "line": {"color": palette.accent, "width": 2},
            }
            for index in at
        ],
        xaxis={
            **PLAIN,
            "side": "top",
            "tickvals": list(range(len(columns))),
            "ticktext": [escape(column) for column in columns],
            "tickfont": {"size": 13},
            "range": [-0.5, len(columns) - 0.5],
            "automargin": True,
        },
        yaxis={
            **PLAIN,
            "tickvals": list(range(len(rows))),
            "ticktext": [f"<b>{n}</b> " if i in at else f"{n} " for i, n in enumerate(names)],
            "tickfont": {"size": 13},
            "range": [len(rows) - 0.5, -0.5],
            "automargin": True,
        },
    )  # fmt: skip
    return figure


def _across(heads: int, palette: Palette) -> dict[str, Any]:
    """The axis along which heads stand, from 1."""
    return {
        **PLAIN,
        "side": "top",
        "tickvals": list(range(heads)),
        "ticktext": [str(head + 1) for head in range(heads)],
        "title": {"text": _("head"), "font": {"size": 14, "color": palette.quiet}},
        "range": [-0.5, heads - 0.5],
        "automargin": True,
    }


def _printed(values: Floats, template: str, name: str) -> go.Heatmap:
    """Shares as cells with their number in them."""
    return go.Heatmap(
        z=values.astype(np.float32),
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverinfo="skip",
        texttemplate=template,
        textfont={"size": 12},
        name=name,
    )


def grades(values: Floats, chosen: Head, palette: Palette) -> go.Figure:
    """A share from 0 to 1 for every cross head (L, H), printed; customdata is [kind, layer, head]."""
    layers, heads = values.shape
    figure = sheet(palette, 70 + 34 * layers)
    places = [Head("cross", layer, head) for layer in range(layers) for head in range(heads)]
    figure.add_traces(
        [
            _printed(values, "%{z:.2f}", "grades"),
            _targets(
                np.array([[head.head, head.layer] for head in places]),
                [[KINDS.index("cross"), head.layer, head.head] for head in places],
                [f"<b>{said(head)}</b><br>{float(values[head.layer, head.head]):.3f}" for head in places],
            ),
        ]
    )
    figure.update_layout(
        coloraxis=scale(palette),
        shapes=[
            {
                "type": "rect", "x0": chosen.head - 0.5, "x1": chosen.head + 0.5, "y0": chosen.layer - 0.5,
                "y1": chosen.layer + 0.5, "line": {"color": palette.accent, "width": 3},
            }
        ],
        xaxis=_across(heads, palette),
        yaxis={
            **PLAIN,
            "tickvals": list(range(layers)),
            "ticktext": [f"{layer + 1} " for layer in range(layers)],
            "title": {"text": _("layer"), "font": {"size": 14, "color": palette.quiet}},
            "range": [layers - 0.5, -0.5],
            "automargin": True,
        },
    )  # fmt: skip
    return figure


def ranked(values: Mapping[Kind, Floats], chosen: Head, palette: Palette) -> go.Figure:
    """One number a head (L, H) of all kinds as bars, the largest first; customdata is [kind, layer, head]."""
    places = [
        (float(value), Head(kind, layer, head))
        for kind in values
        for (layer, head), value in np.ndenumerate(values[kind])
    ]
    places.sort(key=lambda pair: -pair[0])
    figure = sheet(palette, 260)
    figure.add_trace(
        go.Bar(
            x=np.arange(len(places)),
            y=np.array([value for value, _head in places], np.float32),
            marker={
                "color": [
                    palette.accent if head == chosen else palette.weights[2][1] for _value, head in places
                ]
            },
            customdata=np.array([[KINDS.index(h.kind), h.layer, h.head] for _value, h in places]),
            hovertext=[f"<b>{said(head)}</b><br>{value:+.4f}" for value, head in places],
            hovertemplate="%{hovertext}<extra></extra>",
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            name="costs",
        )
    )
    middle = float(np.median([value for value, _head in places]))
    figure.add_hline(y=middle, line={"color": palette.quiet, "width": 1, "dash": "dash"})
    figure.add_annotation(
        x=len(places) - 1, y=middle, text=_("the median head"), showarrow=False, xanchor="right",
        yanchor="bottom", font={"size": 14, "color": palette.quiet},
    )  # fmt: skip
    figure.update_layout(
        **BARS,
        bargap=0.15,
        xaxis={**PLAIN, "showticklabels": False, "title": {"text": _("heads, by what they cost")}},
        yaxis={
            **PLAIN,
            "showgrid": True,
            "gridcolor": palette.blocked,
            "zeroline": True,
            "zerolinecolor": palette.hatch,
            "title": {"text": _("change of the loss")},
            "automargin": True,
        },
    )
    return figure


@dataclass(frozen=True)
class Truth:
    """Links drawn by hand, where the sentence pair has some."""

    sure: Links
    possible: Links


def arcs(
    weights: Floats,
    found: Links,
    words: tuple[Sequence[str], Sequence[str]],
    palette: Palette,
    truth: Truth | None = None,
) -> go.Figure:
    """English words (M) on the left, French ones (N) on the right, arcs as strong as the weights (N, M).

    `found` are the links that are counted: thick; against a `truth`, a wrong one in the accent colour, and
    each sure link that was not found dashed. A marker on each arc tells its weight.
    """
    english, french = words
    size = max(len(english), len(french))
    figure = sheet(palette, 60 + 30 * size)
    left, right = _even(len(english), size), _even(len(french), size)
    right_links = found & truth.possible if truth else found
    for name, links, line in (
        ("found", right_links, {"color": palette.weights[3][1], "width": 4}),
        ("wrong", found - right_links, {"color": palette.accent, "width": 4}),
        (
            "missed",
            (truth.sure - found) if truth else [],
            {"color": palette.quiet, "width": 2, "dash": "dot"},
        ),
    ):
        if links:
            figure.add_trace(_arcs(sorted(links), left, right, line, 1.0, name))
    shade = np.ceil(weights * STEPS).astype(int)
    others = [(s, t) for t, s in np.argwhere(weights >= 0.02).tolist() if (s, t) not in found]
    for step in range(1, STEPS + 1):
        links = [link for link in others if shade[link[1], link[0]] == step]
        if links:
            line = {"color": palette.weights[2][1], "width": 1 + 3 * step / STEPS}
            figure.add_trace(_arcs(links, left, right, line, 0.15 + 0.75 * step / STEPS, f"weight {step}"))
    shown = [*sorted(found), *others]
    figure.add_trace(
        go.Scatter(
            x=np.full(len(shown), 0.5),
            y=np.array([(left[s] + right[t]) / 2 for s, t in shown]),
            mode="markers",
            marker={"size": 14, "opacity": 0},
            hovertext=[
                _("{french} reads {english}: {weight}").format(
                    french=escape(french[t]),
                    english=escape(english[s]),
                    weight=f"<b>{number(float(weights[t, s]))}</b>",
                )
                for s, t in shown
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            name="cells",
        )
    )
    for x, anchor, names, places, colour in (
        (-0.02, "right", english, left, palette.source),
        (1.02, "left", french, right, palette.target),
    ):
        for name, y in zip(names, places, strict=True):
            figure.add_annotation(
                x=x, y=y, text=escape(name), xanchor=anchor, yanchor="middle", showarrow=False,
                font={"size": label_size(size, 600), "color": colour},
            )  # fmt: skip
    hidden = {"visible": False, "fixedrange": True}
    figure.update_layout(
        xaxis={**hidden, "range": [-0.4, 1.4]}, yaxis={**hidden, "range": [size - 0.4, -0.6]}
    )
    return figure


def mixed(
    weights: Floats,
    blocked: Flags,
    rows: Sequence[str],
    columns: tuple[Sequence[str], Sequence[str]],
    palette: Palette,
) -> go.Figure:
    """What each row (N) holds of English and French pieces (M), on a scale from 0 to the largest share."""
    english, french = columns
    keys = [*english, *french]
    most = float(max(weights.max(), 1e-6))
    figure = sheet(palette, max(380, 120 + 19 * len(rows)))
    colours = [palette.source] * len(english) + [palette.target] * len(french)
    places = np.argwhere(~blocked)
    figure.add_traces(
        [
            ground(blocked, palette),
            cells(weights, ~blocked),
            hatch(blocked, palette),
            _targets(
                places[:, ::-1],
                places.tolist(),
                [
                    f"{escape(rows[n])}<br>"
                    + _("holds {share} of {key}").format(
                        share=f"<b>{percent(float(weights[n, m]))}</b>", key=escape(keys[m])
                    )
                    for n, m in places.tolist()
                ],
                size=14,
            ),
        ]
    )
    figure.update_layout(
        coloraxis=scale(palette)
        | {
            "cmax": most,
            "showscale": True,
            "colorbar": {"thickness": 12, "outlinewidth": 0, "tickformat": ".0%", "len": 0.7},
        },
        xaxis={
            **PLAIN,
            "side": "top",
            "tickvals": list(range(len(keys))),
            "ticktext": [
                f'<span style="color:{colour}">{escape(key)}</span>'
                for key, colour in zip(keys, colours, strict=True)
            ],
            "tickfont": {"size": label_size(len(keys), 480)},
            "tickangle": -50 if len(keys) * max(map(len, keys)) > 60 else 0,
            "range": [-0.5, len(keys) - 0.5],
            "automargin": True,
        },
        yaxis={
            **PLAIN,
            "tickvals": list(range(len(rows))),
            "ticktext": [escape(row) + " " for row in rows],
            "tickfont": {"size": label_size(len(rows))},
            "range": [len(rows) - 0.5, -0.5],
            "automargin": True,
        },
    )
    if french and english:
        line = {"color": palette.quiet, "width": 2}
        figure.add_vline(x=len(english) - 0.5, line=line)
    return figure


def _even(count: int, size: int) -> Floats:
    """Places down the figure, as far apart on both sides, the shorter side in the middle."""
    return np.arange(count, dtype=np.float32) + (size - count) / 2


def _arcs(
    links: Sequence[Link], left: Floats, right: Floats, line: Mapping[str, object], opacity: float, name: str
) -> go.Scatter:
    """Smooth lines from English to French, as one trace with breaks."""
    ease = BEND * BEND * (3 - 2 * BEND)
    starts = np.array([left[s] for s, _t in links])[:, None]
    stops = np.array([right[t] for _s, t in links])[:, None]
    y = np.concatenate([starts + (stops - starts) * ease, np.full_like(starts, np.nan)], axis=1)
    x = np.broadcast_to(np.append(BEND, np.nan), y.shape)
    return go.Scatter(
        x=x.ravel(), y=y.ravel(), mode="lines", line=dict(line), opacity=opacity, hoverinfo="skip", name=name
    )


def _targets(
    at: np.ndarray, custom: Sequence[Sequence[int]], texts: Sequence[str], size: int = 34
) -> go.Scatter:
    """Invisible markers that take the click and say what they stand for."""
    return go.Scatter(
        x=at[:, 0],
        y=at[:, 1],
        customdata=np.array(custom),
        mode="markers",
        marker={"symbol": "square", "size": size, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertext=list(texts),
        hovertemplate="%{hovertext}<extra></extra>",
        name="targets",
    )
