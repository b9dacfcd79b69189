"""The paper's table 1: by formula, run on this machine, as a way through layers, for the typed sentence."""

import math
import time
from dataclasses import replace
from typing import Any

import streamlit as st

from viz import cache, view
from viz.chart import chart
from viz.figures import why as figures
from viz.figures.why import Growth, amounts, chain, growth, way
from viz.pages.why.controls import number, slider, toggle, wait_for_sentence
from viz.text import _, prose
from viz.view import Scene, choice

PARTS = ("formula", "run", "path", "sentence")
LENGTHS = tuple(2**power for power in range(4, 13))  # n
WIDTHS = (32, 64, 128, 256, 512, 1024)  # d
KERNELS = (2, 3, 5, 7, 9, 15, 31)  # k
WINDOWS = (2, 4, 8, 16, 32, 64, 128, 256)  # r
DRAWN = (4, 8, 12, 16, 20, 24)  # positions in the picture of ways
RUN_AT = (32, 64, 128, 256, 512, 1024, 2048)
WIDEST = 256  # d of what is run
SECONDS = 8.0  # after which no further run is begun
COLOURS = {"attention": 0, "recurrent": 1, "convolution": 2, "restricted": 3}


def draw(scene: Scene | None) -> None:
    part = choice(_("Cost"), "why_cost", PARTS, bare=True)
    {"formula": _formula, "run": _run, "path": _path, "sentence": _sentence}[part](scene)


def _names() -> dict[str, str]:
    return {
        "attention": _("self-attention"),
        "recurrent": _("recurrent"),
        "convolution": _("convolution"),
        "restricted": _("restricted"),
    }


def _sizes(length: bool = True) -> Any:
    """The sliders of table 1's letters, and of the recurrent cell."""
    columns = iter(st.columns(4 if length else 3, gap="medium"))
    n = 64
    if length:
        with next(columns):
            n = slider(_("n, positions"), "why_n", LENGTHS, 64)
    with next(columns):
        d = slider(_("d, width"), "why_d", WIDTHS, 512 if length else 128)
    with next(columns):
        k = slider(_("k, kernel"), "why_k", KERNELS, 3)
    with next(columns):
        r = slider(_("r, window"), "why_r", WINDOWS, 16)
    cell = choice(_("Recurrent cell"), "why_cell", tuple(cache.table1.CELLS))
    return cache.table1.Sizes(n, d, k, r, cell)


# --- by formula -------------------------------------------------------------------------------------------


def _formula(_scene: Scene | None) -> None:
    words = prose("why")
    st.markdown(words["formula"])
    of = _sizes()
    names = _names()
    formulas = {
        "attention": ("O(n²·d)", "O(1)", "O(1)"),
        "recurrent": ("O(n·d²)", "O(n)", "O(n)"),
        "convolution": ("O(k·n·d²)", "O(1)", "O(log_k n)"),
        "restricted": ("O(r·n·d)", "O(1)", "O(n/r)"),
    }
    layers = cache.table1.LAYERS
    st.dataframe(
        {
            _("layer"): [names[layer] for layer in layers],
            _("per layer"): [formulas[layer][0] for layer in layers],
            _("here"): [f"{cache.table1.term(layer, of):,}" for layer in layers],
            _("a real one multiplies"): [f"{cache.table1.multiplications(layer, of):,}" for layer in layers],
            _("one after another"): [
                f"{formulas[layer][1]}: {cache.table1.sequential(layer, of):,}" for layer in layers
            ],
            _("longest path"): [
                f"{formulas[layer][2]}: {cache.table1.path(layer, of):,}" for layer in layers
            ],
        },
        hide_index=True,
    )
    left, right = st.columns(2, gap="large")
    titles = (_("n, positions"), _("multiplications"))
    for column, title, count, marks, said in (
        (left, _("Table 1's terms"), cache.table1.term, [(of.d, f"n = d = {of.d}")], words["terms"]),
        (right, _("Real layers"), cache.table1.multiplications, _crossing(of), words["real"]),
    ):
        lines = [
            Growth(names[layer], [float(count(layer, replace(of, n=n))) for n in LENGTHS], COLOURS[layer])
            for layer in layers
        ]
        with column:
            st.markdown(f"**{title}**, d = {of.d}")
            chart(growth(LENGTHS, lines, view.palette(), titles, "", marks), f"why_{count.__name__}", title)
            st.markdown(said)
    right.markdown("**" + _crossed(of) + "**")
    st.markdown(words["parallel"])


def _crossing(of: Any) -> list[tuple[float, str]]:
    at = cache.table1.crossover(of)
    return [(float(at), f"n = {at}")] if at else []


def _crossed(of: Any) -> str:
    """Where the two lines of real layers cross, in words."""
    at = cache.table1.crossover(of)
    cell = of.cell.upper()
    if at is None:
        return _("Here: with a plain cell the two never cross; attention multiplies more at every n.")
    return _("Here: attention multiplies less than the {cell} up to n = {at}.").format(cell=cell, at=at)


# --- run --------------------------------------------------------------------------------------------------


def _run(_scene: Scene | None) -> None:
    words = prose("why")
    st.markdown(words["run"])
    asked = _sizes(length=False)
    of = replace(asked, d=min(asked.d, WIDEST))
    if asked.d > WIDEST:
        st.info(_("Run at d = {most}, the widest that is tried here.").format(most=WIDEST))
    if not toggle(_("Run them on this machine"), "why_run", False):
        st.caption(_("Nothing is timed before you ask. It takes some seconds."))
        return
    found, stopped = _measure(of)
    names = _names() | {"bare": _("without projections"), "fused": _("fused kernel")}
    lengths = [n for n in RUN_AT if any(found.get((run, n)) for run in _runs())]
    if len(lengths) < 2:
        st.info(_("This machine is too busy to measure just now. Try again in a while."))
        return

    def lines(runs: tuple[str, ...], value: str, factor: float) -> list[Growth]:
        rows = []
        for run in runs:
            seen = [found.get((run, n)) for n in lengths]
            y = [factor * getattr(each, value) if each else math.nan for each in seen]
            colour = COLOURS[cache.table1.kind(run)]  # type: ignore[arg-type]
            rows.append(Growth(names[run], y, colour, run in ("bare", "fused")))
        return rows

    kept = ("attention", "fused", "recurrent", "convolution", "restricted")
    timed = ("attention", "bare", "recurrent", "convolution", "restricted")
    left, right = st.columns(2, gap="large")
    mark = [(float(of.d), f"n = d = {of.d}")]
    for column, title, series, unit, axis, key in (
        (left, _("Time of a forward pass"), lines(timed, "seconds", 1e3), "ms", _("milliseconds"), "times"),
        (right, _("Kept for the gradient"), lines(kept, "bytes", 1e-6), "MB", _("megabytes"), "kept"),
    ):
        with column:
            st.markdown(f"**{title}**, d = {of.d}")
            figure = growth(
                lengths,
                series,
                view.palette(),
                (_("n, positions"), axis),
                unit,
                mark if key == "times" else (),
                True,
            )
            chart(figure, f"why_{key}", title)
    left.markdown(_faster(found, lengths, of))
    right.markdown(words["memory"])
    st.caption(_what_ran(found, lengths, of, stopped))


def _runs() -> tuple[Any, ...]:
    return ("attention", "bare", "fused", "recurrent", "convolution", "restricted")


def _measure(of: Any) -> tuple[dict[tuple[str, int], Any], bool]:
    """Every run at every length, the short ones first, each in its turn among all readers."""
    todo = [(run, n) for n in RUN_AT for run in _runs()]
    bar = st.progress(0.0, _("Measuring …"))
    found: dict[tuple[str, int], Any] = {}
    start = time.monotonic()
    for done, (run, n) in enumerate(todo):
        if time.monotonic() - start > SECONDS:
            bar.empty()
            return found, True
        found[run, n] = cache.measured(run, replace(of, n=n))
        bar.progress((done + 1) / len(todo), _("Measuring n = {n} …").format(n=n))
    bar.empty()
    return found, False


def _faster(found: dict[tuple[str, int], Any], lengths: list[int], of: Any) -> str:
    """Where attention was quicker than the recurrent layer, when it was measured."""
    both = [n for n in lengths if found.get(("attention", n)) and found.get(("recurrent", n))]
    slower = [n for n in both if found["attention", n].seconds > found["recurrent", n].seconds]
    said = _(
        "Table 1's terms cross at n = {d}. Measured here: attention took longer than the {cell} at {slower}, "
        "of {all}. The terms count neither its projections (dotted: without them) nor waiting in line."
    )
    return said.format(
        d=of.d,
        cell=of.cell.upper(),
        slower="n = " + ", ".join(map(str, slower)) if slower else _("no n"),
        all=", ".join(map(str, both)),
    )


def _what_ran(found: dict[tuple[str, int], Any], lengths: list[int], of: Any, stopped: bool) -> str:
    left_out = [
        _("{name} at n = {n}").format(name=_names()[layer], n=", ".join(map(str, gone)))
        for layer in cache.table1.LAYERS
        if (gone := [n for n in RUN_AT if not found.get((layer, n))])
    ]
    said = _(
        "Ran: d = {d}, {heads} head(s), k = {k}, r = {r}, {cell}, float32, one thread, one sentence; the "
        "fastest of 3 to 9 passes. The restricted layer works in blocks of r: it keeps them, and multiplies "
        "up to twice what it needs. Kept: all that autograd saves, each number once, without the weights."
    ).format(d=of.d, heads=cache.table1.heads(of.d), k=of.k, r=of.r, cell=of.cell.upper())
    if left_out:
        said += " " + _("Left out as too long: {what}.").format(what="; ".join(left_out))
    if stopped:
        said += " " + _("Stopped after {seconds:.0f} s; draw the page again for the rest.").format(
            seconds=SECONDS
        )
    return said


# --- path -------------------------------------------------------------------------------------------------


def _path(scene: Scene | None) -> None:
    words = prose("why")
    st.markdown(words["path"])
    left, right = st.columns(2, gap="large")
    with left:
        n = slider(_("Positions drawn"), "why_drawn", DRAWN, 16)
    with right:
        k = slider(_("k, kernel"), "why_k", KERNELS, 3)
    left, right = st.columns(2, gap="large")  # others, so that on a phone both sliders come first
    palette = view.palette()
    titles = {
        "attention": _("Self-attention"),
        "recurrent": _("Recurrent"),
        "plain": _("Convolution, plain"),
        "dilated": _("Convolution, dilated 1, k, k², …"),
    }
    orders = {"attention": "O(1)", "recurrent": "O(n)", "plain": "O(n/k)", "dilated": "O(log_k n)"}
    for index, kind in enumerate(titles):
        stops = cache.table1.stops(kind, n, k)  # type: ignore[arg-type]
        with (left, right)[index % 2]:
            steps = len(stops) - 1
            counted = _("1 step") if steps == 1 else _("{steps} steps").format(steps=steps)
            st.markdown(f"**{titles[kind]}**: {counted}, {orders[kind]}")
            figure = (
                chain(n, palette)
                if kind == "recurrent"
                else way(n, [_reads(kind, n, k, layer) for layer in range(steps)], stops, palette)
            )
            chart(figure, f"why_way_{kind}", titles[kind])
    st.markdown(words["path caution"])
    if scene is not None:
        _ticks(scene)


def _ticks(scene: Scene) -> None:
    """One layer over the typed sentence, a step at a time."""
    pieces, palette = scene.trace.source, view.palette()
    names = (_("recurrent"), _("self-attention"))
    st.markdown(prose("why")["ticks"])
    # The bounds do not follow the sentence, so that no link can leave them.
    tick = min(number(_("Step"), "why_tick", 1, 1, cache.longest()), len(pieces))
    chart(figures.ticks(pieces, tick, names, palette), "why_ticks", _("States that are done"))
    said = _("After step {tick}: the recurrent layer has {tick} of {n} states, self-attention all {n}.")
    st.caption(said.format(tick=tick, n=len(pieces)))


def _reads(kind: str, n: int, k: int, layer: int) -> list[tuple[int, int]]:
    """Who is read by whom in one layer, as pairs (from, to)."""
    if kind == "attention":
        return [(a, b) for b in range(n) for a in range(n)]
    apart = k**layer if kind == "dilated" else 1
    return [(b - place * apart, b) for b in range(n) for place in range(k) if b >= place * apart]


# --- sentence ---------------------------------------------------------------------------------------------


def _sentence(scene: Scene | None) -> None:
    st.markdown(prose("why")["sentence"])
    if scene is None:
        wait_for_sentence()
        return
    n, d = scene.trace.embedding("source").sum.shape
    m, hidden = len(scene.trace.target), scene.trace.fed("encoder").hidden.shape[-1]
    said = _(
        "{n} pieces (</s> counted): {n} × {n} pairs × {d} products = **{count:,}** multiplications for QKᵀ."
    )
    st.markdown(view.plain(said.format(n=n, d=d, count=n * n * d)).replace(r"\*\*", "**"))
    parts = {
        _("QKᵀ"): n * n * d,
        _("weights · V"): n * n * d,
        _("W_Q, W_K, W_V, W_O"): 4 * n * d * d,
        _("feed-forward"): 2 * n * d * hidden,
    }
    chart(amounts(list(parts), list(parts.values()), view.palette(), 0), "why_amounts", _("Multiplications"))
    said = _(
        "At {n} pieces nobody would notice the square: QKᵀ and the weighted sum are {share:.1%} of the "
        "layer. They would be half of it at n = {half:,}."
    )
    whole = sum(parts.values())
    st.markdown(said.format(n=n, share=2 * n * n * d / whole, half=2 * d + hidden))
    st.markdown("**" + _("QKᵀ of one layer, in the three attentions") + "**")
    st.dataframe(
        {
            _("attention"): [_("encoder"), _("decoder"), _("cross")],
            _("queries × keys × d"): [f"{n} × {n} × {d}", f"{m} × {m} × {d}", f"{m} × {n} × {d}"],
            _("multiplications"): [f"{n * n * d:,}", f"{m * m * d:,}", f"{m * n * d:,}"],
            _("of these, look-ahead lets through"): [
                f"{n * n * d:,}",
                f"{m * (m + 1) // 2 * d:,}",
                f"{m * n * d:,}",
            ],
        },
        hide_index=True,
    )
    queries, keys = scene.trace.axes("encoder")[0], scene.trace.axes("encoder")[1]
    rows = [(view.plain(piece), (row + 1) * len(keys) * d) for row, piece in enumerate(queries)]
    with st.expander(_("Counted row by row")):
        for row, (piece, count) in enumerate(rows, 1):
            st.markdown(
                _("{row}. {piece} asks {n} keys: + {n} × {d}, makes {count:,}").format(
                    row=row, piece=piece, n=n, d=d, count=count
                )
            )
