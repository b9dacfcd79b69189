"""Steps that a reader goes through, or lets run, in the browser: what all such components share."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from viz.text import ASSETS, _
from viz.theme import Palette


def component(name: str) -> Any:
    """The component of `assets/component/film/<name>.js`, on top of the player's own script."""
    folder = ASSETS / "component" / "film"
    read = [(folder / script).read_text(encoding="utf-8") for script in ("player.js", f"{name}.js")]
    return st.components.v2.component(
        f"headlight_{name}",
        html='<div class="root"></div>',
        css=(folder / "film.css").read_text(encoding="utf-8"),
        js="\n".join(read),
    )


@dataclass(frozen=True)
class Reel:
    """The steps, and where the reader stands among them."""

    param: str  # of the address
    values: Sequence[int]  # of `param` at each step; the first is what an address leaves out
    labels: Sequence[str]
    bar: Sequence[str]  # what stands beside the buttons
    step: int  # from 0
    label: str  # the whole, for who does not see it


def play(
    player: Any,
    key: str,
    reel: Reel,
    data: Mapping[str, Any],
    palette: Palette,
    follow: Callable[[int], None],
) -> None:
    """Draw `data`, which holds all steps of the `reel`. `follow` is told the value of a step at rest."""
    whole = {
        **data,
        "param": reel.param,
        "values": list(reel.values),
        "labels": list(reel.labels),
        "bar": list(reel.bar),
        "words": {**_words(reel.label), **data.get("words", {})},
    }
    name = hashlib.blake2b(json.dumps(whole).encode(), digest_size=9).hexdigest()

    def told() -> None:
        at = st.session_state[key].get("at")
        # What a browser sends is not trusted: a step that is not there is not followed.
        if isinstance(at, dict) and isinstance(at.get("step"), int) and isinstance(at.get("seq"), int):
            st.session_state[f"{key}_heard"] = at["seq"]
            if 1 <= at["step"] <= len(reel.values):
                follow(reel.values[at["step"] - 1])

    player(
        key=key,
        data=whole
        | {
            "name": name,
            "step": reel.step + 1,
            "told": st.session_state.get(f"{key}_heard", 0),
            "palette": asdict(palette),
        },
        on_at_change=told,
    )


def _words(label: str) -> dict[str, str]:
    return {
        "label": label + " " + _("Left and right arrows step, space plays."),
        "back": _("Back one step (left arrow)"),
        "forward": _("Forward one step (right arrow)"),
        "play": _("Play"),
        "pause": _("Pause"),
        "playTitle": _("Space"),
        "step": _("Step"),
    }
