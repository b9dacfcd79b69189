"""The stages after the head: all heads together, Add & Norm, feed-forward."""

import streamlit as st

from model.trace import Floats, asks
from viz import cache, steps
from viz.chart import chart
from viz.figures.stages import bands, largest, matrix, strips
from viz.pages.head.stand import Walk, number_said, rows_said, scale_said
from viz.reading import language, percent
from viz.text import _


def concat(walk: Walk) -> None:
    """The outputs of all heads of the layer as strips."""
    heads = walk.scene.trace.stages(walk.here.kind).output[walk.here.layer]
    colour = walk.palette.token(asks(walk.here.kind))
    figure = strips(heads, walk.queries, colour, walk.query, walk.here.head, walk.palette)
    chart(figure, "head_strips", _("The outputs of all heads, side by side"))
    count, _rows, width = heads.shape
    st.markdown(f"#### {count} × {width} = {count * width}")
    scale_said(largest(heads))
    rows_said(heads.shape[1])


def output(walk: Walk) -> None:
    """The strips times W_O; this head's part of W_O on demand."""
    trace, here = walk.scene.trace, walk.here
    joined = steps.joined(trace, here.kind, here.layer)
    update = trace.added(here.kind).update[here.layer]
    walk.bands(
        walk.asking(_("heads side by side"), joined, largest(joined)),
        walk.asking(_("× W_O + b_O: the update"), update, largest(update)),
    )
    if "model" in cache.skills(here.model) and st.toggle(
        _("Show this head's part of W_O"), key="head_wo", bind="query-params"
    ):
        learned = cache.projections(here.model, here.kind, here.layer, here.head).w_o
        limit = largest(learned)
        chart(matrix(learned, "W_O", limit, walk.palette), "head_W_O", "W_O")
        said = _(
            "The {d} rows of W_O that read this head; a column is one of the {D} dimensions of the update."
        )
        st.caption(said.format(d=learned.shape[0], D=learned.shape[1]))
        scale_said(limit)


def add(walk: Walk) -> None:
    """Add & Norm around the attention."""
    trace, here = walk.scene.trace, walk.here
    added = trace.added(here.kind)
    _added(walk, trace.entering(here.kind, here.layer), added.update[here.layer], added.out[here.layer])


def feed(walk: Walk) -> None:
    """The hidden row, how much of it is 0, and the update."""
    fed = walk.scene.trace.fed(walk.here.kind)
    hidden, update = fed.hidden[walk.here.layer], fed.update[walk.here.layer]
    trace = walk.scene.trace
    if walk.here.kind == "decoder" and "cross" in trace.kinds:
        said = _(
            "Between the last stage and this one the layer reads the {language}: choose cross to see it."
        )
        st.info(said.format(language=language(trace.languages, "source")))
    walk.bands(
        walk.asking(_("hidden row, after ReLU"), hidden, largest(hidden)),
    )
    share = _("Zeros after ReLU: **{row}** of the framed row, {all} of all rows.")
    st.markdown(
        share.format(
            row=percent(float((hidden[walk.query] == 0).mean())), all=percent(float((hidden == 0).mean()))
        )
    )
    chart(
        bands([walk.asking(_("narrow again: the update"), update, largest(update))], walk.palette),
        "head_fed",
        _("What the feed-forward network adds"),
    )
    scale_said(largest(update))
    rows_said(len(update))


def add_again(walk: Walk) -> None:
    """Add & Norm around the feed-forward network, and where its rows go."""
    trace, here = walk.scene.trace, walk.here
    fed = trace.fed(here.kind)
    both = here.kind != "encoder" and "cross" in trace.kinds
    entered = trace.added("cross" if both else here.kind).out[here.layer]
    _added(walk, entered, fed.update[here.layer], fed.out[here.layer])
    last = here.layer + 1 == len(fed.out)
    if last and here.kind == "encoder" and trace.target:
        st.markdown(
            _("This was the encoder's last layer: its rows, z, are read by every layer of the decoder.")
        )
    elif last:
        st.markdown(
            _("This was the last layer: each row now goes on to choose the next piece.")
            if here.kind != "encoder"
            else _("This was the last layer: each row now goes on to guess the piece that stands there.")
        )


def _added(walk: Walk, entered: Floats, update: Floats, out: Floats) -> None:
    total = entered + update
    limit = largest(entered, update, total, out)
    walk.bands(
        walk.asking(_("x: what entered"), entered, limit),
        walk.asking(_("+ the update"), update, limit),
        walk.asking(_("= their sum"), total, limit),
        walk.asking(_("normalised: what goes on"), out, limit),
    )
    row, after = total[walk.query], out[walk.query]
    said = _(
        "The framed row: mean {m}, spread {s} before the norm; mean {am}, spread {as_} "
        "after it, gain and bias included."
    )
    numbers = {"m": row.mean(), "s": row.std(), "am": after.mean(), "as_": after.std()}
    st.markdown(said.format(**{name: number_said(value) for name, value in numbers.items()}))
