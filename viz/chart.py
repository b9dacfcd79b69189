"""A figure on a page: its markers can be clicked, and a click moves the reader."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from viz import download, view

Chosen = Callable[[list[list[int]]], None]  # gets the customdata of the clicked markers


def chart(
    figure: Any, key: str, said: str, chose: Chosen | None = None, zoom: bool = False, drag: bool = False,
    save: bool = True,
) -> None:  # fmt: skip
    """Draw a figure, told in words by `said`. With `drag` a box is drawn over its markers instead.

    Under it stands what saves it, unless the page saves it in another way.
    """
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        on_select=partial(_clicked, key, chose) if chose else "ignore",
        selection_mode="box" if drag else "points",  # with both, Streamlit hands over no clicks
        config={"displayModeBar": False, "scrollZoom": zoom},
        alt=said,
    )
    if save:
        download.figure(figure, key, said)


def choose_cell(places: list[list[int]]) -> None:
    """Make a cell [query, key] the chosen one."""
    query, key = places[0]
    view.place(row=query + 1, column=key + 1)


def choose_head(places: list[list[int]]) -> None:
    """Make a head of the small maps the large one."""
    (head,) = places[0]
    view.place(head=head + 1, mean=False)


def _clicked(key: str, chose: Chosen) -> None:
    found = [point.get("customdata") for point in st.session_state[key].selection.points]
    # Streamlit hands a list of custom data over as a dict of its indices.
    places = [list(data.values()) if isinstance(data, dict) else list(data) for data in found if data]
    if places:
        chose(places)
