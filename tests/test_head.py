"""One head: what its page draws and writes out is what the model computed."""

import base64
import json
import re
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from model import experiments
from model.trace import KINDS, Cell, Change, Floats, Head, Kind, Switch, Trace
from model.translator import Translator
from tests.conftest import FORCED, ROOT, TEXT
from tests.test_figures import matrix, trace_of
from viz import cache, steps
from viz.figures import Look, stages
from viz.figures.measures import Line, Row, curves, row_bars, time_bars
from viz.figures.stages import ROWS, Band, bands, largest, masked_scores, strips
from viz.reading import Map
from viz.theme import PALETTES

L, H, D, WIDTH, HIDDEN, S, T = 3, 2, 22, 11, 23, 7, 13  # as conftest's translator; no two are equal
LIGHT = PALETTES["light"]
CHANGES = [
    Change(),
    Change(scale=False),
    Change(look_ahead=Switch("all"), source_pads=2, target_pads=3),
    Change(removed=frozenset({Head("cross", 1, 0)}), positions="off"),
    Change(blocked=frozenset(Cell("cross", 2, key) for key in range(S))),
]
places = pytest.mark.parametrize(
    ("kind", "layer", "head"), [(kind, layer, head) for kind in KINDS for layer, head in ((0, 1), (2, 0))]
)


def layer_norm(module: Any, x: Floats) -> Floats:
    """The paper's norm, in numpy: each row by itself, then gain and bias."""
    spread = np.sqrt(x.var(axis=-1, keepdims=True) + module.eps)
    return (x - x.mean(axis=-1, keepdims=True)) / spread * module.weight.numpy() + module.bias.numpy()


def attention_of(translator: Translator, kind: Kind, layer: int) -> Any:
    side = translator.model.encoder if kind == "encoder" else translator.model.decoder
    return side[layer].cross_attention if kind == "cross" else side[layer].attention


def norms_of(translator: Translator, kind: Kind, layer: int) -> tuple[Any, Any]:
    """The norm after the attention of a kind, and the one after the feed-forward network."""
    if kind == "encoder":
        block = translator.model.encoder[layer]
        return block.add_1.norm, block.add_2.norm
    block = translator.model.decoder[layer]
    return (block.add_2 if kind == "cross" else block.add_1).norm, block.add_3.norm


# --- the trace ------------------------------------------------------------------------------------------


def test_each_sub_layer_is_in_the_trace_with_its_own_shape(trace: Trace) -> None:
    for kind, queries, keys in (("encoder", S, S), ("decoder", T, T), ("cross", T, S)):
        assert trace.added(kind).update.shape == trace.added(kind).out.shape == (L, queries, D)
        assert trace.fed(kind).update.shape == trace.fed(kind).out.shape == (L, queries, D)
        assert trace.fed(kind).hidden.shape == (L, queries, HIDDEN)
        for layer in range(L):
            assert trace.entering(kind, layer).shape == (queries, D)
            assert trace.read(kind, layer).shape == (keys, D)
    for part in (trace.added("cross"), trace.fed("encoder")):
        with pytest.raises(ValueError, match="read-only"):
            part.out[...] = 0


@pytest.mark.parametrize("change", CHANGES)
def test_add_and_norm_is_the_norm_of_what_entered_plus_the_update(
    translator: Translator, change: Change
) -> None:
    trace = translator.trace(TEXT, FORCED, change)
    for kind in KINDS:
        for layer in range(L):
            first, last = norms_of(translator, kind, layer)
            added, fed = trace.added(kind), trace.fed(kind)
            total = trace.entering(kind, layer) + added.update[layer]
            np.testing.assert_allclose(added.out[layer], layer_norm(first, total), atol=1e-5)
            entered = trace.added("encoder" if kind == "encoder" else "cross").out[layer]
            np.testing.assert_allclose(
                fed.out[layer], layer_norm(last, entered + fed.update[layer]), atol=1e-5
            )


@pytest.mark.parametrize("change", CHANGES)
def test_the_hidden_row_is_relu_and_reproduces_the_update(translator: Translator, change: Change) -> None:
    trace = translator.trace(TEXT, FORCED, change)
    for kind in ("encoder", "decoder"):
        side = translator.model.encoder if kind == "encoder" else translator.model.decoder
        fed = trace.fed(kind)
        assert (fed.hidden >= 0).all()
        assert 0 < (fed.hidden == 0).mean() < 1
        for layer in range(L):
            network = side[layer].feed_forward
            entered = trace.added("encoder" if kind == "encoder" else "cross").out[layer]
            w_1, w_2 = (each.weight.numpy().T for each in (network.w_1, network.w_2))
            hidden = np.maximum(0, entered @ w_1 + network.w_1.bias.numpy())
            np.testing.assert_allclose(fed.hidden[layer], hidden, atol=1e-5)
            np.testing.assert_allclose(fed.update[layer], hidden @ w_2 + network.w_2.bias.numpy(), atol=1e-5)


@places
def test_heads_side_by_side_times_w_o_is_the_update(
    translator: Translator, trace: Trace, kind: Kind, layer: int, head: int
) -> None:
    joined = steps.joined(trace, kind, layer)
    for number in range(H):
        part = joined[:, number * WIDTH : (number + 1) * WIDTH]
        np.testing.assert_array_equal(part, trace.stages(kind).output[layer, number])
    w_o = attention_of(translator, kind, layer).w_o
    update = trace.added(kind).update[layer]
    np.testing.assert_allclose(joined @ w_o.weight.numpy().T + w_o.bias.numpy(), update, atol=1e-5)
    learned = [experiments.projections(translator.model, kind, layer, number) for number in range(H)]
    pieces = [trace.stages(kind).output[layer, number] @ learned[number].w_o for number in range(H)]
    np.testing.assert_allclose(sum(pieces) + learned[head].b_o, update, atol=1e-5)


@places
def test_q_k_and_v_come_from_what_the_page_says_and_through_the_matrices_it_shows(
    translator: Translator, trace: Trace, kind: Kind, layer: int, head: int
) -> None:
    learned = experiments.projections(translator.model, kind, layer, head)
    assert learned.w_q.shape == learned.w_k.shape == learned.w_v.shape == (D, WIDTH)
    seen, asking, read = trace.stages(kind), trace.entering(kind, layer), trace.read(kind, layer)
    for name, x in (("q", asking), ("k", read), ("v", read)):
        projected = x @ getattr(learned, f"w_{name}") + getattr(learned, f"b_{name}")
        np.testing.assert_allclose(getattr(seen, name)[layer, head], projected, atol=1e-5)
    if kind == "cross":
        np.testing.assert_array_equal(read, trace.fed("encoder").out[-1])
        np.testing.assert_array_equal(asking, trace.added("decoder").out[layer])
    elif layer:
        np.testing.assert_array_equal(asking, trace.fed(kind).out[layer - 1])


def test_the_matrices_are_copies(translator: Translator) -> None:
    learned = experiments.projections(translator.model, "cross", 1, 1)
    before = translator.model.decoder[1].cross_attention.w_q.weight.clone()
    for part in vars(learned).values():
        part[...] = 0
    assert torch.equal(before, translator.model.decoder[1].cross_attention.w_q.weight)


# --- the arithmetic --------------------------------------------------------------------------------------


@places
def test_the_sum_written_out_is_the_score(trace: Trace, kind: Kind, layer: int, head: int) -> None:
    q, k = (getattr(trace.stages(kind), name)[layer, head] for name in "qk")
    dots, scores = steps.dots(trace, kind, layer, head), trace.scores(kind)[layer, head]
    np.testing.assert_allclose(dots / steps.factor(trace, kind), scores, atol=1e-5)
    assert float((q[2] * k[3]).sum()) / WIDTH**0.5 == pytest.approx(float(scores[2, 3]), abs=1e-5)
    terms = re.findall(r"\((-?[\d.]+)\)\((-?[\d.]+)\)", steps.written(q[2], k[3]))
    assert len(terms) == WIDTH
    for (left, right), a, b in zip(terms, q[2], k[3], strict=True):
        assert (left, right) == (f"{a:.4f}", f"{b:.4f}")
    # Each term is off by at most half a unit of the last digit of either factor.
    off = sum(0.00005 * (abs(a) + abs(b) + 1) for a, b in zip(q[2], k[3], strict=True))
    assert sum(float(a) * float(b) for a, b in terms) == pytest.approx(float(dots[2, 3]), abs=float(off))


def test_without_the_scale_nothing_is_divided(translator: Translator) -> None:
    trace = translator.trace(TEXT, FORCED, Change(scale=False))
    assert steps.factor(trace, "cross") == 1
    np.testing.assert_allclose(steps.dots(trace, "cross", 1, 0), trace.scores("cross")[1, 0], atol=1e-5)


def test_a_score_is_not_the_same_both_ways(trace: Trace) -> None:
    for kind in ("encoder", "decoder"):
        dots = steps.dots(trace, kind, 1, 1)
        assert abs(dots - dots.T).max() > 0.1


def test_shapes_are_this_sentences_and_the_papers(trace: Trace) -> None:
    sizes = steps.sizes(trace, "cross")
    assert sizes == steps.Sizes(T, S, D, H, WIDTH, HIDDEN)
    assert sizes.shapes("dot", "cross") == ("13 × 11 · 11 × 7 → 13 × 7", "n × 64 · 64 × m → n × m")
    assert sizes.shapes("concat", "cross") == ("2 × (13 × 11) → 13 × 22", "8 × (n × 64) → n × 512")
    assert sizes.shapes("input", "cross")[0] == "13 × 22 (x);  7 × 22 (z)"
    assert "2048" in sizes.shapes("feed", "cross")[1]
    for stage in steps.STAGES:
        assert all(sizes.shapes(stage, "encoder"))
        assert steps.stage_name(stage)


# --- the figures -----------------------------------------------------------------------------------------


def test_bands_hold_their_numbers_and_frame_the_chosen_row(trace: Trace) -> None:
    seen = trace.stages("cross")
    q, v = seen.q[1, 0], seen.v[1, 0]
    limit = largest(q, v)
    parts = [Band("q", q, trace.target, "#000", limit, 4), Band("v", v, trace.source, "#000", limit)]
    figure = bands(parts, LIGHT)
    for name, numbers in (("q", q), ("v", v)):
        drawn = trace_of(figure, name)
        np.testing.assert_array_equal(matrix(drawn["z"]), numbers)
        assert (drawn["zmin"], drawn["zmax"]) == (-limit, limit)
        assert "%{z:.4f}" in drawn["hovertemplate"]
    layout = json.loads(figure.to_json())["layout"]
    (frame,) = layout["shapes"]
    assert frame["y0"] + 0.5 == pytest.approx(trace_of(figure, "q")["y"][4])
    assert len(layout["yaxis"]["ticktext"]) == T + S
    assert "&lt;s&gt;" in layout["yaxis"]["ticktext"][0]


def test_of_a_long_sentence_the_rows_around_the_chosen_one_are_shown() -> None:
    numbers = np.arange(61 * 5, dtype=np.float32).reshape(61, 5)
    for chosen in (0, 30, 60):
        figure = bands([Band("x", numbers, [f"p{i}" for i in range(61)], "#000", 1.0, chosen)], LIGHT)
        shown = matrix(trace_of(figure, "x")["z"])
        assert len(shown) == ROWS
        assert numbers[chosen].tolist() in shown.tolist()
        assert any(f">p{chosen}<" in label for label in figure.layout.yaxis.ticktext)


def test_strips_are_the_heads_in_their_order(trace: Trace) -> None:
    heads = trace.stages("decoder").output[2]
    figure = strips(heads, trace.target, "#000", 3, 1, LIGHT)
    for number in range(H):
        np.testing.assert_array_equal(matrix(trace_of(figure, f"Z{number + 1}")["z"]), heads[number])
    lefts = [min(values(trace_of(figure, f"Z{number + 1}")["x"])) for number in range(H)]
    assert lefts[1] - lefts[0] > WIDTH - 1  # a gap between two heads
    colours = [shape.line.color for shape in figure.layout.shapes[:H]]
    assert colours == [LIGHT.hatch, LIGHT.accent]


def values(x: Any) -> list[float]:
    """Numbers of an axis as the browser decodes them."""
    if isinstance(x, dict):
        return np.frombuffer(base64.b64decode(x["bdata"]), x["dtype"]).tolist()
    return x


def test_masked_scores_are_the_scores_of_open_cells_and_a_reason_elsewhere(trace: Trace) -> None:
    picture, scores = Map(trace, "decoder", 1, 0), trace.scores("decoder")[1, 0]
    figure = masked_scores(picture, scores, 2, 1, Look(LIGHT))
    shown = matrix(trace_of(figure, "weights")["z"])
    np.testing.assert_array_equal(shown[picture.allowed], scores[picture.allowed])
    assert np.isnan(shown[~picture.allowed]).all()
    cells = trace_of(figure, "cells")
    for (query, key), said in zip(cells["customdata"], cells["hovertext"], strict=True):
        if key > query:
            assert "may not see the future" in said
        else:
            assert f"{scores[query, key]:+.4f}" in said


def test_bars_are_the_rows_weights(trace: Trace) -> None:
    row = trace.weights("cross")[0, 1, 2]
    figure = row_bars([Row("one", np.ones(S) / S), Row("two", row)], trace.source, "#000", LIGHT, 3)
    np.testing.assert_array_equal(np.array(values(trace_of(figure, "two")["y"]), np.float32), row)
    assert tuple(figure.layout.yaxis.range) == (0, 1.12)


def test_where_q_k_and_v_come_from_is_one_arrow_each_from_its_box() -> None:
    cross = [stages.Source("French", "#111111", "q"), stages.Source("English", "#222222", "kv")]
    figure: go.Figure = stages.sources(cross, LIGHT)
    arrows = [note.arrowcolor for note in figure.layout.annotations if note.showarrow]
    assert arrows.count("#111111") == 2
    assert arrows.count("#222222") == 4


# --- why the root ----------------------------------------------------------------------------------------

WIDTHS = [2**power for power in range(1, 11)]


@pytest.mark.parametrize("d_k", WIDTHS)
def test_the_spread_of_q_k_grows_as_the_root_of_d_k(d_k: int) -> None:
    # 400 queries with 8 keys: dots of one query are dependent, so the bound is that of 400 draws, five sigma.
    found = experiments.random_head(d_k, 0)
    assert found.spread == pytest.approx(d_k**0.5, rel=5 / (2 * experiments.DRAWS) ** 0.5)
    assert found.dots.shape == (experiments.KEYS,)


def test_without_the_scale_the_gradient_shrinks_and_with_it_it_stays() -> None:
    found = [experiments.random_head(d_k, 0) for d_k in WIDTHS]
    raw, scaled = [each.gradient for each in found], [each.gradient_scaled for each in found]
    assert all(after < before for before, after in pairwise(raw))
    assert raw[-1] < 0.2 * raw[0]
    assert max(scaled) < 1.1 * min(scaled)
    assert all(each.largest > each.largest_scaled for each in found)


def test_the_same_seed_is_the_same_draw_and_another_is_not() -> None:
    one, same, other = (experiments.random_head(64, seed) for seed in (3, 3, 4))
    assert one.dots.tolist() == same.dots.tolist()
    assert one.spread == same.spread
    assert one.dots.tolist() != other.dots.tolist()


def test_the_gradients_size_is_the_norm_of_torchs_jacobian() -> None:
    scores = torch.randn(5, 8)
    weights = experiments.softmax(scores.numpy())
    for row, norm in zip(scores, experiments.jacobian_norm(weights), strict=True):
        exact = torch.autograd.functional.jacobian(lambda x: x.softmax(-1), row)
        assert float(norm) == pytest.approx(float(exact.norm()), abs=1e-6)


def test_both_ways_to_compare_are_timed() -> None:
    timing = experiments.time_scores(16, pieces=12, repeats=3)
    assert timing.pieces == 12
    assert 0 < timing.dot < 1
    assert 0 < timing.additive < 1


def test_curves_hold_what_was_measured_and_name_the_marks() -> None:
    found = [experiments.random_head(d_k, 0).spread for d_k in WIDTHS]
    marks = {32.0: "32 this model's head", 64.0: "64 the paper's head"}
    figure = curves(WIDTHS, [Line("measured", found)], LIGHT, ("d_k", "spread"), marks, 48)
    drawn = trace_of(figure, "measured")
    assert (values(drawn["x"]), values(drawn["y"])) == (WIDTHS, found)
    assert {*marks.values()} <= {note.text for note in figure.layout.annotations}
    assert {shape.x0 for shape in figure.layout.shapes} == {32, 64, 48}
    assert next(shape for shape in figure.layout.shapes if shape.x0 == 48).line.color == LIGHT.accent


def test_times_are_bars_from_0() -> None:
    figure = time_bars(["dot product", "additive"], [5.5, 700.0], LIGHT)
    assert values(trace_of(figure, "times")["x"]) == [5.5, 700.0]
    assert figure.layout.xaxis.range[0] == 0


# --- temperature -----------------------------------------------------------------------------------------

SCORES = np.array([1.0, -2.0, 3.0, 0.5, 3.0, 9.0], np.float32)
ALLOWED = np.array([True, True, True, True, True, False])


def test_at_1_the_row_is_the_models(trace: Trace) -> None:
    for kind in KINDS:
        scores, allowed = trace.scores(kind)[1, 1], trace.allowed(kind)[1, 1]
        for row, weights in enumerate(trace.weights(kind)[1, 1]):
            heated = steps.at_temperature(scores[row], allowed[row], 1)
            np.testing.assert_allclose(heated, weights, atol=1e-6)


def test_the_limits_are_one_hot_and_uniform() -> None:
    single = np.array([1.0, -2.0, 3.0, 0.5, 2.9, 9.0], np.float32)
    assert steps.at_temperature(single, ALLOWED, 0).tolist() == [0, 0, 1, 0, 0, 0]
    assert steps.at_temperature(SCORES, ALLOWED, 0).tolist() == [0, 0, 0.5, 0, 0.5, 0]  # two are equal
    np.testing.assert_allclose(steps.at_temperature(SCORES, ALLOWED, np.inf), ALLOWED / 5)
    np.testing.assert_allclose(
        steps.at_temperature(single, ALLOWED, 1e-4), steps.at_temperature(single, ALLOWED, 0), atol=1e-6
    )
    np.testing.assert_allclose(steps.at_temperature(SCORES, ALLOWED, 1e6), ALLOWED / 5, atol=1e-5)
    assert steps.at_temperature(SCORES, np.zeros(6, bool), 1).tolist() == [0] * 6


def test_entropy_grows_with_temperature_from_0_to_all_that_is_allowed() -> None:
    heats = [0, 0.05, 0.2, 0.5, 1, 2, 5, 20, np.inf]
    single = np.array([1.0, -2.0, 3.0, 0.5, 2.9, 9.0], np.float32)
    found = [float(steps.bits(steps.at_temperature(single, ALLOWED, heat))) for heat in heats]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == pytest.approx(np.log2(5), abs=1e-6)


def test_leaving_out_the_root_is_the_temperature_of_one_over_the_root(trace: Trace) -> None:
    dots, scores = steps.dots(trace, "encoder", 0, 0)[2], trace.scores("encoder")[0, 0, 2]
    every = np.ones(S, bool)
    np.testing.assert_allclose(
        steps.at_temperature(dots, every, 1), steps.at_temperature(scores, every, WIDTH**-0.5), atol=1e-5
    )


# --- the page --------------------------------------------------------------------------------------------

TABS = [
    *({"head_stage": str(number + 1)} for number in range(len(steps.STAGES))),
    {"head_stage": "2", "head_w": "true"},
    {"head_stage": "9", "head_wo": "true"},
    *({"head_tab": "root", "head_why": why} for why in ("random", "trained", "additive")),
    *({"head_tab": "temperature", "head_temperature": heat} for heat in ("0", "0.3", "inf")),
]


DEFAULTS = {("head_stage", "1"), ("head_why", "random")}


def opened(**params: str) -> AppTest:
    """The page from a link alone."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at._page_hash = calc_hash("head")  # AppTest itself only finds pages that are files
    for name, value in params.items():
        at.query_params[name] = value
    return at.run()


def pictures(at: AppTest) -> list[Any]:
    """What is drawn: figures, and the stage of an act."""
    return [
        *at.get("plotly_chart"),
        *(part for part in at.get("bidi_component") if part.proto.component_name == "headlight_stage"),
    ]


def read(at: AppTest) -> str:
    parts = [*at.markdown, *at.caption, *at.text, *at.info]
    return "\n".join(part.value for part in parts).replace("\\", "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["We saw $5 & <b>.", "."])
def test_every_tab_and_stage_draws_from_its_link(kind: Kind, text: str) -> None:
    for layer, params in enumerate(TABS):
        at = opened(text=text, kind=kind, layer=str(layer % 3 + 1), row="64", **params)
        assert not at.exception, params
        assert not at.warning
        assert pictures(at) or params.get("head_why") == "additive", params
        for name, value in params.items():
            # Streamlit drops what stands at its default from the address.
            assert at.query_params.get(name, "") == value or (name, value) in DEFAULTS


def test_the_page_opens_with_one_picture() -> None:
    at = opened()
    assert len(at.get("plotly_chart")) == 1
    assert "1. What enters" in read(at)


def test_stages_are_stepped_forwards_and_backwards() -> None:
    at = opened(head_stage="11")
    at.button(key="head_stage+1").click().run()
    assert at.button(key="head_stage+1").disabled
    assert "12. Add & Norm again" in read(at)
    at.button(key="head_stage-1").click().run()
    assert "11. Feed-forward" in read(at)
    assert "Zeros after ReLU" in read(at)


def test_another_query_and_key_move_the_frame() -> None:
    at = opened(text="The dog sees a cat.", kind="encoder", layer="1", head="2", column="1", head_stage="3")
    at.selectbox(key="head_query").set_value(1).run()
    assert at.query_params["row"] == "2"
    assert "column" not in at.query_params  # another row has another favourite
    other = 4 if at.selectbox(key="head_key").value != 4 else 2
    at.selectbox(key="head_key").set_value(other).run()
    assert at.query_params["column"] == str(other + 1)
    third, piece = (at.selectbox(key="head_key").options[place].split()[1] for place in (2, other))
    assert f'"dog" asks "{piece}".' in read(at)
    assert f'"{piece}" asks "dog"' in read(at)
    at.number_input(key="row").set_value(3).run()
    assert at.selectbox(key="head_query").value == 2
    assert f'"{third}" asks "{piece}".' in read(at)


def test_the_page_says_the_models_numbers() -> None:
    trace = cache.trace(cache.MODEL, "The dog sees a cat.")
    dots = steps.dots(trace, "encoder", 0, 1)
    at = opened(
        text="The dog sees a cat.", kind="encoder", layer="1", head="2", row="2", column="5", head_stage="4"
    )
    before, after = (
        f"{value:.4f}".replace("-", "−") for value in (dots[1, 4], trace.scores("encoder")[0, 1, 1, 4])
    )
    root = float(np.sqrt(trace.stages("encoder").q.shape[-1]))
    assert f"{before} / √32 = {before} / {root:.4f} = {after}" in read(at)


def test_the_mean_of_heads_is_not_walked_through() -> None:
    at = opened(mean="true", head="3", head_stage="6")
    assert not at.exception
    assert "This page shows one head: head 3." in read(at)
    assert "Head 3 of layer" in read(at)


def test_a_named_mark_sets_the_slider() -> None:
    at = opened(head_tab="root")
    at.button(key="head_mark512").click().run()
    assert at.query_params["head_dk"] == "512"
    assert "at d_k = 512" in read(at)


def test_nothing_is_timed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    def timed(d_k: int, pieces: int = 64, repeats: int = 15) -> experiments.Timing:
        ran.append(d_k)
        return experiments.Timing(pieces, 1e-5, 3e-4)

    monkeypatch.setattr(experiments, "time_scores", timed)
    at = opened(head_tab="root", head_why="additive", head_dk="64")
    assert ran == []
    assert not at.get("plotly_chart")
    at.button(key="head_time").click().run()
    assert ran == [64]
    assert "additive takes 30 times as long here" in read(at)


def test_what_a_link_asks_in_vain_gives_the_usual_stage() -> None:
    for params in ({"head_stage": "13"}, {"head_tab": "x"}, {"head_temperature": "-1"}, {"head_dk": "33"}):
        tab = {"head_tab": "root"} if "head_dk" in params else {}
        at = opened(**tab, **params)
        assert not at.exception
        ((name, value),) = params.items()
        (warning,) = at.warning
        assert f'asked for {name} "{value}"' in warning.value.replace("\\", "")
