"""The controls that several tabs share, and what stands where there is no sentence yet."""

from collections.abc import Sequence

import streamlit as st

from viz import cache, view
from viz.text import _
from viz.warmup import warmup

SECOND = 1.0


def slider(label: str, key: str, options: Sequence[int], first: int) -> int:
    """One of a few numbers."""
    return int(st.select_slider(label, options, first, key=key, bind="query-params"))


def number(label: str, key: str, first: int, least: int, most: int, said: str | None = None) -> int:
    """Any whole number in a range; one out of it is told where the address asks for it."""
    if key in st.query_params:
        view.check(key, range(least, most + 1))
    return int(st.number_input(label, least, most, first, key=key, bind="query-params", help=said))


def toggle(label: str, key: str, on: bool, said: str | None = None) -> bool:
    return st.toggle(label, on, key=key, bind="query-params", help=said)


def come_back() -> None:
    """Where the page was drawn before the model was loaded: draw it again when it is."""
    if warmup.ended:
        return

    @st.fragment(run_every=SECOND)
    def look() -> None:
        if warmup.ended:
            st.rerun()

    look()


def wait_for_sentence() -> None:
    """In place of what needs the model: wait until it is there, and begin again.

    Raises UnreadyError where it will not come.
    """
    if cache.ready():
        st.info(_("This part needs a sentence that can be read."))
        return
    cache.door()
    st.rerun()
