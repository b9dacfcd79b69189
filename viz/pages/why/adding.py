"""Add & Norm: either half switched off in the trained model; LayerNorm beside BatchNorm."""

import math
from typing import Any

import numpy as np
import streamlit as st

from model.trace import NEUTRAL, Change, Floats, Trace
from viz import act, cache, view
from viz.chart import chart
from viz.figures.stages import Band, bands, largest
from viz.figures.why import averaged, heights
from viz.pages.why.controls import slider, toggle, wait_for_sentence
from viz.text import _, prose
from viz.view import Scene, choice

PARTS = ("switch", "batch")
WEIGHTS = ("trained", "untrained")
PADS = tuple(range(9))
OTHERS = ("Tom loves Mary.", "The woman who lives next door is my friend.")  # the rest of the batch
DIMENSIONS = 12  # that are shown


def draw(scene: Scene | None) -> None:
    part = choice(_("Add & Norm"), "why_add", PARTS, bare=True)
    words = prose("why")
    st.markdown(words[part])
    if scene is None:
        wait_for_sentence()
    elif part == "switch":
        _switch(scene)
    else:
        _batch(scene)


# --- switched off -----------------------------------------------------------------------------------------


def _switch(scene: Scene) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        residual = toggle(_("residual"), "why_residual", True, _("x + what the sub-layer says"))
        norm = toggle(_("norm"), "why_norm", True, _("LayerNorm after it"))
        weights = choice(_("Weights"), "why_weights", WEIGHTS)
    change = Change(residual=residual, norm=norm)
    kept = cache.snapshots()
    step = kept[-1 if weights == "trained" else 0]
    target = scene.trace.target_ids[: len(scene.trace.target_ids) - scene.trace.change.target_pads]
    source = scene.trace.source_ids
    before = cache.flow(cache.MODEL, step, source, target, NEUTRAL)
    after = None if change == NEUTRAL else cache.flow(cache.MODEL, step, source, target, change)
    if after is None:
        st.info(_("Both halves are on: the paper's model. Switch one off."))
    layers = len(before.encoder) - 1
    names = [_("in"), *(str(layer) for layer in range(1, layers + 1))]
    left, right = st.columns(2, gap="large")
    for column, side in ((left, "encoder"), (right, "decoder")):
        title = _("Encoder, by layer") if side == "encoder" else _("Decoder, by layer")
        with column:
            st.markdown(f"**{title}**")
            for suffix, axis in (("", _("mean norm of a row")), ("_gradient", _("norm of the gradient"))):
                one, other = (getattr(each, side + suffix, None) for each in (before, after))
                figure = heights(one, other, view.palette(), axis, names)  # type: ignore[arg-type]
                chart(figure, f"why_{side}{suffix}", f"{title}: {axis}")
    st.caption(
        _("Solid: as the paper has it. Dashed: switched.")
        + " "
        + _("“in” is what enters layer 1; a number, what leaves that layer.")
        + (" " + _vanished(after) if after else "")
    )
    st.dataframe(_numbers(before, after, names), hide_index=True)
    st.markdown(words_of_loss(before.loss, after.loss if after else None))
    st.markdown(prose("why")["gradients"])
    if after and weights == "trained":
        with st.expander(_("What became of the translation"), expanded=True):
            act.consequences(act.play(scene, change), scene)


def words_of_loss(before: float, after: float | None) -> str:
    said = _("Loss on this French: **{before:.3f}**").format(before=before)
    if after is None:
        return said + "."
    said += _(", switched: **{after}**.").format(after=f"{after:.3f}" if math.isfinite(after) else "∞")
    return said + " " + _("(Mean of −log p; at 0 the model would be certain.)")


def _vanished(after: Any) -> str:
    """A gradient of exactly 0 or beyond float32 cannot be drawn on this axis: it is said."""
    back = np.concatenate([after.encoder_gradient, after.decoder_gradient])
    return (
        ""
        if np.isfinite(back).all() and (back > 0).all()
        else _("What is 0 or beyond all numbers has no point.")
    )


def _numbers(before: Any, after: Any, names: list[str]) -> dict[str, list[str]]:
    """The same as a table."""
    parts = {
        "encoder": _("encoder, norm"),
        "decoder": _("decoder, norm"),
        "encoder_gradient": _("encoder, gradient"),
        "decoder_gradient": _("decoder, gradient"),
    }
    table = {_("at"): names}
    for part, name in parts.items():
        table[name] = [f"{value:.3g}" for value in getattr(before, part)]
        if after is not None:
            table[_("{name}, switched").format(name=name)] = [
                f"{value:.3g}" for value in getattr(after, part)
            ]
    return table


# --- LayerNorm beside BatchNorm ---------------------------------------------------------------------------


def _batch(scene: Scene) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        pads = slider(_("Pads added to every sentence"), "why_pads", PADS, 3)
        other = toggle(_("another sentence joins"), "why_other", False, OTHERS[1])
        masked = toggle(_("pads left out of BatchNorm"), "why_masked", False)
    small, _flags, _where = _stack(scene, OTHERS[:1], 0)
    large, real, where = _stack(scene, OTHERS if other else OTHERS[:1], pads)
    own = len(scene.trace.source)
    before_real = _flags
    layer_before, layer_after = cache.layer_norm(small)[:own], cache.layer_norm(large)[:own]
    batch_before = cache.batch_norm(small, before_real if masked else None)[:own]
    batch_after = cache.batch_norm(large, real if masked else None)[:own]
    moved = (layer_after - layer_before, batch_after - batch_before)
    most = [float(abs(each).max()) for each in moved]
    palette = view.palette()
    names = [piece for piece, _side in where]
    colours = [palette.source if index < own else palette.quiet for index in range(len(names))]
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**" + _("What is averaged") + "**")
        shown = large[:, :DIMENSIONS]
        row, column = min(1, own - 1), 3
        figure = averaged(shown, names, real, row, column, largest(shown), palette, colours)
        chart(figure, "why_averaged", _("What either norm averages"))
        said = _(
            "The batch, a row a position; your sentence is coloured, pads are hatched. The first {shown} of "
            "{all} dimensions."
        )
        st.caption(said.format(shown=DIMENSIONS, all=large.shape[1]))
    with right:
        st.markdown("**" + _("What moved in your sentence") + "**")
        limit = max(largest(moved[1][:, :DIMENSIONS]), 0.1)
        titles = (
            _("LayerNorm: up to {most}").format(most=_size(most[0])),
            _("BatchNorm: up to {most}").format(most=_size(most[1])),
        )
        pieces = scene.trace.source
        parts = [
            Band(title, change[:, :DIMENSIONS], pieces, palette.source, limit)
            for title, change in zip(titles, moved, strict=True)
        ]
        chart(bands(parts, palette), "why_moved", _("What moved"))
        st.caption(
            _("After less before, on one scale; before: your sentence and “{other}”, no pads added.").format(
                other=OTHERS[0]
            )
        )
    said = _(
        "Of {count:,} numbers of your sentence, LayerNorm moved **{layer:,}** and BatchNorm **{batch:,}** by "
        "more than 0.0001."
    )
    counts = [int((abs(each) > 1e-4).sum()) for each in moved]
    st.markdown(said.format(count=moved[0].size, layer=counts[0], batch=counts[1]))
    st.markdown(prose("why")["batch caution"])


def _size(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}" if value < 0.001 else f"{value:.3f}"


def _stack(scene: Scene, others: tuple[str, ...], pads: int) -> tuple[Floats, Any, list[tuple[str, str]]]:
    """What enters the encoder's first norm, for a whole batch (N, D), which rows are real, and their pieces.

    All sentences are padded to the longest, and by `pads` more.
    """
    bare = [scene.trace, *(scene.of(text, None, NEUTRAL) for text in others)]
    longest = max(len(trace.source) for trace in bare) + pads
    rows, real, pieces = [], [], []
    for trace in bare:
        change = Change(source_pads=longest - len(trace.source))
        target = scene.target if trace is scene.trace else trace.target_ids[1:]
        padded = scene.of(trace.text, target, change) if change.source_pads else trace
        rows.append(_entering(padded))
        real += [place < len(trace.source) for place in range(longest)]
        pieces += [(piece, trace.text) for piece in padded.source]
    return np.concatenate(rows), np.array(real), pieces


def _entering(trace: Trace) -> Floats:
    """(S, D): x + what the attention says, in encoder layer 1."""
    summed: Floats = trace.entering("encoder", 0) + trace.added("encoder").update[0]
    return summed
