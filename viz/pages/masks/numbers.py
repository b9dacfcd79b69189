"""Rows against columns, and -inf beside its stand-ins: what each choice makes of the softmax."""

import numpy as np
import pandas as pd
import streamlit as st

from model.trace import Flags, Floats
from viz import cache, view
from viz.chart import chart
from viz.figures import number_map
from viz.pages.masks.build import parts
from viz.pages.masks.pads import pads
from viz.reading import PAD
from viz.text import _, prose
from viz.view import Scene, choice

VALUES = {"-inf": -np.inf, "-1e9": -1e9, "-1e4": -1e4}
TYPES: dict[str, type[np.floating]] = {"float32": np.float32, "float16": np.float16}
BLOCKED = ("keys", "keys and queries")


def draw(scene: Scene) -> None:
    """One variant as a map, and the row sums of all of them as a table."""
    here = scene.here
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        blocked = choice(_("What is masked"), "masks_of", BLOCKED)
        value = choice(_("Closed cells get"), "masks_value", tuple(VALUES))
        kind = choice(_("Computed in"), "masks_type", tuple(TYPES))
        with st.popover(_("Pads")):
            base = pads(scene.trace)
    trace = scene.again(base, True)
    made = parts(trace, here.kind)
    scores = trace.scores(here.kind)[here.layer, here.head]
    rows_too = made.both & np.array([[name.split(" → ")[0] != PAD] for name in made.rows])
    masks = dict(zip(BLOCKED, (made.both, rows_too), strict=True))
    if (masks[BLOCKED[0]] == masks[BLOCKED[1]]).all():
        st.info(
            _("No query is a pad here: masking queries changes nothing. Add pads, or choose the encoder.")
        )
    weights = cache.masked_softmax(scores, masks[blocked], VALUES[value], TYPES[kind])
    left, right = st.columns([3, 2], gap="large")
    with left:
        figure = number_map(weights, made.rows, made.keys, view.palette())
        chart(figure, "numbers", _("the weights that fall out"))
    with right:
        st.markdown(prose("masks")["Rows and columns"])
        st.markdown(prose("masks")["Stand-ins"])
    st.markdown("**" + _("All twelve, as they fall out") + "**")
    st.dataframe(variants(scores, masks), hide_index=True)


def variants(scores: Floats, masks: dict[str, Flags]) -> pd.DataFrame:
    """What falls out under each mask (Q, K), stand-in and type: NaN, sums, weight where none should be."""
    rows = []
    for blocked, mask in masks.items():
        for value, number in VALUES.items():
            for kind, dtype in TYPES.items():
                weights = cache.masked_softmax(scores, mask, number, dtype).astype(np.float64)
                lost = np.isnan(weights).any(axis=-1)
                sums, leaked = weights[~lost].sum(axis=-1), weights[~lost][~mask[~lost]]
                rows.append(
                    {
                        _("masked"): blocked,
                        _("closed cells get"): value,
                        _("in"): kind,
                        _("NaN rows"): int(lost.sum()),
                        _("sum off 1 by"): f"{abs(sums - 1).max(initial=0):.0e}",
                        _("most on a closed cell"): f"{leaked.max(initial=0):.2f}",
                    }
                )
    return pd.DataFrame(rows)
