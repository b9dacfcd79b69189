"""What the Transformer replaced: hidden states one after the other, beside rows that are made at once."""

from dataclasses import replace

import streamlit as st

from model.trace import TextError
from viz import cache, download, race, view
from viz.chart import chart
from viz.figures.decode import by_length
from viz.text import _, prose
from viz.view import Scene

WAYS = ("training", "translating")
RECURRENT = ("rnn-attention", "rnn")


def draw(scene: Scene) -> None:
    """The track, and what attention brought by the length of the sentence."""
    words, offered = prose("decode"), [offer.name for offer in cache.models()]
    there = [name for name in RECURRENT if name in offered]
    if not there:
        st.info(_("No recurrent model is shipped here."))
        return
    st.markdown(words["states"])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        way = view.choice(_("The French"), "dec_way", WAYS)
        rival = view.choice(_("Beside"), "dec_rival", tuple(there))
        view.check("dec_tick", range(1, 2 * scene.here.sizes.pieces + 1))
        with st.popover(_("Go to a tick")):
            tick = st.number_input(
                _("Tick"), 1, 2 * scene.here.sizes.pieces, 1, key="dec_tick", bind="query-params"
            )
    text = scene.trace.text
    try:
        own, other = cache.trace(cache.MODEL, text), cache.trace(rival, text)
        if way == "training":  # one right sentence for both, whatever they would write
            other = cache.trace(rival, text, own.translation or None)
    except TextError as error:
        st.info(view.plain(view.complain(error, _("English"))))
        return
    runners = [
        race.recurrent(other, rival),
        race.transformer(own, _("Transformer ({name})").format(name=cache.MODEL), way == "training"),
    ]
    race.show(runners, tick, view.palette(), lambda at: view.place(dec_tick=at))
    if "cross" in other.kinds:  # what is framed tick by tick, as one map
        head = replace(scene.here, kind="cross", layer=0, head=0, row=0, column=None, mean=False)
        download.picture(head, other)
    st.caption(words[f"states, {way}"])
    for name, trace in ((rival, other), (cache.MODEL, own)):
        st.text(_("{name}: {text}").format(name=name, text=trace.translation or _("(nothing)")))
    bands = cache.lengths()
    if bands:
        title = _("What attention brought: BLEU by the length of the English")
        st.markdown(f"**{title}**")
        chart(by_length(bands, view.palette()), "dec_lengths", title)
        st.caption(words["lengths"])
