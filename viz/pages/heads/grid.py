"""Every head of one kind as a thumbnail, in the order of a measure; the chosen one large."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from model.heads import Tally, all_heads
from model.trace import Head, Kind, Trace
from viz import cache, roles, tables, view
from viz.chart import chart, choose_cell
from viz.figures import Look, attention_map
from viz.figures.heads import Thumbnail, thumbnails
from viz.pages.heads.place import chosen, go
from viz.reading import aloud, kind_name
from viz.text import _, prose
from viz.view import Scene

BESIDE = 16  # columns that the large map can show in half the width
ORDERS = ("place", *roles.MEASURES, "importance")


def draw(scene: Scene) -> None:
    here, trace = scene.here, scene.trace
    survey, head = cache.surveyed(scene.here.model), chosen(here)
    offered = ORDERS if survey else ORDERS[:-1]
    by = st.segmented_control(
        _("Sorted by"), offered, default="place", required=True, key="heads_by", bind="query-params"
    )
    by = by or "place"
    values = measured(trace, here.kind, survey)
    order = all_heads(*here.sizes.kinds[here.kind], (here.kind,))
    if by != "place":
        order.sort(key=lambda one: -values[by][one.layer, one.head])
    figure = thumbnails([_thumbnail(trace, one, by, values) for one in order], head, view.palette())
    title = _("All heads of the {kind}.").format(kind=kind_name(here.kind))
    chart(figure, "heads_grid", title, partial(_choose, order))
    said = _(
        "Each small map has the axes of the large one below. Click one to make it large; Explore opens on "
        "it too."
    )
    if by == "place":
        st.caption(title + " " + _("Named by layer and head. ") + said)
    else:
        sorted_by = _("Sorted by {measure}, the largest first: {rule}").format(
            measure=roles.measure_name(by), rule=roles.measure_rule(by)
        )
        st.caption(f"{title} {sorted_by} {said}")
    _large(scene, head, values, survey)
    with st.expander(_("What these numbers do not say")):
        st.markdown(prose("heads")["Grid"])


def measured(trace: Trace, kind: Kind, survey: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    """(L, H) of every measure on this sentence, and the importance on the validation sentences."""
    means = Tally.of(trace, kind).means()
    values: dict[str, np.ndarray] = {name: np.nan_to_num(means[name]) for name in roles.MEASURES}
    if survey:
        layers, heads = values["entropy"].shape
        importance = [one["removed"] for one in survey["heads"] if one["kind"] == kind]
        values["importance"] = np.array(importance).reshape(layers, heads)
    return values


def _choose(order: list[Head], places: list[list[int]]) -> None:
    go(order[places[0][0]])


def _thumbnail(trace: Trace, head: Head, by: str, values: Mapping[str, np.ndarray]) -> Thumbnail:
    numbers = {name: float(of[head.layer, head.head]) for name, of in values.items()}
    lines = [f"{roles.measure_name(name)}: {roles.figure_of(value, name)}" for name, value in numbers.items()]
    return Thumbnail(
        head,
        trace.weights(head.kind)[head.layer, head.head],
        trace.allowed(head.kind)[head.layer, head.head],
        "" if by == "place" else roles.figure_of(numbers[by], by),
        "<br>".join(lines),
    )


def _large(
    scene: Scene, head: Head, values: Mapping[str, np.ndarray], survey: Mapping[str, Any] | None
) -> None:
    here, trace = scene.here, scene.trace
    here = replace(here, mean=False)  # the table is of one head, so is the map
    picture, (query, key) = here.picture(trace), here.cell(trace)
    # Beside a table a long sentence would be unreadable: then it stands below.
    long = len(trace.axes(here.kind)[1]) > BESIDE
    left, right = (st.container(), st.container()) if long else st.columns([4, 3], gap="large")
    with left:
        st.markdown(view.plain(aloud(picture, query, key)))
        look = Look(view.palette(), here.values)
        chart(attention_map(picture, query, key, look), "heads_large", picture.name(), choose_cell)
    with right:
        st.markdown("**" + roles.said(head) + "**")
        numbers = {name: float(of[head.layer, head.head]) for name, of in values.items()}
        st.dataframe(tables.head_numbers(numbers, head, survey), hide_index=True)
        if survey:
            said = _(
                "Validation: {sentences} sentences that the training never saw, their French given. Random: "
                "a head whose scores are drawn at random, on the same sentences; for importance the mean "
                "over all heads. ± is a standard error over sentences."
            )
            st.caption(said.format(sentences=survey["sentences"]))
