"""How a model learned: its logged curves, smoothed losses, dropout, n-grams."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from model.trace import Floats
from viz.figures.cells import sheet
from viz.figures.heatmap import Look, attention_map
from viz.figures.stages import PLAIN
from viz.reading import Map
from viz.text import _
from viz.theme import Palette, escape

TOP = 1.3  # how far the bar of a row's sum can go under dropout
LANE = 0.8  # of a lane's height, that an n-gram fills


class Logged(Protocol):
    """What a run logged."""

    @property
    def steps(self) -> NDArray[np.int64]: ...
    @property
    def loss(self) -> NDArray[np.float64]: ...
    @property
    def learning_rate(self) -> NDArray[np.float64]: ...
    @property
    def validated(self) -> NDArray[np.int64]: ...
    @property
    def metric(self) -> str: ...
    @property
    def scores(self) -> NDArray[np.float64]: ...


def measured(metric: str) -> str:
    """What a history measured on held-out sentences, in words."""
    names = {
        "bleu": _("BLEU"),
        "perplexity": _("perplexity a piece"),
        "accuracy": _("hidden pieces guessed, in per cent"),
    }
    return names.get(metric, metric)


def logged_curves(logged: Logged, floor: float, marks: Sequence[int], palette: Palette) -> go.Figure:
    """Loss with its floor, learning rate and what was measured; `marks` are the steps of the snapshots."""
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.09, row_heights=[4, 2, 3])
    figure.update_layout(sheet(palette, 560).layout)
    colour = palette.weights[3][1]
    parts = (
        (_("loss"), logged.steps, logged.loss, "lines", ".3f"),
        (_("learning rate"), logged.steps, logged.learning_rate, "lines", ".2e"),
        (measured(logged.metric), logged.validated, logged.scores, "lines+markers", ".1f"),
    )
    for row, (name, x, y, mode, digits) in enumerate(parts, 1):
        line: dict[str, Any] = {"color": colour, "width": 2}
        hover = _("step") + f" %{{x}}: <b>%{{y:{digits}}}</b><extra>{name}</extra>"
        figure.add_trace(
            go.Scatter(x=x, y=y, mode=mode, line=line, name=name, hovertemplate=hover), row=row, col=1
        )
        axis = "" if row == 1 else row
        figure.add_annotation(
            text=f"<b>{name}</b>", showarrow=False, x=0, y=1, xref=f"x{axis} domain", yref=f"y{axis} domain",
            xanchor="left", yanchor="bottom",
        )  # fmt: skip
    if floor:  # without smoothing it is the axis
        figure.add_hline(
            y=floor, row=1, col=1, line={"color": palette.accent, "width": 2, "dash": "dot"},
            annotation={"text": _("the smoothed target's entropy: {floor:.3f}").format(floor=floor),
                        "font": {"color": palette.accent}, "yanchor": "top"},
            annotation_position="bottom left",
        )  # fmt: skip
    kept = np.array(marks)
    figure.add_trace(
        go.Scatter(
            x=kept, y=np.zeros(len(kept)), mode="markers", name=_("snapshots"), cliponaxis=False,
            marker={"symbol": "triangle-up", "size": 12, "color": palette.accent},
            hovertemplate=_("snapshot at step") + " %{x}<extra></extra>",
        ),
        row=3, col=1,
    )  # fmt: skip
    figure.update_xaxes(**PLAIN, range=[-100, int(logged.steps[-1]) * 1.02], tickformat=",d")
    figure.update_yaxes(**PLAIN | {"showgrid": True}, gridcolor=palette.blocked, rangemode="tozero")
    figure.update_xaxes(title=_("step"), row=3, col=1)
    figure.update_yaxes(tickformat=".0e", nticks=3, row=2, col=1)
    return figure.update_layout(margin={"l": 64, "t": 30, "b": 56})


def smoothing_curve(
    share: Floats,
    curves: Sequence[tuple[str, Floats]],
    floor: float,
    pieces: Sequence[str],
    at: Floats,
    losses: Floats,
    palette: Palette,
) -> go.Figure:
    """Losses (N,) over the right piece's `share` (N,), their floor, and each piece's own place (T,)."""
    figure = sheet(palette, 380)
    top = float(max(6.0, losses.max() + 0.5))
    for (name, loss), colour, dash in zip(
        curves, (palette.quiet, palette.weights[3][1]), ("dot", "solid"), strict=True
    ):
        figure.add_scatter(
            x=share, y=loss, mode="lines", line={"color": colour, "width": 2, "dash": dash}, name=name,
            hovertemplate=f"{name}<br>p %{{x:.3f}}: <b>%{{y:.3f}}</b><extra></extra>",
        )  # fmt: skip
    figure.add_scatter(
        x=at, y=losses, mode="markers", name=_("pieces"), marker={"size": 11, "color": palette.target},
        hovertext=[escape(piece) for piece in pieces],
        hovertemplate="%{hovertext}: p %{x:.3f}, <b>%{y:.3f}</b><extra></extra>",
    )  # fmt: skip
    figure.add_hline(y=floor, line={"color": palette.accent, "width": 2, "dash": "dot"})
    figure.add_annotation(
        x=0, y=floor, xref="paper", text=_("floor {floor:.3f}").format(floor=floor), showarrow=False,
        xanchor="left", yanchor="bottom", font={"color": palette.accent},
    )  # fmt: skip
    return figure.update_layout(
        xaxis={**PLAIN, "range": [0, 1.01], "title": _("probability of the right piece"), "automargin": True},
        yaxis={**PLAIN, "range": [0, top], "title": _("loss"), "showgrid": True, "gridcolor": palette.blocked,
               "automargin": True},
    )  # fmt: skip


def dropped_map(picture: Map, query: int, key: int, look: Look) -> go.Figure:
    """An `attention_map` whose row sums may miss 1: the bars have room beyond it, and a line at 1."""
    figure = attention_map(picture, query, key, look)
    figure.update_layout(xaxis={"domain": [0, 0.86]}, xaxis2={"domain": [0.88, 1], "range": [0, TOP]})
    rows = picture.weights.shape[0]
    figure.add_shape(
        type="line", xref="x2", yref="y", x0=1, x1=1, y0=-0.5, y1=rows - 0.5,
        line={"color": look.palette.accent, "width": 1},
    )  # fmt: skip
    return figure


def ngrams(
    tokens: Sequence[str],
    states: Sequence[Sequence[Literal["matched", "clipped", "missing"]]],
    order: int | None,
    palette: Palette,
) -> go.Figure:
    """The tokens, and under them every n-gram as a bar over its tokens: filled where a reference has it.

    `order` counts from 0; None is all. Shapes: N tokens.
    """
    shown = [order] if order is not None else list(range(len(states)))
    names = {
        "matched": _("matched"),
        "clipped": _("not counted: no reference has it so often"),
        "missing": _("in no reference"),
    }
    fills = {"matched": palette.weights[2][1], "clipped": palette.blocked, "missing": "rgba(0,0,0,0)"}
    lanes, ticks, labels = 0, [], []
    figure = sheet(palette, 100)
    x: list[float] = []
    y: list[float] = []
    said: list[str] = []
    for size in shown:
        for start, state in enumerate(states[size]):
            lane = lanes + start % (size + 1)  # neighbours overlap, so each lane takes every (n+1)th
            figure.add_shape(
                type="rect", x0=start - 0.46, x1=start + size + 0.46, y0=lane - LANE / 2, y1=lane + LANE / 2,
                fillcolor=fills[state],
                line={"color": palette.weights[3][1] if state == "matched" else palette.hatch, "width": 1,
                      "dash": "dot" if state == "missing" else "solid"},
            )  # fmt: skip
            gram = escape(" ".join(tokens[start : start + size + 1]))
            x.append(start + size / 2)
            y.append(lane)
            said.append(f"{gram}<br><b>{names[state]}</b>")
        used = min(size + 1, max(1, len(states[size])))
        ticks.append(lanes + (used - 1) / 2)
        labels.append(_("{order}-grams: {matched} of {all}").format(
            order=size + 1, matched=list(states[size]).count("matched"), all=len(states[size])
        ))  # fmt: skip
        lanes += used + 0.5  # type: ignore[assignment]
    figure.add_scatter(
        x=x, y=y, mode="markers", marker={"size": 18, "opacity": 0, "symbol": "square"}, hovertext=said,
        hovertemplate="%{hovertext}<extra></extra>", name="grams",
    )  # fmt: skip
    words = [f'<span style="color:{palette.target}">{escape(token)}</span>' for token in tokens]
    few = len(tokens) <= 12
    return figure.update_layout(
        height=80 + int(26 * lanes),
        xaxis={**PLAIN, "side": "top", "tickvals": list(range(len(tokens))), "ticktext": words,
               "tickfont": {"size": 17 if few else 12}, "tickangle": 0 if few else -60,
               "range": [-0.6, max(len(tokens), 1) - 0.4], "automargin": True},
        yaxis={**PLAIN, "range": [lanes - 0.5, -0.6], "tickvals": ticks,
               "ticktext": [f"{label} " for label in labels], "automargin": True},
    )  # fmt: skip
