"""Which simple rule each head follows, how often, on the validation sentences and on this one."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from model import heads, words
from model.heads import ROLES, WHERE, Role, Tally, all_heads
from model.trace import Head, Kind, Trace
from model.words import Links, Read
from viz import cache, roles, tables, view
from viz.chart import chart
from viz.figures.heads import shares
from viz.pages.heads.place import chosen, go
from viz.reading import kind_name, percent
from viz.text import _, prose
from viz.view import Scene


class Known(NamedTuple):
    """The links between the words of a pair, for the aligning rules; and the head that drew them."""

    links: Links | None = None
    by: tuple[Head, Role] | None = None  # None: a person


def draw(scene: Scene) -> None:
    here, survey = scene.here, cache.surveyed(scene.here.model)
    asked = [role for role in ROLES if here.kind in WHERE[role]]
    names = [roles.role_name(role) for role in asked]
    places = all_heads(*here.sizes.kinds[here.kind], (here.kind,))
    links = known(scene.trace, here.model)
    now: dict[Head, dict[Role, float]] = {}
    for kind in scene.trace.kinds:
        now |= on_sentence(scene.trace, kind, links)
    if survey:
        st.markdown(_counted(survey, now))
    parts: list[tuple[str, Sequence[Mapping[Any, float]], Mapping[Any, float]]] = []
    if survey:
        corpus = [roles.of(survey, head) for head in places]
        title = _("On {count} validation sentences").format(count=survey["sentences"])
        parts.append((title, corpus, survey["random"][here.kind]))
    blind = on_sentence(heads.randomised(scene.trace, 0), here.kind, links)[places[0]]
    parts.append((_("On this sentence"), [now[head] for head in places], blind))
    for column, (title, rates, random) in zip(st.columns(len(parts)), parts, strict=True):
        table = np.array([[line.get(role, np.nan) for role in asked] for line in [*rates, random]])
        with column:
            st.markdown(f"**{title}**")
            figure = shares(table, [*places, _("random")], names, chosen(here), view.palette())
            chart(figure, f"heads_shares_{title}", title, partial(_choose, places))
    st.caption(
        _(
            "{kind}: the share of rows in which a rule holds. Click a row to choose its head. The last row "
            "is a head whose scores are drawn at random. An empty cell: no row could be asked."
        ).format(kind=kind_name(here.kind).capitalize())
    )
    best = _best(here.model)
    if here.kind == "cross" and best and links.by:
        said = _(
            "Aligning was counted on the gold pairs, whose links were drawn by hand. For this sentence none "
            "are known: the links of {head} ({read}; error {error:.3f}) stand in for them, and it is not "
            "asked about itself."
        )
        st.caption(said.format(head=roles.said(best[0]), read=best[1], error=best[2]))
    with st.expander(_("The rules")):
        st.markdown(
            "\n".join(
                f"- **{view.plain(roles.role_name(role))}**: {view.plain(roles.role_rule(role))}"
                for role in ROLES
            )
        )
        st.markdown(prose("heads")["Rules"])
    with st.expander(_("All heads as a table")):
        st.dataframe(tables.head_roles(now, survey), hide_index=True)


def on_sentence(trace: Trace, kind: Kind, known: Known) -> dict[Head, dict[Role, float]]:
    """The share of rows in which each rule holds, for every head of a sentence; NaN where none was asked."""
    means = Tally.of(trace, kind).means()
    found: dict[Role, Any] = {role: means[role] for role in ROLES if role in means}
    if kind == "cross" and known.links is not None:
        for role in heads.READING:
            hits, rows = heads.aligned(trace, role, known.links)
            found[role] = hits / np.maximum(rows, 1)
    layers, count = trace.weights(kind).shape[:2]
    return {
        Head(kind, layer, head): {
            role: math.nan if known.by == (Head(kind, layer, head), role) else float(of[layer, head])
            for role, of in found.items()
        }
        for layer in range(layers)
        for head in range(count)
    }


def known(trace: Trace, model: str) -> Known:
    """The links of the gold set where the pair stands there, else those of the model's best aligner."""
    for pair in cache.gold():
        if (pair.english, pair.french) == (trace.text, trace.translation):
            return Known(pair.possible)
    best = _best(model)
    if not best:
        return Known()
    head, read, _error = best
    (role,) = [role for role, its in heads.READING.items() if its == read]
    chosen = words.favourites(words.cross_words(trace, read))
    return Known(words.links(chosen[head.layer, head.head].tolist()), (head, role))


def _best(model: str) -> tuple[Head, Read, float] | None:
    """The head that aligns best by the choosing half of the gold set, its reading, its error on the other."""
    found = cache.alignment(model)
    if not found:
        return None
    read = min(words.READS, key=lambda read: float(found["best"][read]["choose"]))
    best = found["best"][read]
    return Head("cross", best["layer"], best["head"]), read, best["report"]


def _rates(of: Mapping[str, Any]) -> dict[Role, float | None]:
    return {role: of[role] for role in ROLES if role in of and of[role] == of[role]}


def _counted(survey: Mapping[str, Any], now: Mapping[Head, Mapping[Role, float]]) -> str:
    """How many heads fit a rule, in all kinds, and how many keep it on this sentence."""
    given = {
        Head(one["kind"], one["layer"], one["head"]): heads.given(_rates(one)) for one in survey["heads"]
    }
    fitting = {head: role for head, role in given.items() if role}
    tested = {head: role for head, role in fitting.items() if not math.isnan(now[head].get(role, math.nan))}
    kept = [head for head, role in tested.items() if now[head][role] >= heads.HOLDS]
    said = _(
        "On the validation sentences **{fit} of {all} heads** follow one of these rules in at least {half} "
        "of their rows; **{none} fit none**. On this sentence {kept} of the {tested} that can be asked keep "
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
