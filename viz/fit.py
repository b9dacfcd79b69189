"""Which pictures make sense of which model, and the sentence that is shown where one does not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from model.trace import Stages
from viz import cache, view
from viz.text import _
from viz.view import Scene

Need = Callable[[Scene], bool]


def attention(scene: Scene) -> bool:
    return bool(scene.trace.kinds)


def cross(scene: Scene) -> bool:
    return "cross" in scene.trace.kinds


def itself(scene: Scene) -> bool:
    """Some sentence reads itself."""
    return bool({"encoder", "decoder"} & {*scene.trace.kinds})


def encoder(scene: Scene) -> bool:
    return "encoder" in scene.trace.kinds


def scores(scene: Scene) -> bool:
    return attention(scene) and all(seen.scores is not None for seen in scene.trace.attention.values())


def layers(scene: Scene) -> bool:
    """The paper's layers, every stage of them known."""
    trace = scene.trace
    stages = all(isinstance(seen, Stages) for seen in trace.attention.values())
    return attention(scene) and stages and bool(trace.sublayers and trace.embeddings)


def writes(scene: Scene) -> bool:
    return scene.trace.predicts == "target"


def translates(scene: Scene) -> bool:
    return writes(scene) and bool(scene.trace.source)


def predicts(scene: Scene) -> bool:
    return scene.trace.predicts is not None


def changes(scene: Scene) -> bool:
    """The model can be asked again under a `Change`."""
    return scene.changes


def searches(scene: Scene) -> bool:
    return "search" in cache.skills(scene.here.model)


def samples(scene: Scene) -> bool:
    return "sample" in cache.skills(scene.here.model)


def transformer(scene: Scene) -> bool:
    return scene.here.model == cache.MODEL


def logged(scene: Scene) -> bool:
    return cache.curves(scene.here.model) is not None


def watched(scene: Scene) -> bool:
    return len(cache.snapshots(scene.here.model)) > 1


def _said() -> dict[Need, str]:
    """Why not. The first need that is not met speaks."""
    return {
        attention: _(
            "This model has no attention, so there is no map to draw: between its two sentences stands one "
            "vector. Decode shows what it has instead, its hidden states."
        ),
        cross: _("This model reads one sentence only: there is no cross-attention in it."),
        itself: _(
            "No sentence reads itself in this model: its one attention goes from the French to the English."
        ),
        encoder: _("This model has no encoder."),
        scores: _("The scores before softmax are not known here, only the weights."),
        layers: _(
            "This page walks through the layers of the paper's Transformer, and needs all their numbers. "
            "This model is built otherwise, or does not hand them out."
        ),
        writes: _("This model does not write: it fills gaps, or only reads."),
        translates: _("This model does not translate."),
        predicts: _("This model predicts nothing: it only reads."),
        changes: _("This model cannot be asked again with something changed."),
        searches: _("This model's door offers no beam search."),
        samples: _("This model's door draws no pieces by lot."),
        transformer: _("This experiment was made with the translator en-fr: choose it under Model."),
        logged: _("The training of this model was not logged here."),
        watched: _("Of this model's training only the end was kept, no snapshots on the way."),
    }


def lacking(scene: Scene, needs: Sequence[Need]) -> str:
    """Why a picture with these needs cannot be drawn of this scene; empty where it can."""
    return next((_said()[need] for need in needs if not need(scene)), "")


@dataclass(frozen=True)
class Tab:
    """One picture of a page, and what a model must have for it."""

    draw: Callable[[Scene], None]
    needs: tuple[Need, ...] = ()


def show(scene: Scene, tab: Tab) -> None:
    """Draw it, or say why not."""
    said = lacking(scene, tab.needs)
    if said:
        st.info(view.plain(said))
    else:
        tab.draw(scene)


def tabs(scene: Scene, key: str, offered: Mapping[str, Tab]) -> None:
    """Let the reader choose, and draw the chosen one alone."""
    show(scene, offered[view.tab(key, offered)])
