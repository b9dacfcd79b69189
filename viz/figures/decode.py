"""Beam search as a tree, and the loss of a sentence under two ways of feeding it."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import plotly.graph_objects as go

from model.trace import Trace
from viz.figures.cells import sheet
from viz.figures.stages import PLAIN
from viz.text import _
from viz.theme import Palette, escape

STEP = 54  # px that a step of the tree is high


class Node(Protocol):
    """A hypothesis that a beam search considered."""

    @property
    def piece(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def parent(self) -> int | None: ...
    @property
    def step(self) -> int: ...
    @property
    def total(self) -> float: ...
    @property
    def worth(self) -> float: ...
    @property
    def state(self) -> str: ...
    @property
    def chosen(self) -> bool: ...


def beam_tree(nodes: Sequence[Node], size: int, palette: Palette) -> go.Figure:
    """Steps downwards, the hypotheses of a step by their probability from left to right.

    The path that was chosen is drawn in the accent colour, what was dropped pale.
    """
    steps = max((node.step for node in nodes), default=0) + 1
    figure = sheet(palette, 60 + STEP * (steps + 1))
    column: list[float] = []
    met = [0] * steps
    for node in nodes:
        column.append(float(met[node.step]))
        met[node.step] += 1
    middle = (max(met, default=1) - 1) / 2
    for chosen in (False, True):
        x: list[float | None] = []
        y: list[float | None] = []
        for node, at in zip(nodes, column, strict=True):
            if node.chosen == chosen:
                x += [middle if node.parent is None else column[node.parent], at, None]
                y += [node.step - 0.72, node.step - 0.28, None]
        figure.add_scatter(
            x=np.array(x, float), y=np.array(y, float), mode="lines", hoverinfo="skip",
            name="chosen edges" if chosen else "edges",
            line={"color": palette.accent if chosen else palette.hatch, "width": 3 if chosen else 1},
        )  # fmt: skip
    width = max(met, default=1)
    states = {
        "kept": _("kept"),
        "ended": _("finished: log P ÷ lp = {worth:.3f}"),
        "dropped": _("dropped"),
    }

    def label(node: Node) -> str:
        piece = escape(node.piece if len(node.piece) <= 11 else node.piece[:10] + "…")
        piece = f"<b>{piece}</b>" if node.chosen else f"<i>{piece}</i>" if node.state == "dropped" else piece
        return f'{piece}<br><span style="font-size:11px">{node.total:.2f}</span>'

    for state, colour in (("kept", palette.text), ("ended", palette.target), ("dropped", palette.quiet)):
        mine = [(node, at) for node, at in zip(nodes, column, strict=True) if node.state == state]
        figure.add_scatter(
            x=np.array([at for _node, at in mine], float),
            y=np.array([node.step for node, _at in mine], float),
            mode="text",
            text=[label(node) for node, _at in mine],
            textfont={"size": 14 if width <= 6 else 13 if width <= 8 else 11, "color": colour},
            hovertext=[
                f"<b>{escape(node.text) or '—'}</b><br>log P {node.total:.4f}<br>"
                + states[state].format(worth=node.worth)
                for node, _at in mine
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            name=state,
        )
    figure.add_annotation(x=middle, y=-1, text="&lt;s&gt;", showarrow=False, font={"color": palette.target})
    return figure.update_layout(
        xaxis={**PLAIN, "visible": False, "range": [-0.6, max(max(met, default=1), 2) - 0.4]},
        yaxis={**PLAIN, "range": [steps - 0.4, -1.4], "tickvals": list(range(steps)),
               "ticktext": [f"{step + 1} " for step in range(steps)], "tickfont": {"color": palette.quiet},
               "automargin": True},
    )  # fmt: skip


def two_losses(forced: Trace, free: Sequence[float | None], place: int | None, palette: Palette) -> go.Figure:
    """−log p of each of the teacher's pieces: after the teacher's words, and after the model's own.

    An upright line stands before the step at which the two part.
    """
    figure = sheet(palette, 330)
    steps = np.arange(len(forced.comes_out))
    given = -forced.piece_log_probs
    own = np.array([np.nan if each is None else each for each in free])
    look: tuple[tuple[str, Any, str, str], ...] = (
        (_("free running"), own, palette.quiet, "dot"),
        (_("teacher forcing"), given, palette.weights[3][1], "solid"),
    )
    for name, losses, colour, dash in look:
        figure.add_scatter(
            x=steps, y=losses, mode="lines+markers", name=name, marker={"size": 9},
            line={"color": colour, "width": 2, "dash": dash},
            customdata=[escape(piece) for piece in forced.comes_out],
            hovertemplate=f"{name}<br>%{{customdata}}: <b>%{{y:.3f}}</b><extra></extra>",
        )  # fmt: skip
    top = float(np.nanmax([*given, *own, 1.0]))
    if place is not None:
        figure.add_vline(x=place - 0.5, line={"color": palette.accent, "width": 2, "dash": "dot"})
        figure.add_annotation(x=place - 0.5, y=1.12 * top, text=_("here they part"), showarrow=False,
                              xanchor="left", xshift=6, font={"color": palette.accent})  # fmt: skip
    words = [f'<span style="color:{palette.target}">{escape(piece)}</span>' for piece in forced.comes_out]
    few = len(words) <= 14
    size = 16 if few else 12
    return figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.15},
        xaxis={**PLAIN, "tickvals": steps.tolist(), "ticktext": words, "tickfont": {"size": size},
               "tickangle": 0 if few else -60, "range": [-0.6, len(words) - 0.4], "automargin": True},
        yaxis={**PLAIN, "range": [-0.02 * top, 1.2 * top], "title": _("−log p of the teacher's piece"),
               "showgrid": True, "gridcolor": palette.blocked, "automargin": True},
    )  # fmt: skip


class Band(Protocol):
    """Sentences of like length: how many, and the BLEU of each model with its spread."""

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def sentences(self) -> int: ...
    @property
    def bleu(self) -> dict[str, float]: ...
    @property
    def spread(self) -> dict[str, tuple[float, float]]: ...


def by_length(bands: Sequence[Band], palette: Palette) -> go.Figure:
    """BLEU of each model over bands of length, a line a model, named at its end; bars are the spread."""
    figure = sheet(palette, 380)
    looks = ((palette.accent, "solid"), (palette.text, "solid"), (palette.quiet, "dash"))
    names = [*bands[0].bleu]
    for place, name in enumerate(names):
        colour, dash = looks[place % len(looks)]
        y = np.array([band.bleu[name] for band in bands])
        low, high = np.array([band.spread[name] for band in bands]).T
        figure.add_trace(
            go.Scatter(
                x=np.arange(len(bands)) + 0.06 * (place - (len(names) - 1) / 2),  # bars side by side
                y=y,
                error_y={
                    "type": "data", "symmetric": False, "array": high - y, "arrayminus": y - low,
                    "thickness": 1.5, "width": 4,
                },
                mode="lines+markers",
                line={"color": colour, "width": 2, "dash": dash},
                marker={"size": 9},
                hovertemplate=escape(name) + ": <b>%{y:.1f}</b><extra></extra>",
                name=name,
            )
        )  # fmt: skip
        figure.add_annotation(
            x=len(bands) - 0.82, y=float(y[-1]), text=escape(name), showarrow=False, xanchor="left",
            font={"size": 15, "color": colour},
        )  # fmt: skip
    labels = [
        _("{first} to {last} words").format(first=band.first, last=band.last)
        + "<br>"
        + _("{count} sentences").format(count=band.sentences)
        for band in bands
    ]
    figure.update_layout(
        margin={"r": round(8 * max(map(len, names)))},  # room for the names, on a phone as well
        xaxis={
            **PLAIN,
            "tickvals": np.arange(len(bands)),
            "ticktext": labels,
            "range": [-0.4, len(bands) - 0.6],
            "tickfont": {"size": 13},
            "automargin": True,
        },
        yaxis={
            **PLAIN,
            "title": {"text": _("BLEU")},
            "rangemode": "tozero",
            "showgrid": True,
            "gridcolor": palette.blocked,
            "automargin": True,
        },
    )
    return figure
