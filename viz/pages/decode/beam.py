"""Beam search as a tree: what each step kept, what it dropped, and what was chosen."""

import numpy as np
import streamlit as st

from viz import cache, view
from viz.chart import chart
from viz.figures.decode import beam_tree
from viz.pages.decode import way
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    """The tree, and the translation beside the greedy one."""
    st.markdown(prose("decode")["beam"])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        size = way.beam()
        st.button(
            _("Watch it grow"),
            on_click=view.place,
            kwargs={"dec_tab": "grow", "dec_how": "beam", "dec_step": 1},
        )
    text = scene.trace.text
    found = cache.search(scene.here.model, text, size)
    greedy = cache.search(scene.here.model, text, 1) if size > 1 else None
    chosen = way.traced(scene, found.ids)
    said = _("Beam {size}: **{text}** log P {log:.3f}, probability {share:.3g}.")
    plain = view.plain(chosen.translation or _("(nothing)"))
    st.markdown(said.format(size=size, text=plain, log=chosen.log_prob, share=np.exp(chosen.log_prob)))
    if greedy:
        one = cache.trace(scene.here.model, text)
        said = _("Greedy: {text} log P {log:.3f}, probability {share:.3g}.")
        plain = view.plain(one.translation or _("(nothing)"))
        st.markdown(said.format(text=plain, log=one.log_prob, share=np.exp(one.log_prob)))
    chart(beam_tree(found.nodes, size, view.palette()), "dec_tree", _("The tree of the beam search"))
    states = [node.state for node in found.nodes]
    said = _(
        "Each row is a step, the most probable to the left; the number is log P so far. Of the "
        "{vocabulary:,} continuations of each kept sentence, the {twice} best of a step are drawn: {kept} "
        "kept, {ended} finished, {dropped} dropped (slanted). Bold: what was chosen."
    )
    st.caption(
        said.format(
            kept=states.count("kept"),
            ended=states.count("ended"),
            dropped=states.count("dropped"),
            twice=2 * size,
            vocabulary=scene.trace.log_probs.shape[1],
        )
    )
