"""Which query and which key: two lists of pieces that move the reader's place in the frame."""

from functools import partial

import streamlit as st

from viz import view
from viz.text import _
from viz.view import Scene


def choose(scene: Scene, key: bool = True) -> None:
    """The query's piece and, where asked for, the key's."""
    queries, keys = scene.trace.axes(scene.here.kind)
    query, asked = scene.here.cell(scene.trace)
    _list(_("Query (asks)"), "head_query", queries, query, "row")
    if key:
        _list(_("Key (is asked)"), "head_key", keys, asked, "column")


def _list(label: str, key: str, pieces: tuple[str, ...], at: int, control: str) -> None:
    # The frame's control is the one that the address holds; this list only follows it and sets it.
    st.session_state[key] = at
    st.selectbox(
        label,
        range(len(pieces)),
        format_func=lambda index: f"{index + 1} {pieces[index]}",
        key=key,
        on_change=partial(_moved, key, control),
        width=160,  # two beside each other on a phone
    )


def _moved(key: str, control: str) -> None:
    # Another row has another favourite.
    view.place(**{control: st.session_state[key] + 1}, **({"column": 0} if control == "row" else {}))
