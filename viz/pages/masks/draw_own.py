"""A mask of the reader's own: closed and opened by clicks, presets or text, then computed with."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from model.trace import Cell, Switch
from viz import act, cells, view
from viz.cells import Cells
from viz.chart import chart
from viz.figures import mask_editor
from viz.pages.masks.pads import pads
from viz.reading import PAD, row_names
from viz.text import _, prose
from viz.view import Scene

WIDEST = 20
OWN: dict[str, tuple[str, ...]] = {
    "encoder": ("source_padding",),
    "decoder": ("target_padding", "look_ahead"),
    "cross": ("cross_padding",),
}


def draw(scene: Scene) -> None:
    """The editor, and under it what the drawn mask does."""
    here = scene.here
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        own = st.toggle(_("The model's own masks stay on"), True, key="own_masks", bind="query-params")
        here_only = st.toggle(_("In this layer only"), key="this_layer", bind="query-params")
        drag = st.toggle(_("Drag a box"), key="drag", bind="query-params", help=_("Else click single cells."))
        with st.popover(_("Pads")):
            base = pads(scene.trace)
    before = scene.again(base, True)
    queries, keys = before.axes(here.kind)
    shape = len(queries), len(keys)
    editor, presets = st.columns([3, 2], gap="large")
    blocked = _line(here.kind, *shape)
    with editor:
        closed = np.zeros(shape, bool)
        closed[tuple(np.array([*blocked], int).reshape(-1, 2).T)] = True
        figure = mask_editor(~closed, row_names(before, here.kind), keys, view.palette(), drag)
        chart(figure, "editor", _("your mask"), partial(_turn, blocked, shape), drag=drag)
        st.markdown(prose("masks")["Own mask"])
    with presets:
        _presets(queries, keys)

    layer = here.layer if here_only else None
    own_off: dict[str, Any] = {} if own else {name: Switch("all") for name in OWN[here.kind]}
    drawn = frozenset(Cell(here.kind, query, key, layer) for query, key in blocked)
    played = act.play(scene, replace(base, blocked=drawn, **own_off), base)
    act.show(played, here)
    empty = played.after.empty(here.kind)[here.layer, here.head].sum()
    if empty:
        st.info(
            _("Rows with nothing allowed: {count}. They have no weights, and their output is 0.").format(
                count=empty
            )
        )
    act.consequences(played, scene)


def _set(blocked: Cells, shape: tuple[int, int]) -> None:
    view.place(blocked=cells.write(blocked, *shape))


def _turn(blocked: Cells, shape: tuple[int, int], places: list[list[int]]) -> None:
    _set(cells.toggled(blocked, [(query, key) for query, key in places], *shape), shape)


def _presets(queries: tuple[str, ...], keys: tuple[str, ...]) -> None:
    """Masks worth knowing; each replaces what is drawn."""
    shape = len(queries), len(keys)
    wide = st.number_input(_("Width of the window"), 0, WIDEST, 1, key="window", bind="query-params")
    rules: dict[str, Callable[[int, int], bool]] = {
        _("nothing blocked"): lambda _query, _key: False,
        _("look-ahead"): lambda query, key: key > query,
        _("strictly before"): lambda query, key: key >= query,
        _("padding"): lambda _query, key: keys[key] == PAD,
        _("only the previous"): lambda query, key: key != query - 1,
        _("only itself"): lambda query, key: key != query,
        _("window"): lambda query, key: abs(query - key) > wide,
    }
    with st.container(horizontal=True, gap="small"):
        for index, (name, rule) in enumerate(rules.items()):
            st.button(name, key=f"preset_{index}", on_click=_set, args=(cells.where(*shape, rule), shape))
    with st.container(horizontal=True, gap="small"):
        st.caption(_("Block a word:"))
        for index, key in enumerate(keys):
            word = frozenset((query, index) for query in range(len(queries)))
            name = view.plain(key)
            st.button(name, key=f"word_{index}", type="tertiary", on_click=_set, args=(word, shape))


def _line(kind: str, rows: int, columns: int) -> Cells:
    """The mask as text: part of the link, to keep and to put in again."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(_("Blocked cells, row:columns"), key="blocked", bind="query-params")
        st.download_button(_("Keep as a file"), cells.to_file(kind, text), "mask.txt", on_click="ignore")
        with st.popover(_("Put in again")):
            file = st.file_uploader(
                _("A mask that was kept"), "txt", key="mask_file", on_change=_load, max_upload_size=1
            )
    if file and cells.from_file(file.getvalue()) is None:
        st.info(_("This file is not a mask that Headlight has kept."))
    blocked, wrong = cells.parse(text, rows, columns)
    if wrong:
        said = _("These name no cell of {rows} rows by {columns} columns: {words}")
        st.info(view.plain(said.format(rows=rows, columns=columns, words=" ".join(wrong[:8]))))
    return blocked


def _load() -> None:
    file = st.session_state["mask_file"]
    found = cells.from_file(file.getvalue()) if file else None
    if found:
        view.place(kind=found[0], blocked=found[1])
