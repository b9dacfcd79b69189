"""What this model is, how good it is, and what attention does not say."""

import streamlit as st

from viz import cache
from viz.text import model_card, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    _about(scene.here.model if scene.here.model in cache.SHIPPED else cache.MODEL)


def alone() -> None:
    _about(cache.MODEL)


def _about(model: str) -> None:
    words, card = st.columns(2, gap="large")
    with words:
        for section in prose("about").values():
            st.markdown(section)
    card.markdown(model_card(model))
