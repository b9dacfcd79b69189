"""Switch a mask off, pad the sentence, and see the attention computed again."""

from dataclasses import replace
from typing import Any

import streamlit as st

from model.trace import KINDS, Kind, Switch, Trace
from viz import act, view
from viz.act import Act
from viz.pages.masks.pads import pads
from viz.reading import kind_name
from viz.text import _, prose
from viz.view import Scene

MASKS = ("source_padding", "target_padding", "look_ahead", "cross_padding")  # as `Change` names them


def draw(scene: Scene) -> None:
    """Masks on and off, pads, layers; before, after, difference; what became of the translation."""
    layers = scene.here.sizes.layers
    view.check("switched", range(1, layers + 1))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        off = _off(scene.trace)
        with st.popover(_("Pads and layers")):
            base = pads(scene.trace)
            chosen = st.pills(
                _("Layers that the switches act on"),
                range(1, layers + 1),
                selection_mode="multi",
                default=range(1, layers + 1),
                key="switched",
                bind="query-params",
            )
    switch = Switch("all" if len(chosen) == layers else tuple(layer - 1 for layer in chosen))
    switches: dict[str, Any] = {mask: switch for mask in off}
    played = act.play(scene, replace(base, **switches), base)
    act.show(played, scene.here)
    for remark in _remarks(played, off if chosen else []):
        st.info(view.plain(remark))
    act.consequences(played, scene)
    if len(scene.trace.kinds) == len(KINDS):
        _where()


def _off(trace: Trace) -> list[str]:
    """The masks that the reader switched off, of those that the model has."""
    switches: dict[str, tuple[Kind, str, str]] = {
        "source_padding": ("encoder", _("source padding"), _("Hides the source's pads from the encoder.")),
        "target_padding": ("decoder", _("target padding"), _("Hides the target's pads from the decoder.")),
        "look_ahead": ("decoder", _("look-ahead"), _("Hides later pieces of the target from the decoder.")),
        "cross_padding": (
            "cross",
            _("cross padding"),
            _("Hides the source's pads from cross-attention."),
        ),
    }
    return [
        mask
        for mask, (kind, name, said) in switches.items()
        if kind in trace.kinds and not st.toggle(name, True, key=mask, bind="query-params", help=said)
    ]


def _remarks(played: Act, off: list[str]) -> list[str]:
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
        said.append(_("Nothing to hide yet: the source has no pads. Add some."))
    if "target_padding" in off and not pads.target_pads:
        said.append(_("Nothing to hide yet: the target has no pads. Add some."))
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


def _where() -> None:
    """Three kinds of attention by two masks; a cell leads to its map."""
    with st.expander(_("Which mask is at work where?")):
        rows: dict[Kind, tuple[str, str]] = {
            "encoder": (_("hides English pads"), ""),
            "decoder": (_("hides French pads"), _("hides later pieces")),
            "cross": (_("hides English pads"), ""),
        }
        titles = ("", _("padding mask"), _("look-ahead mask"))
        for column, title in zip(st.columns(3), titles, strict=True):
            column.markdown(f"**{title}**")
        for kind, cells in rows.items():
            name, *places = st.columns(3, vertical_alignment="center")
            name.markdown(kind_name(kind))
            for place, (mask, cell) in zip(places, enumerate(cells), strict=True):
                if not cell:
                    place.markdown(_("not needed: nothing lies in the future"))
                    continue
                key = f"where_{kind}_{mask}"
                place.button(cell, key=key, type="tertiary", on_click=view.choose_kind, args=(kind,))
        st.markdown(prose("masks")["Where"])
