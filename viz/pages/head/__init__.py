"""One head, from tokens to output: walked through, without its scale, at another temperature."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from viz import steps, view
from viz.pages.head import root, temperature, walk
from viz.pages.head.place import choose
from viz.text import _
from viz.view import FLAG, Offers, Scene, numbers

TABS: dict[str, Callable[[Scene], None]] = {
    "walk": walk.draw,
    "root": root.draw,
    "temperature": temperature.draw,
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
        if tab != "root":
            choose(scene, key=tab == "walk")
    if mean:
        said = _("This page shows one head: head {head}. Their mean is no head; the model never uses it.")
        st.caption(said.format(head=scene.here.head + 1))
    TABS[tab](scene)
