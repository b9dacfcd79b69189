"""What came before and after, and cards: images as words, which attention where, pooling, kernels."""

import numpy as np
import streamlit as st

from viz import view
from viz.chart import chart
from viz.figures import Look, attention_map
from viz.figures.why import Event, dated_line, mixing, patches, pooling
from viz.pages.why.controls import slider, wait_for_sentence
from viz.reading import Map, find, percent, roles
from viz.text import _, prose
from viz.view import Scene, choice

PARTS = ("line", "images", "uses", "pooling", "kernel")
IMAGES, PATCHES = (32, 64, 96, 224, 256, 384), (4, 8, 14, 16, 32)
KERNELS = (1, 3, 5, 7)


def draw(scene: Scene | None) -> None:
    part = choice(_("History"), "why_history", PARTS, bare=True)
    {"line": _line, "images": _images, "uses": _uses, "pooling": _pooling, "kernel": _kernel}[part](scene)


def _line(_scene: Scene | None) -> None:
    words = prose("why")
    st.markdown(words["history"])
    events = (
        Event(
            2014.67, _("additive attention"), _("September 2014: in recurrent translation (Bahdanau et al.)")
        ),
        Event(2015.63, _("dot products as scores"), _("August 2015: Luong et al., in recurrent translation")),
        Event(
            2016.07, _("intra-attention"), _("January 2016: within one sequence, in an LSTM (Cheng et al.)")
        ),
        Event(2016.43, _("… without recurrence"), _("June 2016: for pairs of sentences (Parikh et al.)")),
        Event(
            2017.19, _("self-attentive embedding"), _("March 2017: one sentence, a few views (Lin et al.)")
        ),
        Event(2017.45, _("Transformer"), _("June 2017: attention only (Vaswani et al.)"), here=True),
        Event(2018.45, _("GPT: the decoder alone"), _("June 2018: Radford et al.")),
        Event(2018.78, _("BERT: the encoder alone"), _("October 2018: Devlin et al.")),
    )
    left, right = st.columns(2, gap="large")
    with left:
        chart(dated_line(events, view.palette()), "why_line", _("A dated line from 2014 to 2018"))
    right.markdown(words["sources"])


def _images(_scene: Scene | None) -> None:
    left, right = st.columns(2, gap="large")
    with right:
        st.markdown(prose("why")["patches"])
        image = slider(_("Image, pixels a side"), "why_image", IMAGES, 224)
        patch = slider(_("Patch, pixels a side"), "why_patch", PATCHES, 16)
    if image % patch:
        st.info(_("{image} does not divide into patches of {patch}.").format(image=image, patch=patch))
        return
    side = image // patch
    tokens = side * side
    with left:
        chosen = tokens // 2 + side // 2 if side % 2 == 0 else tokens // 2
        title = _("An image as {count} tokens").format(count=tokens)
        chart(patches(side, min(chosen, tokens - 1), view.palette()), "why_patches", title)
    said = _(
        "{image} × {image} pixels in patches of {patch} × {patch}: {side} × {side} = **{tokens:,} tokens**, "
        "and {tokens:,} × {tokens:,} = **{weights:,} weights a head**, in each layer."
    )
    right.markdown(said.format(image=image, patch=patch, side=side, tokens=tokens, weights=tokens * tokens))


def _uses(_scene: Scene | None) -> None:
    st.markdown(prose("why")["applications"])
    yes, masked, no = _("yes"), _("masked"), "–"
    rows = (
        (_("translation (Transformer)"), yes, masked, yes),
        (_("summaries (BART, T5)"), yes, masked, yes),
        (_("speech to text (Whisper)"), yes, masked, yes),
        (_("objects in an image (DETR)"), yes, _("not masked: all at once"), yes),
        (_("text goes on (GPT)"), no, masked, no),
        (_("next purchase (SASRec)"), no, masked, no),
        (_("which kind of text, which name (BERT)"), yes, no, no),
        (_("what is in the image (ViT)"), yes, no, no),
    )
    titles = (
        _("application"),
        _("encoder self-attention"),
        _("decoder self-attention"),
        _("cross-attention"),
    )
    st.dataframe({title: [row[index] for row in rows] for index, title in enumerate(titles)}, hide_index=True)


def _pooling(_scene: Scene | None) -> None:
    st.markdown(prose("why")["pooling"])
    # Example words: not text of the interface.
    sentences = (("good", "food", "here"), ("we", "return"))
    chart(
        pooling(sentences, view.palette()), "why_pooling", _("Words pooled to sentences, these to a document")
    )


def _kernel(scene: Scene | None) -> None:
    st.markdown(prose("why")["kernel"])
    if scene is None:
        wait_for_sentence()
        return
    trace, palette = scene.trace, view.palette()
    role = roles()[1]  # looks one back
    best = find(trace, role)
    picture = Map(trace, best.kind, best.layer, best.head)
    names = trace.axes(best.kind)[0]
    left, right = st.columns(2, gap="large")
    with left:
        width = slider(_("Kernel, positions"), "why_kernel", KERNELS, 3)
        colour = palette.token("source" if best.kind == "encoder" else "target")
        chart(
            mixing(_fixed(len(names), width), names, colour, palette),
            "why_fixed",
            _("What a kernel looks at"),
        )
        st.caption(
            _(
                "A kernel: {width} offsets back from each row, the same in every sentence. (Drawn evenly.)"
            ).format(width=width)
        )
    with right:
        st.markdown(
            _("Head {head} of layer {layer}, {kind}").format(
                head=best.head + 1, layer=best.layer + 1, kind=best.kind
            )
        )
        look = Look(palette, False, narrow=True)
        chart(attention_map(picture, 0, 0, look), "why_previous", _("The head that looks one back most"))
        said = _("The head that {role} most on this sentence: {share} of its weight lies one back.")
        st.caption(view.plain(said.format(role=role.name, share=percent(best.score))))


def _fixed(count: int, width: int) -> np.ndarray:
    """(n, n): an even kernel over a position and those before it; at the start it has fewer to look at."""
    back = np.arange(count)[:, None] - np.arange(count)
    inside = (back >= 0) & (back < width)
    return (inside / width).astype(np.float32)
