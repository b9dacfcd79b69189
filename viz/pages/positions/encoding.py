"""The encoding itself: a map, curves, one vector, dot products by distance."""

import math

import streamlit as st

from model.trace import asks
from viz import cache, view
from viz.chart import chart
from viz.figures.positions import curves, dimension_map, products, vector
from viz.pages.positions.controls import number, row
from viz.text import _, prose
from viz.view import Scene, choice

PICTURES = ("map", "curves", "vector", "distance")
LENGTHS = (64, 128, 256, 512)  # positions that the encoding is shown for
MOST = LENGTHS[-1]


def draw(scene: Scene) -> None:
    width = scene.trace.embedding(asks(scene.here.kind)).sum.shape[1]
    palette = view.palette()
    view.check("pos_dims", range(width))
    with row():
        picture = choice(_("Picture"), "pos_picture", PICTURES)
        last = choice(_("Positions"), "pos_count", LENGTHS)
        asked = number(_("Position"), "pos_at", 20, 0, MOST - 1)
    at = min(asked, last - 1)
    if asked > at:
        said = _("Only positions 0 to {last} are shown; the last one is marked.")
        st.caption(said.format(last=last - 1))
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
