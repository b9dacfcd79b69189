"""What the run logged: loss, learning rate, BLEU or the like on held-out sentences."""

import streamlit as st

from viz import cache, view
from viz.chart import chart
from viz.figures.training import logged_curves, measured
from viz.pages.training.smoothing import TRAINED
from viz.text import _, prose
from viz.view import Scene


def draw(_scene: Scene) -> None:
    """Only what stands in the history file is drawn."""
    words = prose("training")
    st.markdown(words["curves"])
    logged, floor = cache.curves(), cache.smoothed_floor(cache.config().vocabulary, TRAINED)
    figure = logged_curves(logged, floor, cache.snapshots()[:-1], view.palette())
    chart(figure, "train_curves", _("Loss, learning rate and BLEU over the steps of the training"))
    top = int(logged.learning_rate.argmax())
    said = _(
        "Learning rate: {peak:.2e} at its peak, step {step:,}. Loss at the end: {loss:.3f}, {over:.3f} above "
        "its floor. {name}: {first:.1f} at step {early:,}, {last:.1f} at step {late:,}."
    )
    st.markdown(
        said.format(
            peak=logged.learning_rate[top],
            step=int(logged.steps[top]),
            loss=logged.loss[-1],
            over=logged.loss[-1] - floor,
            name=measured(logged.metric),
            first=logged.scores[0],
            early=int(logged.validated[0]),
            last=logged.scores[-1],
            late=int(logged.validated[-1]),
        )
    )
    st.caption(words["resumed"])
