"""What positions do: take them away, swap words, see what is added to a sentence and how it turns."""

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from model.trace import NEUTRAL, Change, TextError, Trace
from viz import act, cache, order, view
from viz.act import Act
from viz.chart import chart
from viz.component import Place, links
from viz.figures import Look, attention_map
from viz.figures.cells import READABLE
from viz.figures.positions import (
    CROWDED,
    curves,
    dimension_map,
    norm_bars,
    numbered,
    products,
    rotation,
    shift_curve,
    twin_grid,
    twin_rows,
    vector,
)
from viz.reading import Map, kind_name, loss, percent, side
from viz.text import _, prose
from viz.view import Offers, Scene, numbers

TWINS = "The big dog saw a big cat."
TWINS_FRENCH = "Le gros chien a vu un gros chat."
OFF = Change(positions="off")
WAYS = ("off", "on", "shuffled", "shifted", "beyond")
LENGTHS = (64, 128, 256, 512)  # positions that the encoding is shown for
MOST = LENGTHS[-1]
ROUNDING = 1e-6  # two rows of one matrix product may be summed in another order
FARTHEST = 64  # the largest offset of a rotation


TABS = ("experiment", "sum", "encoding", "rotation")
TRIES = ("positions", "swap", "twins")
PICTURES = ("map", "curves", "vector", "distance")
OFFERS: Offers = {
    "pos_tab": TABS,
    "pos_try": TRIES,
    "pos_way": WAYS,
    "pos_swap": ("off", "on"),
    "pos_picture": PICTURES,
    "pos_count": tuple(map(str, LENGTHS)),
    "pos_at": numbers(0, MOST - 1),
    "pos_seed": numbers(0, 999),
    "pos_k": numbers(0, FARTHEST),
}


def draw(scene: Scene) -> None:
    """Only the chosen tab is drawn, and so only its passes are run."""
    bar = _row()
    tabs: dict[str, Callable[[Scene, Any], None]] = {
        "experiment": _experiment,
        "sum": _sum,
        "encoding": _encoding,
        "rotation": _rotation,
    }
    with bar:
        tab = _choice(_("Show"), "pos_tab", tuple(tabs), bare=True)
    tabs[tab](scene, bar)


def _choice(label: str, key: str, options: tuple[Any, ...], bare: bool = False) -> Any:
    """One of `options`, the first where the address names none; a `bare` one does not show its label."""
    chosen = st.segmented_control(
        label,
        options,
        default=options[0],
        required=True,
        key=key,
        bind="query-params",
        label_visibility="collapsed" if bare else "visible",
    )
    return options[0] if chosen is None else chosen


def _row() -> Any:
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium")


def _number(label: str, key: str, first: int, least: int, most: int) -> int:
    # A number box and no list: its bounds do not follow the sentence, so no link can leave them.
    return int(st.number_input(label, least, most, first, key=key, bind="query-params", width=150))


# --- experiment -------------------------------------------------------------------------------------------


def _experiment(scene: Scene, bar: Any) -> None:
    tries: dict[str, Callable[[Scene], None]] = {
        "positions": _switched,
        "swap": _swapped,
        "twins": _twins,
    }
    with bar:
        chosen = _choice(_("Try"), "pos_try", tuple(tries), bare=True)
    tries[chosen](scene)


def _switched(scene: Scene) -> None:
    longest = cache.longest()
    with _row():
        way = _choice(_("Positions"), "pos_way", WAYS)
        change = _change(way, longest)
    played = act.play(scene, change)
    act.show(played, scene.here, "positions")
    for remark in _remarks(played, scene, way, longest):
        st.info(view.plain(remark))
    act.consequences(played)
    if way == "beyond":
        _farther(scene, longest, change.shift)
    if way == "off":
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
        return Change(positions="shuffled", seed=_number(_("Shuffle number"), "pos_seed", 1, 0, 999))
    if way == "shifted":
        return Change(shift=_number(_("Shifted by k ="), "pos_shift", 1, 1, longest - 1))
    if way == "beyond":
        beyond = tuple(longest * 2**power for power in range(4))
        return Change(shift=_choice(_("Shifted by k ="), "pos_beyond", beyond))
    return OFF if way == "off" else NEUTRAL


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
        table = cache.encoding(longest, after.source_embedding.sum.shape[1])
        places = order.places(after.source_embedding.positions, table)
        told = ", ".join(f"{piece} {place}" for piece, place in zip(after.source, places, strict=True))
        return [
            _("Positions given to the English: {told}.").format(told=told)
            + " "
            + _("The French are shuffled too, anew for every length while the model writes.")
        ]
    first, last = after.change.shift, after.change.shift + len(after.source) - 1
    said = _("The English pieces stand at positions {first} to {last}, not 0 to {usual}.").format(
        first=first, last=last, usual=len(after.source) - 1
    )
    if last >= longest:
        said += " " + _(
            "Training sentences had at most {longest} pieces, so every position from {longest} on is new to"
            " the model. The formula has an answer there; whether the trained weights can use it, see below."
        ).format(longest=longest)
    else:
        said += " " + _("All distances are as before: what differs, the heads read from the places as such.")
    return [said]


def _swapped(scene: Scene) -> None:
    trace = scene.trace
    words = order.words(trace)
    with _row():
        first = min(_number(_("Swap word"), "pos_first", 1, 1, 99), len(words)) - 1
        second = min(_number(_("with word"), "pos_second", 3, 1, 99), len(words)) - 1
        on = _choice(_("Positions"), "pos_swap", ("off", "on")) == "on"
    st.text("   ".join(numbered([word.text for word in words], 1)))
    if first == second:
        st.info(_("Choose two different words: their numbers stand before them."))
        return
    change = NEUTRAL if on else OFF
    text, places = order.swap(trace, first, second)
    try:
        swapped = scene.of(text, trace.translation or None, change)
    except TextError as error:
        st.info(view.plain(view.complain(error, _("swapped"))))
        return
    if not order.same_pieces(trace, swapped, places):
        said = _('"{text}" is cut into other pieces, so its map has no partner: swap two other words.')
        st.info(view.plain(said.format(text=text)))
        return
    st.text(_("swapped: {text}").format(text=text))
    before, after = scene.again(change, True), order.put_back(swapped, places)
    # What the model writes by itself is asked for below, after the picture.
    act.show(Act(before, after, free=after), scene.here, "swap")
    st.caption(_("After: the swapped sentence, its rows and columns put back into the old order."))
    kind = scene.here.kind
    most = float(abs(after.weights(kind) - before.weights(kind)).max())
    said = _("Largest difference in all layers and heads of the {kind}: {most}.")
    told = [said.format(kind=kind_name(kind), most=_distance(most))]
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
    with mine:
        st.markdown("**" + _("Translations, positions {way}").format(way="on" if on else "off") + "**")
        for name, sentence in ((_("as typed"), trace.text), (_("swapped"), text)):
            free = scene.of(sentence, None, change).translation
            st.text(_("{name}: {text}").format(name=name, text=free))


def _distance(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}" if value < 0.001 else f"{value:.3f}"


def _twins(scene: Scene) -> None:
    trace, here = scene.trace, scene.here
    pairs = order.twins(trace, here.kind)
    if not pairs:
        language = _("English") if side(here.kind, "query") == "source" else _("French")
        said = _("No piece stands twice in the {language} sentence. Type one that has twins, or take this:")
        st.info(view.plain(said.format(language=language)))
        french = None if here.kind == "encoder" else TWINS_FRENCH
        note = _("with the French: {text}").format(text=french) if french else ""
        links("twins_example", [Place(TWINS, note, {"text": TWINS, "target": french})])
        return
    number = 1
    if len(pairs) > 1:
        chosen = _number(_("Pair 1 to {pairs}").format(pairs=len(pairs)), "pos_twin", 1, 1, 99)
        number = min(chosen, len(pairs))
    pair = pairs[number - 1]
    names = [numbered(trace.axes(here.kind)[0], 1)[index] for index in pair]
    st.markdown(
        view.plain(
            _("Two rows of the {kind} are called {piece}. Are they equal, similar or different?").format(
                kind=kind_name(here.kind), piece=trace.axes(here.kind)[0][pair[0]]
            )
        )
    )
    palette = view.palette()
    ways = {_("positions off"): scene.again(OFF, True), _("positions on"): trace}
    apart = {name: order.apart(each, here.kind, pair) for name, each in ways.items()}
    crowded = len(trace.axes(here.kind)[1]) > CROWDED
    places = [st.container(), st.container()] if crowded else st.columns(2, gap="large")
    for column, (name, each) in zip(places, ways.items(), strict=True):
        with column:
            picture = here.picture(each)
            most = float(apart[name].max())
            st.markdown(f"**{name}** · {picture.name()}")
            rows, allowed = picture.weights[list(pair)], picture.allowed[list(pair)]
            chart(
                twin_rows(rows, allowed, each.axes(here.kind)[1], names, palette),
                f"twin_rows_{each.change.positions}",
                _("The two rows, {name}").format(name=name),
            )
            st.caption(_("How far the two rows are apart, at their worst cell, in every layer and head:"))
            chart(
                twin_grid(apart[name], here.layer, None if here.mean else here.head, palette),
                f"twin_grid_{each.change.positions}",
                _("Largest difference between the two rows in every layer and head, {name}").format(
                    name=name
                ),
                _choose_head,
            )
            said = _("Largest difference in all layers and heads: {most}.").format(most=_distance(most))
            if most == 0:
                said = _("Equal to the last digit, in every layer and head.")
            elif most <= ROUNDING:
                said = _("Equal but for rounding.") + " " + said
            st.markdown(f"**{said}**")
    if here.kind != "encoder":
        st.info(
            _("Here twins differ even without positions: the later one has more to read. That is the mask.")
        )
    with st.expander(_("Why?")):
        st.markdown(prose("positions")["Twins"])


def _choose_head(places: list[list[int]]) -> None:
    layer, head = places[0]
    view.place(layer=layer + 1, head=head + 1, mean=False)


# --- what is added ----------------------------------------------------------------------------------------


def _sum(scene: Scene, _bar: Any) -> None:
    trace, here = scene.trace, scene.here
    source = side(here.kind, "query") == "source"
    embedding = trace.source_embedding if source else trace.target_embedding
    pieces = trace.axes(here.kind)[0]
    chosen = min(here.row, len(pieces) - 1)
    width = embedding.sum.shape[1]
    palette, names = view.palette(), numbered(pieces)
    parts = {
        _("Embedding × √{width} (= {factor:.4g})").format(
            width=width, factor=math.sqrt(width)
        ): embedding.pieces,
        _("+ position"): embedding.positions,
        _("= what layer 1 reads"): embedding.sum,
    }
    limit = max(float(abs(part).max()) for part in parts.values())
    for number, (column, (title, part)) in enumerate(zip(st.columns(3), parts.items(), strict=True)):
        with column:
            st.markdown(f"**{title}**")
            chart(dimension_map(part, limit, palette, chosen, names), f"sum_{number}", title)
    said = _(
        "{language} pieces, one a row, after their position. Blue is above 0, red below; all three maps share"
        " one scale, −{limit:.1f} to {limit:.1f}."
    )
    language = _("English") if source else _("French")
    st.caption(view.plain(said.format(language=language, limit=limit)))
    if len(pieces) > READABLE:
        said = _("{shown} of {all} pieces are shown: drag a map to see the others.")
        st.caption(said.format(shown=READABLE, all=len(pieces)))
    bars, words = st.columns([3, 2], gap="large")
    with bars:
        title = _("How long each part is")
        st.markdown(f"**{title}**")
        chart(norm_bars(embedding, pieces, palette, chosen), "norms", title)
        mean = float(order.shares(embedding)[:, 1].mean())
        said = _("The position brings {share} of the sum here, on average over the pieces.")
        st.caption(view.plain(said.format(share=percent(mean))))
    words.markdown(prose("positions")["Sum"])
    words.markdown(prose("positions")["Share"])


# --- the encoding -----------------------------------------------------------------------------------------


def _encoding(scene: Scene, bar: Any) -> None:
    width = scene.trace.source_embedding.sum.shape[1]
    palette = view.palette()
    with bar:
        picture = _choice(_("Picture"), "pos_picture", PICTURES, bare=True)
    with _row():
        last = _choice(_("Positions"), "pos_count", LENGTHS)
        at = min(_number(_("Position"), "pos_at", 20, 0, MOST - 1), last - 1)
    encoding = cache.encoding(last, width)
    if picture == "map":
        said = _("Encoding of positions 0 to {last}, {width} dimensions").format(last=last - 1, width=width)
        figure = dimension_map(encoding, 1.0, palette, at)
    elif picture == "curves":
        dimensions = st.multiselect(
            _("Dimensions, up to 6"),
            range(width),
            default=[step * width // 8 for step in (0, 1, 2, 4)],
            max_selections=6,
            key="pos_dims",
            bind="query-params",
        )
        said = _("The chosen dimensions over positions 0 to {last}").format(last=last - 1)
        wavelengths = 2 * math.pi / cache.turns(width)
        figure = curves(encoding, sorted(dimensions), wavelengths, at, palette)
    elif picture == "vector":
        said = _("The vector of position {at}: {width} numbers").format(at=at, width=width)
        figure = vector(encoding, at, palette)
    else:
        said = _("Dot product of position {at} with positions 0 to {last}").format(at=at, last=last - 1)
        figure = products(encoding, at, palette)
    chart(figure, f"encoding_{picture}", said)
    st.caption(said + ".")
    words, formula = st.columns(2, gap="large")
    words.markdown(prose("positions")[picture])
    formula.markdown(prose("positions")["Formula"])


# --- the rotation -----------------------------------------------------------------------------------------


def _rotation(scene: Scene, _bar: Any) -> None:
    width = scene.trace.source_embedding.sum.shape[1]
    encoding, turns = cache.encoding(MOST, width), cache.turns(width)
    picture, words = st.columns(2, gap="large")
    with words:
        offset = _slider(_("Offset k"), "pos_k", 5, 0, FARTHEST)
        pair = _slider(_("Pair of dimensions i"), "pos_pair", width // 32, 0, width // 2 - 1)
        at = _number(_("Position p"), "pos_from", 2, 0, MOST - 1 - FARTHEST)
    angle = offset * float(turns[pair])
    with picture:
        said = _("Position {at} and position {to}, in dimensions {even} and {odd}").format(
            at=at, to=at + offset, even=2 * pair, odd=2 * pair + 1
        )
        chart(rotation(encoding, pair, at, offset, angle, view.palette()), "rotation", said)
        st.caption(said + ".")
    with words:
        st.markdown(_("**Angle:** k · ω = {k} · {turn:.6f} = {angle:.4f} radians = {degrees:.1f}°").format(
            k=offset, turn=float(turns[pair]), angle=angle, degrees=math.degrees(angle)
        ))  # fmt: skip
        st.latex(_matrix(encoding, pair, at, offset))
        here = order.turned_apart(encoding, offset, [pair])
        all_ = order.turned_apart(encoding, offset, range(width // 2))
        said = _(
            "Check, over all positions below {most}: largest difference {here} in this pair,"
            " {all} in all {pairs} pairs. The same matrix serves every p."
        )
        st.info(
            view.plain(
                said.format(most=MOST - offset, here=_distance(here), all=_distance(all_), pairs=width // 2)
            )
        )
    left, right = st.columns(2, gap="large")
    left.markdown(prose("positions")["Rotation"])
    right.markdown(prose("positions")["Formula"])


def _slider(label: str, key: str, first: int, least: int, most: int) -> int:
    return int(st.slider(label, least, most, first, key=key, bind="query-params"))


def _matrix(encoding: Any, pair: int, at: int, offset: int) -> str:
    """The rotation of one pair with its numbers, in LaTeX."""
    (a, b), (c, d) = (order.turn(encoding, pair, offset).round(4) + 0.0).tolist()  # + 0.0: no -0
    before, after = (encoding[place, 2 * pair : 2 * pair + 2].tolist() for place in (at, at + offset))
    column = r"\begin{{pmatrix}} {:.4f} \\ {:.4f} \end{{pmatrix}}"
    matrix = rf"\begin{{pmatrix}} {a:.4f} & {b:.4f} \\ {c:.4f} & {d:.4f} \end{{pmatrix}}"
    rows = (
        rf"R_{{{offset}}} &= {matrix}",
        rf"PE({at}) &= {column.format(*before)}",
        rf"PE({at + offset}) &= {column.format(*after)} = R_{{{offset}}} \, PE({at})",
    )
    return r"\begin{aligned}" + r" \\[1.4em] ".join(rows) + r"\end{aligned}"
