"""Padding needs something to pad: the sliders that several laboratories share."""

import streamlit as st

from model.trace import Change
from viz.text import _

MOST = 20


def pads() -> Change:
    """The change that does nothing but append the pads that the reader asked for."""
    source = st.slider(_("Pads after the English"), 0, MOST, 3, key="source_pads", bind="query-params")
    target = st.slider(_("Pads after the French"), 0, MOST, 0, key="target_pads", bind="query-params")
    return Change(source_pads=source, target_pads=target)
