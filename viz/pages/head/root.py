"""Why divide by the root of d_k: on random vectors, on the trained head, and beside additive attention."""

import numpy as np
import streamlit as st

from model.trace import Change
from viz import act, cache, steps, view
from viz.chart import chart
from viz.figures.measures import Line, Row, curves, row_bars, time_bars
from viz.pages.head.place import choose
from viz.text import _, prose
from viz.view import Scene

WIDTHS = tuple(2**power for power in range(1, 11))  # d_k of the measured curves
SEED = 0
SHOWN = ("random", "trained", "additive")


def draw(scene: Scene) -> None:
    """Only the chosen experiment is run."""
    shown = dict(zip(SHOWN, (_random, _trained, _additive), strict=True))
    chosen = st.segmented_control(
        _("Scale"),
        SHOWN,
        default="random",
        required=True,
        key="head_why",
        bind="query-params",
        label_visibility="collapsed",
    )
    st.markdown(prose("head")[chosen or "random"])
    shown[chosen or "random"](scene)


def _width(scene: Scene) -> tuple[int, dict[float, str]]:
    """The slider of d_k, buttons at its named marks, and these marks."""
    own = steps.sizes(scene.trace, scene.here.kind).width
    # Another model's head may be as wide as the paper's: the mark then has both names.
    marks = {own: _("this model's head")}
    for width, name in (("d", _("the paper's head")), ("D", _("d_model, often mistaken for d_k"))):
        mark = steps.PAPER[width]
        marks[mark] = f"{marks[mark]}, {name}" if mark in marks else name
    # Equal steps of the slider are equal ratios: the marks would crowd at the left of an even scale.
    offered = sorted({*WIDTHS, *(3 * width // 2 for width in WIDTHS[:-1]), *marks})
    view.check("head_dk", offered)
    d_k = st.select_slider("d_k", offered, own, key="head_dk", bind="query-params")
    with st.container(horizontal=True, gap="small"):
        for mark, name in marks.items():
            st.button(
                f"{mark}: {view.plain(name)}",
                key=f"head_mark{mark}",
                type="tertiary",
                on_click=view.place,
                kwargs={"head_dk": mark},
            )
    return d_k, {float(mark): f"{mark} {name.split(',')[0]}" for mark, name in marks.items()}


def _random(scene: Scene) -> None:
    d_k, marks = _width(scene)
    palette, here = view.palette(), cache.random_head(d_k, SEED)
    x = sorted({*WIDTHS, d_k})
    measured = [cache.random_head(width, SEED) for width in x]
    without, scaled = here.dots, here.dots / np.sqrt(d_k)
    keys = [str(number) for number in range(1, len(without) + 1)]
    left, right = st.columns(2)
    everything = np.ones(len(without), bool)
    for column, title, scores in (
        (left, _("Without the scale"), without),
        (right, _("With the scale"), scaled),
    ):
        with column:
            weights = steps.at_temperature(scores, everything, 1)
            st.markdown(f"**{title}**: " + _("softmax of 8 random keys"))
            chart(row_bars([Row(title, weights)], keys, palette.text, palette), f"head_random_{title}", title)
            said = _("Largest weight {most:.4f}; entropy {bits:.4f} of 3 bits; {alive} of 8 above 1 %.")
            st.caption(
                said.format(
                    most=weights.max(), bits=float(steps.bits(weights)), alive=int((weights > 0.01).sum())
                )
            )
    said = _(
        "Measured spread of q·k at d_k = {d}: **{spread:.4f}**; √{d} = {root:.4f}. After the division: "
        "{after:.4f}."
    )
    st.markdown(said.format(d=d_k, spread=here.spread, root=np.sqrt(d_k), after=here.spread / np.sqrt(d_k)))
    left, right = st.columns(2)
    with left:
        st.markdown("**" + _("Spread of q·k") + "**")
        lines = [
            Line(_("√d_k"), [float(np.sqrt(width)) for width in x], True, -4, True),
            Line(_("measured"), [each.spread for each in measured]),
        ]
        chart(
            curves(x, lines, palette, ("d_k", _("spread")), marks, d_k, True),
            "head_spread",
            _("Spread of q·k"),
        )
    with right:
        st.markdown("**" + _("Size of the softmax gradient") + "**")
        lines = [
            Line(_("with the scale"), [each.gradient_scaled for each in measured]),
            Line(_("without"), [each.gradient for each in measured], named_at=3),
        ]
        chart(
            curves(x, lines, palette, ("d_k", _("norm")), marks, d_k),
            "head_gradient",
            _("Size of the gradient"),
        )
    said = _(
        "Gradient at d_k = {d}: {raw:.4f} without the scale, {scaled:.4f} with it (norm of the softmax "
        "Jacobian by its input)."
    )
    st.markdown(said.format(d=d_k, raw=here.gradient, scaled=here.gradient_scaled))
    st.caption(
        _(
            "400 random queries with 8 keys each; entries independent, mean 0, variance 1; always the "
            "same draw."
        )
    )


def _trained(scene: Scene) -> None:
    choose(scene, key=False)
    played = act.play(scene, Change(scale=False))
    act.show(played, scene.here)
    query, _key = scene.here.cell(scene.trace)
    rows = {
        _("before"): scene.here.picture(played.before).weights,
        _("after"): scene.here.picture(played.after).weights,
    }
    said = _(
        "{when}: entropy **{bits:.4f}** bits in the framed row, {mean:.4f} on average over rows; largest "
        "weight **{most:.4f}**, on average {often:.4f}."
    )
    for when, weights in rows.items():
        st.markdown(
            said.format(
                when=when.capitalize(),
                bits=float(steps.bits(weights[query])),
                mean=float(steps.bits(weights).mean()),
                most=float(weights[query].max()),
                often=float(weights.max(axis=-1).mean()),
            )
        )
    with st.expander(_("What became of the translation")):
        act.consequences(played, scene)


def _additive(scene: Scene) -> None:
    d_k, _marks = _width(scene)
    if st.button(_("Time both on this machine"), key="head_time"):
        timing = cache.time_scores(d_k)
        names = (_("dot product"), _("additive"))
        times = [1e6 * timing.dot, 1e6 * timing.additive]
        chart(time_bars(names, times, view.palette()), "head_times", _("Time of both ways"))
        said = _(
            "All scores of {n} queries with {n} keys at d_k = {d}: additive takes {times:.0f} times as "
            "long here. Median of 15 runs each; projections left out."
        )
        st.markdown(said.format(n=timing.pieces, d=d_k, times=timing.additive / timing.dot))
    else:
        st.caption(_("Nothing is timed before you ask."))
