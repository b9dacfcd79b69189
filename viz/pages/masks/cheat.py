"""Cheating, shown honestly: a model trained without the look-ahead mask, beside the one trained with it."""

import streamlit as st

from model.trace import NEUTRAL, Change, Switch
from viz import cache, tables
from viz.text import _, prose
from viz.view import Scene

GUESSES = ("falls", "stays", "rises")
PEEKING = Change(look_ahead=Switch("all"))


def draw(scene: Scene) -> None:
    """The question first; what both models do after it is answered."""
    st.markdown(prose("masks")["Peek"])
    guess = st.segmented_control(
        _("The trained model may now see the next piece. Its loss on the exam …"),
        GUESSES,
        key="cheat_guess",
        bind="query-params",
    )
    if guess is None:
        st.caption(_("Choose one to see."))
        return
    trace = scene.trace
    text, target = trace.text, trace.translation
    if not target:
        st.info(_("The translation has no piece to be examined on."))
        return
    exams = {
        _("trained with the mask"): (cache.MODEL, NEUTRAL),
        _("the same, mask taken off"): (cache.MODEL, PEEKING),
        _("the cheater, trained without the mask"): (cache.CHEATER, PEEKING),
    }
    given = {name: cache.trace(model, text, target, change) for name, (model, change) in exams.items()}
    alone = {name: cache.trace(model, text, None, change) for name, (model, change) in exams.items()}
    st.dataframe(tables.exams(given, alone), hide_index=True)
    st.markdown(prose("masks")["Cheater"])
