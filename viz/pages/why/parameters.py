"""Counting what a Transformer learns, part by part."""

from dataclasses import replace
from typing import Any

import streamlit as st

from viz import cache, view
from viz.chart import chart
from viz.figures.why import shares
from viz.pages.why.controls import number, toggle
from viz.text import _, prose
from viz.view import Scene

WIDEST = {"why_v": 200_000, "why_d_model": 8192, "why_d_ff": 32_768, "why_positions": 16_384}
DEEPEST, HEADS = 96, 128


def draw(_scene: Scene | None) -> None:
    words = prose("why")
    st.markdown(words["parameters"])
    config = cache.config()
    base, own = cache.parameters.PAPER["base"], cache.parameters.shape(config)
    models = {
        _("the paper's base model"): (base, 8),
        _("the paper's big model"): (cache.parameters.PAPER["big"], 16),
        _("this app's model"): (own, config.n_heads),
    }
    with st.container(horizontal=True, gap="small"):
        for index, (name, (shape, heads)) in enumerate(models.items()):
            st.button(name, key=f"why_model{index}", on_click=view.place, kwargs=_values(shape, heads))
    of, heads = _asked(base)
    if of.d_model % heads:
        said = _("d_model {d} does not divide into {h} heads: no such model.")
        st.info(said.format(d=of.d_model, h=heads))
        return
    if not of.encoder + of.decoder:
        st.info(_("Without a layer there is no model: only the embedding is counted."))
    total = cache.parameters.total(of)
    st.markdown("## " + f"{total:,}")
    for (shape, count), printed in zip(models.values(), (65, 213, 0), strict=True):
        if shape == of and count == heads and printed:
            said = _(
                "The paper prints {printed} million, and a vocabulary of “about 37000”: the sizes it gives "
                "do not make its own figure exactly."
            )
            st.caption(said.format(printed=printed))
    if of == own:
        st.caption(_("What torch counts in this app's model: the same number, held by a test."))
    _drawn(of)
    _listed(of)
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(words["four layers"])
        st.markdown(words["positions"])
    with right:
        st.markdown(words["share"])
        _positions(of)


def _values(shape: Any, heads: int) -> dict[str, Any]:
    return {
        "why_v": shape.vocabulary,
        "why_encoder": shape.encoder,
        "why_decoder": shape.decoder,
        "why_d_model": shape.d_model,
        "why_h": heads,
        "why_d_ff": shape.d_ff,
        "why_positions": shape.positions,
        "why_shared": shape.shared,
        "why_biases": shape.biases,
        "why_norms": shape.norms,
    }


def _asked(base: Any) -> tuple[Any, int]:
    """The shape and the number of heads that the controls say."""
    one, two, three, four = st.columns(4)
    with one:
        d_model = number("d_model", "why_d_model", base.d_model, 1, WIDEST["why_d_model"])
        d_ff = number("d_ff", "why_d_ff", base.d_ff, 1, WIDEST["why_d_ff"])
    with two:
        encoder = number(_("Encoder layers"), "why_encoder", base.encoder, 0, DEEPEST)
        decoder = number(_("Decoder layers"), "why_decoder", base.decoder, 0, DEEPEST)
    with three:
        heads = number(_("Heads"), "why_h", 8, 1, HEADS)
        vocabulary = number(_("Vocabulary"), "why_v", base.vocabulary, 1, WIDEST["why_v"])
    with four:
        positions = number(
            _("Learned positions"),
            "why_positions",
            0,
            0,
            WIDEST["why_positions"],
            _("On each side. 0: the formula."),
        )
    with st.container(horizontal=True, gap="medium"):
        shared = toggle(
            _("one embedding for all"),
            "why_shared",
            True,
            _("Source, target and output layer share one matrix (section 3.4 of the paper)."),
        )
        biases = toggle(_("biases"), "why_biases", True)
        norms = toggle(_("norms"), "why_norms", True)
    made = replace(
        base,
        vocabulary=vocabulary,
        encoder=encoder,
        decoder=decoder,
        d_model=d_model,
        d_ff=d_ff,
        shared=shared,
        biases=biases,
        norms=norms,
        positions=positions,
    )
    return made, heads


def _group_names() -> dict[str, str]:
    return {
        "embedding": _("embedding"),
        "positions": _("positions"),
        "attention": _("attention"),
        "feed-forward": _("feed-forward"),
        "norm": _("norms"),
    }


def _drawn(of: Any) -> None:
    """Shares of the whole and of one layer of either side."""
    groups = cache.parameters.GROUPS
    rows = {_("whole model"): cache.parameters.by_group(of)}
    if of.encoder:
        rows[_("an encoder layer")] = cache.parameters.in_layer(of, "encoder")
    if of.decoder:
        rows[_("a decoder layer")] = cache.parameters.in_layer(of, "decoder")
    names = _group_names()
    numbers = [[row[group] for group in groups] for row in rows.values()]
    figure = shares(list(rows), [names[group] for group in groups], numbers, view.palette())
    chart(figure, "why_shares", _("Where the parameters are"))
    whole = rows[_("whole model")]
    said = " · ".join(f"{names[group]} **{whole[group]:,}**" for group in groups)
    st.markdown(said)


def _listed(of: Any) -> None:
    sides = {"both": "", "encoder": _("encoder"), "decoder": _("decoder")}
    found = cache.parameters.parts(of)
    with st.expander(_("Part by part"), expanded=True):
        st.dataframe(
            {
                _("side"): [sides[part.side] for part in found],
                _("part"): [part.name for part in found],
                _("formula"): [part.formula for part in found],
                _("each"): [f"{part.each:,}" for part in found],
                _("copies"): [part.copies for part in found],
                _("together"): [f"{part.total:,}" for part in found],
            },
            hide_index=True,
        )


def _positions(of: Any) -> None:
    """What learned positions would add to this model."""
    learned = cache.parameters.total(replace(of, positions=512)) - cache.parameters.total(
        replace(of, positions=0)
    )
    said = _("Here: the formula adds 0; 512 learned positions on each side would add {count:,}.")
    st.markdown(said.format(count=learned))
