"""The stage on maps too large to be sent at once: what `tests/test_browser_long.py` opens."""

import numpy as np
import streamlit as st

from viz import component, stage, view
from viz.sizes import Sizes

LAYERS, HEADS, PIECES = 6, 3, 509


@st.cache_data
def weights() -> np.ndarray:
    random = np.random.default_rng(7)
    found = np.exp(2 * random.normal(size=(LAYERS, HEADS, PIECES, PIECES)))
    return (found / found.sum(axis=-1, keepdims=True)).astype(np.float32)


def main() -> None:
    st.set_page_config(layout="wide")
    pieces = tuple(f"p{index}" for index in range(PIECES))
    maps = stage.Maps(weights(), np.zeros((LAYERS, HEADS, PIECES, PIECES), np.uint8), pieces, pieces)
    asked = st.query_params
    usual = view.controls(view.at_first(Sizes("en-fr", {"encoder": (LAYERS, HEADS)}, PIECES, "encoder", {})))
    place = usual | {
        "kind": "encoder",
        "head": int(asked.get("head", 1)),
        "layer": int(asked.get("layer", 1)),
    }
    place |= {"drawing": asked.get("drawing", "map"), "row": 2, "column": 3}
    look = component.wanted() or ("encoder", int(asked.get("layer", 1)) - 1)
    component.stage(stage.pack([{"encoder": maps}], look), place, usual, view.palette(), False)


if __name__ == "__main__":
    main()
