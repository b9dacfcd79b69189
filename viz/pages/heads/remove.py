"""Remove heads by clicking them, and see what becomes of the translation and of the attention after them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from model.heads import all_heads
from model.trace import KINDS, Change, Floats, Head, Kind
from viz import act, cache, roles, view
from viz.chart import chart
from viz.figures.heads import tiles
from viz.pages.heads.place import chosen
from viz.reading import number
from viz.roles import Heads
from viz.sizes import Sizes
from viz.text import _, prose
from viz.view import Scene

WHERE = ("validation", "sentence")  # on what importance is shown


def draw(scene: Scene) -> None:
    sizes = scene.here.sizes
    removed = _removed(chosen(scene.here), sizes)
    # Before anything is removed the page has one thing to show: the heads to click.
    left, right = st.columns([3, 2] if not removed else [5, 8], gap="large")
    with left:
        _importance(scene, removed)
    if not removed:
        with right:
            st.markdown(prose("heads")["Remove"])
        return
    played = act.play(scene, Change(removed=removed))
    with right:
        act.consequences(played, scene)
    st.markdown("**" + _("Attention before and after") + "**")
    act.show(played, scene.here)
    st.caption(_where(played))
    with st.expander(_("What removing a head does and does not show")):
        st.markdown(prose("heads")["Remove"])


def _removed(here: Head, sizes: Sizes) -> Heads:
    """The heads that the address names, and buttons that change them."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            _("Removed heads: e, d or c, then layer.head"), key="heads_removed", bind="query-params"
        )
        removed, wrong = roles.parse(text, sizes.kinds)
        st.button(_("Put all back"), key="heads_back", on_click=_set, args=(frozenset(),), disabled=not text)
        name = roles.write([here])
        said = _("Put {head} back") if here in removed else _("Remove {head}")
        st.button(said.format(head=name), key="heads_this", on_click=_turn, args=(removed, here))
        st.button(
            _("Remove one at random"),
            key="heads_random",
            on_click=_one_more,
            args=(removed, sizes),
            help=_("A baseline: a head that was chosen for no reason."),
        )
    if wrong:
        said = _(
            "These name no head of this model: {words}. A head is named like c2.5: cross, layer 2, head 5."
        )
        st.info(view.plain(said.format(words=" ".join(word[:20] for word in wrong[:8]))))
    return removed


def _importance(scene: Scene, removed: Heads) -> None:
    """What each head costs, one at a time; a click removes it."""
    survey, sizes = cache.surveyed(scene.here.model), scene.here.sizes
    where = WHERE[1]
    if survey:
        where = st.segmented_control(
            _("Importance on"), WHERE, default=WHERE[0], required=True, key="heads_on", bind="query-params"
        )
    if survey and where != "sentence":
        values = costs(survey, sizes)
        title = _("What the loss gains on {count} validation sentences without the head").format(
            count=survey["sentences"]
        )
    else:
        values = cache.costs(scene.here.model, scene.trace.text, scene.target, "removed")
        title = _("What the loss of this translation gains without the head")
    st.markdown(f"**{title}**")
    figure = tiles(values, removed, chosen(scene.here), view.palette())
    chart(figure, "heads_tiles", title, partial(_clicked, removed))
    st.caption(
        _(
            "In thousandths. Click a head to remove it, again to put it back. Blue costs; red helps: "
            "without it the loss falls."
        )
    )
    if survey and where != "sentence":
        said = _(
            "The whole model's loss there is {loss:.3f}. Standard errors of these numbers: up to {error:.3f}."
        )
        error = max(one["removed_error"] for one in survey["heads"])
        st.caption(said.format(loss=survey["loss"], error=error))


def costs(survey: Mapping[str, Any], sizes: Sizes) -> dict[Kind, Floats]:
    """(L, H) of each kind: the importance of every head on the validation sentences."""
    return {
        kind: np.array(
            [one["removed"] for one in survey["heads"] if one["kind"] == kind], np.float32
        ).reshape(sizes.kinds[kind])
        for kind in sizes.kinds
    }


def _where(played: act.Act) -> str:
    """Where attention moved most: a head that was removed keeps its own weights."""
    moved = [
        (float(change), Head(kind, layer, head))
        for kind in played.before.kinds
        for (layer, head), change in np.ndenumerate(
            abs(played.after.weights(kind) - played.before.weights(kind)).max(axis=(-2, -1))
        )
    ]
    most, head = max(moved, key=lambda pair: pair[0])
    still = sum(change == 0 for change, _head in moved)
    said = _(
        "A removed head still attends; only its output is 0. Its own map changes only if something before "
        "it did. {still} of {all} heads have not moved at all: nothing that was removed lies before them. "
        "The largest change of a weight, {most}, is in {head}."
    )
    return said.format(still=still, all=len(moved), most=number(most), head=roles.said(head))


def _set(removed: Heads) -> None:
    view.place(heads_removed=roles.write(removed))


def _turn(removed: Heads, head: Head) -> None:
    _set(removed ^ {head})


def _clicked(removed: Heads, places: list[list[int]]) -> None:
    kind, layer, head = places[0]
    _turn(removed, Head(KINDS[kind], layer, head))


def _one_more(removed: Heads, sizes: Sizes) -> None:
    """Which one depends on how many are removed already, so that a link shows the same to all."""
    left = [head for head in all_heads(sizes.layers, sizes.heads, tuple(sizes.kinds)) if head not in removed]
    if left:
        _turn(removed, left[int(np.random.default_rng(len(removed)).integers(len(left)))])
