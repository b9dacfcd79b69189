"""PE(p + k) is PE(p), turned: on one pair of dimensions, with the reader's own angle."""

import math
from typing import Any

import streamlit as st

from model.trace import asks
from viz import cache, order, view
from viz.chart import chart
from viz.figures.positions import rotation
from viz.pages.positions.controls import distance, number, slider
from viz.pages.positions.encoding import MOST
from viz.text import _, prose
from viz.view import Scene

FARTHEST = 64  # the largest offset
LAST = MOST - 1 - FARTHEST  # the last position to start from


def draw(scene: Scene) -> None:
    width = scene.trace.embedding(asks(scene.here.kind)).sum.shape[1]
    encoding, turns = cache.encoding(MOST, width), cache.turns(width)
    view.check("pos_pair", range(width // 2))
    picture, words = st.columns(2, gap="medium")
    with words:
        offset = slider(_("Offset k"), "pos_k", 5, 0, FARTHEST)
        pair = slider(_("Pair of dimensions i"), "pos_pair", width // 32, 0, width // 2 - 1)
        at = number(_("Position p"), "pos_from", 2, 0, LAST)
    angle = offset * float(turns[pair])
    with picture:
        said = _("Position {at} and position {to}, in dimensions {even} and {odd}").format(
            at=at, to=at + offset, even=2 * pair, odd=2 * pair + 1
        )
        chart(rotation(encoding, pair, at, offset, angle, view.palette()), "rotation", said)
        st.caption(said + ".")
    with words:
        st.markdown(_("**Angle:** k · ω = {k} · {turn:.6f} = {angle:.4f} radians = {degrees:.1f}°").format(
            k=offset, turn=float(turns[pair]), angle=angle, degrees=math.degrees(angle)
        ))  # fmt: skip
        st.markdown(f"$$\n{_matrix(encoding, pair, at, offset)}\n$$")  # st.latex makes a box 2 px too narrow
        here = order.turned_apart(encoding, offset, [pair])
        all_ = order.turned_apart(encoding, offset, range(width // 2))
        said = _(
            "Check, over all positions below {most}: largest difference {here} in this pair,"
            " {all} in all {pairs} pairs. The same matrix serves every p."
        )
        st.info(
            view.plain(
                said.format(most=MOST - offset, here=distance(here), all=distance(all_), pairs=width // 2)
            )
        )
    left, right = st.columns(2, gap="large")
    left.markdown(prose("positions")["Rotation"])
    right.markdown(prose("positions")["Formula"])


def _matrix(encoding: Any, pair: int, at: int, offset: int) -> str:
    """The rotation of one pair with its numbers, in LaTeX."""
    (a, b), (c, d) = (order.turn(encoding, pair, offset).round(4) + 0.0).tolist()  # + 0.0: no -0
    before, after = (encoding[place, 2 * pair : 2 * pair + 2].tolist() for place in (at, at + offset))
    column = r"\begin{{pmatrix}} {:.4f} \\ {:.4f} \end{{pmatrix}}"
    matrix = rf"\begin{{pmatrix}} {a:.4f} & {b:.4f} \\ {c:.4f} & {d:.4f} \end{{pmatrix}}"
    rows = (
        rf"R_{{{offset}}} &= {matrix}",
        rf"PE({at}) &= {column.format(*before)}",
        rf"PE({at + offset}) &= R_{{{offset}}} \, PE({at})",
        rf"&= {column.format(*after)}",  # a line of its own: beside it, the formula is wider than its column
    )
    return r"\small\begin{aligned}" + r" \\[1.4em] ".join(rows) + r"\end{aligned}"
