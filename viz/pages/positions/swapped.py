"""Two words change places: without positions the encoder's map only changes its order."""

import streamlit as st

from model.trace import NEUTRAL, TextError
from viz import act, order, view
from viz.act import Act
from viz.figures.positions import numbered
from viz.pages.positions.controls import MOST, distance, number, row
from viz.pages.positions.switched import OFF
from viz.reading import kind_name
from viz.text import _, prose
from viz.view import Scene, choice


def draw(scene: Scene) -> None:
    trace = scene.trace
    words = order.words(trace)
    with row():
        asked = (
            number(_("Swap word"), "pos_first", 1, 1, MOST),
            number(_("with word"), "pos_second", 3, 1, MOST),
        )
        on = choice(_("Positions"), "pos_swap", ("off", "on")) == "on"
    st.text("   ".join(numbered([word.text for word in words], 1)))
    first, second = (min(each, len(words)) - 1 for each in asked)
    if max(asked) > len(words):
        said = _("There is no word {asked}: the sentence has {count}, marks included. The last is taken.")
        st.caption(said.format(asked=max(asked), count=len(words)))
    if first == second:
        st.info(_("Choose two different words: their numbers stand before them."))
        return
    change = NEUTRAL if on else OFF
    text, places = order.swap(trace, first, second)
    try:
        # Gaps go along with their words.
        gaps = tuple(new for new, old in enumerate(places.tolist()) if old in trace.gaps)
        swapped = scene.of(text, scene.target if trace.target else gaps, change)
    except TextError as error:
        st.info(view.plain(view.complain(error, _("swapped"))))
        return
    if not order.same_pieces(trace, swapped, places):
        said = _('"{text}" is cut into other pieces, so its map has no partner: swap two other words.')
        st.info(view.plain(said.format(text=text)))
        return
    st.text(_("swapped: {text}").format(text=text))
    before, after = scene.again(change, True), order.put_back(swapped, places)
    act.show(Act(before, after), scene.here)
    st.caption(_("After: the swapped sentence, its rows and columns put back into the old order."))
    kind = scene.here.kind
    most = float(abs(after.weights(kind) - before.weights(kind)).max())
    said = _("Largest difference in all layers and heads of the {kind}: {most}.")
    told = [said.format(kind=kind_name(kind), most=distance(most))]
    if on:
        told.append(_("With positions, two words that change places change more than their places."))
    else:
        told.append(
            {
                "encoder": _("The rows and columns changed places, and nothing else happened."),
                "cross": _("The columns changed places, and nothing else happened."),
                "decoder": _(
                    "The decoder reads a sentence that has not changed, so its map does not either."
                ),
            }[kind]
        )
    st.info(view.plain(" ".join(told)))
    mine, theirs = st.columns(2, gap="large")
    theirs.markdown(prose("positions")["Swap"])
    if not trace.target:
        return
    with mine:
        st.markdown("**" + _("Translations, positions {way}").format(way="on" if on else "off") + "**")
        for name, sentence in ((_("as typed"), trace.text), (_("swapped"), text)):
            free = scene.of(sentence, None, change).translation
            st.text(_("{name}: {text}").format(name=name, text=free))
