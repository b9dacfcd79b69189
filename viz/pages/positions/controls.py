"""The controls that several tabs share, and how a distance is written."""

from typing import Any

import streamlit as st

MOST = 99  # the highest number of a word or of a pair that can be asked for, whatever the sentence


def row() -> Any:
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium")


def number(label: str, key: str, first: int, least: int, most: int) -> int:
    # A number box and no list: its bounds do not follow the sentence, so no link can leave them.
    return int(st.number_input(label, least, most, first, key=key, bind="query-params", width=150))


def slider(label: str, key: str, first: int, least: int, most: int) -> int:
    return int(st.slider(label, least, most, first, key=key, bind="query-params"))


def distance(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}" if value < 0.001 else f"{value:.3f}"
