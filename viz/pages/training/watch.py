"""The same sentence at every snapshot: its map, its translation, the roles of the heads."""

from functools import partial

import numpy as np
import streamlit as st

from model.trace import Trace
from viz import cache, steps, view
from viz.chart import chart, choose_cell
from viz.figures import Look, attention_map
from viz.figures.training import Track, tracks
from viz.player import player
from viz.reading import Map, aloud, facts, find, kind_name, roles
from viz.text import _, prose
from viz.view import Scene

SECONDS = 1.5  # between two snapshots, while they play
LONG = 60  # characters of a translation that are shown; untrained weights repeat themselves up to the limit


def draw(scene: Scene) -> None:
    """One snapshot at a time, chosen or played."""
    st.markdown(prose("training")["watch"])
    kept = cache.snapshots()
    player(_("Step of the training"), "train_step", kept, kept[0], partial(_snapshot, scene), SECONDS)


def evenness(picture: Map) -> float:
    """Entropy ÷ log n, n the keys that a row may look at, as a mean over rows: 1 is uniform, 0 one key.

    Rows with one key or none have no choice and are left out; where all are such, NaN.
    """
    count = picture.allowed.sum(axis=-1)
    rows = count > 1
    return float(np.mean(steps.bits(picture.weights[rows]) / np.log2(count[rows]))) if rows.any() else np.nan


def _snapshot(scene: Scene, step: int) -> None:
    target = scene.trace.translation or None
    kept = cache.snapshots()
    traces = [cache.trace_at(cache.MODEL, each, scene.trace.text, target) for each in kept]
    at = kept.index(step)
    picture = scene.here.picture(traces[at])
    query, key = scene.here.cell(traces[at])
    left, right = st.columns([3, 2], gap="large")
    with left:
        figure = attention_map(picture, query, key, Look(view.palette(), scene.here.values))
        chart(figure, "train_map", aloud(picture, query, key), choose_cell)
        st.caption(view.plain(_("Step {step:,}.").format(step=step) + " " + facts(picture)))
    with right:
        said = _("Entropy ÷ log n of this map: **{share:.3f}**")
        st.markdown(said.format(share=evenness(picture)))
        if step == 0:
            st.markdown(prose("training")["noise"])
        st.markdown("**" + _("What it wrote by itself") + "**")
        for each in kept:
            _wrote(each, cache.translation_at(cache.MODEL, each, scene.trace.text), each == step)
    with st.container():
        st.markdown("**" + _("Roles of heads") + "**")
        parts = _tracks(traces, scene)
        chart(tracks(parts, kept, at, view.palette()), "train_roles", _("Roles at each step"), _choose)
        st.caption(prose("training")["roles"])


def _wrote(step: int, text: str, chosen: bool) -> None:
    shown = text if len(text) <= LONG else text[:LONG].rsplit(" ", 1)[0] + " …"
    said = f"{step:,}: " + view.plain(shown or _("(nothing)"))
    if shown != text:
        said += " " + _("({count} words)").format(count=len(text.split()))
    st.markdown(f"**{said}**" if chosen else said)


def _tracks(traces: list[Trace], scene: Scene) -> list[Track]:
    """Each role's best head at each snapshot, and the evenness of the reader's own map."""
    made = []
    for role in roles():
        found = [find(trace, role) for trace in traces]
        said = [
            _("{kind}, layer {layer}, head {head}: {score:.2f}").format(
                kind=kind_name(best.kind), layer=best.layer + 1, head=best.head + 1, score=best.score
            )
            for best in found
        ]
        made.append(Track(role.name, [best.score for best in found], said))
    maps = [scene.here.picture(trace) for trace in traces]
    shares = [evenness(picture) for picture in maps]
    said = [_("{name}: {share:.2f}").format(name=maps[0].name(), share=share) for share in shares]
    return [*made, Track(_("entropy ÷ log n"), shares, said)]


def _choose(places: list[list[int]]) -> None:
    view.place(train_step=cache.snapshots()[places[0][0]])
