"""Drawing the pieces by lot: temperature, top-k, top-p, and a seed that says which draw."""

import numpy as np
import streamlit as st

from viz import cache, tables, view
from viz.chart import chart
from viz.figures.measures import Row, row_bars
from viz.pages.decode import way
from viz.reading import percent
from viz.text import _, prose
from viz.view import Scene

DRAWS = 8
SHOWN = 10  # pieces whose probabilities are drawn


def draw(scene: Scene) -> None:
    """The chances of one step, and some translations drawn by them."""
    st.markdown(prose("decode")["sampling"])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        lot = way.lot()
        longest = scene.here.sizes.pieces
        view.check("dec_step", range(1, longest + 1))
        step = st.number_input(_("Step"), 1, longest, 1, key="dec_step", bind="query-params", width=130)
    drawn = lot.of(scene, DRAWS)
    traces = [way.traced(scene, ids) for ids in drawn]
    first = traces[0]
    at = min(step, len(first.target)) - 1
    _chances(scene.here.model, first.log_probs[at], lot)
    so_far = " ".join(first.target[: at + 1])
    said = _('Step {step} of the first draw, after "{so_far}"; drawn: "{piece}".')
    st.caption(view.plain(said.format(step=at + 1, so_far=so_far, piece=first.comes_out[at])))
    st.markdown("**" + _("{count} draws").format(count=DRAWS) + "**")
    seeds = range(lot.seed, lot.seed + DRAWS)
    greedy = cache.trace(scene.here.model, scene.trace.text)
    st.dataframe(tables.draws(seeds, traces, greedy), hide_index=True)
    st.button(
        _("Watch the first draw grow"),
        on_click=view.place,
        kwargs={"dec_tab": "grow", "dec_how": "sampling", "dec_step": 1},
    )


def _chances(model: str, log_probs: np.ndarray, lot: way.Lot) -> None:
    shares = cache.shares(log_probs, cache.Lot(lot.temperature, lot.top_k, lot.top_p))
    best = np.argsort(-log_probs, kind="stable")[:SHOWN].tolist()
    rows = [
        Row(_("the model's probability"), np.exp(log_probs[best])),
        Row(_("probability in the draw"), shares[best].astype(np.float32)),
    ]
    palette = view.palette()
    names = [cache.piece(model, id_) for id_ in best]
    chart(row_bars(rows, names, palette.target, palette), "dec_chances", _("Chances of the next piece"))
    said = _(
        "Outlined: the model's probability; filled: in the draw. {count:,} of {all:,} pieces can be drawn; "
        "these {shown} have {share} of the chances."
    )
    st.caption(
        said.format(
            count=int(np.count_nonzero(shares)),
            all=len(shares),
            shown=len(best),
            share=percent(float(shares[best].sum())),
        )
    )
