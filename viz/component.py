"""The components: the stage, and those of the frame: map of the model, translation, links.

Their scripts stand in `assets/component/`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import streamlit as st

from model.trace import KINDS, Kind, Trace
from viz.reading import PAD, REASONS, RESTING, kind_name, percent, phrases, reason_name
from viz.stage import Payload
from viz.text import ASSETS, _
from viz.theme import Palette


def _component(name: str, scripts: Sequence[str] = (), style: str = "frame.css") -> Any:
    """A component of one script, or of several that are read as one: there is no build step."""
    folder = ASSETS / "component"
    read = [(folder / script).read_text(encoding="utf-8") for script in scripts or (f"{name}.js",)]
    return st.components.v2.component(
        f"headlight_{name}",
        html='<div class="root"></div>',
        css=(folder / style).read_text(encoding="utf-8"),
        js="\n".join(read),
    )


_MAP, _TRANSLATION, _LINK, _GO, _PAGES = map(_component, ("map", "translation", "link", "go", "pages"))


_STAGE = _component(
    "stage",
    [f"stage/{script}.js" for script in ("data", "paint", "layout", "words", "drawing", "hands", "stage")],
    "stage/stage.css",
)
_BYTES = _component("bytes", ["stage/data.js", "stage/bytes.js"])


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
        data={
            "pieces": pieces,
            "whole": whole,
            "colour": palette.target,
            "label": _("French translation"),
            "covered": stage_words()["covered"],
        },
    )


def stage(
    payload: Payload, place: Mapping[str, Any], usual: Mapping[str, Any], palette: Palette, values: bool
) -> None:
    """The maps of `payload`, stepped through in the browser.

    `place` and `usual` are what the controls say and what an address leaves out. With `values`, numbers
    stand in the cells.
    """
    # The maps go apart from the place, so that a new place does not send them again.
    with st.container(gap=None):
        _STAGE(
            key="stage",
            data={
                "maps": payload.name,
                "place": dict(place),
                "usual": dict(usual),
                "values": values,
                "palette": asdict(palette),
                "words": stage_words(),
            },
            on_want_change=lambda: None,
        )
        _BYTES(key="stage_bytes", data=payload.bytes, height=1)


def wanted() -> tuple[str, int] | None:
    """The kind and layer whose maps the stage lacks, where a long input is sent layer by layer."""
    want = st.session_state.get("stage", {}).get("want")
    if isinstance(want, list) and len(want) == 2 and isinstance(want[0], str) and isinstance(want[1], int):
        return want[0], want[1]
    return None


def stage_words() -> dict[str, Any]:
    """Every word that the stage may show."""
    return {
        **phrases(),
        "kinds": {kind: kind_name(kind) for kind in KINDS},
        "reasons": [reason_name(reason) for reason in REASONS],
        "resting": RESTING,
        "pad": PAD,
        "panels": [_("Before"), _("After"), _("Difference")],
        "buttons": {
            "map": _("One head"),
            "heads": _("Its layer"),
            "all": _("All layers"),
            "lines": _("Lines"),
            "play": _("Play"),
            "pause": _("Pause"),
            "hide": _("Hide"),
            "reveal": _("Show"),
            "hall": _("Hall"),
            "closer": _("Closer"),
            "wider": _("Wider"),
            "several": _("Several heads"),
        },
        "titles": {
            "play": _("Step through the heads (space)"),
            "hide": _("Cover the picture until pressed again (h)"),
            "hall": _("Nothing but the picture; Escape leaves it (f)"),
            "several": _("A click on a small map lays its lines over the others"),
        },
        "bar": _("The picture"),
        "view": _("Drawn as"),
        "faint": _("Lines from"),
        "covered": _("Hidden. Press h to show it."),
        "keysHelp": _(
            "Left and right: heads. Up and down: layers. With shift: row and column. "
            "Space plays, h hides, f fills the screen."
        ),
        "table": _("The same map as a table"),
        "asked": _("is asked (key): {side}"),
        "asks": _("asks (query): {side}"),
        "goes": _(", goes in → comes out"),
        "queries": _("asks (query)"),
        "goesIn": _("goes in (query)"),
        "keys": _("is asked (key)"),
        "nothingAllowed": _("nothing allowed"),
        "reads": _("reads {key}: {weight}"),
        "sharpest": _("sharpest row: {query} reads {key}, {share}"),
        "hiddenShare": _("Lines under {faint} are not drawn; together they hold {share} of all weight."),
        "window": _("{shown} of {all} pieces are shown: drag the map to see the others."),
        "meanNote": _("The mean over heads is a summary for the eye; the model never uses it."),
        "change": _('{head}, working on "{query}", gives "{key}" {before} before and {after} after.'),
        "differs": _(
            "Difference: after less before; blue is more, red is less. "
            "Largest change of a weight here: {most}."
        ),
    }


def copy_link() -> None:
    """A button that copies the address of what is on screen."""
    _LINK(key="link", data={"copy": _("Copy link"), "copied": _("Copied"), "label": _("Link to this view")})


def keep_pages(shared: Sequence[str]) -> None:
    """Nothing to see: lets each page keep its own query parameters, all but the `shared` ones."""
    _PAGES(key="pages", data=list(shared))


@dataclass(frozen=True)
class Place:
    """Somewhere to go: what the link says, why, and the query parameters, None for one that is left out.

    Without an address: this page as a reader first finds it.
    """

    label: str
    note: str
    address: dict[str, str | None] | None
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
