"""How the model learned: its maps on the way, its curves, and what training does and translating does not."""

from collections.abc import Callable

import streamlit as st

from viz import cache
from viz.pages.training import bleu, curves, dropout, forcing, smoothing, watch
from viz.text import _
from viz.view import Offers, Scene, numbers

TABS: dict[str, Callable[[Scene], None]] = {
    "watch": watch.draw,
    "curves": curves.draw,
    "smoothing": smoothing.draw,
    "dropout": dropout.draw,
    "forcing": forcing.draw,
    "BLEU": bleu.draw,
}


OFFERS: Offers = {
    "train_tab": tuple(TABS),
    "train_step": tuple(map(str, cache.snapshots())),
    "train_smoothing": tuple(map(str, smoothing.OFFERED)),
    "train_rate": tuple(map(str, dropout.RATES)),
    "train_seed": numbers(0, dropout.SEEDS),
    "train_order": bleu.ORDERS,
}


def draw(scene: Scene) -> None:
    """Only the chosen tab is drawn, and so only its passes are run."""
    tab = st.segmented_control(
        _("Show"),
        list(TABS),
        default="watch",
        required=True,
        key="train_tab",
        bind="query-params",
        label_visibility="collapsed",
        wrap=True,
    )
    TABS[tab or "watch"](scene)
