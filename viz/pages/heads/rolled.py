"""Attention rollout: all layers multiplied into one map, with its formula and its limits."""

import numpy as np
import streamlit as st

from model.heads import rollout
from model.trace import asks
from viz import view
from viz.chart import chart
from viz.figures.heads import mixed
from viz.reading import language, percent, row_names
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    here, trace = scene.here, scene.trace
    rolled = rollout(trace, here.kind)
    now = rolled[here.layer]
    rows = row_names(trace, here.kind)
    french = () if here.kind == "encoder" else trace.target
    both = bool(french and trace.source)
    own = language(trace.languages, asks(here.kind))
    blocked = np.zeros(now.shape, bool)
    if french:
        blocked[:, len(trace.source) :] = np.triu(np.ones((len(french), len(french)), bool), 1)
    title = (
        _("What each {language} row holds after layer {layer} of the decoder, English and French")
        if both
        else _("What each {language} row holds after layer {layer}")
    ).format(layer=here.layer + 1, language=own)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown(f"**{title}**")
        chart(mixed(now, blocked, rows, (trace.source, french), view.palette()), "heads_rollout", title)
        sums = now.sum(axis=-1)
        st.caption(
            _(
                "Rows sum to 1 (to within {off:.0e}). Colours from 0 to {most}, the largest share here: not "
                "the scale of the maps. The layer buttons above step through the layers."
            ).format(off=max(float(abs(sums - 1).max()), 1e-9), most=percent(float(now.max())))
        )
        if both:
            share = float(now[:, : len(trace.source)].sum(axis=-1).mean())
            st.caption(
                _("On average {share} of a row has come from the English sentence.").format(
                    share=percent(share)
                )
            )
    with right:
        st.markdown(prose("heads")["Rollout"])
