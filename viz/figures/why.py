"""Pictures of the page Why: curves on log axes, ways through layers, shares, a dated line, cards.

Shapes: N places along an axis, n positions, D dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace import Flags, Floats
from viz.figures.cells import hatch, scale, sheet, signed_scale
from viz.figures.stages import BARS
from viz.text import _
from viz.theme import Palette, escape

PLAIN: dict[str, Any] = {
    "showgrid": False,
    "zeroline": False,
    "showline": False,
    "ticks": "",
    "fixedrange": True,
    "automargin": True,
}
HIDDEN: dict[str, Any] = {**PLAIN, "showticklabels": False}
NEAR = 0.06  # of an axis: names of lines that end nearer than this are moved apart


# --- what grows how fast ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Growth:
    """A quantity (N,) over n. NaN where there is none. `colour` tells the layer, in every chart alike."""

    name: str
    y: Sequence[float]
    colour: int
    dotted: bool = False


def growth(
    x: Sequence[int],
    lines: Sequence[Growth],
    palette: Palette,
    titles: tuple[str, str],
    unit: str = "",
    marks: Sequence[tuple[float, str]] = (),
    measured: bool = False,
) -> go.Figure:
    """Lines over logarithmic axes, each named at its end: a power law is straight, its power the slope.

    `marks` are upright lines with a name. `measured` points are marked one by one.
    """
    figure = sheet(palette, 380)
    ends: list[tuple[float, Growth]] = []
    for line in lines:
        y = np.array(line.y, np.float64)
        colour = palette.overlay[line.colour]
        figure.add_scatter(
            x=np.array(x), y=y, mode="lines+markers" if measured else "lines", name=line.name,
            line={"color": colour, "width": 2, "dash": "dot" if line.dotted else "solid"},
            marker={"size": 7},
            hovertemplate=f"{line.name}<br>n = %{{x}}: <b>%{{y:,.4~g}}</b> {unit}<extra></extra>",
        )  # fmt: skip
        real = np.flatnonzero(np.isfinite(y) & (y > 0))
        if len(real):
            ends.append((float(np.log10(y[real[-1]])), line))
    values = np.concatenate([np.array(line.y, np.float64) for line in lines])
    values = values[np.isfinite(values) & (values > 0)]
    low, high = (float(np.log10(values.min())), float(np.log10(values.max()))) if len(values) else (0.0, 1.0)
    room = max(high - low, 1.0)
    for at, line in _apart(ends, NEAR * room):
        figure.add_annotation(
            x=1.01, xref="paper", y=at, text=line.name, showarrow=False, xanchor="left", yanchor="middle",
            font={"size": 14, "color": palette.overlay[line.colour]},
        )  # fmt: skip
    for place, name in marks:
        if x[0] <= place <= x[-1]:
            figure.add_vline(x=place, line={"color": palette.accent, "width": 1, "dash": "dash"})
            figure.add_annotation(
                x=float(np.log10(place)), y=0, yref="paper", text=name, showarrow=False, textangle=-90,
                xanchor="right", yanchor="bottom", font={"size": 13, "color": palette.accent},
            )  # fmt: skip
    axis = {**PLAIN, "showgrid": True, "gridcolor": palette.blocked, "type": "log"}
    every = -(-len(x) // 4)  # ticks that do not touch on a phone
    return figure.update_layout(
        margin={"r": 8 + round(7.2 * max((len(line.name) for line in lines), default=0))},
        xaxis={**axis, "title": {"text": titles[0]}, "tickvals": list(x)[::every],
               "tickangle": 0},
        yaxis={**axis, "title": {"text": titles[1]}, "dtick": 1, "exponentformat": "SI",
               "range": [low - 0.08 * room, high + 0.08 * room]},
    )  # fmt: skip


def _apart(ends: Sequence[tuple[float, Growth]], least: float) -> list[tuple[float, Growth]]:
    """Places for names, from below, none nearer to the next than `least`."""
    placed: list[tuple[float, Growth]] = []
    for at, line in sorted(ends, key=lambda end: end[0]):
        placed.append((max(at, placed[-1][0] + least) if placed else at, line))
    return placed


def amounts(
    names: Sequence[str], values: Sequence[int], palette: Palette, chosen: int | None = None
) -> go.Figure:
    """Counts as bars from 0, one under the other; the chosen one in the accent colour."""
    figure = sheet(palette, 30 + 46 * len(names))
    colours = [palette.accent if index == chosen else palette.weights[2][1] for index in range(len(names))]
    figure.add_bar(
        x=np.array(values), y=np.arange(len(names)), orientation="h", marker={"color": colours},
        name="amounts",
        text=[f" {value:,}" for value in values], textposition="outside", textfont={"size": 15},
        cliponaxis=False, customdata=list(names),
        hovertemplate="%{customdata}: <b>%{x:,}</b><extra></extra>",
    )  # fmt: skip
    return figure.update_layout(
        **BARS,
        margin={"r": 12 + 9 * max((len(f"{value:,}") for value in values), default=0)},  # for the counts
        xaxis={**HIDDEN, "range": [0, max([*values, 1])]},
        yaxis={**PLAIN, "range": [len(names) - 0.5, -0.5], "tickvals": list(range(len(names))),
               "ticktext": [name + " " for name in names], "tickfont": {"size": 15}},
    )  # fmt: skip


# --- the longest path -------------------------------------------------------------------------------------


def way(
    count: int, reads: Sequence[Sequence[tuple[int, int]]], stops: Sequence[int], palette: Palette
) -> go.Figure:
    """Positions as dots, layers from below; who reads whom is faint, the way from first to last is not.

    `reads` are pairs (from, to) of each layer; `stops` the position after each layer, the start first.
    """
    layers = len(reads)
    figure = sheet(palette, 70 + 44 * max(layers, 1))
    gap = [np.nan]
    x = [float(place) for layer in reads for a, b in layer for place in (a, b, *gap)]
    y = [
        float(place)
        for level, layer in enumerate(reads)
        for _pair in layer
        for place in (level, level + 1, *gap)
    ]
    figure.add_scatter(
        x=np.array(x), y=np.array(y), mode="lines", line={"color": palette.hatch, "width": 1},
        hoverinfo="skip", opacity=0.55, name="reads",
    )  # fmt: skip
    figure.add_scatter(
        x=np.tile(np.arange(count), layers + 1), y=np.repeat(np.arange(layers + 1), count), mode="markers",
        marker={"size": 8, "color": palette.quiet}, hovertext=[
            _("position {number}, layer {layer}").format(number=place + 1, layer=level) if level
            else _("position {number}, what goes in").format(number=place + 1)
            for level in range(layers + 1) for place in range(count)
        ], hovertemplate="%{hovertext}<extra></extra>", name="positions",
    )  # fmt: skip
    figure.add_scatter(
        x=np.array(stops), y=np.arange(len(stops)), mode="lines+markers", name="way", hoverinfo="skip",
        line={"color": palette.accent, "width": 3}, marker={"size": 10, "color": palette.accent},
    )  # fmt: skip
    return figure.update_layout(
        xaxis={**HIDDEN, "range": [-0.7, count - 0.3]},
        yaxis={**HIDDEN, "range": [-0.5, layers + 0.5]},
    )


def chain(count: int, palette: Palette) -> go.Figure:
    """A recurrent layer: every hidden state waits for the one before it. The way goes along them."""
    figure = sheet(palette, 114)
    places = np.arange(count)
    up = np.stack([places, places, np.full(count, np.nan)], axis=-1).ravel()
    level = np.tile([0.0, 1.0, np.nan], count)
    figure.add_scatter(
        x=up, y=level, mode="lines", line={"color": palette.hatch, "width": 1}, hoverinfo="skip", name="reads"
    )
    figure.add_scatter(
        x=np.tile(places, 2), y=np.repeat([0, 1], count), mode="markers", name="positions",
        marker={"size": 8, "color": palette.quiet},
        hovertext=[_("position {number}, what goes in").format(number=place + 1) for place in places]
        + [_("hidden state {number}").format(number=place + 1) for place in places],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=np.array([0, *places]), y=np.array([0, *[1] * count]), mode="lines+markers", name="way",
        line={"color": palette.accent, "width": 3}, marker={"size": 10, "color": palette.accent},
        hoverinfo="skip",
    )  # fmt: skip
    return figure.update_layout(
        xaxis={**HIDDEN, "range": [-0.7, count - 0.3]}, yaxis={**HIDDEN, "range": [-0.5, 1.5]}
    )


def ticks(pieces: Sequence[str], tick: int, names: tuple[str, str], palette: Palette) -> go.Figure:
    """What each layer has done after `tick` steps: a recurrent one so many states, attention all of them."""
    count = len(pieces)
    figure = sheet(palette, 170)
    done = [place < tick for place in range(count)] + [True] * count
    figure.add_scatter(
        x=np.tile(np.arange(count), 2), y=np.repeat([0, 1], count), mode="markers", name="states",
        marker={
            "size": 20, "symbol": "square", "line": {"color": palette.weights[3][1], "width": 2},
            "opacity": 1, "color": [palette.weights[3][1] if each else palette.ground for each in done],
        },
        hovertext=[
            _("{piece}: {state}").format(piece=escape(piece), state=_("done") if each else _("waits"))
            for piece, each in zip([*pieces, *pieces], done, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    if tick < count:
        figure.add_annotation(
            x=tick, y=0, ax=tick - 0.7, ay=0, axref="x", ayref="y", showarrow=True, arrowhead=2,
            arrowcolor=palette.accent, arrowwidth=2, text="",
        )  # fmt: skip
    labels = [f'<span style="color:{palette.source}">{escape(piece)}</span>' for piece in pieces]
    return figure.update_layout(
        xaxis={**PLAIN, "tickvals": list(range(count)), "ticktext": labels, "range": [-0.7, count - 0.3],
               "tickfont": {"size": 15 if count <= 12 else 11}, "tickangle": -45},
        yaxis={**PLAIN, "tickvals": [0, 1], "ticktext": [name + " " for name in names], "range": [1.5, -0.5],
               "tickfont": {"size": 15}},
    )  # fmt: skip


# --- parameters -------------------------------------------------------------------------------------------


def shares(
    rows: Sequence[str], groups: Sequence[str], numbers: Sequence[Sequence[int]], palette: Palette
) -> go.Figure:
    """Each row's numbers as parts of one whole: groups told apart by shade and, where they fit, by name."""
    figure = sheet(palette, 40 + 62 * len(rows))
    totals = [max(sum(row), 1) for row in numbers]
    dark = min(palette.ground, palette.text)  # of a middle shade the ink in either theme
    shades = [palette.weights[stop][1] for stop in (1, 0, 3, 2, 4)]
    inks = [palette.text, palette.text, palette.ground, dark, palette.ground]
    for index, group in enumerate(groups):
        parts = [row[index] for row in numbers]
        figure.add_bar(
            x=np.array([100 * part / total for part, total in zip(parts, totals, strict=True)]),
            y=np.arange(len(rows)), orientation="h", name=group,
            marker={"color": shades[index], "line": {"color": palette.ground, "width": 1}},
            text=[f"{group} {100 * part / total:.0f} %" if part / total > 0.13 else ""
                  for part, total in zip(parts, totals, strict=True)],
            textposition="inside", insidetextanchor="middle", textangle=0,
            textfont={"size": 14, "color": inks[index]}, constraintext="inside",
            customdata=np.array(parts),
            hovertemplate=f"{group}: <b>%{{customdata:,}}</b>, %{{x:.2f}} %<extra></extra>",
        )  # fmt: skip
    return figure.update_layout(
        **BARS, barmode="stack", bargap=0.3,
        xaxis={**HIDDEN, "range": [0, 100]},
        yaxis={**PLAIN, "range": [len(rows) - 0.5, -0.5], "tickvals": list(range(len(rows))),
               "ticktext": [row + " " for row in rows], "tickfont": {"size": 15}},
    )  # fmt: skip


# --- Add & Norm -------------------------------------------------------------------------------------------


def heights(
    before: Floats, after: Floats | None, palette: Palette, title: str, names: Sequence[str]
) -> go.Figure:
    """A size at each height of the model (N,), as the paper has it, and as switched, on a log axis."""
    figure = sheet(palette, 300)
    x = np.arange(len(before))
    lines = [(_("as the paper has it"), before, palette.weights[3][1], "solid")]
    if after is not None:
        lines.append((_("switched"), after, palette.accent, "dash"))
    for name, sizes, colour, dash in lines:
        # A size of 0 has no place on this axis, and what cannot be told is left out.
        y = np.where(np.isfinite(sizes) & (sizes > 0), sizes, np.nan)
        figure.add_scatter(
            x=x, y=y, mode="lines+markers", name=name, line={"color": colour, "width": 2, "dash": dash},
            marker={"size": 9}, hovertemplate=f"{name}<br>%{{x}}: <b>%{{y:.4g}}</b><extra></extra>",
        )  # fmt: skip
    known = np.concatenate([line[1] for line in lines])
    known = np.log10(known[np.isfinite(known) & (known > 0)]) if len(known) else known
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    room, middle = max(high - low, 0.6), (low + high) / 2
    ticks = _ticks(middle - 0.62 * room, middle + 0.62 * room)
    axis = {**PLAIN, "showgrid": True, "gridcolor": palette.blocked}
    return figure.update_layout(
        xaxis={**axis, "tickvals": x.tolist(), "ticktext": list(names), "range": [-0.3, len(before) - 0.7]},
        yaxis={**axis, "type": "log", "title": {"text": title}, "tickvals": list(ticks),
               "ticktext": list(ticks.values()), "range": [middle - 0.62 * room, middle + 0.62 * room]},
    )  # fmt: skip


def _ticks(low: float, high: float) -> dict[float, str]:
    """Some five places of a logarithmic axis between two powers of ten, and how each is written."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    every = max(1, round((high - low) / 5))
    few = [10.0**power for power in powers if power % every == 0]
    fine = [step * 10.0**power for power in powers for step in (1, 2, 5)] if high - low < 2 else few
    inside = [place for place in fine if low <= math.log10(place) <= high]
    return {
        place: f"{place:g}"
        if 1e-3 <= place < 1e5
        else f"10<sup>{round(math.log10(place))}</sup>"
        if place in few
        else f"{place:.0e}"
        for place in inside
    }


def averaged(
    x: Floats, names: Sequence[str], real: Flags, row: int, column: int, limit: float, palette: Palette,
    colours: Sequence[str],
) -> go.Figure:  # fmt: skip
    """A batch (N, D), a row a position: what LayerNorm averages is framed across, what BatchNorm does, down.

    Rows that `real` (N,) does not flag are pads, and hatched. `colours` are those of the names.
    """
    count, width = x.shape
    figure = sheet(palette, 60 + 20 * count)
    shades = signed_scale(palette, limit)
    figure.add_heatmap(
        z=x.astype(np.float32), x=np.arange(width), y=np.arange(count), colorscale=shades["colorscale"],
        zmin=-limit, zmax=limit, showscale=False, xgap=1, ygap=1, name="numbers",
        customdata=np.broadcast_to(np.array([escape(name) for name in names])[:, None], x.shape),
        hovertemplate="%{customdata}, " + _("dimension") + " %{x}<br><b>%{z:.4f}</b><extra></extra>",
    )  # fmt: skip
    figure.add_trace(hatch(np.broadcast_to(~real[:, None], x.shape), palette))
    for box, colour in (
        ((-0.5, width - 0.5, row - 0.5, row + 0.5), palette.accent),
        ((column - 0.5, column + 0.5, -0.5, count - 0.5), palette.text),
    ):
        x0, x1, y0, y1 = box
        figure.add_shape(
            type="rect", x0=x0, x1=x1, y0=y0, y1=y1, line={"color": colour, "width": 3}
        )  # fmt: skip
    figure.add_annotation(
        x=width - 0.4, y=row, text=_("LayerNorm"), showarrow=False, xanchor="left",
        font={"size": 13, "color": palette.accent},
    )  # fmt: skip
    figure.add_annotation(
        x=column, y=-0.6, text=_("BatchNorm"), showarrow=False, yanchor="bottom", font={"size": 13}
    )
    labels = [
        f'<span style="color:{colour}">{escape(name)}</span> '
        for name, colour in zip(names, colours, strict=True)
    ]
    return figure.update_layout(
        margin={"r": 70},  # for LayerNorm's name, on a narrow page as well
        xaxis={**HIDDEN, "range": [-0.6, width - 0.4]},
        yaxis={**PLAIN, "range": [count - 0.4, -1.9], "tickvals": list(range(count)), "ticktext": labels,
               "tickfont": {"size": 12}},
    )  # fmt: skip


# --- history ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """Something on the dated line: when (2017.45), its name, and a sentence for the pointer."""

    when: float
    name: str
    said: str
    here: bool = False  # the paper of this project


def dated_line(events: Sequence[Event], palette: Palette) -> go.Figure:
    """Events from above to below, at distances true to their dates as far as their names leave room."""
    least = 0.34
    places: list[float] = []
    for event in events:
        places.append(max(event.when, places[-1] + least) if places else event.when)
    first, last = events[0].when, places[-1]
    figure = sheet(palette, round(40 + 86 * (last - first + 0.4)))
    whole = [year for year in range(int(first), int(events[-1].when) + 2)]
    figure.add_scatter(
        x=[0, 0], y=[whole[0], max(whole[-1], last)], mode="lines", line={"color": palette.hatch, "width": 2},
        hoverinfo="skip", name="line",
    )  # fmt: skip
    figure.add_scatter(
        x=[0] * len(events), y=[event.when for event in events], mode="markers", name="events",
        marker={"opacity": 1, "size": [16 if event.here else 11 for event in events],
                "color": [palette.accent if event.here else palette.weights[3][1] for event in events]},
        hovertext=[escape(event.said) for event in events], hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    for event, place in zip(events, places, strict=True):
        colour = palette.accent if event.here else palette.text
        figure.add_annotation(
            x=0.16, y=place, text=f"<b>{event.name}</b>" if event.here else event.name, showarrow=False,
            xanchor="left", font={"size": 16, "color": colour}, align="left",
        )  # fmt: skip
        figure.add_shape(
            type="line", x0=0.02, x1=0.14, y0=event.when, y1=place, line={"color": palette.hatch, "width": 1}
        )
    for year in whole:
        figure.add_annotation(
            x=-0.04, y=year, text=str(year), showarrow=False, xanchor="right",
            font={"size": 13, "color": palette.quiet},
        )  # fmt: skip
    return figure.update_layout(
        xaxis={**HIDDEN, "range": [-0.35, 2.2]},
        yaxis={**HIDDEN, "range": [max(whole[-1], last) + 0.3, whole[0] - 0.3]},
    )


def patches(side: int, chosen: int, palette: Palette) -> go.Figure:
    """An image of `side` x `side` patches, numbered as tokens row by row; one asks, all others are asked."""
    figure = sheet(palette, 300)
    lines = np.arange(side + 1) - 0.5
    ends, gap = np.array([-0.5, side - 0.5, np.nan]), np.full(side + 1, np.nan)
    along, across = np.tile(ends, side + 1), np.stack([lines, lines, gap], axis=-1).ravel()
    figure.add_scatter(
        x=np.concatenate([along, across]), y=np.concatenate([across, along]), mode="lines", hoverinfo="skip",
        line={"color": palette.hatch, "width": 1}, name="edges",
    )  # fmt: skip
    places = np.arange(side * side)
    row, column = divmod(chosen, side)
    figure.add_shape(
        type="rect", x0=column - 0.5, x1=column + 0.5, y0=row - 0.5, y1=row + 0.5,
        fillcolor=palette.accent, opacity=0.75, line={"width": 0},
    )  # fmt: skip
    figure.add_scatter(
        x=places % side, y=places // side, mode="markers", marker={"size": 9, "opacity": 0}, name="patches",
        hovertext=[
            _("token {number} of {count}").format(number=place + 1, count=len(places)) for place in places
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    return figure.update_layout(
        xaxis={**HIDDEN, "range": [-0.6, side - 0.4], "constrain": "domain"},
        yaxis={**HIDDEN, "range": [side - 0.4, -0.6], "scaleanchor": "x", "constrain": "domain"},
    )


def pooling(sentences: Sequence[Sequence[str]], palette: Palette) -> go.Figure:
    """Hierarchical attention, drawn: words to sentences to a document, one learned query at either height."""
    figure = sheet(palette, 300)
    words = [(number, word) for number, sentence in enumerate(sentences) for word in sentence]
    places, at = [], 0.0
    for index, (number, _word) in enumerate(words):
        at += 1 if index and words[index - 1][0] == number else 1.8
        places.append(at)
    middles = [float(np.mean([place for place, word in zip(places, words, strict=True) if word[0] == number]))
               for number in range(len(sentences))]  # fmt: skip
    top = float(np.mean(middles))
    lines = [(place, 0, middles[number], 1) for place, (number, _word) in zip(places, words, strict=True)]
    lines += [(middle, 1, top, 2) for middle in middles]
    x = np.array([value for x0, _y0, x1, _y1 in lines for value in (x0, x1, np.nan)])
    y = np.array([value for _x0, y0, _x1, y1 in lines for value in (y0, y1, np.nan)])
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": palette.weights[2][1], "width": 2},
        hoverinfo="skip",
        name="pools",
    )
    boxes = [
        (place, 0, escape(word), palette.source) for place, (_n, word) in zip(places, words, strict=True)
    ]
    boxes += [(middle, 1, _("sentence {number}").format(number=number + 1), palette.text)
              for number, middle in enumerate(middles)]  # fmt: skip
    boxes.append((top, 2, _("document"), palette.text))
    for place, level, text, colour in boxes:
        figure.add_annotation(
            x=place, y=level, text=text, showarrow=False, bgcolor=palette.ground, borderpad=3,
            font={"size": 15, "color": colour},
        )  # fmt: skip
    asked = ((0.5, _("a learned query")), (1.5, _("another learned query")))
    for height, text in asked:
        figure.add_annotation(
            x=0, xref="paper", y=height, text=text, showarrow=False, xanchor="left", bgcolor=palette.ground,
            font={"size": 14, "color": palette.accent},
        )  # fmt: skip
    return figure.update_layout(
        xaxis={**HIDDEN, "range": [places[0] - 3.4, places[-1] + 0.8]}, yaxis={**HIDDEN, "range": [-0.3, 2.3]}
    )


def mixing(weights: Floats, names: Sequence[str], colour: str, palette: Palette) -> go.Figure:
    """How each position (rows) mixes the others (columns), 0 to 1: of a kernel or of a head."""
    count = len(names)
    figure = sheet(palette, 340)
    shades = scale(palette)
    figure.add_heatmap(
        z=weights.astype(np.float32), x=np.arange(count), y=np.arange(count), zmin=0, zmax=1, showscale=False,
        colorscale=shades["colorscale"], xgap=1, ygap=1, name="weights",
        customdata=np.stack(np.broadcast_arrays(
            np.array([escape(name) for name in names])[:, None], np.array([escape(name) for name in names])
        ), axis=-1),
        hovertemplate="%{customdata[0]} · %{customdata[1]}: <b>%{z:.3f}</b><extra></extra>",
    )  # fmt: skip
    labels = [f'<span style="color:{colour}">{escape(name)}</span>' for name in names]
    size = 14 if count <= 12 else 11
    ticks = {**PLAIN, "tickvals": list(range(count)), "ticktext": labels, "tickfont": {"size": size}}
    return figure.update_layout(
        xaxis={**ticks, "side": "top", "tickangle": -60},
        yaxis={**ticks, "range": [count - 0.5, -0.5]},
    )
