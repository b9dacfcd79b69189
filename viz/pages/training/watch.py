"""The same sentence at every snapshot: its map, its translation, the roles of the heads."""

from collections import Counter

import numpy as np
import streamlit as st

from model import heads
from model.trace import KINDS, Trace
from viz import cache, download, snapshots, view
from viz.reading import Map, find, kind_name, roles
from viz.roles import role_name
from viz.snapshots import Table, Track
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    """All snapshots go to the reader at once: a step from one to the other asks nobody."""
    words, kept, here = prose("training"), cache.snapshots(scene.here.model), scene.here
    st.markdown(words["watch"])
    film = st.container()
    with st.popover(_("Go to a step")):
        step = st.segmented_control(
            _("Step of the training"),
            kept,
            default=kept[0],
            required=True,
            key="train_step",
            bind="query-params",
            wrap=True,
        )
    text, target = scene.trace.text, scene.trace.translation or None
    traces = [cache.trace_at(scene.here.model, each, text, target) for each in kept]
    pictures = [here.picture(trace) for trace in traces]
    said = [
        _("Entropy ÷ log n of this map: {share:.3f}.").format(share=evenness(picture)) for picture in pictures
    ]
    said[0] += " " + words["noise"].replace("\n", " ")
    with film:
        snapshots.show(
            pictures,
            kept,
            said,
            [cache.translation_at(scene.here.model, each, text) for each in kept],
            [
                Table(_("The best head for a role"), words["roles"].replace("\n", " "), _best(traces, scene)),
                Table(_("How many heads have a role"), words["ruled"].replace("\n", " "), _ruled(traces)),
            ],
            step or kept[0],
            here.cell(traces[0])[0],
            here.values,
            view.palette(),
            lambda at: view.place(train_step=at),
        )
        at = kept.index(step or kept[0])
        note = _("At step {step:,} of the training.").format(step=kept[at])
        download.picture(here, traces[at], note=note)


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
        made.append(_track(role.name, [best.score for best in found], said))
    maps = [scene.here.picture(trace) for trace in traces]
    shares = [evenness(picture) for picture in maps]
    said = [_("{name}: {share:.2f}").format(name=maps[0].name(), share=share) for share in shares]
    return [*made, _track(_("entropy ÷ log n"), shares, said)]


def _track(name: str, shares: list[float], said: list[str]) -> Track:
    return Track(name, shares, ["" if np.isnan(share) else f"{share:.2f}" for share in shares], said)


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
        made.append(Track(name, shares, [str(count[role]) for count in counts], said))
    return made
