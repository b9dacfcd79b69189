"""Teacher forcing: one pass over the right sentence, an answer and a loss for every row."""

import streamlit as st

from viz import tables, view
from viz.reading import loss
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    """The rows of the training step that this sentence would be."""
    trace = scene.trace
    st.markdown(prose("training")["forcing"])
    if not trace.forced:
        st.info(
            _(
                "Here the model's own translation stands for the right sentence. Type a French sentence of "
                "your own under More: it will then be wrong somewhere, and be fed the right piece all the "
                "same."
            )
        )
    frame = tables.forcing(trace)
    st.dataframe(frame, hide_index=True)
    wrong = int((frame.iloc[:, 1] != frame.iloc[:, 3]).sum())
    said = _(
        "**One pass, {rows} answers.** Loss: **{loss:.3f}**, the mean of −log p over the rows. In {wrong} of "
        "{rows} rows another piece was likelier; the next row was fed the right one nevertheless. "
        "Translating takes {rows} passes, one after another."
    )
    st.markdown(said.format(rows=len(frame), loss=loss(trace), wrong=wrong))
    st.caption(
        view.plain(
            _(
                "Goes in: the French so far ends with this piece. The right piece of a row goes in at the "
                "next."
            )
        )
    )
