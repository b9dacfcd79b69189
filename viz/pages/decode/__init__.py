"""How the model writes: piece by piece, with a beam, by lot, and fed a teacher's sentence for its own."""

from collections.abc import Callable

import streamlit as st

from viz import view
from viz.pages.decode import beam, forcing, grow, sampling, way
from viz.text import _
from viz.view import FLAG, Offers, Scene

TABS: dict[str, Callable[[Scene], None]] = {
    "grow": grow.draw,
    "beam": beam.draw,
    "sampling": sampling.draw,
    "forcing": forcing.draw,
}


OFFERS: Offers = {
    "dec_tab": tuple(TABS),
    "dec_how": way.HOWS,
    "dec_beam": view.numbers(1, way.WIDEST),
    "dec_temperature": tuple(map(str, way.TEMPERATURES)),
    "dec_k": way.TOP_K,
    "dec_p": tuple(map(str, way.TOP_P)),
    "dec_seed": view.numbers(0, way.SEEDS),
    "dec_words": FLAG,
}


def draw(scene: Scene) -> None:
    """Only the chosen tab is drawn, and so only its passes are run."""
    tab = st.segmented_control(
        _("Show"),
        list(TABS),
        default="grow",
        required=True,
        key="dec_tab",
        bind="query-params",
        label_visibility="collapsed",
        wrap=True,
    )
    TABS[tab or "grow"](scene)
