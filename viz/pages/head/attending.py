"""The stages inside the head: from what enters to the mixed values."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from model.trace import asked, asks
from viz import cache, steps, view
from viz.chart import chart, choose_cell
from viz.figures import Look, attention_map, signed_map
from viz.figures.measures import Row, row_bars
from viz.figures.stages import (
    Band,
    Source,
    bands,
    largest,
    masked_scores,
    matrix,
    sources,
)
from viz.pages.head.stand import BESIDE, Walk, beside, number_said, rows_said, scale_said
from viz.reading import aloud, facts
from viz.text import _
from viz.theme import escape


def enters(walk: Walk) -> None:
    """What the attention reads: in layer 1 the embedding and its parts, else the layer below."""
    trace, here = walk.scene.trace, walk.here
    entering, read = trace.entering(here.kind, here.layer), trace.read(here.kind, here.layer)
    if here.kind == "cross":
        limit = largest(entering, read)
        walk.bands(
            walk.asking(
                _("x: {language}, after masked self-attention").format(language=walk.language("target")),
                entering,
                limit,
            ),
            walk.asked(
                _("z: {language}, the encoder's last layer").format(language=walk.language("source")),
                read,
                limit,
            ),
        )
    elif here.layer:
        below = _("x: what layer {below} handed on").format(below=here.layer)
        walk.bands(walk.asking(below, entering, largest(entering)))
    else:
        embedding = trace.embedding(asks(here.kind))
        parts = {
            _("embedding × √d_model"): embedding.pieces,
            _("+ position"): embedding.positions,
            _("= x, what enters"): embedding.sum,
        }
        limit = largest(*parts.values())
        walk.bands(*(walk.asking(title, numbers, limit) for title, numbers in parts.items()))


def qkv(walk: Walk) -> None:
    """One input, three matrices, three heatmaps; the matrices on demand."""
    here = walk.here
    chart(sources(_boxes(walk), walk.palette), "head_sources", _("Where q, k and v come from"))
    q, k, v = walk.of("q"), walk.of("k"), walk.of("v")
    limit = largest(q, k, v)
    parts = (walk.asking("q", q, limit), walk.asked("k", k, limit), walk.asked("v", v, limit))
    for column, part in zip(st.columns(3), parts, strict=True):
        with column:
            chart(bands([part], walk.palette), f"head_{part.title}", part.title)
    scale_said(limit)
    rows_said(max(len(q), len(k)))
    apart = _("How far apart they are (mean difference of two numbers): k and v {kv:.4f}")
    said = apart.format(kv=abs(k - v).mean())
    if here.kind != "cross":
        said += ", " + _("q and k {qk:.4f}, q and v {qv:.4f}").format(
            qk=abs(q - k).mean(), qv=abs(q - v).mean()
        )
    st.markdown(said + ".")
    if "model" in cache.skills(here.model) and st.toggle(
        _("Show the three matrices"), key="head_w", bind="query-params"
    ):
        learned = cache.projections(here.model, here.kind, here.layer, here.head)
        matrices = {"W_Q": learned.w_q, "W_K": learned.w_k, "W_V": learned.w_v}
        limit = largest(*matrices.values())
        for column, (name, numbers) in zip(st.columns(3), matrices.items(), strict=True):
            with column:
                st.markdown(f"**{view.plain(name)}**")
                chart(matrix(numbers.T, name, limit, walk.palette), f"head_{name}", name)
        said = _(
            "Each matrix lies on its side: a row is one of the {d} dimensions of this head, "
            "a column one of the {D} dimensions of x."
        )
        st.caption(said.format(d=learned.w_q.shape[1], D=learned.w_q.shape[0]))
        scale_said(limit)


def _boxes(walk: Walk) -> list[Source]:
    """Where q, k and v come from, as the figure tells it."""
    palette, layer = walk.palette, walk.here.layer
    source, target = walk.language("source"), walk.language("target")
    below = _("embedding + position") if layer == 0 else _("from layer {below}").format(below=layer)
    if walk.here.kind == "encoder":
        return [_box((_("X: {language}").format(language=source), below), palette.source, "qkv")]
    if walk.here.kind == "decoder":
        lines = (_("X: {language}").format(language=target), _("so far"), below)
        return [_box(lines, palette.target, "qkv")]
    asks = _("x: {language}, layer {n}").format(language=target, n=layer + 1)
    asked = _("z: {language}").format(language=source)
    return [
        _box((asks, _("after masked self-"), _("attention, Add & Norm")), palette.target, "q"),
        _box((asked, _("the encoder's"), _("last layer")), palette.source, "kv"),
    ]


def _box(lines: Sequence[str], colour: str, makes: str) -> Source:
    return Source("<br>".join(map(escape, lines)), colour, makes)


def dot(walk: Walk) -> None:
    """All dot products; the chosen one written out, and the other way round."""
    dots, q, k = walk.dots(), walk.of("q")[walk.query], walk.of("k")[walk.key]
    large, small = beside(walk, [3, 2])
    with large:
        figure = signed_map(
            walk.picture, dots, largest(dots), walk.query, walk.key, Look(walk.palette, walk.here.values)
        )
        chart(figure, "head_dots", _("Dot products of every query with every key"), choose_cell)
    query, key = walk.queries[walk.query], walk.keys[walk.key]
    with small:
        st.markdown("#### q · k = " + number_said(dots[walk.query, walk.key]))
        said = _('"{query}" asks "{key}". Before the scale. Click a cell to choose another pair.')
        st.markdown(view.plain(said.format(query=query, key=key)))
        if walk.here.kind != "cross":
            back = dots[walk.key, walk.query]
            st.markdown(
                view.plain(
                    _('The other way round, "{key}" asks "{query}": {back}.').format(
                        key=key, query=query, back=number_said(back)
                    )
                )
            )
            if walk.key == walk.query:
                st.markdown(_("Here a piece asks itself; choose two different ones to compare both ways."))
            else:
                st.markdown(_("They differ: a score is no similarity, which would be the same both ways."))
        scale_said(largest(dots))
    both = largest(q, k)
    colours = (
        walk.palette.token(asks(walk.here.kind)),
        walk.palette.token(asked(walk.here.kind)),
    )
    product = q * k
    walk.bands(
        Band(
            _('q of "{piece}"').format(piece=escape(query)),
            q[None],
            ["q"],
            colours[0],
            both,
            values=walk.here.values,
        ),
        Band(
            _('k of "{piece}"').format(piece=escape(key)),
            k[None],
            ["k"],
            colours[1],
            both,
            values=walk.here.values,
        ),
        Band(
            _("q times k"),
            product[None],
            ["q·k"],
            walk.palette.text,
            largest(product),
            values=walk.here.values,
        ),
    )
    with st.expander(_("The sum written out"), expanded=True):
        st.markdown(view.plain(steps.written(q, k) + " = " + number_said(dots[walk.query, walk.key])))


def scale(walk: Walk) -> None:
    """Before and after the division, on one scale."""
    dots, scores = walk.dots(), walk.of("scores")
    root, limit = steps.factor(walk.scene.trace, walk.here.kind), largest(dots)
    long = len(walk.keys) > BESIDE
    look = Look(walk.palette, walk.here.values, narrow=not long)
    figures = {
        _("Before: q · k"): (dots, look),
        _("After: divided by √d_k"): (scores, replace(look, rows=long)),
    }
    for column, (title, (numbers, how)) in zip(beside(walk, [5, 4]), figures.items(), strict=True):
        with column:
            st.markdown(f"**{title}**")
            chart(
                signed_map(walk.picture, numbers, limit, walk.query, walk.key, how),
                f"head_{title}",
                title,
                choose_cell,
            )
            st.caption(_("Spread (standard deviation): {spread:.4f}").format(spread=float(numbers.std())))
    before, after = (number_said(each[walk.query, walk.key]) for each in (dots, scores))
    st.markdown(f"#### {before} / √{walk.of('q').shape[1]} = {before} / {root:.4f} = {after}")
    scale_said(limit)


def mask(walk: Walk) -> None:
    """The scores that softmax will see, and those that it will not."""
    scores, allowed = walk.of("scores"), walk.picture.allowed
    figure = masked_scores(walk.picture, scores, walk.query, walk.key, Look(walk.palette, walk.here.values))
    chart(figure, "head_masked", _("Scores with the blocked cells hatched"), choose_cell)
    said = _(
        "The framed row may look at {open} of {all} keys; in the whole map {shut} of {cells} cells are "
        "blocked."
    )
    st.markdown(
        said.format(
            open=int(allowed[walk.query].sum()),
            all=allowed.shape[1],
            shut=int((~allowed).sum()),
            cells=allowed.size,
        )
    )
    scale_said(largest(scores))


def softmax(walk: Walk) -> None:
    """The map of weights, and the framed row as bars, one cell worked out."""
    picture, scores, weights = walk.picture, walk.of("scores"), walk.of("weights")
    large, small = beside(walk, [1, 1])
    with large:
        figure = attention_map(picture, walk.query, walk.key, Look(walk.palette, walk.here.values))
        chart(figure, "head_weights", aloud(picture, walk.query, walk.key), choose_cell)
    with small:
        row = weights[walk.query]
        st.markdown(view.plain(_('The framed row, "{piece}"').format(piece=walk.queries[walk.query])))
        colour = walk.palette.token(asked(walk.here.kind))
        figure = row_bars([Row(_("weight"), row)], walk.keys, colour, walk.palette, walk.key)
        chart(figure, "head_row", _("The weights of the framed row"))
    allowed = picture.allowed[walk.query]
    if allowed[walk.key]:
        powers = np.exp(scores[walk.query].astype(float)) * allowed
        said = _(
            "e^{score} = {power:.4f}; the row's {count} allowed keys together {sum:.4f}; {power:.4f} / "
            "{sum:.4f} = **{weight:.4f}**"
        )
        st.markdown(
            said.format(
                score=number_said(scores[walk.query, walk.key]).strip(),
                power=powers[walk.key],
                count=int(allowed.sum()),
                sum=powers.sum(),
                weight=weights[walk.query, walk.key],
            )
        )
    st.markdown(view.plain(aloud(picture, walk.query, walk.key)))
    said = _("Entropy of the row: {bits:.4f} bits, of at most {most:.4f}.")
    most = float(np.log2(max(allowed.sum(), 1)))
    st.markdown(said.format(bits=float(steps.bits(row)), most=most))
    st.caption(view.plain(facts(picture)))


def mix(walk: Walk) -> None:
    """The values, each times its weight, and their sum."""
    weights, v, output = walk.of("weights")[walk.query], walk.of("v"), walk.of("output")[walk.query]
    parts = weights[:, None] * v
    names = [f"{weight:.2f} × {key}" for weight, key in zip(weights, walk.keys, strict=True)]
    limit = largest(v, output)
    colour = walk.palette.token(asked(walk.here.kind))
    walk.bands(
        walk.asked("v", v, limit),
        Band(_("weight × v"), parts, names, colour, limit, walk.key),
        Band(
            _('their sum: the output for "{piece}"').format(piece=escape(walk.queries[walk.query])),
            output[None],
            [walk.queries[walk.query]],
            walk.palette.token(asks(walk.here.kind)),
            limit,
        ),
    )
    with st.expander(_("The sum of dimension 1 written out")):
        st.markdown(view.plain(steps.written(weights, v[:, 0]) + " = " + number_said(output[0])))
