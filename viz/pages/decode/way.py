"""The ways to choose a piece, their controls, and the trace of what was so written."""

from dataclasses import dataclass

import streamlit as st

from model.trace import Trace
from viz import cache, view
from viz.text import _
from viz.view import Scene

HOWS = ("greedy", "beam", "sampling")
WIDEST = 8  # hypotheses of a beam
SEEDS = 9999
TEMPERATURES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
TOP_K = ("all", "1", "2", "3", "5", "10", "20", "50", "100")
TOP_P = (0.25, 0.5, 0.75, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Lot:
    """How pieces are drawn, and which draw."""

    temperature: float
    top_k: int  # 0 is all
    top_p: float
    seed: int

    def of(self, scene: Scene, draws: int = 1) -> list[tuple[int, ...]]:
        """The ids of translations from this seed on."""
        seeds = tuple(range(self.seed, self.seed + draws))
        return cache.sample(
            scene.here.model, scene.trace.text, self.temperature, self.top_k, self.top_p, seeds
        )


def how(scene: Scene) -> str:
    """Of the ways that the model's door knows."""
    skills = cache.skills(scene.here.model)
    needs = {"beam": "search", "sampling": "sample"}
    offered = [way for way in HOWS if way not in needs or needs[way] in skills]
    view.check("dec_how", offered)
    return (
        st.segmented_control(
            _("Each piece is chosen by"),
            offered,
            default="greedy",
            required=True,
            key="dec_how",
            bind="query-params",
        )
        or "greedy"
    )


def beam() -> int:
    """How many hypotheses are kept."""
    return (
        st.segmented_control(
            _("Beam: hypotheses kept"),
            range(1, WIDEST + 1),
            default=4,
            required=True,
            key="dec_beam",
            bind="query-params",
        )
        or 4
    )


def lot() -> Lot:
    """The controls of sampling."""
    temperature = st.select_slider(
        _("Sampling temperature"), TEMPERATURES, 1.0, key="dec_temperature", bind="query-params", width=200
    )
    top_k = st.select_slider(_("Top-k"), TOP_K, "all", key="dec_k", bind="query-params", width=160)
    top_p = st.select_slider(_("Top-p"), TOP_P, 1.0, key="dec_p", bind="query-params", width=160)
    seed = st.number_input(_("Draw (seed)"), 0, SEEDS, 0, key="dec_seed", bind="query-params", width=130)
    return Lot(temperature, 0 if top_k == "all" else int(top_k), top_p, seed)


def traced(scene: Scene, ids: tuple[int, ...]) -> Trace:
    """The pass over what a beam or a lot chose."""
    return cache.trace_of(scene.here.model, scene.trace.text, ids)
