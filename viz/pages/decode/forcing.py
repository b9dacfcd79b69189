"""A teacher's French beside the model's own: the loss of each piece under both, and where they part."""

import streamlit as st

from model.trace import TextError, Trace
from viz import cache, tables, view
from viz.chart import chart
from viz.figures.decode import two_losses
from viz.reading import loss
from viz.text import _, prose, teacher
from viz.view import Scene


def draw(scene: Scene) -> None:
    """Both passes, piece by piece."""
    st.markdown(prose("decode")["forcing"])
    text = scene.trace.text
    typed = st.text_input(
        _("The teacher's French (empty: a right one, where this page has one)"),
        key="dec_teacher",
        bind="query-params",
    )
    given = (typed or "").strip() or (scene.trace.translation if scene.trace.forced else "")
    given = given or teacher(text)
    free = cache.trace(scene.here.model, text)
    if not given:
        st.info(_("Type a French sentence: the decoder will be fed it in place of its own."))
        return
    try:
        forced = cache.trace(scene.here.model, text, given)
    except TextError as error:
        st.info(view.plain(view.complain(error, _("French"))))
        return
    place = parting(forced, free)
    said = _(
        "Teacher: **{teacher}** loss {a:.3f}, log P {b:.3f}. On its own: **{own}** loss {c:.3f}, "
        "log P {d:.3f}."
    )
    st.markdown(
        said.format(
            teacher=view.plain(forced.translation),
            own=view.plain(free.translation or _("(nothing)")),
            a=loss(forced),
            b=forced.log_prob,
            c=loss(free),
            d=free.log_prob,
        )
    )
    losses = under(forced, free)
    chart(
        two_losses(forced, losses, place, view.palette()),
        "dec_losses",
        _("Loss of the teacher's pieces twice"),
    )
    if place is None:
        st.info(_("They never part: the teacher's French is what the model writes by itself."))
    else:
        said = _(
            'They part at step {step}: the teacher says "{teacher}", the model would say "{own}". '
            "Until then both have read the same, and their numbers are equal."
        )
        words = {"teacher": forced.comes_out[place], "own": free.comes_out[place]}
        st.markdown(view.plain(said.format(step=place + 1, **words)))
    st.dataframe(tables.two_runs(forced, free, losses), hide_index=True)
    st.caption(
        _(
            "Free running, the loss of the teacher's piece is what the model gives it at the same step after "
            "its own words. After the parting the steps no longer mean the same place of the sentence."
        )
    )


def parting(forced: Trace, free: Trace) -> int | None:
    """The first step at which another piece comes out; None where there is none."""
    a, b = (*forced.target_ids, -1), (*free.target_ids, -1)  # -1: to stop
    pairs = zip(a[1:], b[1:], strict=False)
    return next((step for step, (one, other) in enumerate(pairs) if one != other), None)


def under(forced: Trace, free: Trace) -> list[float | None]:
    """−log p of the teacher's piece at each step, after the model's own words; None beyond their end."""
    right = forced.out_ids
    steps = len(free.target)
    return [-float(free.log_probs[at, id_]) if at < steps else None for at, id_ in enumerate(right)]
