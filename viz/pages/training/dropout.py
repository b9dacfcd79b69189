"""Dropout at its three places: the same map in eval and in train mode."""

import numpy as np
import streamlit as st

from viz import cache, view
from viz.chart import chart, choose_cell
from viz.figures import Look
from viz.figures.training import dropped_map
from viz.reading import Map, facts, number, row_names
from viz.text import _, prose
from viz.view import Scene

RATES = (0.1, 0.2, 0.3, 0.5)
SEEDS = 999


def draw(scene: Scene) -> None:
    """Two maps side by side, and what became of the chosen row."""
    words = prose("training")
    st.markdown(words["dropout"])
    names = {
        "sublayer": _("sub-layer outputs"),
        "embedding": _("embedding sums"),
        "attention": _("attention weights"),
    }
    view.check("train_places", cache.PLACES)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = st.pills(
            _("Dropout on"),
            cache.PLACES,
            selection_mode="multi",
            default=["attention"],
            format_func=lambda place: names[place],
            key="train_places",
            bind="query-params",
            wrap=True,
        )
        rate = st.select_slider(_("Rate"), RATES, RATES[0], key="train_rate", bind="query-params")
        seed = st.number_input(_("Draw"), 0, SEEDS, 0, key="train_seed", bind="query-params")
    trace = scene.trace
    places = tuple(place for place in cache.PLACES if place in chosen)
    after = cache.dropped(scene.here.model, trace.text, trace.translation or None, places, rate, seed)
    pictures = (scene.here.picture(trace), scene.here.picture(after))
    query, key = scene.here.cell(trace)
    look = Look(view.palette(), scene.here.values, narrow=True)
    for column, title, picture in zip(
        st.columns(2), (_("Eval mode"), _("Train mode, one draw")), pictures, strict=True
    ):
        with column:
            st.markdown(f"**{title}**")
            chart(dropped_map(picture, query, key, look), f"train_{title}", title, choose_cell)
            st.caption(_sums(picture))
    st.markdown(words["dropout sums"] if "attention" in places else words["dropout keeps"])
    if "attention" in places and not scene.here.mean:
        st.markdown(view.plain(_row(*pictures, query, rate)))
    st.caption(view.plain(facts(pictures[0])))


def _sums(picture: Map) -> str:
    sums = picture.weights.sum(axis=-1)
    said = _("Row sums from {least:.4f} to {most:.4f}; largest weight {weight}.")
    return said.format(least=sums.min(), most=sums.max(), weight=number(float(picture.weights.max())))


def _row(before: Map, after: Map, query: int, rate: float) -> str:
    """The chosen row in words: how many of its weights were dropped, and what they sum to now."""
    allowed = after.allowed[query]
    lost = int(np.count_nonzero(allowed & (after.weights[query] == 0) & (before.weights[query] > 0)))
    said = _(
        "Framed row, {row}: {lost} of {all} weights dropped, the others divided by {keep:g}; "
        "they sum to {total:.4f}."
    )
    return said.format(
        row=row_names(after.trace, after.kind)[query],
        lost=lost,
        all=int(allowed.sum()),
        keep=1 - rate,
        total=float(after.weights[query].sum()),
    )
