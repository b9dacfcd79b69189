"""The mask of one attention, put together in five pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.trace import Change, Flags, Kind, Trace
from viz import view
from viz.chart import chart
from viz.figures import head_grid, mask_map
from viz.pages.masks.pads import pads
from viz.reading import PAD, Map, row_names
from viz.text import _, examples, prose
from viz.view import Scene

STEPS = 5
Words = list[list[str]]  # what is printed into the cells of a mask, (Q, K)


@dataclass(frozen=True)
class Parts:
    """What a mask is made of, for one attention over one sentence."""

    picture: Map
    rows: Sequence[str]  # (Q)
    keys: Sequence[str]  # (K)
    ids: Sequence[int]  # (K)
    padding: Flags  # (1, K)
    triangle: Flags  # (Q, K)

    @property
    def both(self) -> Flags:
        """(Q, K)"""
        return self.padding & self.triangle


def parts(trace: Trace, kind: Kind, layer: int = 0, head: int = 0) -> Parts:
    """Ids, padding row and triangle of the attention of one kind."""
    queries, keys = trace.axes(kind)
    everything = np.ones((len(queries), len(keys)), bool)
    return Parts(
        Map(trace, kind, layer, head),
        row_names(trace, kind),
        keys,
        trace.target_ids if kind == "decoder" else trace.source_ids,
        np.array([[key != PAD for key in keys]]),
        np.tril(everything) if kind == "decoder" else everything,
    )


def draw(scene: Scene) -> None:
    """One picture at a time, stepped by buttons or by the keys P and N."""
    here = scene.here
    steps = _steps()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        step = view.stepped(_("Picture"), "masks_step", STEPS, 1, ("P", "N"))
        with st.popover(_("Pads")):
            base = pads(scene.trace)
    made = parts(scene.again(base, True), here.kind, here.layer, here.head)
    title, shapes, picture = steps[step - 1]
    rows, keys = made.both.shape
    heads = made.picture.trace.weights(here.kind).shape[1]
    st.markdown(f"**{step}. {title}**")
    st.caption(view.plain(shapes.format(rows=rows, keys=keys, heads=heads)))
    picture(made)
    if step == 1:
        _batch(scene)


def _steps() -> list[tuple[str, str, Callable[[Parts], None]]]:
    """Title, shapes and picture of each step."""
    one, square = "(1, 1, 1, {keys})", "(1, 1, {rows}, {keys})"
    heads = "(1, {heads}, {rows}, {keys})"
    return [
        (_("Ids, and the padding row"), f"(B, K) = (1, {{keys}}), (B, 1, 1, K) = {one}", _row),
        (_("The look-ahead triangle"), f"(1, 1, Q, K) = {square}", _triangle),
        (_("Both: padding AND look-ahead"), f"(B, 1, Q, K) = {square}", _both),
        (_("Added to the scores, in front of softmax"), f"(B, H, Q, K) + (B, 1, Q, K) = {heads}", _added),
        (_("The same mask in every head"), f"(B, 1, Q, K) = {square} → (B, H, Q, K) = {heads}", _heads),
    ]


def _row(made: Parts) -> None:
    ids = [[str(number) for number in made.ids]]
    _mask(np.ones_like(made.padding), [_("id")], made.keys, ids, "ids")
    _mask(made.padding, [_("id ≠ 0")], made.keys, _truth(made.padding), "padding")
    st.markdown(prose("masks")["Ids"])


def _batch(scene: Scene) -> None:
    """The reader's sentence in a batch with two others: ids, lengths, and the mask that follows from them."""
    others = [example.text for example in examples() if example.text != scene.trace.text][:2]
    sentences = [scene.trace, *(scene.of(text, None, Change()) for text in others)]
    rows_of = [trace.source_ids if trace.source else trace.target_ids for trace in sentences]
    lengths = [len(row) for row in rows_of]
    ids = [[*row, *[0] * (max(lengths) - len(row))] for row in rows_of]
    mask = np.array([[number != 0 for number in row] for row in ids])
    rows = [
        _("{text} ({length})").format(text=_short(trace.text), length=len(trace.source_ids))
        for trace in sentences
    ]
    st.markdown("**" + _("In a batch; lengths in brackets") + "**")
    st.caption(
        view.plain(f"ids (B, K) = {mask.shape}, mask (B, 1, 1, K) = ({mask.shape[0]}, 1, 1, {mask.shape[1]})")
    )
    places = [str(place + 1) for place in range(max(lengths))]
    _mask(mask, rows, places, [[str(number) for number in row] for row in ids], "batch")


def _short(text: str) -> str:
    return text if len(text) <= 13 else text[:12] + "…"  # the cells beside it keep room on a phone


def _triangle(made: Parts) -> None:
    _mask(made.triangle, made.rows, made.keys, _truth(made.triangle), "triangle")
    st.markdown(prose("masks")["Triangle" if made.picture.kind == "decoder" else "No triangle"])


def _both(made: Parts) -> None:
    _mask(made.both, made.rows, made.keys, _truth(made.both), "both")
    st.markdown(prose("masks")["And"])


def _added(made: Parts) -> None:
    picture = made.picture
    scores = picture.trace.scores(picture.kind)[picture.layer, picture.head or 0]
    for column, shown in zip(st.columns(2), (np.zeros_like(scores), scores), strict=True):
        with column:
            printed = np.where(made.both, np.char.mod("%.1f" if shown.any() else "%d", shown), "−∞").tolist()
            title = _("scores plus mask") if shown.any() else _("the mask as numbers")
            st.caption(title)
            _mask(made.both, made.rows, made.keys, printed, title)
    st.markdown(prose("masks")["Added"])


def _heads(made: Parts) -> None:
    chart(head_grid(made.picture, view.palette()), "heads", _("all heads of the layer under one mask"))
    st.markdown(prose("masks")["Heads"])


def _mask(allowed: Flags, rows: Sequence[str], keys: Sequence[str], words: Words, key: str) -> None:
    chart(mask_map(allowed, rows, keys, view.palette(), words), key, key)


def _truth(mask: Flags) -> Words:
    return [["1" if cell else "0" for cell in line] for line in mask]
