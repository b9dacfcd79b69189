"""One head, from tokens to output: walked through, without its scale, at another temperature."""

from dataclasses import replace

import streamlit as st

from viz import fit, steps, view
from viz.fit import Tab
from viz.pages.head import root, temperature, walk
from viz.pages.head.place import choose
from viz.text import _
from viz.view import FLAG, Offers, Scene, numbers

TABS = {
    "walk": Tab(walk.draw, (fit.attention, fit.layers)),
    "root": Tab(root.draw, (fit.attention, fit.layers)),
    "temperature": Tab(temperature.draw, (fit.attention, fit.scores)),
}


OFFERS: Offers = {
    "head_tab": tuple(TABS),
    "head_stage": numbers(1, len(steps.STAGES)),
    "head_why": root.SHOWN,
    "head_temperature": tuple(temperature.TEMPERATURES),
    "head_w": FLAG,
    "head_wo": FLAG,
}


def draw(scene: Scene) -> None:
    """Only the chosen tab is drawn. Every tab shows one head, also where the frame shows the mean."""
    mean, scene = scene.here.mean, replace(scene, here=replace(scene.here, mean=False))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        tab = view.tab("head_tab", TABS)
        if tab != "root" and not fit.lacking(scene, TABS[tab].needs):
            choose(scene, key=tab == "walk")
    if mean and scene.trace.kinds:
        said = _("This page shows one head: head {head}. Their mean is no head; the model never uses it.")
        st.caption(said.format(head=scene.here.head + 1))
    fit.show(scene, TABS[tab])
