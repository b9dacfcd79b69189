"""What the run logged: loss, learning rate, BLEU or the like on held-out sentences."""

import streamlit as st

from viz import cache, view
from viz.chart import chart
from viz.figures.training import logged_curves, measured
from viz.pages.training.smoothing import TRAINED
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    """Only what stands in the history file is drawn."""
    words, model = prose("training"), scene.here.model
    logged = cache.curves(model)
    if logged is None:
        return
    told = "curves" if model == cache.MODEL else f"measured {logged.metric}"
    st.markdown(words[told] if told in words else words["measured bleu"])
    smoothing = TRAINED if logged.metric == "bleu" else 0.0  # as the cards say
    floor = cache.smoothed_floor(cache.config(model).vocabulary, smoothing)
    figure = logged_curves(logged, floor, cache.snapshots(model)[:-1], view.palette())
    name = measured(logged.metric)
    title = _("Loss, learning rate and {name} over the steps of the training").format(name=name)
    chart(figure, "train_curves", title)
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
            name=name,
            first=logged.scores[0],
            early=int(logged.validated[0]),
            last=logged.scores[-1],
            late=int(logged.validated[-1]),
        )
    )
    if model == cache.MODEL:
        st.caption(words["resumed"])
