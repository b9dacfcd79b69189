"""Steps that a reader goes through, or lets run: a part of the page that is drawn again by itself."""

import time
from collections.abc import Callable, Sequence

import streamlit as st

from viz import view
from viz.text import _


def player(
    label: str, key: str, stops: Sequence[int], first: int, draw: Callable[[int], None], seconds: float
) -> None:
    """A slider over `stops` bound to the query parameter `key`, buttons, and `draw` of the chosen stop.

    While it plays, the reader's browser asks for one redraw of this part alone every `seconds`; at the
    last stop, or when the reader takes a step, it stops asking.
    """
    ticked = f"{key}_ticked"  # when the last step of playing was made; None while nothing plays
    playing = st.session_state.get(ticked) is not None
    if st.session_state.get(key, first) not in stops:  # a shorter sentence has fewer steps
        view.place(**{key: stops[-1]})

    def at() -> int:
        return stops.index(st.session_state.get(key, first))

    def move(by: int) -> None:
        view.place(**{key: stops[min(max(0, at() + by), len(stops) - 1)], ticked: None})

    def play() -> None:
        view.place(**{ticked: None if playing else time.monotonic()})
        if not playing and at() == len(stops) - 1:
            view.place(**{key: stops[0]})

    @st.fragment(run_every=seconds if playing else None)
    def part() -> None:
        since = st.session_state.get(ticked)
        if playing and since is not None and time.monotonic() - since > 0.8 * seconds:
            view.place(**{key: stops[min(at() + 1, len(stops) - 1)], ticked: time.monotonic()})
            if at() == len(stops) - 1:
                view.place(**{ticked: None})
        if playing != (st.session_state.get(ticked) is not None):
            st.rerun()  # of the whole page: only then does the browser begin or cease to ask
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            buttons = st.container(horizontal=True, gap="small", width="content")
            chosen = st.select_slider(
                label, stops, first, key=key, bind="query-params", on_change=move, args=(0,)
            )
        with buttons:  # only now is it known what the address says
            for sign, by, shortcut, said in (
                ("‹", -1, "Shift+Left", _("Back one step")),
                ("›", 1, "Shift+Right", _("Forward one step")),
            ):
                st.button(
                    sign,
                    key=f"{key}{by:+d}",
                    help=said,
                    on_click=move,
                    args=(by,),
                    shortcut=shortcut,
                    disabled=chosen == stops[0 if by < 0 else -1],
                )
            st.button(_("Pause") if playing else _("Play"), key=f"{key}_play", on_click=play)
        draw(chosen)

    part()
