"""The translation grows piece by piece: what is read, the rows that are new, what may come next."""

from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from model.trace import Kind, Trace
from viz import cache, download, film, view
from viz.pages.decode import way
from viz.reading import Map
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    """The film of one translation, and how it was chosen."""
    words = prose("decode")
    st.markdown(words["grow" if scene.trace.source else "grow alone"])
    forced = scene.trace.forced
    lot, beam = None, 0
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        how = "forced" if forced else way.how(scene)
        if how == "beam":
            beam = way.beam()
        elif how == "sampling":
            lot = way.lot()
        merged = st.toggle(_("Whole words"), key="dec_words", bind="query-params")
        longest = scene.here.sizes.pieces
        view.check("dec_step", range(1, longest + 1))
        with st.popover(_("Go to a step")):
            step = st.number_input(_("Step"), 1, longest, 1, key="dec_step", bind="query-params")
    trace = scene.trace
    if beam:
        trace = way.traced(scene, cache.search(scene.here.model, trace.text, beam).ids)
    elif lot:
        trace = way.traced(scene, lot.of(scene)[0])
    count = len(trace.target)
    drawn = [
        cache.shares(row, cache.Lot(lot.temperature, lot.top_k, lot.top_p)) if lot else None
        for row in trace.log_probs
    ]
    name = partial(cache.piece, scene.here.model)
    here = scene.here
    shown: tuple[Kind, ...] = ("cross", "decoder")
    kinds = [kind for kind in shown if kind in trace.kinds]
    pictures = [Map(trace, kind, here.layer, None if here.mean else here.head) for kind in kinds]
    film.show(
        [film.rows(picture, merged) for picture in pictures],
        trace,
        [film.following(trace, at, name, drawn[at]) for at in range(count)],
        min(step, count),
        pictures[0].name() if pictures else _("no attention, one vector of the English at every step"),
        [passes(at + 1, count, how, beam) for at in range(count)],
        view.palette(),
        lambda at: view.place(dec_step=at),
    )
    if kinds:  # the rows of the film, as one map
        chosen = here.kind if here.kind in kinds else kinds[0]
        download.picture(replace(here, kind=chosen, row=min(step, count) - 1, column=None), trace)
    if how in ("beam", "sampling"):
        said = _("Written: {text} The model's probability of it: {share:.3g}.")
        text = trace.translation or _("(nothing)")
        st.caption(view.plain(said.format(text=text, share=float(np.exp(trace.log_prob)))))
    if lot:
        st.caption(_("Bars: the model's probability. Framed: the probability in this draw."))
    st.caption(cut(trace) + words["words" if merged else "once"])


def passes(step: int, count: int, how: str, beam: int = 0) -> str:
    """Which step it is, and how often the decoder has run until then."""
    if how == "forced":
        said = _("Training: all of the target is given, one pass makes all {count} rows. Row {step}.")
    elif beam > 1:
        said = _("Writing: step {step} of {count}, a pass each, over up to {beam} hypotheses.")
    else:
        said = _("Writing: step {step} of {count}, a pass of the decoder each.")
    return said.format(step=step, count=count, beam=beam)


def cut(trace: Trace) -> str:
    return _("The length limit ended it, not the model.") + " " if trace.cut else ""
