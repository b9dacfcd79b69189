"""The small components of the frame: map of the model, translation, links; scripts in `assets/component/`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from model.trace import Kind, Trace
from viz.reading import percent
from viz.text import ASSETS, _
from viz.theme import Palette


def _component(name: str) -> Any:
    folder = ASSETS / "component"
    return st.components.v2.component(
        f"headlight_{name}",
        html='<div class="root"></div>',
        css=(folder / "frame.css").read_text(encoding="utf-8"),
        js=(folder / f"{name}.js").read_text(encoding="utf-8"),
    )


_MAP, _TRANSLATION, _LINK, _GO, _PAGES = map(_component, ("map", "translation", "link", "go", "pages"))


def model_map(kind: Kind, layer: int, layers: int, palette: Palette, choose: Callable[[str], None]) -> None:
    """The paper's figure 1, small; its three attentions are buttons that `choose` a kind."""
    key = "map"
    _MAP(
        key=key,
        data={
            "kind": kind,
            "layer": layer,
            "layers": layers,
            "colours": {"source": palette.source, "target": palette.target},
            "words": {
                "title": _("Where you are in the model"),
                "encoder": [_("self-"), _("attention")],
                "decoder": [_("masked self-"), _("attention")],
                "cross": [_("cross-"), _("attention")],
                "feed": _("feed-forward"),
                "positions": _("+ positions"),
                "source": _("English"),
                "target": _("French so far"),
                "next": _("next piece"),
                "layer": _("layer {layer} of {layers}").format(layer=layer + 1, layers=layers),
            },
        },
        on_kind_change=lambda: choose(st.session_state[key]["kind"]),
    )


def translation(trace: Trace, palette: Palette) -> None:
    """The target sentence, each piece with its probability."""
    shares = np.exp(trace.piece_log_probs)
    real = len(trace.target) - trace.change.target_pads
    pieces = [
        {
            "text": trace.target[index],
            "space": trace.target_spaces[index] and index > 1,
            "said": _("probability {share}").format(share=percent(float(shares[index - 1]))),
        }
        for index in range(1, real)
    ]
    share = percent(math.exp(trace.log_prob))
    whole = (
        _("The model gives this French sentence a probability of {share}.")
        if trace.forced
        else _("The model's probability of this whole translation: {share}.")
    ).format(share=share)
    if trace.cut:
        whole += " " + _("It did not stop by itself: the length limit cut it.")
    _TRANSLATION(
        key="translation",
        data={"pieces": pieces, "whole": whole, "colour": palette.target, "label": _("French translation")},
    )


def copy_link() -> None:
    """A button that copies the address of what is on screen."""
    _LINK(key="link", data={"copy": _("Copy link"), "copied": _("Copied"), "label": _("Link to this view")})


def keep_pages(shared: Sequence[str]) -> None:
    """Nothing to see: lets each page keep its own query parameters, all but the `shared` ones."""
    _PAGES(key="pages", data=list(shared))


@dataclass(frozen=True)
class Place:
    """Somewhere to go: what the link says, why, and the query parameters, None for one that is left out."""

    label: str
    note: str
    address: dict[str, str | None]
    current: bool = False


def links(key: str, places: Sequence[Place]) -> None:
    """A list of places, each one step of history away."""
    _GO(
        key=key,
        data=[
            {"label": place.label, "note": place.note, "address": place.address, "current": place.current}
            for place in places
        ],
    )
