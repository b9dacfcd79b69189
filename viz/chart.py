"""A figure on a page: its markers can be clicked, and a click moves the reader."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from viz import view


def chart(
    figure: Any, key: str, said: str, chose: Callable[[list[int]], None] | None = None, zoom: bool = False
) -> None:
    """Draw a figure. `said` tells it to those who do not see it; `chose` gets a marker's customdata."""
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        on_select=partial(_clicked, key, chose) if chose else "ignore",
        selection_mode="points",
        config={"displayModeBar": False, "scrollZoom": zoom},
        alt=said,
    )


def choose_cell(place: list[int]) -> None:
    """Make a cell [query, key] the chosen one."""
    query, key = place
    view.place(row=query + 1, column=key + 1)


def choose_head(place: list[int]) -> None:
    """Make a head of the small maps the large one."""
    (head,) = place
    view.place(head=head + 1, mean=False)


def _clicked(key: str, chose: Callable[[list[int]], None]) -> None:
    points = st.session_state[key].selection.points
    data = points[0].get("customdata") if points else None
    if data:
        # Streamlit hands a list of custom data over as a dict of its indices.
        chose(list(data.values()) if isinstance(data, dict) else list(data))
