"""Softmax temperature on one row: from one-hot over the model's own weights to uniform."""

import numpy as np
import streamlit as st

from model.trace import asked
from viz import steps, view
from viz.chart import chart
from viz.figures.measures import Line, Row, curves, row_bars
from viz.text import _, prose
from viz.view import Scene

# Labels are ids, since the address holds them; the ends are limits.
TEMPERATURES = {
    "0": 0.0, "0.05": 0.05, "0.1": 0.1, "0.2": 0.2, "0.3": 0.3, "0.5": 0.5, "0.7": 0.7, "1": 1.0, "1.5": 1.5,
    "2": 2.0, "3": 3.0, "5": 5.0, "10": 10.0, "20": 20.0, "inf": np.inf,
}  # fmt: skip


def draw(scene: Scene) -> None:
    """The row of weights at the chosen temperature over that at 1, and entropy by temperature."""
    st.markdown(prose("head")["temperature"])
    chosen = st.select_slider(
        _("Softmax temperature"), tuple(TEMPERATURES), "1", key="head_temperature", bind="query-params"
    )
    here, palette = scene.here, view.palette()
    query, _key = here.cell(scene.trace)
    picture = here.picture(scene.trace)
    scores = scene.trace.scores(here.kind)[here.layer, here.head, query]
    allowed, keys = picture.allowed[query], scene.trace.axes(here.kind)[1]
    at = {label: steps.at_temperature(scores, allowed, heat) for label, heat in TEMPERATURES.items()}
    rows = [Row("T = 1", at["1"]), Row(f"T = {chosen}", at[chosen])]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        piece = picture.trace.axes(here.kind)[0][query]
        st.markdown(view.plain(_('The row of "{piece}" at T = {t}').format(piece=piece, t=chosen)))
        chart(row_bars(rows, keys, palette.token(asked(here.kind)), palette), "head_heat", rows[-1].name)
        st.caption(_("Filled: at this temperature. Outlined: T = 1, what the model uses."))
    with right:
        entropy, most = float(steps.bits(at[chosen])), float(np.log2(max(allowed.sum(), 1)))
        st.markdown(_("Entropy **{bits:.4f}** of {most:.4f} bits").format(bits=entropy, most=most))
        finite = {label: heat for label, heat in TEMPERATURES.items() if 0 < heat < np.inf}
        line = Line(_("entropy"), [float(steps.bits(at[label])) for label in finite])
        place_ = float(np.clip(TEMPERATURES[chosen], min(finite.values()), max(finite.values())))
        axes = _("T"), _("bits")
        chart(
            curves([*finite.values()], [line], palette, axes, {1.0: "T = 1"}, place_),
            "head_entropy",
            _("Entropy"),
        )
    said = {
        "0": _("One-hot: the largest score takes everything (equal ones share it)."),
        "inf": _("Uniform: every allowed key gets the same, whatever its score."),
    }
    st.markdown(said.get(chosen, _("The order of the keys never changes; only how far apart they are.")))
