"""Positions off, shuffled, shifted, or beyond the longest sentence: before, after, difference."""

import streamlit as st

from model.trace import NEUTRAL, Change, Trace
from viz import act, cache, order, view
from viz.act import Act
from viz.chart import chart
from viz.figures import Look, attention_map
from viz.figures.positions import shift_curve
from viz.pages.positions.controls import number, row
from viz.reading import Map, kind_name, language, loss
from viz.text import _, prose
from viz.view import Scene, choice

OFF = Change(positions="off")
WAYS = ("off", "on", "shuffled", "shifted", "beyond")


def draw(scene: Scene) -> None:
    longest = cache.longest(scene.here.model)
    view.check("pos_shift", range(1, longest))
    view.check("pos_beyond", _beyond(longest))
    with row():
        way = choice(_("Positions"), "pos_way", WAYS)
        change = _change(way, longest)
    played = act.play(scene, change)
    act.show(played, scene.here)
    for remark in _remarks(played, scene, way, longest):
        st.info(view.plain(remark))
    act.consequences(played, scene)
    if way == "beyond":
        _farther(scene, longest, change.shift)
    if way == "off" and "decoder" in scene.trace.kinds:
        with st.expander(_("Is all order gone? Not in the decoder")):
            words, picture = st.columns([2, 3], gap="large")
            words.markdown(prose("positions")["Decoder"])
            with picture:
                _decoder(played.after, scene)
    with st.expander(_("Why positions, and what other models do")):
        left, right = st.columns(2, gap="large")
        left.markdown(prose("positions")["Why"])
        right.markdown(prose("positions")["Kinds"])


def _change(way: str, longest: int) -> Change:
    if way == "shuffled":
        return Change(positions="shuffled", seed=number(_("Shuffle number"), "pos_seed", 1, 0, 999))
    if way == "shifted":
        return Change(shift=number(_("Shifted by k ="), "pos_shift", 1, 1, longest - 1))
    if way == "beyond":
        return Change(shift=choice(_("Shifted by k ="), "pos_beyond", _beyond(longest)))
    return OFF if way == "off" else NEUTRAL


def _beyond(longest: int) -> tuple[int, ...]:
    return tuple(longest * 2**power for power in range(4))


def _farther(scene: Scene, longest: int, chosen: int) -> None:
    """The loss of the same sentence, moved out step by step."""
    steps = (0, 1 / 4, 1 / 2, 3 / 4, 1, 5 / 4, 3 / 2, 2, 3, 4, 6, 8)
    losses = {
        shift: loss(scene.again(Change(shift=shift), True))
        for shift in (int(step * longest) for step in steps)
    }
    title = _("The same sentence, shifted further and further")
    st.markdown(f"**{title}**")
    chart(shift_curve(losses, longest, chosen, view.palette()), "positions_farther", title)
    said = _(
        "Shifted by 0 the loss is {first:.3f}; by {longest}, {middle:.3f}; by {last}, {far:.3f}."
        " Every distance between pieces stays what it was; only the places are new."
    )
    last = max(losses)
    st.caption(
        view.plain(
            said.format(first=losses[0], longest=longest, middle=losses[longest], last=last, far=losses[last])
        )
    )


def _decoder(trace: Trace, scene: Scene) -> None:
    """The decoder's map without positions, in the chosen layer and head."""
    picture = Map(trace, "decoder", scene.here.layer, None if scene.here.mean else scene.here.head)
    # The last row has the most to read; the chosen row may be one of another sentence.
    query = len(trace.target) - 1
    said = _("{kind}, {name}, positions off.").format(
        kind=kind_name("decoder").capitalize(), name=picture.name()
    )
    chart(
        attention_map(picture, query, int(picture.weights[query].argmax()), Look(view.palette())),
        "positions_decoder",
        said,
    )
    st.caption(view.plain(said))


def _remarks(played: Act, scene: Scene, way: str, longest: int) -> list[str]:
    """What the reader should know of the switch, and what is easily taken for a bug."""
    kind, after = scene.here.kind, played.after
    side = after.typed
    pieces, name, writes = after.pieces(side), language(after.languages, side), after.predicts == "target"
    if way == "on":
        return [_("Positions are on, as in training: nothing differs. What will change when they are off?")]
    if way == "off":
        said = {
            "encoder": _(
                "Without positions the encoder reads a bag of pieces: equal pieces have equal rows, and"
                " swapped words only swap rows. Try twins and swap."
            ),
            "decoder": _(
                "Without positions the decoder still knows some order: its mask lets row 1 read one piece,"
                " row 2 two, row 3 three."
            ),
            "cross": _(
                "Without positions the columns (encoder) know no order; the rows (decoder) still know some,"
                " through their mask."
            ),
        }[kind]
        return [
            said
            + " "
            + _("The model was trained with positions and is out of its depth: expect worse, not better.")
        ]
    if way == "shuffled":
        embedding = after.embedding(side)
        places = order.places(embedding.positions, cache.encoding(longest, embedding.sum.shape[1]))
        told = ", ".join(f"{piece} {place}" for piece, place in zip(pieces, places, strict=True))
        said = _("Positions given to the {language}: {told}.").format(language=name, told=told)
        if writes:
            said += " " + _("What is written is shuffled too, anew for every length.")
        return [said]
    first, last = after.change.shift, after.change.shift + len(pieces) - 1
    said = _("The {language} pieces stand at positions {first} to {last}, not 0 to {usual}.").format(
        language=name, first=first, last=last, usual=len(pieces) - 1
    )
    if last >= longest:
        said += " " + _(
            "Training sentences had at most {longest} pieces, so every position from {longest} on is new to"
            " the model. The formula has an answer there; whether the trained weights can use it, see below."
        ).format(longest=longest)
    else:
        said += " " + _("All distances are as before: what differs, the heads read from the places as such.")
    return [said]
