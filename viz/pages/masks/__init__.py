"""What masks do: switch one off, build one, draw one, prove one, and see it in numbers."""

from collections.abc import Callable

import streamlit as st

from viz.pages.masks import build, draw_own, numbers, prove, switch
from viz.text import _
from viz.view import Scene

TABS: dict[str, Callable[[Scene], None]] = {
    "switch": switch.draw,
    "build": build.draw,
    "draw": draw_own.draw,
    "prove": prove.draw,
    "numbers": numbers.draw,
}


def draw(scene: Scene) -> None:
    """Only the chosen tab is drawn, and so only its passes are run."""
    tab = st.segmented_control(
        _("Laboratory"),
        list(TABS),
        default="switch",
        required=True,
        key="masks_tab",
        bind="query-params",
        label_visibility="collapsed",
    )
    TABS[tab or "switch"](scene)
