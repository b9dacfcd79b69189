"""Label smoothing: the loss that cannot reach 0, on the pieces of the reader's sentence."""

import numpy as np
import streamlit as st

from viz import cache, view
from viz.chart import chart
from viz.figures.training import smoothing_curve
from viz.text import _, prose
from viz.view import Scene

OFFERED = (0.0, 0.05, 0.1, 0.2, 0.3)
TRAINED = 0.1  # as its card says
SHARES = np.linspace(0.001, 0.999, 500, dtype=np.float32)


def draw(scene: Scene) -> None:
    """The curve, its floor, and where each piece of the sentence lies."""
    trace = scene.trace
    st.markdown(prose("training")["smoothing"])
    epsilon = st.select_slider(
        _("Label smoothing ε"), OFFERED, TRAINED, key="train_smoothing", bind="query-params"
    )
    seen = cache.smoothed_loss(trace.log_probs, np.array(trace.out_ids), epsilon)
    pieces = trace.log_probs.shape[-1]
    curves = [
        (name, cache.smoothed_curve(SHARES, pieces, smoothing))
        for name, smoothing in ((_("ε = 0"), 0.0), (_("ε = {e}").format(e=epsilon), epsilon))
    ]
    shares = np.exp(trace.piece_log_probs)
    figure = smoothing_curve(
        SHARES, curves, seen.floor, trace.comes_out, shares, seen.smoothed, view.palette()
    )
    chart(figure, "train_smooth", _("Loss over the probability of the right piece"))
    said = _(
        "Mean loss of this sentence: **{smoothed:.3f}** with ε = {e}, {plain:.3f} without. Floor: "
        "**{floor:.3f}**, reached where the right piece has {best:.4f} and each of the {others:,} others "
        "{other:.1e}."
    )
    best, other = cache.smoothed_target(pieces, epsilon)
    st.markdown(
        said.format(
            smoothed=float(seen.smoothed.mean()),
            plain=float(seen.plain.mean()),
            floor=seen.floor,
            e=epsilon,
            best=best,
            others=pieces - 1,
            other=other,
        )
    )
    st.caption(
        _(
            "A dot is a piece that comes out. The lines assume that the others share what is left equally: "
            "real predictions do not, so the dots lie above. In nats. This model was trained with ε = {e}."
        ).format(e=TRAINED)
    )
