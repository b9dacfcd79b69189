"""One attention head from tokens to output, a stage a screen, stepped forwards and backwards."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from viz import steps, view
from viz.pages.head import after, attending
from viz.pages.head.stand import Walk
from viz.reading import kind_name
from viz.text import _, prose
from viz.view import Scene

STAGES: dict[str, Callable[[Walk], None]] = {
    "input": attending.enters,
    "qkv": attending.qkv,
    "dot": attending.dot,
    "scale": attending.scale,
    "mask": attending.mask,
    "softmax": attending.softmax,
    "mix": attending.mix,
    "concat": after.concat,
    "output": after.output,
    "add": after.add,
    "feed": after.feed,
    "add again": after.add_again,
}


def draw(scene: Scene) -> None:
    """The chosen stage: its words, its picture, its shapes."""
    query, key = scene.here.cell(scene.trace)
    walk = Walk(scene, view.palette(), query, key)
    # A lecturer's clicker sends these two keys.
    step = view.stepped(_("Stage"), "head_stage", len(steps.STAGES), 1, ("PageUp", "PageDown"))
    stage = steps.STAGES[step - 1]
    sizes = steps.sizes(scene.trace, scene.here.kind)
    here, paper = sizes.shapes(stage, scene.here.kind)
    st.markdown(f"#### {step}. " + steps.stage_name(stage))
    words = prose("head")
    st.markdown(words.get(stage) or words.get(f"{stage} {scene.here.kind}") or "")
    STAGES[stage](walk)
    if stage != "softmax":  # whose caption says it at length
        st.caption(f"{kind_name(scene.here.kind).capitalize()}, {walk.picture.name()}.")
    for name, shapes in ((_("Shapes here"), here), (_("In the paper's base model"), paper)):
        st.markdown(f"**{name}:** {shapes}")
    with st.expander(_("The same in five steps")):
        st.markdown(words["five"])
    with st.expander(_("All sizes, beside the paper's")):
        st.dataframe(_sizes(sizes, scene.trace.weights(scene.here.kind).shape[0]), hide_index=True)


def _sizes(sizes: steps.Sizes, layers: int) -> pd.DataFrame:
    """The letters of the paper with this model's numbers and the base model's."""
    rows = [
        ("N", _("layers on each side"), layers, 6),
        ("d_model", _("numbers a piece"), sizes.model, 512),
        ("h", _("heads a layer"), sizes.heads, 8),
        ("d_k = d_v", _("width of one head: d_model / h"), sizes.width, 64),
        ("d_ff", _("hidden numbers of the feed-forward network"), sizes.hidden, 2048),
        ("n", _("queries here"), sizes.queries, None),
        ("m", _("keys here"), sizes.keys, None),
    ]
    return pd.DataFrame(
        {
            _("letter"): [row[0] for row in rows],
            _("what it counts"): [row[1] for row in rows],
            _("this model"): [row[2] for row in rows],
            _("the paper's base model"): pd.array([row[3] for row in rows], dtype="Int64"),
        }
    )
