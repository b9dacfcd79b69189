"""Two proofs on the reader's own sentence: pads change nothing, and the future does not leak."""

from typing import Any

import streamlit as st

from model.trace import Change, Switch, TextError
from viz import cache, tables, view
from viz.reading import language
from viz.text import _, prose
from viz.view import Scene

COUNTS = (1, 2, 5, 10, 20)
EVERYWHERE = Switch("all")


def draw(scene: Scene) -> None:
    """Padding invariance on the left, the future-leak probe on the right."""
    proofs = []
    if scene.trace.source:
        proofs.append((_("Pads change nothing, as long as they are masked"), _pads))
    if "decoder" in scene.trace.kinds:
        proofs.append((_("No row knows the future, as long as it is masked"), _future))
    for column, (title, proof) in zip(st.columns(len(proofs), gap="large"), proofs, strict=True):
        with column:
            st.markdown(f"**{title}**")
            proof(scene)


def _pads(scene: Scene) -> None:
    masked = [scene.again(Change(source_pads=count), True) for count in COUNTS]
    masks = {"encoder": "source_padding", "cross": "cross_padding"}
    off: dict[str, Any] = {masks[kind]: EVERYWHERE for kind in scene.trace.kinds if kind in masks}
    bare = [scene.again(Change(source_pads=count, **off), True) for count in COUNTS]
    st.dataframe(tables.padding(scene.trace, masked, bare, scene.here.layer), hide_index=True)
    st.markdown(prose("masks")["Pads"])


def _future(scene: Scene) -> None:
    trace = scene.trace
    last = len(trace.target) - 1
    if last < 1:
        st.info(_("The target has no piece that could be changed."))
        return
    longest = cache.longest(scene.here.model)
    view.check("leak_at", range(1, longest))
    at = st.number_input(_("Piece to change"), 1, longest - 1, 4, key="leak_at", bind="query-params")
    if at > last:
        said = _("The {language} has no piece {asked}: the last one, {last}, is changed.")
        st.caption(said.format(language=language(trace.languages, "target"), asked=at, last=last))
    usual = "maison" if scene.trace.languages.get("target") == "fr" else "house"
    typed = st.text_input(_("Put in its place"), usual, key="leak_word", bind="query-params")
    place, word = min(at, last), typed.strip() or usual
    pieces = [*trace.target[1:]]
    spaces = [*trace.target_spaces[1:]]
    if place > 1 and pieces[place - 1][0].isalnum() < word[0].isalnum():
        spaces[place - 1] = True  # a word in the place of a mark must not melt into the word before it
    pieces[place - 1] = word
    text = "".join(" " * space + piece for piece, space in zip(pieces, spaces, strict=True)).strip()
    st.text(_("changed to: {text}").format(text=text))
    off = Change(look_ahead=EVERYWHERE)
    try:
        with_mask = (trace, scene.of(trace.text, text, Change()))
    except TextError as error:
        st.info(view.plain(view.complain(error, _("changed"))))
        return
    if with_mask[1].target_ids[:place] != trace.target_ids[:place]:
        st.info(
            _(
                "There the word is cut together with the letters before it, so that earlier pieces change "
                "too: choose another piece or word."
            )
        )
        return
    without = (scene.again(off, True), scene.of(trace.text, text, off))
    st.dataframe(tables.leak(with_mask, without, place), hide_index=True)
    st.markdown(prose("masks")["Future"])
