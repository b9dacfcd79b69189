"""The maps of one trace, or of a sentence before and after a change: on the stage, or drawn by plotly."""

from dataclasses import replace

import streamlit as st

from model.trace import Trace
from viz import component, download, stage, view
from viz.chart import chart, choose_cell, choose_head
from viz.figures import Look, attention_lines, attention_map, head_grid, signed_map
from viz.figures.cells import READABLE
from viz.figures.lines import hidden
from viz.reading import Map, aloud, facts, kind_name, number, percent, phrases, resting
from viz.text import _
from viz.view import View

BESIDE = 16  # columns that the large map can show in half the width


def attention(here: View, trace: Trace, after: Trace | None = None) -> None:
    """Draw the maps where the reader stands; with `after`, those before, those after, and the difference."""
    pieces = max(len(trace.source), len(trace.target))
    if pieces > stage.LONGEST:
        said = _(
            "The stage draws at most {most} pieces along an axis; here are {pieces}. Plotly draws a part."
        )
        st.info(view.plain(said.format(most=stage.LONGEST, pieces=pieces)))
    if here.still or pieces > stage.LONGEST:
        _still_act(here, trace, after) if after else _still(here, trace)
        download.picture(here, trace, after)
        return
    sets = [stage.maps(each) for each in (trace, after) if each]
    component.stage(
        stage.pack(sets, component.wanted() or (here.kind, here.layer)),
        view.controls(here),
        view.controls(view.at_first(here.sizes)),
        view.palette(),
        here.values,
    )
    download.picture(here, trace, after)


# --- without the stage --------------------------------------------------------------------------------------


def _still(here: View, trace: Trace) -> None:
    """One head, and its layer small beside it."""
    picture, (query, key) = here.picture(trace), here.cell(trace)
    palette = view.palette()
    st.markdown(view.plain(aloud(picture, query, key)))
    # Beside the small maps a long sentence would be unreadable: then they stand below.
    long = len(trace.axes(here.kind)[1]) > BESIDE
    large, small = (st.container(), st.container()) if long else st.columns([6, 5], gap="medium")
    with large:
        figure = (
            attention_lines(picture, query, palette, here.faint / 100)
            if here.drawing == "lines"
            else attention_map(picture, query, key, Look(palette, here.values))
        )
        chart(
            figure,
            "large",
            aloud(picture, query, key),
            choose_cell,
            zoom=_pieces(picture) > READABLE,
            save=False,
        )
    with small:
        said = _("All heads of {kind}, layer {layer}, on the axes and the scale of the large map.").format(
            kind=kind_name(here.kind), layer=here.layer + 1
        )
        chart(head_grid(picture, palette), "small", said, choose_head, save=False)
        st.caption(said + " " + _("Click one to make it large."))
    for line in _remarks(picture, here):
        st.caption(view.plain(line))


def _pieces(picture: Map) -> int:
    """The length of the longer axis."""
    return max(map(len, picture.trace.axes(picture.kind)))


def _remarks(picture: Map, here: View) -> list[str]:
    """What stands under a map."""
    say, words = phrases(), component.stage_words()
    lines = [
        say["rests"].format(piece=piece, rows=rows, all=len(picture.weights)) + " " + say["common"]
        for piece, rows in resting(picture)
    ]
    lines.append(facts(picture))
    if here.drawing == "lines":
        share = percent(hidden(picture, here.faint / 100))
        lines.append(words["hiddenShare"].format(faint=percent(here.faint / 100), share=share))
    elif _pieces(picture) > READABLE:
        lines.append(words["window"].format(shown=READABLE, all=_pieces(picture)))
    if picture.head is None:
        lines.append(words["meanNote"])
    return lines


def _still_act(here: View, before: Trace, after: Trace) -> None:
    """Before, after and difference, each kind of number on its one scale."""
    one, other = here.picture(before), here.picture(after)
    query, asked = here.cell(before)
    difference = other.weights - one.weights
    first = Look(view.palette(), here.values, narrow=True)
    look = replace(first, rows=False)
    figures = [
        attention_map(one, query, asked, first),
        attention_map(other, query, asked, look),
        signed_map(one, difference, 1.0, query, asked, look),
    ]
    words = component.stage_words()
    for column, title, figure in zip(st.columns([4, 3, 3]), words["panels"], figures, strict=True):
        with column:
            st.markdown(f"**{title}**")
            chart(figure, f"act_{title}", title, choose_cell, save=False)
    st.caption(words["differs"].format(most=number(float(abs(difference).max()))))
