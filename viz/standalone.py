"""The stage in a file of its own: maps, scripts and style in one HTML document that asks no server.

What it may do is written into it (Content-Security-Policy): run these scripts, known by their hash, and
nothing else. Text from outside stands in it as text or inside JSON, where it cannot end the element it is in.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from html import escape
from typing import Any

from viz import stage
from viz.svg import Shot, altered
from viz.text import ASSETS, _
from viz.theme import PALETTES, Mode

SCRIPTS = ("data", "paint", "layout", "words", "drawing", "hands", "stage")
EXACT = 2**21  # numbers: as many are written as they are, more of them as 16 bits


def html(shot: Shot, words: Mapping[str, Any], theme: Mode | None = None) -> str:
    """The document: every kind, layer and head of the trace, opened where the reader stands.

    `words` are those of the stage; without a theme the reader's browser chooses. Raises ValueError where the
    stage cannot draw so many pieces.
    """
    traces = [each for each in (shot.trace, shot.after) if each]
    numbers = sum(seen.weights.size for trace in traces for seen in trace.attention.values())
    payload = stage.pack([stage.maps(each) for each in traces], bits=32 if numbers <= EXACT else 16)
    data = {
        "payload": b64encode(payload.bytes).decode(),
        "palettes": {name: asdict(palette) for name, palette in PALETTES.items()},
        "theme": theme or "",
        "words": words,
        "labels": _labels(),
        "place": place(shot),
        "values": shot.values,
    }
    folder = ASSETS / "component"
    read = [folder / "stage" / f"{name}.js" for name in SCRIPTS] + [folder / "page" / "page.js"]
    script = "\n" + "\n".join(path.read_text(encoding="utf-8") for path in read)
    styles = [folder / "stage" / "stage.css", folder / "page" / "page.css"]
    style = "\n" + "\n".join(path.read_text(encoding="utf-8") for path in styles).replace(":host", ":root")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    trace, text = shot.trace, escape
    said = [*altered(shot), *filter(None, [shot.note])]
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(_shown(trace.text) or 'Headlight')} · Headlight</title>\n"
        f"<style>{style}</style></head>\n"
        f'<body><main><h1 dir="auto">{text(_shown(trace.text))}</h1>'
        f'<p dir="auto">{text(_shown(trace.translation))}</p>\n'
        f'<div id="choices"></div><div class="root"></div>\n'
        f"<noscript>{text(_labels()['script'])}</noscript>\n"
        f"<footer>{text(_labels()['made'])}{text(''.join(f' {line}' for line in said))}</footer></main>\n"
        f'<script type="application/json" id="data">{in_script(data)}</script>\n'
        f'<script type="module">{script}</script></body></html>\n'
    )


def place(shot: Shot) -> dict[str, Any]:
    """Where the reader stands, as an address says it: layers, heads, rows and columns from 1."""
    return {
        "kind": shot.kind,
        "layer": shot.layer + 1,
        "head": (shot.head or 0) + 1,
        "row": shot.query + 1,
        "column": 0 if shot.key is None else shot.key + 1,
        "mean": shot.head is None,
        "drawing": shot.drawing,
        "faint": round(100 * shot.faint),
        "also": ",".join(str(head + 1) for head in shot.also),
        "hall": False,
    }


def in_script(value: Any) -> str:
    """JSON that may stand in a script element: nothing in it ends the element or begins a comment."""
    text = json.dumps(
        value, allow_nan=False, separators=(",", ":")
    )  # ASCII: no line separators, no half pairs
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shown(text: str) -> str:
    """What UTF-8 can hold of a text."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _labels() -> dict[str, str]:
    return {
        "kind": _("Attention"),
        "layer": _("Layer"),
        "head": _("Head"),
        "layerBack": _("Previous layer"),
        "layerOn": _("Next layer"),
        "headBack": _("Previous head"),
        "headOn": _("Next head"),
        "mean": _("Mean of all heads"),
        "light": _("Light"),
        "dark": _("Dark"),
        "script": _("The maps are drawn by a script, which this browser does not run."),
        "made": _("Drawn by Headlight. This file needs no network."),
    }
