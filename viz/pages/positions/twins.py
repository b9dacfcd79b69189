"""A piece that stands twice: without positions its two rows are one."""

import streamlit as st

from model.trace import asks
from viz import order, view
from viz.chart import chart
from viz.component import Place, links
from viz.figures.positions import numbered, parts, twin_grid, twin_rows
from viz.pages.positions.controls import MOST, distance, number
from viz.pages.positions.switched import OFF
from viz.reading import kind_name, language
from viz.text import _, prose
from viz.view import Scene

TWINS = "The big dog saw a big cat."
TWINS_FRENCH = "Le gros chien a vu un gros chat."
ROUNDING = 1e-6  # two rows of one matrix product may be summed in another order


def draw(scene: Scene) -> None:
    trace, here = scene.trace, scene.here
    pairs = order.twins(trace, here.kind)
    if not pairs:
        said = _("No piece stands twice in the {language} sentence. Type one that has twins, or take this:")
        st.info(view.plain(said.format(language=language(trace.languages, asks(here.kind)))))
        french = TWINS_FRENCH if "cross" in trace.kinds and here.kind != "encoder" else None
        note = _("with the French: {text}").format(text=french) if french else ""
        links("twins_example", [Place(TWINS, note, {"text": TWINS, "target": french})])
        return
    which = 1
    if len(pairs) > 1:
        chosen = number(_("Pair 1 to {pairs}").format(pairs=len(pairs)), "pos_twin", 1, 1, MOST)
        which = min(chosen, len(pairs))
        if chosen > which:
            st.caption(_("There is no pair {asked} here; the last one is shown.").format(asked=chosen))
    pair = pairs[which - 1]
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
    for column, (name, each) in zip(st.columns(2, gap="large"), ways.items(), strict=True):
        with column:
            picture = here.picture(each)
            most = float(apart[name].max())
            st.markdown(f"**{name}** · {picture.name()}")
            rows, allowed = picture.weights[list(pair)], picture.allowed[list(pair)]
            keys = each.axes(here.kind)[1]
            for part in parts(len(keys)):
                chart(
                    twin_rows(rows[:, part], allowed[:, part], keys[part], names, palette),
                    f"twin_rows_{each.change.positions}_{part.start}",
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
            said = _("Largest difference in all layers and heads: {most}.").format(most=distance(most))
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
