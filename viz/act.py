"""The one act of every laboratory: the sentence as it is, the sentence with a `Change`, and what differs."""

from dataclasses import dataclass

import streamlit as st

from model.trace import NEUTRAL, Change, Trace
from viz import picture, tables
from viz.reading import loss
from viz.text import _
from viz.view import Scene, View


@dataclass(frozen=True)
class Act:
    """One sentence, twice."""

    before: Trace
    after: Trace  # under the change, over the target of `before`: row by row comparable


def play(scene: Scene, change: Change, base: Change = NEUTRAL) -> Act:
    """Trace under `base` and under `change`. Both append the same pads, else a cell has no partner."""
    before = scene.trace if base == NEUTRAL else scene.again(base, True)
    return Act(before, scene.again(change, True))


def show(act: Act, here: View) -> None:
    """Before, after and difference, each kind of number on its one scale."""
    picture.attention(here, act.before, act.after)


def consequences(act: Act, scene: Scene) -> None:
    """What became of the translation, of the loss, and of each piece's probability.

    What the changed model writes by itself takes a pass for each piece: it is asked for here, when the
    maps are on their way to the reader.
    """
    if act.before.predicts is None:
        return
    free = scene.again(act.after.change, False)
    words, numbers = st.columns([2, 3], gap="large")
    with words:
        title, loss_title = _titles(act.before)
        st.markdown(f"**{title}**")
        st.text(_("before: {text}").format(text=act.before.translation))
        st.text(_("after: {text}").format(text=free.translation))
        st.markdown(f"**{loss_title}**")
        st.text(_("before: {loss:.3f}").format(loss=loss(act.before)))
        st.text(_("after: {loss:.3f}").format(loss=loss(act.after)))
        st.caption(_("Mean of −log p over these pieces. At 0 the model would be certain."))
    with numbers:
        given = act.before.predicts == "target"
        said = (
            _("Probability of each piece, given the right ones before it")
            if given
            else _("Probability of the piece that stands or is hidden in each place")
        )
        st.markdown(f"**{said}**")
        st.dataframe(tables.piece_probabilities(act.before, act.after), hide_index=True)


def _titles(before: Trace) -> tuple[str, str]:
    """What came out, and what the loss is of."""
    if before.predicts == "source":
        return _("The gaps filled"), _("Loss on what is hidden") if before.gaps else _("Loss on all pieces")
    if not before.source:
        return _("The sentence"), _("Loss on the sentence before")
    return _("Translation"), _("Loss on the translation before")
