"""English-French arcs from the cross-attention, and how wrong they are against links drawn by hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from model import words
from model.trace import NEUTRAL, Head, Trace
from model.words import READS, Gold, Read
from viz import cache, tables, view
from viz.chart import chart
from viz.figures.heads import Truth, arcs, grades
from viz.pages.heads.place import go, go_to
from viz.text import _, prose
from viz.view import Scene, View

PAIRS = len(cache.gold())


def draw(scene: Scene) -> None:
    here, found = scene.here, cache.alignment(scene.here.model)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        read = st.segmented_control(
            _("A row reads for the piece that"),
            READS,
            default=READS[0],
            required=True,
            key="heads_read",
            bind="query-params",
        )
        pair = st.number_input(
            _("Gold pair, 1 to {last}; 0: your sentence").format(last=PAIRS),
            0,
            PAIRS,
            0,
            key="heads_pair",
            bind="query-params",
            width=260,
        )
        mean = st.toggle(_("Mean of the layer's heads"), key="heads_mean", bind="query-params")
    read = read or READS[0]
    gold = cache.gold()[pair - 1] if pair else None
    trace = scene.of(gold.english, gold.french, NEUTRAL) if gold else scene.trace
    left, right = st.columns([3, 2], gap="large")
    with left:
        _arcs(here, trace, read, mean or here.mean, gold)
    if found:
        with right:
            _rates(found, read, Head("cross", here.layer, here.head))
    with st.expander(_("What an alignment error rate is, and is not")):
        st.markdown(prose("heads")["AER"])


def _arcs(here: View, trace: Trace, read: Read, mean: bool, gold: Gold | None) -> None:
    """The links of one head, or of its layer's mean; and their worth where the true ones are known."""
    merged = words.cross_words(trace, read)
    rows, columns = merged.real()
    weights = merged.weights[here.layer]
    weights = weights.mean(axis=0) if mean else weights[here.head]
    one = words.Merged(merged.rows, merged.columns, weights[None, None])
    links = words.links(words.favourites(one)[0, 0].tolist())
    name = (
        _("Cross-attention, the mean of layer {layer}").format(layer=here.layer + 1)
        if mean
        else _("Cross-attention, layer {layer}, head {head}").format(layer=here.layer + 1, head=here.head + 1)
    )
    st.markdown(f"**{name}**")
    sides = [merged.columns[m] for m in columns], [merged.rows[n] for n in rows]
    inside = weights[rows][:, columns]
    truth = Truth(gold.sure, gold.possible) if gold else None
    chart(arcs(inside, links, sides, view.palette(), truth), "heads_arcs", name)
    rest = float(1 - inside.sum(axis=-1).mean()) if len(rows) else 0.0
    said = _(
        "Pieces are merged into words: summed over a key word, averaged over a query word; rows still sum "
        "to 1. Thick: the English word each French word reads most. {rest:.0%} of the weight is on </s>, "
        "which is no word and not drawn."
    )
    st.caption(view.plain(said.format(rest=rest)))
    if gold:
        _worked(links, gold)


def _worked(links: words.Links, gold: Gold) -> None:
    """The error rate of one pair with its numbers."""
    a, s = len(links), len(gold.sure)
    hit, fine = len(links & gold.sure), len(links & gold.possible)
    st.markdown(
        rf"$$\text{{AER}} = 1 - \frac{{|A\cap S| + |A\cap P|}}{{|A| + |S|}} = 1 - \frac{{{hit} + {fine}}}"
        rf"{{{a} + {s}}} = {words.aer([links], [gold]):.3f}$$"
    )
    said = _(
        "A: {a} links found; S: {s} sure ones; P: {p} possible ones, the sure among them. Orange: found, "
        "and not even possible. Dotted: sure, and not found."
    )
    st.caption(said.format(a=a, s=s, p=len(gold.possible)))


def _rates(found: Mapping[str, Any], read: Read, here: Head) -> None:
    """Every head's rate, and what it stands beside."""
    table = found["reads"][read]
    best = found["best"][read]
    said = _(
        "Best head by the choosing half of the gold set: layer {layer}, head {head}, {choose:.3f}; on the "
        "other half, which had no say, **{report:.3f}**."
    )
    st.markdown(
        said.format(
            layer=best["layer"] + 1, head=best["head"] + 1, choose=best["choose"], report=best["report"]
        )
    )
    st.button(
        _("Show this head"),
        key="heads_best",
        on_click=go,
        args=(Head("cross", best["layer"], best["head"]),),
        disabled=(here.layer, here.head) == (best["layer"], best["head"]),
    )
    st.dataframe(tables.alignment(found, read), hide_index=True)
    title = _("Error of every cross head on the reporting half")
    st.markdown(f"**{title}**")
    rates = np.array([[one["report"] for one in row] for row in table["heads"]], np.float32)
    figure = grades(rates, here, view.palette())
    chart(figure, "heads_aer", title, go_to)
    st.caption(_("Lower is better. Click a head to see its arcs."))
