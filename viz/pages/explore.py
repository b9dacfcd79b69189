"""Every attention map behind a translation: one head large, its layer small beside it."""

import streamlit as st

from viz import tables, view
from viz.chart import chart, choose_cell, choose_head
from viz.figures import Look, attention_lines, attention_map, head_grid
from viz.figures.cells import READABLE
from viz.figures.lines import FAINT, hidden
from viz.reading import Map, aloud, facts, kind_name, percent, resting
from viz.text import _, prose
from viz.view import Scene, View

BESIDE = 16  # columns that the large map can show in half the width


def draw(scene: Scene) -> None:
    trace, here = scene.trace, scene.here
    picture, (query, key) = here.picture(trace), here.cell(trace)
    palette = view.palette()
    st.markdown(view.plain(aloud(picture, query, key)))
    # Beside the small maps a long sentence would be unreadable: then they stand below.
    long = len(trace.axes(here.kind)[1]) > BESIDE
    large, small = (st.container(), st.container()) if long else st.columns([6, 5], gap="medium")
    with large:
        figure = (
            attention_map(picture, query, key, Look(palette, here.values))
            if here.drawing == "map"
            else attention_lines(picture, query, palette)
        )
        chart(figure, "large", aloud(picture, query, key), choose_cell, zoom=_pieces(picture) > READABLE)
    with small:
        said = _("All heads of {kind}, layer {layer}, on the axes and the scale of the large map.").format(
            kind=kind_name(here.kind), layer=here.layer + 1
        )
        chart(head_grid(picture, palette), "small", said, choose_head)
        st.caption(said + " " + _("Click one to make it large."))
    _said(picture, here)
    _explained(picture)


def _pieces(picture: Map) -> int:
    """The length of the longer axis."""
    return max(map(len, picture.trace.axes(picture.kind)))


def _said(picture: Map, here: View) -> None:
    for piece, rows in resting(picture):
        said = _('A resting place: "{piece}" takes over half of the weight in {rows} of {all} rows.')
        said = said.format(piece=piece, rows=rows, all=len(picture.weights))
        st.text(said + " " + _("That is common and means little."))
    st.caption(view.plain(facts(picture)))
    if here.drawing == "map" and _pieces(picture) > READABLE:
        said = _("{shown} of {all} pieces are shown: drag the map to see the others.")
        st.caption(said.format(shown=READABLE, all=_pieces(picture)))
    if here.drawing == "lines":
        said = _("Lines under {faint} are not drawn; together they hold {share} of all weight.")
        st.caption(said.format(faint=percent(FAINT), share=percent(hidden(picture))))
    if picture.head is None:
        st.caption(_("The mean over heads is a summary for the eye; the model never uses it."))


def _explained(picture: Map) -> None:
    with st.expander(_("What am I looking at?")):
        words = prose("explore")
        left, right = st.columns(2, gap="large")
        left.markdown(words["How to read a map"])
        right.markdown(words[picture.kind])
    with st.expander(_("The same map as a table")):
        st.dataframe(tables.weights(picture), placeholder="")
