"""The stage and nothing else, on random maps: `streamlit run bench/stage_app.py`, opened by `bench.stage`.

Its address says which: ?layers=12&heads=12&pieces=64&bits=16&drawing=all&faint=3
"""

from typing import Any, cast

import numpy as np
import streamlit as st

from bench.peers import pieces_of, random_maps
from viz import component, stage, view
from viz.sizes import Sizes

asked = st.query_params


def number(name: str, usual: int) -> int:
    return int(asked.get(name, usual))


@st.cache_data
def payload(layers: int, heads: int, pieces: int, bits: int) -> stage.Payload:
    """The maps as the app would send them."""
    weights, names = random_maps(layers, heads, pieces), tuple(pieces_of(pieces))
    maps = stage.Maps(weights, np.zeros(weights.shape, np.uint8), names, names)
    return stage.pack([{"encoder": maps}], ("encoder", 0), cast(Any, bits or None))


st.set_page_config(layout="wide")
layers, heads, pieces = number("layers", 12), number("heads", 12), number("pieces", 64)
sizes = Sizes("en-fr", {"encoder": (layers, heads)}, pieces, "encoder", {})
usual = view.controls(view.at_first(sizes))
place = usual | {
    "kind": "encoder",
    "layer": 1,
    "head": 1,
    "row": 1,
    "drawing": asked.get("drawing", "map"),
    "faint": number("faint", 3),
    "also": asked.get("also", ""),
}
component.stage(payload(layers, heads, pieces, number("bits", 0)), place, usual, view.palette(), False)
