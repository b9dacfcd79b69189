"""Which simple rule each head follows, how often, on the validation sentences and on this one."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from model import heads
from model.heads import ROLES, WHERE, Role, Tally, all_heads
from model.trace import KINDS, Head, Kind, Trace
from viz import cache, roles, tables, view
from viz.chart import chart
from viz.figures.heads import shares
from viz.pages.heads.place import chosen, go
from viz.reading import kind_name, percent
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    here, survey = scene.here, cache.surveyed()
    asked = [role for role in ROLES if here.kind in WHERE[role]]
    names = [roles.role_name(role) for role in asked]
    places = [head for head in all_heads(here.sizes.layers, here.sizes.heads) if head.kind == here.kind]
    now = on_sentence(scene.trace, here.kind)
    if survey:
        st.markdown(_counted(survey, scene.trace))
    parts: list[tuple[str, Sequence[Mapping[Any, float]], Mapping[Any, float]]] = []
    if survey:
        corpus = [roles.of(survey, head) for head in places]
        title = _("On {count} validation sentences").format(count=survey["sentences"])
        parts.append((title, corpus, survey["random"][here.kind]))
    blind = heads.randomised(scene.trace, 0)
    parts.append(
        (_("On this sentence"), [now[head] for head in places], on_sentence(blind, here.kind)[places[0]])
    )
    for column, (title, rates, random) in zip(st.columns(len(parts)), parts, strict=True):
        table = np.array([[line.get(role, np.nan) for role in asked] for line in [*rates, random]])
        with column:
            st.markdown(f"**{title}**")
            figure = shares(table, [*places, _("random")], names, chosen(here), view.palette())
            chart(figure, f"heads_shares_{title}", title, partial(_choose, places))
    st.caption(
        _(
            "{kind}: the share of rows in which a rule holds. Click a row to choose its head. The last row "
            "is a "
            "head whose scores are drawn at random. An empty cell: no row could be asked."
        ).format(kind=kind_name(here.kind).capitalize())
    )
    with st.expander(_("The rules")):
        st.markdown(
            "\n".join(f"- **{view.plain(roles.role_name(role))}**: {roles.role_rule(role)}" for role in ROLES)
        )
        st.markdown(prose("heads")["Rules"])
    with st.expander(_("All heads as a table")):
        everything = {kind: on_sentence(scene.trace, kind) for kind in KINDS}
        both = {head: rates for of in everything.values() for head, rates in of.items()}
        st.dataframe(tables.head_roles(both, survey), hide_index=True)


def on_sentence(trace: Trace, kind: Kind) -> dict[Head, dict[Role, float]]:
    """The share of rows in which each rule holds, for every head of one sentence.

    The aligning rules need links: they are there for a pair of the gold set alone.
    """
    means = Tally.of(trace, kind).means()
    found: dict[Role, Any] = {role: means[role] for role in ROLES if role in means}
    if kind == "cross":
        for pair in cache.gold():
            if (pair.english, pair.french) == (trace.text, trace.translation):
                for role in heads.READING:
                    hits, rows = heads.aligned(trace, role, pair.possible)
                    found[role] = hits / rows
    layers, count = trace.weights(kind).shape[:2]
    return {
        Head(kind, layer, head): {role: float(of[layer, head]) for role, of in found.items()}
        for layer in range(layers)
        for head in range(count)
    }


def _rates(of: Mapping[str, Any]) -> dict[Role, float | None]:
    return {role: of[role] for role in ROLES if role in of and of[role] == of[role]}


def _counted(survey: Mapping[str, Any], trace: Trace) -> str:
    """How many heads fit a rule, in all kinds, and how many keep it on this sentence."""
    given = {
        Head(one["kind"], one["layer"], one["head"]): heads.given(_rates(one)) for one in survey["heads"]
    }
    now = {head: rates for kind in KINDS for head, rates in on_sentence(trace, kind).items()}
    fitting = {head: role for head, role in given.items() if role}
    tested = {head: role for head, role in fitting.items() if role in now[head]}
    kept = [head for head, role in tested.items() if now[head][role] >= heads.HOLDS]
    said = _(
        "On the validation sentences **{fit} of {all} heads** follow one of these rules in at least "
        "{half} of "
        "their rows; **{none} fit none**. On this sentence {kept} of the {tested} that can be asked keep "
        "theirs."
    )
    return said.format(
        fit=len(fitting),
        all=len(given),
        half=percent(heads.HOLDS),
        none=len(given) - len(fitting),
        kept=len(kept),
        tested=len(tested),
    )


def _choose(places: list[Head], at: list[list[int]]) -> None:
    (row,) = at[0]
    if row < len(places):
        go(places[row])
