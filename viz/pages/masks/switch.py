"""What masks do: switch one off, pad the sentence, and see the attention computed again."""

from dataclasses import replace
from typing import Any

import streamlit as st

from model.trace import Change, Switch
from viz import act, view
from viz.act import Act
from viz.text import _, prose
from viz.view import Scene

MOST_PADS = 20
MASKS = ("source_padding", "target_padding", "look_ahead", "cross_padding")  # as `Change` names them
HELP = {
    "source_padding": _("Hides the English pads from the encoder."),
    "target_padding": _("Hides the French pads from the decoder."),
    "look_ahead": _("Hides later French pieces from the decoder."),
    "cross_padding": _("Hides the English pads from the cross-attention."),
}


def draw(scene: Scene) -> None:
    layers = scene.trace.encoder.weights.shape[0]
    off, chosen, pads = _switches(layers)
    base = Change(source_pads=pads[0], target_pads=pads[1])
    switch = Switch("all" if len(chosen) == layers else tuple(chosen))
    switches: dict[str, Any] = {mask: switch for mask in off}
    change = replace(base, **switches) if chosen else base
    played = act.play(scene, change, base)
    act.show(played, scene.here, "masks")
    for remark in _remarks(played, off if chosen else ()):
        st.info(view.plain(remark))
    act.consequences(played)
    with st.expander(_("Which mask is at work where?")):
        st.markdown(prose("masks")["Where"])


def _switches(layers: int) -> tuple[tuple[str, ...], list[int], tuple[int, int]]:
    """The masks that are off, the layers (from 0) they are off in, and the pads appended."""
    names = {
        "source_padding": _("source padding"),
        "target_padding": _("target padding"),
        "look_ahead": _("look-ahead"),
        "cross_padding": _("cross padding"),
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        off = [
            mask
            for mask in MASKS
            if not st.toggle(names[mask], True, key=mask, bind="query-params", help=HELP[mask])
        ]
        with st.popover(_("Pads and layers")):
            source = st.slider(
                _("Pads after the English"), 0, MOST_PADS, 3, key="source_pads", bind="query-params"
            )
            target = st.slider(
                _("Pads after the French"), 0, MOST_PADS, 0, key="target_pads", bind="query-params"
            )
            chosen = st.pills(
                _("Layers that the switches act on"),
                range(1, layers + 1),
                selection_mode="multi",
                default=range(1, layers + 1),
                key="switched",
                bind="query-params",
            )
    return tuple(off), [layer - 1 for layer in chosen], (source, target)


def _remarks(played: Act, off: tuple[str, ...]) -> list[str]:
    """What is easily taken for a bug, said where it happens."""
    said = []
    pads = played.before.change
    if not off:
        if not pads.source_pads + pads.target_pads:
            said.append(
                _("All masks are on, and there is nothing to hide yet. Add pads, or switch a mask off.")
            )
        return said
    if {"source_padding", "cross_padding"} & {*off} and not pads.source_pads:
        said.append(_("Nothing to hide yet: the English has no pads. Add some."))
    if "target_padding" in off and not pads.target_pads:
        said.append(_("Nothing to hide yet: the French has no pads. Add some."))
    elif "target_padding" in off and "look_ahead" not in off:
        said.append(_("No real row changed: the look-ahead mask already hides pads that stand to the right."))
    if "look_ahead" in off:
        said.append(
            _("This model was trained with the mask; without it, it is out of its depth.")
            + " "
            + _("Expect worse, not better.")
        )
        switch = played.after.change.look_ahead.off
        if switch != "all":
            said.append(
                _("One layer without the mask is enough to leak: the later layers pass on what it saw.")
            )
    return said
