"""What enters the first layer: embedding, position, and their sum."""

import math

import streamlit as st

from model.trace import asks
from viz import order, view
from viz.chart import chart
from viz.figures.cells import READABLE
from viz.figures.positions import dimension_map, norm_bars, numbered
from viz.reading import language, percent
from viz.text import _, prose
from viz.view import Scene


def draw(scene: Scene) -> None:
    trace, here = scene.trace, scene.here
    side = asks(here.kind)
    embedding = trace.embedding(side)
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
    for place, (column, (title, part)) in enumerate(zip(st.columns(3), parts.items(), strict=True)):
        with column:
            st.markdown(f"**{title}**")
            chart(dimension_map(part, limit, palette, chosen, names), f"sum_{place}", title)
    said = _(
        "{language} pieces, one a row, after their position. Blue is above 0, red below; all three maps share"
        " one scale, −{limit:.1f} to {limit:.1f}."
    )
    st.caption(view.plain(said.format(language=language(trace.languages, side), limit=limit)))
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
