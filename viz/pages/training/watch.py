"""The same sentence at every snapshot: its map, its translation, the roles of the heads."""

from collections import Counter
from functools import partial

import numpy as np
import streamlit as st

from model import heads
from model.trace import KINDS, Trace
from viz import cache, view
from viz.chart import chart, choose_cell
from viz.figures import Look, attention_map
from viz.figures.training import Track, tracks
from viz.player import player
from viz.reading import Map, aloud, facts, find, kind_name, roles
from viz.roles import role_name
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
    rows = picture.allowed.sum(axis=-1) > 1
    shares = heads.evenness(picture.weights, picture.allowed)[rows]
    return float(shares.mean()) if rows.any() else np.nan


def ruled(trace: Trace) -> Counter[heads.Role | None]:
    """How many heads have each role on this sentence, by the rules of the page Heads; None: no role."""
    found: Counter[heads.Role | None] = Counter()
    for kind in KINDS:
        means = heads.Tally.of(trace, kind).means()
        layers, count, *_axes = trace.weights(kind).shape
        for place in np.ndindex(layers, count):
            found[
                heads.given({role: float(means[role][place]) for role in heads.ROLES if role in means})
            ] += 1
    return found


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
    words = prose("training")
    for column, title, name, parts in zip(
        st.columns(2, gap="large"),
        (_("The best head for a role"), _("How many heads have a role")),
        ("roles", "ruled"),
        (_best(traces, scene), _ruled(traces)),
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            chart(tracks(parts, kept, at, view.palette()), f"train_{name}", title, _choose)
            st.caption(words[name])


def _wrote(step: int, text: str, chosen: bool) -> None:
    shown = text if len(text) <= LONG else text[:LONG].rsplit(" ", 1)[0] + " …"
    said = f"{step:,}: " + view.plain(shown or _("(nothing)"))
    if shown != text:
        said += " " + _("({count} words)").format(count=len(text.split()))
    st.markdown(f"**{said}**" if chosen else said)


def _best(traces: list[Trace], scene: Scene) -> list[Track]:
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


def _ruled(traces: list[Trace]) -> list[Track]:
    """How many heads follow each rule at each snapshot, and how many follow none."""
    counts = [ruled(trace) for trace in traces]
    met: list[heads.Role | None] = [role for role in heads.ROLES if any(count[role] for count in counts)]
    made = []
    for role in [*met, None]:
        name = role_name(role) if role else _("no rule")
        shares = [count[role] / count.total() for count in counts]
        said = [
            _("{name}: {count} of {all} heads").format(name=name, count=count[role], all=count.total())
            for count in counts
        ]
        made.append(Track(name, shares, said, [str(count[role]) for count in counts]))
    return made


def _choose(places: list[list[int]]) -> None:
    view.place(train_step=cache.snapshots()[places[0][0]])
