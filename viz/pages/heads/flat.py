"""The uniform test: the chosen head reads all allowed keys alike. What moves?"""

import numpy as np
import streamlit as st

from model.trace import Change
from viz import act, cache, roles, view
from viz.chart import chart
from viz.figures.heads import ranked
from viz.pages.heads.place import chosen, go_to
from viz.reading import loss, percent
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    here, head, survey = scene.here, chosen(scene.here), cache.surveyed(scene.here.model)
    st.markdown(prose("heads")["Uniform"])
    played = act.play(scene, Change(uniform=frozenset({head})))
    gained = loss(played.after) - loss(played.before)
    found = cache.costs(scene.here.model, scene.trace.text, scene.target, "uniform")
    every = np.concatenate([of.ravel() for of in found.values()])
    middle = float(np.median(every))
    mine = found[head.kind][head.layer, head.head]
    rank = int((every > mine).sum()) + 1
    said = _(
        "With an even **{head}** the loss on this translation goes from {before:.3f} to {after:.3f} "
        "(**{gained:+.3f}**). Of {all} heads, it is number {rank} by what this costs; the median head costs "
        "{middle:+.3f}."
    )
    st.markdown(
        said.format(
            head=roles.said(head),
            before=loss(played.before),
            after=loss(played.after),
            gained=gained,
            all=every.size,
            rank=rank,
            middle=middle,
        )
    )
    same = sum(
        a[0].piece == b[0].piece
        for a, b in zip(played.before.candidates, played.after.candidates, strict=True)
    )
    st.markdown(
        _("The likeliest next piece stays the same in {same} of {all} rows.").format(
            same=same, all=len(played.before.candidates)
        )
    )
    act.show(played, here)
    act.consequences(played, scene)
    left, right = st.columns([3, 2], gap="large")
    with left:
        title = _("Each head made even, one at a time: what the loss of this sentence gains")
        st.markdown(f"**{title}**")
        chart(ranked(found, head, view.palette()), "heads_ranked", title, go_to)
        small = float((abs(every) < 0.05).mean())
        st.caption(
            _("{share} of the heads move the loss by less than 0.05. Click a bar to try its head.").format(
                share=percent(small)
            )
        )
    with right:
        if survey:
            one = roles.of(survey, head)
            said = _(
                "On {count} validation sentences: made even, this head costs {uniform:+.4f} (± "
                "{error:.4f}); removed, {removed:+.4f}. Over all heads, made even: median {middle:+.4f}, "
                "largest {most:+.4f}."
            )
            all_of = [each["uniform"] for each in survey["heads"]]
            st.markdown(
                said.format(
                    count=survey["sentences"],
                    uniform=one["uniform"],
                    error=one["uniform_error"],
                    removed=one["removed"],
                    middle=float(np.median(all_of)),
                    most=max(all_of),
                )
            )
        st.markdown(prose("heads")["Uniform, read"])
