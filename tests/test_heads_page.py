"""The page of heads: what it draws, prints and says is what was traced, counted or surveyed."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import model
from model import heads, survey, words
from model.heads import Tally, all_heads
from model.trace import KINDS, Change, Head, Trace
from model.translator import Translator
from tests.test_figures import matrix, sent, trace_of
from viz import roles, tables
from viz.figures.heads import (
    ACROSS,
    STROKES,
    Thumbnail,
    Truth,
    arcs,
    grades,
    mixed,
    ranked,
    shares,
    thumbnails,
    tiles,
)
from viz.pages.heads import TABS
from viz.pages.heads.rules import known, on_sentence
from viz.reading import loss
from viz.theme import PALETTES, escape

ROOT = Path(__file__).parent.parent
LIGHT = PALETTES["light"]
HERE = Head("cross", 1, 0)
SENTENCE = "The old dog sees a cat."


@pytest.fixture(scope="module")
def shipped() -> Translator:
    return model.load("en-fr")


def opened(**params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in params.items():
        at.query_params[name] = value
    at._page_hash = calc_hash("heads")
    return at.run()


def said(at: AppTest) -> str:
    parts = [*at.markdown, *at.caption, *at.text, *at.info, *at.warning]
    return "\n".join(part.value.replace("\\", "") for part in parts)


def chart(at: AppTest, name: str) -> dict[str, Any]:
    """The figure that holds a trace of this name."""
    for element in at.get("plotly_chart"):
        figure: dict[str, Any] = json.loads(element.proto.spec)
        if any(trace.get("name") == name for trace in figure["data"]):
            return figure
    raise AssertionError(name)


# --- heads as text ----------------------------------------------------------------------------------------

PLACES = st.frozensets(st.sampled_from(all_heads(3, 11)))


@given(removed=PLACES)
def test_heads_written_into_an_address_read_back_as_themselves(removed: roles.Heads) -> None:
    assert roles.parse(roles.write(removed), dict.fromkeys(KINDS, (3, 11))) == (removed, [])


@given(text=st.text(alphabet="edcx0123456789. ", max_size=40))
def test_any_text_names_heads_of_the_model_or_is_told_wrong(text: str) -> None:
    found, wrong = roles.parse(text, dict.fromkeys(KINDS, (3, 11)))
    assert found <= {*all_heads(3, 11)}
    assert set(wrong) <= set(text.split())


def test_layers_and_heads_count_from_1_in_an_address() -> None:
    assert roles.write({Head("cross", 1, 4), Head("encoder", 0, 0)}) == "e1.1 c2.5"
    assert roles.parse("e0.1 c4.1 d1.12 c2.5", dict.fromkeys(KINDS, (3, 11))) == (
        {Head("cross", 1, 4)},
        ["e0.1", "c4.1", "d1.12"],
    )


# --- figures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_thumbnail_holds_its_heads_weights_in_the_order_given(trace: Trace, kind: str) -> None:
    order = [Head(kind, layer, head) for head in range(2) for layer in (2, 0, 1)]  # type: ignore[arg-type]
    order *= 2  # more than one line
    of = [
        Thumbnail(h, trace.weights(h.kind)[h.layer, h.head], trace.allowed(h.kind)[h.layer, h.head])
        for h in order
    ]
    figure = thumbnails(of, order[3], LIGHT)
    mosaic = matrix(figure.data[1].z)
    centres = trace_of(figure, "targets")
    rows, columns = of[0].weights.shape
    assert len(of) > ACROSS
    for index, one in enumerate(of):
        assert centres["customdata"][index] == [index]
        left = round(centres["x"][index] - (columns - 1) / 2)
        top = round(centres["y"][index] - (rows - 1) / 2)
        drawn = mosaic[top : top + rows, left : left + columns]
        assert np.array_equal(drawn[one.allowed], one.weights[one.allowed])
        assert np.isnan(drawn[~one.allowed]).all()
        assert any(
            note["text"].startswith(("<b>", "")) and roles.short(one.head) in note["text"]
            for note in sent(figure)["layout"]["annotations"]
        )
    drawn_cells = np.isfinite(mosaic).sum()
    assert drawn_cells == sum(one.allowed.sum() for one in of)
    framed = [shape for shape in sent(figure)["layout"]["shapes"] if shape["line"]["color"] == LIGHT.accent]
    assert len(framed) == 2  # the chosen head stands twice in this order


def test_very_many_blocked_cells_are_ground_without_a_hatch(trace: Trace) -> None:
    size = 40
    allowed = np.tril(np.ones((size, size), bool))
    of = [Thumbnail(Head("decoder", 0, head), allowed / 7, allowed) for head in range(8)]
    assert 8 * (~allowed).sum() > STROKES
    assert {trace["name"] for trace in sent(thumbnails(of, HERE, LIGHT))["data"]} == {
        "ground",
        "weights",
        "targets",
    }


def numbers(seed: int = 0) -> dict[Any, np.ndarray]:
    random = np.random.default_rng(seed)
    return {kind: random.standard_normal((3, 2)).astype(np.float32) for kind in KINDS}


def test_a_tile_shows_its_number_and_a_removed_head_is_crossed_out() -> None:
    values, struck = numbers(), frozenset({Head("decoder", 2, 1)})
    figure = tiles(values, struck, HERE, LIGHT)
    table, places = matrix(figure.data[0].z), trace_of(figure, "targets")
    assert len(places["customdata"]) == 18
    for (kind, layer, head), x, y in zip(places["customdata"], places["x"], places["y"], strict=True):
        assert table[int(y), int(x)] == values[KINDS[kind]][layer, head]
        printed = figure.data[0].text[int(y), int(x)]
        assert printed == str(round(1000 * float(values[KINDS[kind]][layer, head])))
    layout = sent(figure)["layout"]
    assert sum(shape["type"] == "line" for shape in layout["shapes"]) == 2
    assert layout["coloraxis"]["cmax"] == -layout["coloraxis"]["cmin"] == pytest.approx(np.nanmax(abs(table)))


def test_bars_stand_in_the_order_of_what_heads_cost() -> None:
    values = numbers()
    bars = trace_of(ranked(values, HERE, LIGHT), "costs")
    figure = ranked(values, HERE, LIGHT)
    y = np.array(figure.data[0].y)
    assert (np.diff(y) <= 0).all()
    for (kind, layer, head), value in zip(bars["customdata"], y, strict=True):
        assert value == values[KINDS[kind]][layer, head]
    colours = bars["marker"]["color"]
    assert bars["customdata"][colours.index(LIGHT.accent)] == [KINDS.index("cross"), 1, 0]
    assert colours.count(LIGHT.accent) == 1


def test_shares_and_grades_print_the_numbers_they_are_given() -> None:
    values = np.array([[0.25, np.nan], [1, 0]], np.float32)
    figure = shares(values, [HERE, "random <b>"], ["a", "b"], HERE, LIGHT)
    assert np.array_equal(matrix(figure.data[0].z), values, equal_nan=True)
    assert "not asked" in trace_of(figure, "targets")["hovertext"][1]
    rates = np.random.default_rng(0).random((3, 2)).astype(np.float32)
    figure = grades(rates, HERE, LIGHT)
    assert np.array_equal(matrix(figure.data[0].z), rates)
    assert trace_of(figure, "targets")["customdata"][3] == [KINDS.index("cross"), 1, 1]


def test_arcs_join_the_linked_words_and_errors_are_told_apart() -> None:
    weights = np.array([[0.7, 0.2, 0.1], [0.01, 0.01, 0.98]], np.float32)  # 2 French words, 3 English
    found = words.links([0, 2])
    truth = Truth(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 0)}))
    figure = arcs(weights, found, (["a", "<b>", "c"], ["x", "y"]), LIGHT, truth)

    def ends(name: str) -> set[tuple[float, float]]:
        line = trace_of(figure, name)
        points = [(x, y) for x, y in zip(line["x"], line["y"], strict=True)]
        starts = [y for x, y in points if x == 0]
        stops = [y for x, y in points if x == 1]
        return {*zip(starts, stops, strict=True)}

    left, right = [0, 1, 2], [0.5, 1.5]
    assert ends("found") == {(left[0], right[0])}
    assert ends("wrong") == {(left[2], right[1])}
    assert ends("missed") == {(left[1], right[1])}
    assert ends("weight 2") == {(left[1], right[0])}
    assert ends("weight 1") == {(left[2], right[0])}  # what is under 2 % is not drawn
    assert "wrong" not in {
        t["name"] for t in sent(arcs(weights, found, (["a", "b", "c"], ["x", "y"]), LIGHT))["data"]
    }
    texts = [note["text"] for note in sent(figure)["layout"]["annotations"]]
    assert texts == ["a", escape("<b>"), "c", "x", "y"]


def test_a_rollout_is_drawn_cell_by_cell_on_its_own_scale(trace: Trace) -> None:
    rolled = heads.rollout(trace, "cross")[-1]
    size = len(trace.target)
    blocked = np.zeros(rolled.shape, bool)
    blocked[:, len(trace.source) :] = np.triu(np.ones((size, size), bool), 1)
    figure = mixed(rolled, blocked, trace.target, (trace.source, trace.target), LIGHT)
    drawn = matrix(figure.data[1].z)
    assert np.array_equal(drawn[~blocked], rolled[~blocked])
    assert np.isnan(drawn[blocked]).all()
    layout = sent(figure)["layout"]
    assert layout["coloraxis"]["cmax"] == pytest.approx(float(rolled.max()))
    assert layout["coloraxis"]["showscale"]  # another scale than that of the maps is shown
    assert len(layout["xaxis"]["ticktext"]) == len(trace.source) + size


# --- tables -----------------------------------------------------------------------------------------------


def test_the_table_of_aligners_has_the_best_first_and_every_baseline() -> None:
    found = json.loads((ROOT / "assets" / "models" / "en-fr" / "alignment.json").read_text())
    for read in words.READS:
        table = tables.alignment(found, read)
        rates = table["reporting"].astype(float)
        assert (np.diff(rates) >= 0).all()
        assert len(table) == 5
        assert table["aligner"].iloc[-1] == "a random head"


# --- the page ---------------------------------------------------------------------------------------------


def test_the_page_opens_on_every_head_of_the_kind_as_a_thumbnail(shipped: Translator) -> None:
    at = opened(text=SENTENCE, kind="encoder", layer="2", head="5")
    assert not at.exception
    assert len(at.get("plotly_chart")) == 2
    notes = [note["text"] for note in chart(at, "targets")["layout"]["annotations"]]
    assert [note.split(" ")[0] for note in notes] == [
        name if name != "2.5" else "<b>2.5</b>" for name in (roles.short(h) for h in all_heads(3, 8)[:24])
    ]
    trace = shipped.trace(SENTENCE)
    entropy = float(Tally.of(trace, "encoder").means()["entropy"][1, 4])
    (table,) = at.dataframe
    assert table.value["here"].iloc[0] == f"{entropy:.2f}"


@pytest.mark.parametrize("by", ["entropy", "largest", "distance", "importance"])
def test_heads_are_sorted_by_the_measure_that_was_chosen(shipped: Translator, by: str) -> None:
    at = opened(text=SENTENCE, kind="cross", heads_by=by)
    assert not at.exception
    notes = [note["text"] for note in chart(at, "targets")["layout"]["annotations"]]
    order = [note.replace("<b>", "").split("<")[0] for note in notes]
    values: dict[str, float] = {}
    means = Tally.of(shipped.trace(SENTENCE), "cross").means()
    found = survey.load(ROOT / "assets" / "models" / "en-fr")
    assert found
    for head in all_heads(3, 8)[48:]:
        values[roles.short(head)] = (
            roles.of(found, head)["removed"]
            if by == "importance"
            else float(means[by][head.layer, head.head])
        )
    assert order == sorted(values, key=lambda name: -values[name])


def test_the_rules_page_counts_the_heads_that_fit_and_those_that_fit_none() -> None:
    found = survey.load(ROOT / "assets" / "models" / "en-fr")
    assert found
    given = [heads.given({r: one[r] for r in heads.ROLES if r in one}) for one in found["heads"]]
    fit = sum(role is not None for role in given)
    at = opened(heads_tab="rules", text=SENTENCE)
    assert not at.exception
    assert f"**{fit} of 72 heads**" in said(at)
    assert f"**{72 - fit} fit none**" in said(at)
    assert len(at.get("plotly_chart")) == 2
    assert len(at.dataframe[0].value) == 72


def test_elsewhere_the_best_aligner_stands_in_and_is_not_asked_about_itself(shipped: Translator) -> None:
    trace = shipped.trace(SENTENCE)
    links = known(trace, "en-fr")
    assert links.by == (Head("cross", 0, 7), "align in")
    now = on_sentence(trace, "cross", links)
    assert math.isnan(now[Head("cross", 0, 7)]["align in"])
    own = words.favourites(words.cross_words(trace, "goes in"))[0, 7]
    other = words.favourites(words.cross_words(trace, "comes out"))[2, 1]
    assert now[Head("cross", 2, 1)]["align out"] == pytest.approx(float((own == other).mean()))
    at = opened(heads_tab="rules", text=SENTENCE, kind="cross")
    assert "stand in for them, and it is not asked" in said(at)
    pair = words.read_gold()[22]
    at = opened(heads_tab="rules", text=pair.english, target=pair.french, kind="cross")
    assert "and it is not asked" not in said(at)


def test_on_a_gold_pair_the_aligning_rules_are_checked_too() -> None:
    pair = words.read_gold()[22]
    at = opened(heads_tab="rules", text=pair.english, target=pair.french, kind="cross")
    assert not at.exception
    sentence = json.loads(at.get("plotly_chart")[1].proto.spec)
    texts = next(t for t in sentence["data"] if t["name"] == "targets")["hovertext"]
    assert not any("aligns" in text and "not asked" in text for text in texts[:-9])


def test_removing_a_head_shows_what_the_model_computes_without_it(shipped: Translator) -> None:
    at = opened(heads_tab="remove", text=SENTENCE)
    assert not at.exception
    assert len(at.get("plotly_chart")) == 1  # the heads to click, nothing else
    at.button(key="heads_this").click().run()
    assert at.text_input(key="heads_removed").value == "c3.4"
    at.text_input(key="heads_removed").set_value("c1.8 d2.1").run()
    change = Change(removed=frozenset({Head("cross", 0, 7), Head("decoder", 1, 0)}))
    before = shipped.trace(SENTENCE)
    after = shipped.trace(SENTENCE, before.translation, change)
    assert f"after: {loss(after):.3f}" in said(at)
    assert f"after: {shipped.trace(SENTENCE, change=change).translation}" in said(at)
    moved = [
        np.any(after.weights(kind)[layer, head] != before.weights(kind)[layer, head])
        for kind in KINDS
        for layer in range(3)
        for head in range(8)
    ]
    assert f"{72 - sum(moved)} of 72 heads have not moved" in said(at)
    at.button(key="heads_back").click().run()
    assert at.text_input(key="heads_removed").value == ""


def test_a_head_at_random_is_one_that_is_not_removed_yet() -> None:
    at = opened(heads_tab="remove", heads_removed="c1.8")
    at.button(key="heads_random").click().run()
    found, wrong = roles.parse(str(at.text_input(key="heads_removed").value), dict.fromkeys(KINDS, (3, 8)))
    assert len(found) == 2
    assert Head("cross", 0, 7) in found
    assert not wrong


def test_the_uniform_test_says_what_an_even_head_costs_among_all(shipped: Translator) -> None:
    at = opened(heads_tab="uniform", text=SENTENCE, kind="cross", layer="1", head="8")
    assert not at.exception
    before = shipped.trace(SENTENCE)
    after = shipped.trace(SENTENCE, before.translation, Change(uniform=frozenset({Head("cross", 0, 7)})))
    gained = loss(after) - loss(before)
    assert f"**{gained:+.3f}**" in said(at)
    everyone = survey.costs(shipped, SENTENCE, before.translation, "uniform")
    assert f"it is number {(everyone > everyone[2, 0, 7]).sum() + 1} by" in said(at)
    same = sum(a[0].piece == b[0].piece for a, b in zip(before.candidates, after.candidates, strict=True))
    assert f"the same in {same} of {len(before.target)} rows" in said(at)


def test_a_gold_pair_shows_its_error_rate_with_its_numbers(shipped: Translator) -> None:
    pair = words.read_gold()[7]
    at = opened(heads_tab="align", heads_pair="8", heads_read="goes in", layer="1", head="8")
    assert not at.exception
    trace = shipped.trace(pair.english, pair.french)
    chosen = words.favourites(words.cross_words(trace, "goes in"))[0, 7]
    found = words.links(chosen.tolist())
    assert f"= {words.aer([found], [pair]):.3f}" in said(at)
    assert f"A: {len(found)} links found; S: {len(pair.sure)} sure" in said(at)
    figure = chart(at, "cells")
    assert {note["text"] for note in figure["layout"]["annotations"]} == {*pair.source, *pair.target}


def test_the_best_aligner_is_one_click_away() -> None:
    found = json.loads((ROOT / "assets" / "models" / "en-fr" / "alignment.json").read_text())
    best = found["best"]["goes in"]
    at = opened(heads_tab="align", heads_read="goes in")
    assert f"**{best['report']:.3f}**" in said(at)
    at.button(key="heads_best").click().run()
    assert at.segmented_control(key="layer").value == best["layer"] + 1
    assert at.segmented_control(key="head").value == best["head"] + 1
    assert at.button(key="heads_best").disabled


def test_the_rollout_says_that_its_rows_sum_to_1_and_that_its_scale_is_its_own(shipped: Translator) -> None:
    at = opened(heads_tab="rollout", text=SENTENCE, kind="decoder", layer="3")
    assert not at.exception
    rolled = heads.rollout(shipped.trace(SENTENCE), "decoder")[2]
    assert "Rows sum to 1" in said(at)
    assert f"0 to {100 * rolled.max():.0f} %" in said(at)


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize(
    "text", ["Go", "We " + "do not know where she is " * 9 + "now."], ids=["one word", "as long as may be"]
)
def test_one_word_and_a_long_sentence_are_answered(tab: str, text: str) -> None:
    for kind in KINDS:
        at = opened(heads_tab=tab, text=text, kind=kind, heads_removed="d1.1")
        assert not at.exception
        assert not at.warning
        assert at.get("plotly_chart")


def test_what_a_link_cannot_mean_is_said_and_the_usual_shown() -> None:
    bad = {"heads_tab": "x<b>", "heads_by": "beauty", "heads_read": "sideways", "heads_pair": "999"}
    at = opened(**bad)
    assert not at.exception
    warned = "\n".join(warning.value.replace("\\", "") for warning in at.warning)
    for name, value in bad.items():
        assert f'{name} "{value}"' in warned
    at = opened(heads_tab="remove", heads_removed="c9.9 <img> c1.1")
    assert not at.exception
    assert "These name no head of this model: c9.9 <img>" in said(at)
    assert "*" not in at.text_input(key="heads_removed").value


def test_without_a_survey_the_page_shows_this_sentence_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from viz import cache

    monkeypatch.setattr(cache, "surveyed", lambda name="": None)
    monkeypatch.setattr(cache, "alignment", lambda name="": None)
    for tab in TABS:
        at = opened(heads_tab=tab, text=SENTENCE)
        assert not at.exception
        assert at.get("plotly_chart")
