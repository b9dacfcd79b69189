"""The page Why: what it says and draws is what was counted, measured and traced."""

import base64
import json
import math
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from model import costs, counts, norms
from model.trace import NEUTRAL, Change, Trace
from viz import cache
from viz.figures import why as figures
from viz.pages import why
from viz.pages.why import adding, cost, history
from viz.text import examples, prose
from viz.theme import PALETTES

ROOT = Path(__file__).parent.parent
LIGHT, DARK = PALETTES["light"], PALETTES["dark"]
NORM = "add & norm"


def opened(**params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in params.items():
        at.query_params[name] = value
    at._page_hash = calc_hash("why")  # AppTest finds only pages that are files by itself
    at.run()
    assert not at.exception
    return at


def said(at: AppTest) -> str:
    parts = [*at.markdown, *at.caption, *at.text, *at.info]
    return "\n".join(part.value.replace("\\", "") for part in parts)


def charts(at: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


# --- the page ---

VIEWS = [
    *[{"why_cost": part} for part in cost.PARTS],
    {"why_tab": "parameters"},
    *[{"why_tab": NORM, "why_add": part} for part in adding.PARTS],
    *[{"why_tab": "history", "why_history": part} for part in history.PARTS],
]


@pytest.mark.parametrize("params", VIEWS, ids=lambda params: " ".join(params.values()))
def test_every_part_opens_from_its_link_alone(params: dict[str, str]) -> None:
    at = opened(**params)
    assert not at.warning


@pytest.mark.parametrize("params", VIEWS, ids=lambda params: " ".join(params.values()))
def test_every_part_answers_where_the_sentence_cannot_be_read(params: dict[str, str]) -> None:
    at = opened(text="", **params)
    needy = params.get("why_cost") == "sentence" or params.get("why_tab") == NORM
    needy = needy or params.get("why_history") == "kernel"
    assert ("needs a sentence" in said(at)) == needy
    drawn = not needy and params.get("why_history") != "uses" and params.get("why_cost") != "run"
    assert bool(at.get("plotly_chart")) == drawn


@pytest.mark.parametrize("name", [name for name in why.OFFERS if name != "why_tab"])
def test_a_value_that_is_not_offered_is_told(name: str) -> None:
    at = opened(**{name: "997"})
    assert any(name in warning.value.replace("\\", "") for warning in at.warning)


@pytest.mark.parametrize(
    ("name", "value", "limits"),
    [("why_v", "0", "1 to 200000"), ("why_d_ff", "1e9", "1 to 32768"), ("why_encoder", "-3", "0 to 96")],
)
def test_a_number_out_of_its_range_is_told(name: str, value: str, limits: str) -> None:
    at = opened(why_tab="parameters", **{name: value})
    assert any(limits in warning.value.replace("\\", "") for warning in at.warning)
    assert f"{counts.total(counts.PAPER['base']):,}" in said(at)


def test_every_explanation_is_shown_somewhere() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "viz/pages/why").glob("*.py"))
    for heading in prose("why"):
        assert f'"{heading}"' in source, heading


def test_the_page_opens_without_waiting_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ready", lambda: False)
    monkeypatch.setattr(cache, "trace", lambda *_args: pytest.fail("the model was asked"))
    for params in ({}, {"why_cost": "path"}, {"why_tab": "parameters"}, {"why_tab": "history"}):
        assert opened(**params).get("plotly_chart")


# --- cost ---


def test_the_table_and_the_curves_hold_the_formulas() -> None:
    at = opened(why_n="128", why_d="64", why_k="5", why_r="8", why_cell="lstm")
    of = costs.Sizes(128, 64, 5, 8, "lstm")
    frame = at.dataframe[0].value
    assert frame["here"].tolist() == [f"{costs.term(layer, of):,}" for layer in costs.LAYERS]
    assert frame["one after another"].tolist()[1] == "O(n): 128"
    assert [text.split(": ")[1] for text in frame["longest path"]] == ["1", "127", "4", "19"]
    terms, real = charts(at)
    assert "n = d = 64" in str(terms["layout"]["annotations"])
    assert "n = 128" in str(real["layout"]["annotations"])  # of an LSTM: 2 d
    assert "up to n = 128" in said(at)


def test_nothing_runs_before_the_reader_asks_and_then_what_ran_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[str, costs.Sizes]] = []
    times = {"attention": 3e-3, "recurrent": 2e-3}

    def measured(run: costs.Run, of: costs.Sizes) -> costs.Measured | None:
        ran.append((run, of))
        # Attention is slower from 512 on.
        factor = (of.n / 512) ** 2 if run == "attention" else of.n / 512
        return costs.Measured(times.get(run, 1e-3) * factor, 3, 1000 * of.n) if of.n < 2048 else None

    monkeypatch.setattr(cache, "measured", measured)
    at = opened(why_cost="run")
    assert "Nothing is timed before you ask" in said(at)
    assert not ran
    at = opened(why_cost="run", why_run="true", why_d="1024", why_cell="gru")
    assert {of.d for _run, of in ran} == {cost.WIDEST}
    assert f"Run at d = {cost.WIDEST}" in said(at)
    assert "took longer than the GRU at n = 512, 1024, of 32, 64, 128, 256, 512, 1024" in said(at)
    assert "Left out as too long: self-attention at n = 2048" in said(at)
    times_, kept = charts(at)
    assert len(times_["data"]) == len(kept["data"]) == 5


def test_measuring_ends_in_time_and_says_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(run: costs.Run, of: costs.Sizes) -> costs.Measured:
        if (run, of.n) == ("bare", 128):
            time.sleep(1.1 * cost.SECONDS)
        return costs.Measured(1e-3, 3, 8)

    monkeypatch.setattr(cost, "SECONDS", 1.0)
    monkeypatch.setattr(cache, "measured", measured)
    at = opened(why_cost="run", why_run="true")
    assert "Stopped after 1 s" in said(at)
    assert "restricted at n = 128, 256, 512, 1024, 2048" in said(at)
    assert "self-attention at n = 256, 512, 1024, 2048" in said(at)
    assert charts(at)[0]["layout"]["xaxis"]["tickvals"] == [32, 64, 128]


def test_a_machine_that_is_too_busy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "SECONDS", -1.0)
    at = opened(why_cost="run", why_run="true")
    assert "too busy to measure" in said(at)


def test_what_was_measured_is_kept_for_those_sizes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def measure(run: costs.Run, of: costs.Sizes) -> costs.Measured:
        asked.append((run, of))
        return costs.Measured(1.0, 3, 8)

    monkeypatch.setattr(cache.table1, "measure", measure)
    one = costs.Sizes(37, 41, k=5, r=7, cell="gru")
    for k, cell in ((5, "gru"), (3, "gru"), (3, "lstm")):
        of = costs.Sizes(one.n, one.d, k, 7, cell)  # type: ignore[arg-type]
        assert cache.measured("recurrent", of) is not None
    assert asked == [("recurrent", costs.Sizes(37, 41, cell=cell)) for cell in ("gru", "lstm")]  # type: ignore[arg-type]
    assert cache.measured("attention", costs.Sizes(10**5, 256)) is None


def test_the_sentence_is_counted_by_its_pieces() -> None:
    at = opened(why_cost="sentence", text="I am a student.")
    trace = cache.trace(cache.MODEL, "I am a student.")
    n, d = len(trace.source), trace.embedding("source").sum.shape[1]
    assert f"= **{n * n * d:,}** multiplications" in said(at)
    (bars,) = charts(at)[0]["data"]
    config = cache.config()
    shape = counts.shape(config)
    layer = counts.in_layer(
        counts.Shape(shape.vocabulary, 3, 3, d, shape.d_ff, biases=False, norms=False), "encoder"
    )
    assert bars["text"] == [
        f" {count:,}" for count in (n * n * d, n * n * d, n * layer["attention"], n * layer["feed-forward"])
    ]
    half = int(re.search(r"half of it at n = ([\d,]+)", said(at))[1].replace(",", ""))  # type: ignore[index]
    assert 2 * half * d == layer["attention"] + layer["feed-forward"]


@pytest.mark.parametrize("kind", ["attention", "plain", "dilated"])
@pytest.mark.parametrize(("n", "k"), [(16, 3), (4, 2), (24, 31), (20, 5)])
def test_the_way_that_is_drawn_goes_along_what_is_read(kind: str, n: int, k: int) -> None:
    stops = costs.stops(kind, n, k)  # type: ignore[arg-type]
    layers = [cost._reads(kind, n, k, layer) for layer in range(len(stops) - 1)]
    for layer, move in zip(layers, pairwise(stops), strict=True):
        assert move in layer
        assert all(0 <= a < n and 0 <= b < n and (a <= b or kind == "attention") for a, b in layer)
    figure = figures.way(n, layers, stops, LIGHT)
    (drawn,) = figure.select_traces({"name": "way"})
    assert drawn.x.tolist() == stops
    (reads,) = figure.select_traces({"name": "reads"})
    assert len(reads.x) == 3 * sum(map(len, layers))


def test_step_by_step_a_recurrent_layer_makes_one_state_and_attention_all() -> None:
    at = opened(why_cost="path", why_tick="3", text="I am a student.")
    n = len(cache.trace(cache.MODEL, "I am a student.").source)
    assert f"the recurrent layer has 3 of {n} states, self-attention all {n}" in said(at)
    figure = figures.ticks(["a", "<b>", "c", "d"], 3, ("one", "other"), LIGHT)
    lit = [colour != LIGHT.ground for colour in figure.data[0].marker.color]
    assert lit == [True, True, True, False, True, True, True, True]
    assert figure.data[0].hovertext[1].startswith("&lt;b&gt;")
    assert not figures.ticks(["a", "b"], 2, ("one", "other"), DARK).layout.annotations
    assert f"{n} of {n} states" in said(opened(why_cost="path", why_tick="37", text="I am a student."))
    at = opened(why_cost="path", why_tick="99", text="I am a student.")
    assert any("why_tick" in warning.value.replace("\\", "") for warning in at.warning)


# --- parameters ---


def test_the_count_is_drawn_and_listed() -> None:
    at = opened(
        why_tab="parameters", why_norms="false", why_biases="false", why_positions="512", why_decoder="0"
    )
    of = counts.Shape(counts.VOCABULARY, 6, 0, 512, 2048, True, False, False, 512)
    assert f"## {counts.total(of):,}" in said(at)
    frame = at.dataframe[0].value
    assert sum(int(text.replace(",", "")) for text in frame["together"]) == counts.total(of)
    bars = {bar["name"]: bar for bar in charts(at)[0]["data"]}
    for group, total in counts.by_group(of).items():
        assert packed(bars["norms" if group == "norm" else group]["customdata"])[0] == total
    assert "4,194,304" in said(at)


def packed(numbers: Any) -> list[int]:
    """An array as plotly sends it."""
    return np.frombuffer(base64.b64decode(numbers["bdata"]), numbers["dtype"]).tolist()


def test_a_button_brings_a_known_model_and_the_models_own_is_the_right_one() -> None:
    at = opened(why_tab="parameters")
    assert "The paper prints 65 million" in said(at)
    at.button(key="why_model1").click().run()
    assert f"## {counts.total(counts.PAPER['big']):,}" in said(at)
    at.button(key="why_model2").click().run()
    model = cache.door().model
    assert f"## {sum(each.numel() for each in model.parameters()):,}" in said(at)
    assert at.number_input(key="why_h").value == cache.config().n_heads


def test_what_cannot_be_is_told() -> None:
    assert "512 does not divide into 7 heads" in said(opened(why_tab="parameters", why_h="7"))
    at = opened(why_tab="parameters", why_encoder="0", why_decoder="0")
    assert "only the embedding is counted" in said(at)
    assert f"## {512 * counts.VOCABULARY:,}" in said(at)


@given(st.lists(st.lists(st.integers(0, 10**9), min_size=5, max_size=5), min_size=1, max_size=3))
def test_shares_are_shares_of_each_row(numbers: list[list[int]]) -> None:
    figure = figures.shares([str(row) for row in range(len(numbers))], list("abcde"), numbers, DARK)
    drawn = np.array([bar.x for bar in figure.data])
    for row, part in zip(numbers, drawn.T, strict=True):
        assert sum(part) == pytest.approx(100 if sum(row) else 0)
        assert part.tolist() == pytest.approx([100 * each / max(sum(row), 1) for each in row])


# --- Add & Norm ---


def test_switching_a_half_off_draws_both_flows() -> None:
    at = opened(why_tab=NORM, why_residual="false")
    trace = cache.trace(cache.MODEL, examples()[0].text)
    model = cache.door().model
    after = norms.flow(model, trace.source_ids, trace.target_ids, Change(residual=False))
    before = norms.flow(model, trace.source_ids, trace.target_ids, NEUTRAL)
    frame = at.dataframe[0].value
    assert frame["encoder, norm"].tolist() == [f"{value:.3g}" for value in before.encoder]
    assert frame["decoder, gradient, switched"].tolist() == [
        f"{value:.3g}" for value in after.decoder_gradient
    ]
    assert f"**{before.loss:.3f}**, switched: **{after.loss:.3f}**" in said(at)
    again = cache.trace(
        cache.MODEL, trace.text, trace.target_ids[1:], Change(residual=False)
    )  # what the maps are drawn from
    assert after.loss == pytest.approx(-float(again.piece_log_probs.mean()), rel=1e-4)
    assert len(charts(at)) == 4


def test_with_both_halves_on_there_is_nothing_to_compare() -> None:
    at = opened(why_tab=NORM)
    assert "Both halves are on" in said(at)
    assert all(len(chart["data"]) == 1 for chart in charts(at))


def test_what_is_0_or_beyond_all_numbers_has_no_point() -> None:
    before = np.array([1.0, 2.0, 3.0], np.float32)
    after = np.array([0.0, np.inf, 7.0], np.float32)
    figure = figures.heights(before, after, LIGHT, "size", ["in", "1", "2"])
    assert np.isnan(figure.data[1].y).tolist() == [True, True, False]
    assert np.isfinite(figure.layout.yaxis.range).all()


@pytest.mark.parametrize("masked", ["true", "false"])
@pytest.mark.parametrize(("pads", "other"), [("0", "false"), ("3", "false"), ("0", "true"), ("5", "true")])
def test_a_pad_or_a_sentence_moves_batch_norm_and_never_layer_norm(
    masked: str, pads: str, other: str
) -> None:
    at = opened(why_tab=NORM, why_add="batch", why_pads=pads, why_other=other, why_masked=masked)
    found = re.search(r"Of ([\d,]+) numbers .* moved \*\*(\d+)\*\* and BatchNorm \*\*([\d,]+)\*\*", said(at))
    assert found
    count, layer, batch = (int(each.replace(",", "")) for each in found.groups())
    assert layer == 0
    # Pads that are left out change nothing; another sentence always does.
    still = other == "false" and (pads == "0" or masked == "true")
    assert batch == 0 if still else batch > 0.9 * count


def test_the_frames_enclose_what_is_averaged(trace: Trace) -> None:
    x = trace.entering("encoder", 0)
    real = np.arange(7) < 5
    figure = figures.averaged(x, trace.source, real, 2, 3, 1.0, DARK, [DARK.source] * 7)
    across, down = figure.layout.shapes
    assert (across.x0, across.x1, across.y0, across.y1) == (-0.5, 21.5, 1.5, 2.5)
    assert (down.x0, down.x1, down.y0, down.y1) == (2.5, 3.5, -0.5, 6.5)
    np.testing.assert_array_equal(figure.data[0].z, x)
    (hatched,) = figure.select_traces({"name": "hatch"})
    assert set(np.round(hatched.y[np.isfinite(hatched.y)]).astype(int)) <= {4, 5, 6, 7}
    assert len(hatched.y) == 2 * 22 * 9


@given(st.floats(-40, 40), st.floats(0.6, 60))
def test_a_logarithmic_axis_has_a_few_places_and_says_them(low: float, room: float) -> None:
    ticks = figures._ticks(low, low + room)
    assert 1 <= len(ticks) <= 13
    assert len({*ticks.values()}) == len(ticks)
    for place, text in ticks.items():
        assert low <= math.log10(place) <= low + room
        said_ = 10.0 ** int(text[7:-6]) if text.startswith("10<sup>") else float(text)
        assert math.isclose(said_, place, rel_tol=1e-6)


# --- history ---


def test_an_image_is_cut_into_tokens() -> None:
    at = opened(why_tab="history", why_history="images")
    assert "**196 tokens**" in said(at)
    assert "**38,416 weights a head**" in said(at)
    at = opened(why_tab="history", why_history="images", why_image="96", why_patch="14")
    assert "96 does not divide into patches of 14" in said(at)


def test_the_events_stand_in_their_order_and_their_names_apart() -> None:
    events = [
        figures.Event(2014.1, "a", "a"),
        figures.Event(2014.2, "b", "<b>"),
        figures.Event(2017.5, "c", "c", True),
    ]
    figure = figures.dated_line(events, LIGHT)
    (marks,) = figure.select_traces({"name": "events"})
    assert list(marks.y) == [2014.1, 2014.2, 2017.5]
    assert marks.hovertext[1] == "&lt;b&gt;"
    names = [note.y for note in figure.layout.annotations[:3]]
    assert min(np.diff(names)) >= 0.3


def test_the_head_beside_the_kernel_is_the_one_that_looks_back_most() -> None:
    at = opened(why_tab="history", why_history="kernel", why_kernel="5", text="The cat sees the dog.")
    fixed, head = charts(at)
    kernel = history._fixed(7, 5)
    assert kernel[6].tolist() == pytest.approx([0, 0, *[0.2] * 5])
    assert kernel[1].tolist() == pytest.approx([0.2, 0.2, *[0] * 5])
    trace = cache.trace(cache.MODEL, "The cat sees the dog.")
    back = max(
        float(np.diagonal(trace.weights(kind)[layer, number], -1).mean())
        for kind in ("encoder", "decoder")
        for layer in range(3)
        for number in range(8)
    )
    assert f"{100 * back:.0f} % of its weight lies one back" in said(at)
    assert fixed["data"][0]["name"] == "weights"
    assert {part["name"] for part in head["data"]} >= {"weights", "row sums"}


def test_names_at_the_ends_of_lines_do_not_lie_over_each_other() -> None:
    x = [2**power for power in range(4, 9)]
    lines = [figures.Growth(str(index), [7.0 * n for n in x], index) for index in range(4)]
    lines.append(figures.Growth("none", [float("nan")] * 5, 0, True))
    figure = figures.growth(x, lines, LIGHT, ("n", "y"), "", [(32.0, "here"), (1e9, "beyond")])
    names = sorted(note.y for note in figure.layout.annotations if note.text in "0123")
    assert min(np.diff(names)) > 0.05
    texts = [note.text for note in figure.layout.annotations]
    assert "here" in texts
    assert "beyond" not in texts
    assert "none" not in texts


def test_what_the_reader_asked_for_stands_in_the_address_and_comes_back_from_it(
    page: Page, address: str
) -> None:
    done = page.locator('[data-test-script-state="notRunning"]')
    page.goto(f"{address}why?why_cost=run&why_d=32")
    done.wait_for()
    page.get_by_text("Nothing is timed before you ask").wait_for()
    page.get_by_text("Run them on this machine").click()
    page.wait_for_url(re.compile("why_run=true"))
    page.get_by_text("Time of a forward pass").wait_for()
    page.reload()
    page.get_by_text("Time of a forward pass").wait_for()
    page.get_by_role("radio", name="parameters").click()
    page.get_by_role("button", name="the paper's big model").click()
    page.wait_for_url(re.compile("why_d_model=1024"))
    page.get_by_text(f"{counts.total(counts.PAPER['big']):,}", exact=True).wait_for()
