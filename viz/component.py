"""The components: the stage, and those of the frame: map of the model, translation, links.

Their scripts stand in `assets/component/`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from model.trace import KINDS, Kind
from viz.reading import PAD, REASONS, RESTING, kind_name, language, phrases, reason_name
from viz.sizes import Sizes
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


_MAP, _TRANSLATION, _LINK, _PAGES = map(_component, ("map", "translation", "link", "pages"))
_GO, _MODELS = (_component(name, ["place.js", f"{name}.js"]) for name in ("go", "models"))

_STAGE = _component(
    "stage",
    [f"stage/{script}.js" for script in ("data", "paint", "layout", "words", "drawing", "hands", "stage")],
    "stage/stage.css",
)
_BYTES = _component("bytes", ["stage/data.js", "stage/bytes.js"])


@dataclass(frozen=True)
class Place:
    """Somewhere to go: what the link says, why, and the query parameters, None for one that is left out.

    Without an address: this page as a reader first finds it.
    """

    label: str
    note: str
    address: dict[str, str | None] | None
    current: bool = False
    page: str | None = None  # another page of the app, "" being its first


def model_map(place: tuple[Kind, int], sizes: Sizes, palette: Palette, choose: Callable[[str], None]) -> None:
    """The paper's figure 1, small, or the half of it that a model has; its attentions are buttons.

    `place` is the kind and the layer that the reader looks at; a press lets `choose` know.
    """
    key = "map"
    kind, layer = place
    layers, _heads = sizes.kinds.get(kind, (1, 1))
    shape, languages = sizes.shape, sizes.languages
    _MAP(
        key=key,
        data={
            "kind": kind,
            "layer": layer,
            "layers": layers,
            "kinds": [*sizes.kinds],
            "shape": shape,
            "colours": {"source": palette.source, "target": palette.target},
            "words": {
                "title": _("Where you are in the model"),
                "encoder": [_("self-"), _("attention")],
                "decoder": [_("masked self-"), _("attention")],
                "cross": [_("cross-"), _("attention")],
                "feed": _("feed-forward"),
                "positions": _("+ positions"),
                "source": language(languages, "source"),
                "target": _("{language} so far").format(language=language(languages, "target")),
                "next": _("next piece") if shape != "encoder" else _("hidden piece") if sizes.hides else "",
                "layer": _("layer {layer} of {layers}").format(layer=layer + 1, layers=layers),
                "reads": _("states, there and back"),
                "writes": _("states"),
                "vector": _("one vector"),
            },
        },
        on_kind_change=lambda: choose(st.session_state[key]["kind"]),
    )


def sentence(data: Mapping[str, Any], turn: Callable[[int], None]) -> None:
    """What `viz.sentence` says of the text that came out. A press on one that can be hidden is a `turn`."""
    key = "translation"
    _TRANSLATION(
        key=key,
        data={**data, "covered": stage_words()["covered"]},
        on_piece_change=lambda: turn(int(st.session_state[key]["piece"])),
    )


def models(places: Mapping[tuple[str, str], Sequence[Place]], key: str = "models") -> None:
    """The table of models: shapes down, materials across, links in its cells."""
    shapes = {
        "encoder-decoder": _("encoder and decoder"),
        "decoder": _("decoder only"),
        "encoder": _("encoder only"),
    }
    materials = {
        "recurrent": _("recurrent"),
        "recurrent attention": _("recurrent, with attention"),
        "attention": _("attention"),
    }
    columns = {
        material: name for material, name in materials.items() if any(of == material for _shape, of in places)
    }
    _MODELS(
        key=f"{key}_models",
        data={
            "title": _("Models, by shape and material"),
            "columns": [*columns.values()],
            "rows": [
                {"name": name, "cells": [_linked(places.get((shape, each), ())) for each in columns]}
                for shape, name in shapes.items()
                if any(of == shape for of, _material in places)
            ],
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
    """Nothing to see: lets each page keep its own query parameters, all but the `shared` ones.

    It has the page drawn again when the theme changes.
    """
    _PAGES(key="pages", data=list(shared), on_theme_change=lambda: None)


def links(key: str, places: Sequence[Place]) -> None:
    """A list of places, each one step of history away."""
    _GO(key=key, data=_linked(places))


def _linked(places: Sequence[Place]) -> list[dict[str, Any]]:
    return [asdict(place) for place in places]
