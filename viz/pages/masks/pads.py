"""Padding needs something to pad: the sliders that several laboratories share."""

import streamlit as st

from model.trace import Change, Side, Trace
from viz.reading import language
from viz.text import _

MOST = 20


def pads(trace: Trace) -> Change:
    """The change that does nothing but append the pads that the reader asked for, to what `trace` reads."""
    asked: dict[Side, int] = {"source": 0, "target": 0}
    first: tuple[tuple[Side, int], ...] = (("source", 3), ("target", 0 if trace.source else 3))
    for side, usual in first:
        if trace.pieces(side):
            label = _("Pads after the {language}").format(language=language(trace.languages, side))
            key = f"{side}_pads"
            asked[side] = st.slider(label, 0, MOST, usual, key=key, bind="query-params")
    return Change(source_pads=asked["source"], target_pads=asked["target"])
