"""Every attention map behind a translation: one head large, its layer small beside it."""

import streamlit as st

from viz import fit, picture
from viz.fit import Tab
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    fit.show(scene, Tab(_maps, (fit.attention,)))


def _maps(scene: Scene) -> None:
    picture.attention(scene.here, scene.trace)
    with st.expander(_("What am I looking at?")):
        words = prose("explore")
        left, right = st.columns(2, gap="large")
        left.markdown(words["How to read a map"])
        right.markdown(words[scene.here.kind])
