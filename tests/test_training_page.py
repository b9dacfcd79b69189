"""The Training page: losses, dropout, n-grams and snapshots are what torch and sacrebleu say they are."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from torch.nn.functional import cross_entropy

from conftest import FORCED, TEXT
from model import checkpoint, heads
from model.decoding import greedy
from model.experiments import (
    PLACES,
    smoothed_curve,
    smoothed_floor,
    smoothed_loss,
    smoothed_target,
    with_dropout,
)
from model.quality import count, shared, tally
from model.trace import KINDS, Trace
from model.training import history
from model.training.loop import SHIP, Recipe
from model.transformer import Transformer
from model.translator import Translator
from viz import cache
from viz.figures.heatmap import Look
from viz.figures.training import TOP, dropped_map, logged_curves, ngrams
from viz.pages import training
from viz.pages.training.watch import evenness, ruled
from viz.reading import Map, find, roles
from viz.tables import forcing
from viz.text import examples, references
from viz.theme import PALETTES

ROOT = Path(__file__).parent.parent
LIGHT = PALETTES["light"]
WORDS = ["le", "chat", "noir", ".", "petit", ",", "l'école", "n'est", "un", "une", "Tom's", "3.5", "-", "vu"]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


def opened(**params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in params.items():
        at.query_params[name] = value
    at._page_hash = calc_hash("training")  # AppTest finds only pages that are files by itself
    return at.run()


def said(at: AppTest) -> str:
    parts = [*at.markdown, *at.caption, *at.text, *at.info]
    return "\n".join(part.value.replace("\\", "") for part in parts)


def specs(at: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def film(at: AppTest) -> dict[str, Any]:
    """What the snapshots' component was sent."""
    for element in at.get("bidi_component"):
        if "snapshots" in element.proto.component_name:
            return json.loads(element.proto.json)
    raise AssertionError("no film on the page")


# --- label smoothing ---


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_smoothed_losses_are_torchs_and_none_is_under_the_floor(trace: Trace, smoothing: float) -> None:
    right = np.array(trace.out_ids)
    seen = smoothed_loss(trace.log_probs, right, smoothing)
    logits, target = torch.tensor(trace.log_probs), torch.tensor(right)
    for ours, epsilon in ((seen.plain, 0.0), (seen.smoothed, smoothing)):
        torchs = cross_entropy(logits, target, label_smoothing=epsilon, reduction="none")
        np.testing.assert_allclose(ours, torchs, rtol=1e-5)
    np.testing.assert_allclose(seen.plain, -trace.piece_log_probs, rtol=1e-6)
    assert (seen.smoothed >= seen.floor - 1e-6).all()


def test_the_floor_is_reached_by_the_smoothed_target_itself_and_by_nothing_surer() -> None:
    pieces, smoothing = 8000, 0.1
    right, other = smoothed_target(pieces, smoothing)
    assert right + (pieces - 1) * other == pytest.approx(1)
    target = torch.full((pieces,), other, dtype=torch.float64)
    target[7] = right
    floor = smoothed_floor(pieces, smoothing)
    assert floor == pytest.approx(float(torch.distributions.Categorical(probs=target).entropy()), abs=1e-9)
    assert float(cross_entropy(target.log()[None], torch.tensor([7]), label_smoothing=smoothing)) == (
        pytest.approx(floor, abs=1e-9)
    )
    share = np.linspace(0.001, 0.999, 999, dtype=np.float32)
    curve = smoothed_curve(share, pieces, smoothing)
    assert share[curve.argmin()] == pytest.approx(right, abs=1e-3)
    assert curve.min() == pytest.approx(floor, abs=1e-4)
    np.testing.assert_allclose(smoothed_curve(share, pieces, 0), -np.log(share), rtol=1e-5)
    assert smoothed_floor(pieces, 0) == 0


# --- dropout ---


def dropped(translator: Translator, places: tuple[Any, ...], rate: float, seed: int) -> Trace:
    model = with_dropout(translator.model, places, rate, seed)
    return Translator("dropped", model, translator.tokenizer).trace(TEXT, FORCED)


def test_dropout_at_no_place_changes_nothing_and_a_seed_says_which_draw(
    translator: Translator, trace: Trace
) -> None:
    for kind in KINDS:
        np.testing.assert_allclose(
            dropped(translator, (), 0.5, 3).weights(kind), trace.weights(kind), atol=1e-6
        )
        first, again, other = (dropped(translator, PLACES, 0.3, seed).weights(kind) for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, again)
        assert abs(first - other).max() > 1e-3


def test_dropout_before_softmax_keeps_row_sums_and_after_it_does_not(translator: Translator) -> None:
    for places in (("sublayer",), ("embedding",), ("sublayer", "embedding")):
        seen = dropped(translator, places, 0.3, 1)
        for kind in KINDS:
            np.testing.assert_allclose(seen.weights(kind).sum(axis=-1), 1, atol=1e-5)
    seen = dropped(translator, ("attention",), 0.3, 1)
    for kind in KINDS:
        assert abs(seen.weights(kind).sum(axis=-1) - 1).max() > 0.1


def test_what_is_kept_of_a_weight_is_the_weight_over_the_share_kept(
    translator: Translator, trace: Trace
) -> None:
    """In the first layer nothing came before, so that the weights under dropout are those of eval mode."""
    rate = 0.3
    seen = dropped(translator, ("attention",), rate, 5).weights("encoder")[0]
    plain = trace.weights("encoder")[0]
    kept = seen > 0
    np.testing.assert_allclose(seen[kept], plain[kept] / (1 - rate), rtol=1e-5)
    assert 0.5 < kept.mean() < 0.9  # of 98 cells, 0.7 on average


def test_dropped_sums_are_right_on_average(translator: Translator) -> None:
    sums = [
        dropped(translator, ("attention",), 0.5, seed).weights("encoder")[0].sum(axis=-1)
        for seed in range(60)
    ]
    assert np.mean(sums) == pytest.approx(1, abs=0.05)


def test_the_shared_weights_are_not_touched_by_dropout(translator: Translator) -> None:
    before = {name: tensor.clone() for name, tensor in translator.model.state_dict().items()}
    copy = with_dropout(translator.model, PLACES, 0.5, 0)
    Translator("dropped", copy, translator.tokenizer).trace(TEXT, FORCED)
    assert not translator.model.training
    for name, tensor in translator.model.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_the_bars_of_row_sums_have_room_beyond_1(translator: Translator) -> None:
    seen = dropped(translator, ("attention",), 0.3, 1)
    picture = Map(seen, "cross", 1, 0)
    figure = dropped_map(picture, 2, 3, Look(LIGHT))
    (bars,) = [part for part in figure.data if part.name == "row sums"]
    np.testing.assert_allclose(bars.x, picture.weights.sum(axis=-1), rtol=1e-6)
    assert figure.layout.xaxis2.range[1] == TOP


# --- BLEU ---


@given(translation=SENTENCES, answers=st.lists(SENTENCES.filter(bool), min_size=1, max_size=3))
def test_counts_and_bleu_of_a_sentence_are_sacrebleus(translation: str, answers: list[str]) -> None:
    seen, theirs = (
        count(translation, answers),
        sacrebleu.BLEU().corpus_score([translation], [[a] for a in answers]),
    )
    whole = tally([seen])
    assert list(whole.matched) == theirs.counts
    assert list(whole.total) == theirs.totals
    assert whole.brevity == pytest.approx(theirs.bp)
    assert whole.precisions == pytest.approx(theirs.precisions)
    assert whole.score == pytest.approx(theirs.score)


def test_pooled_bleu_is_sacrebleus_and_not_the_mean_of_sentences() -> None:
    rng = random.Random(0)
    pairs = [
        (" ".join(rng.choices(WORDS[:6], k=7)), [" ".join(rng.choices(WORDS[:6], k=8)) for _ in range(2)])
        for _ in range(13)
    ]
    counts = [count(translation, answers) for translation, answers in pairs]
    columns = [[answers[i] for _, answers in pairs] for i in range(2)]
    theirs = sacrebleu.BLEU().corpus_score([translation for translation, _ in pairs], columns)
    assert tally(counts).score == pytest.approx(theirs.score)
    assert abs(np.mean([tally([each]).score for each in counts]) - theirs.score) > 1


def test_an_ngram_counts_no_more_often_than_a_reference_has_it() -> None:
    seen = count("le le le chat", ["le chat le", "le chien"])
    assert seen.states[0] == ("matched", "matched", "clipped", "matched")
    assert seen.states[1] == ("missing", "missing", "matched")
    assert seen.length == 3


@given(translation=SENTENCES, answer=SENTENCES, order=st.integers(1, 4))
def test_a_word_of_a_reference_is_bold_where_some_ngram_over_it_is_shared(
    translation: str, answer: str, order: int
) -> None:
    seen = count(translation, [answer])
    (reference,) = seen.references
    found = shared(seen, reference, order)
    want = [False] * len(reference)
    for start in range(len(reference) - order + 1):
        for other in range(len(seen.tokens) - order + 1):
            if reference[start : start + order] == seen.tokens[other : other + order]:
                want[start : start + order] = [True] * order
    assert list(found) == want


def test_the_bars_stand_over_the_words_of_their_ngrams() -> None:
    seen = count("Elle a un petit chat noir.", ["Elle possède un petit chat noir."])
    figure = ngrams(seen.tokens, seen.states, None, LIGHT)
    bars = [(shape.x0 + 0.46, shape.x1 - 0.46, shape.y0, shape.fillcolor) for shape in figure.layout.shapes]
    assert len(bars) == 7 + 6 + 5 + 4
    filled = {(round(x0), round(x1)) for x0, x1, _y, colour in bars if colour == LIGHT.weights[2][1]}
    assert (2, 5) in filled  # un petit chat noir
    assert (0, 1) not in filled  # Elle a
    for one in bars:
        for other in bars:
            assert one == other or one[2] != other[2] or one[1] < other[0] or other[1] < one[0]


def test_the_first_example_has_a_reference_that_differs_from_what_the_model_writes() -> None:
    first = examples()[0]
    assert references()[first.text]
    assert first.french not in references()[first.text]  # else there is nothing to see


# --- snapshots and history ---


def test_a_snapshot_is_the_model_as_it_was(run: Path, recipe: Recipe) -> None:
    """Step 0 holds what training began with, to the 8 bits that are kept."""
    assert checkpoint.snapshots(run / SHIP)[0] == 0
    start = checkpoint.load_snapshot(run / SHIP, 0)
    torch.manual_seed(recipe.seed)
    fresh = Transformer(start.config).state_dict()
    for name, kept in start.state_dict().items():
        assert (kept - fresh[name]).abs().max() <= fresh[name].abs().max() / 200, name


def test_the_history_is_read_as_it_was_written(run: Path, recipe: Recipe) -> None:
    seen = history.read(run / SHIP / "history.csv")
    assert seen.steps.tolist() == list(range(50, recipe.steps + 1, 50))
    assert seen.validated.tolist() == [70, 140, 210, 280, recipe.steps]
    assert seen.loss[-1] < seen.loss[0]
    assert seen.learning_rate.argmax() == 0  # the warm-up of this run ends before the first line


def test_the_curves_are_the_log_and_the_floor_lies_under_them() -> None:
    seen = cache.curves()
    floor = cache.smoothed_floor(cache.config().vocabulary, 0.1)
    figure = logged_curves(seen, floor, cache.snapshots()[:-1], LIGHT)
    by_name = {part.name: part for part in figure.data}
    np.testing.assert_array_equal(by_name["loss"].y, seen.loss)
    np.testing.assert_array_equal(by_name["BLEU"].x, seen.validated)
    assert by_name["snapshots"].x.tolist() == list(cache.snapshots()[:-1])
    assert seen.loss.min() > floor
    assert any(shape.y0 == floor for shape in figure.layout.shapes)


def test_evenness_is_1_where_rows_are_uniform_and_0_where_one_key_takes_all(trace: Trace) -> None:
    class Given(Map):
        weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], np.float32)
        allowed = np.tril(np.ones((3, 3), bool))

    picture = Given(trace, "decoder", 0, 0)
    assert evenness(picture) == pytest.approx(1)
    picture.__class__.weights = np.eye(3, dtype=np.float32)
    assert evenness(picture) == 0


def test_noise_is_not_uniform_and_training_sharpens_the_head_of_the_first_example() -> None:
    first = examples()[0]
    traces = [cache.trace_at(cache.MODEL, step, first.text, first.french) for step in cache.snapshots()]
    shares = [evenness(Map(trace, first.kind, first.layer - 1, first.head - 1)) for trace in traces]
    assert 0.9 < shares[0] < 0.995
    assert shares[-1] < 0.3
    rows = traces[-1].comes_out.index(first.expect.row.removeprefix("-> "))
    column = traces[0].source.index(first.expect.column)
    weights = [trace.weights(first.kind)[first.layer - 1, first.head - 1, rows, column] for trace in traces]
    assert weights[0] < 0.2 < first.expect.at_least < weights[-1]


def test_heads_are_counted_by_the_rules_of_the_page_heads() -> None:
    """Noise is broad: that is what training takes away."""
    first = examples()[0]
    seen = {}
    for step in (cache.snapshots()[0], cache.snapshots()[-1]):
        trace = cache.trace_at(cache.MODEL, step, first.text, first.french)
        counts = seen[step] = ruled(trace)
        assert counts.total() == sum(math.prod(trace.weights(kind).shape[:2]) for kind in KINDS)
        # A head with a role has some rule that holds in half of its rows; a head without has none.
        free = 0
        for kind in KINDS:
            rates = []
            for role in heads.ROLES:
                if kind in heads.WHERE[role] and role not in heads.READING:
                    hits, rows = heads.role_counts(trace, role, kind)
                    rates.append(hits / np.maximum(rows, 1))
            free += int((np.max(rates, axis=0) < heads.HOLDS).sum())
        assert counts[None] == free
    noise, end = seen.values()
    assert noise["broad"] > noise.total() / 2 > end["broad"]


def test_a_snapshot_translates_as_its_own_greedy_search_does() -> None:
    step = cache.snapshots()[2]
    old = checkpoint.load_snapshot(ROOT / "assets" / "models" / cache.MODEL, step)
    tokenizer = cache.door().tokenizer
    ids = greedy(old, torch.tensor([tokenizer.source("I am a student.")]))[0]
    assert cache.translation_at(cache.MODEL, step, "I am a student.") == tokenizer.decode(ids)


# --- the page ---


def test_the_page_opens_on_noise_and_says_so() -> None:
    at = opened()
    assert not at.exception
    seen = film(at)
    assert seen["step"] == 1
    assert "noise, not yet a pattern" in seen["said"][0]
    assert seen["wrote"][-1] == examples()[0].french


def test_all_snapshots_are_in_the_film_with_the_maps_of_their_traces() -> None:
    first, kept = examples()[0], cache.snapshots()
    for kind, head in (("cross", 3), ("decoder", None)):
        at = opened(train_step=str(kept[2]), kind=kind, layer="2", mean=str(head is None).lower(), head="4")
        seen = film(at)
        assert seen["step"] == 3
        assert seen["values"] == list(kept)
        for step, weights, said_, wrote in zip(
            kept, seen["weights"], seen["said"], seen["wrote"], strict=True
        ):
            trace = cache.trace_at(cache.MODEL, step, first.text, first.french)
            picture = Map(trace, kind, 1, head)
            np.testing.assert_allclose(weights, picture.weights, atol=1e-6)
            assert [[bool(why) for why in row] for row in seen["blocked"]] == (~picture.allowed).tolist()
            assert f"map: {evenness(picture):.3f}." in said_
            whole = cache.translation_at(cache.MODEL, step, first.text)
            assert wrote == whole or wrote.startswith(whole[:40])


def test_the_tables_of_the_film_are_the_roles_of_each_snapshot() -> None:
    first = examples()[0]
    best, counts = film(opened())["tables"]
    for role, row in zip(roles(), best["rows"], strict=False):
        for at, step in enumerate(cache.snapshots()):
            trace = cache.trace_at(cache.MODEL, step, first.text, first.french)
            assert row["shares"][at] == pytest.approx(find(trace, role).score)
            assert row["shown"][at] == f"{find(trace, role).score:.2f}"
    heads_ = 3 * 3 * 8
    columns = zip(*(row["shown"] for row in counts["rows"]), strict=True)
    assert all(sum(map(int, column)) == heads_ for column in columns)


@pytest.mark.parametrize("tab", list(training.TABS))
def test_every_tab_opens_on_an_odd_sentence_too(tab: str) -> None:
    for text in ("Tom loves Mary.", "<b>$x$ 🙂", "?"):
        at = opened(train_tab=tab, text=text)
        assert not at.exception
        assert not at.warning


@pytest.mark.parametrize(
    "bad", ["train_step=1", "train_tab=x", "train_smoothing=2", "train_places=all", "train_seed=-1"]
)
def test_a_bad_link_is_told(bad: str) -> None:
    name, _equals, value = bad.partition("=")
    at = opened(**({"train_tab": "dropout"} if name == "train_places" else {}) | {name: value})
    assert not at.exception
    assert any(f"asked for {name}" in each.value.replace("\\", "") for each in at.warning)


def test_the_smoothing_tab_says_the_losses_of_the_sentence() -> None:
    trace = cache.trace(cache.MODEL, examples()[0].text)
    seen = smoothed_loss(trace.log_probs, np.array(trace.out_ids), 0.2)
    at = opened(train_tab="smoothing", train_smoothing="0.2")
    assert f"**{seen.smoothed.mean():.3f}** with ε = 0.2" in said(at)
    assert f"**{seen.floor:.3f}**" in said(at)


def test_the_dropout_tab_shows_the_draw_that_the_link_names() -> None:
    at = opened(train_tab="dropout", train_seed="7", train_rate="0.3")
    first = examples()[0]
    seen = cache.dropped(cache.MODEL, first.text, first.french, ("attention",), 0.3, 7)
    sums = seen.weights("cross")[first.layer - 1, first.head - 1].sum(axis=-1)
    assert f"Row sums from {sums.min():.4f} to {sums.max():.4f}" in said(at)
    assert "Why rows miss 1" in said(at)


def test_forcing_says_where_another_piece_was_likelier(trace: Trace) -> None:
    frame = forcing(trace)
    assert frame.iloc[:, 0].tolist() == list(trace.target)
    assert frame.iloc[1:, 0].tolist() == frame.iloc[:-1, 1].tolist()  # the right piece goes in next
    likeliest = trace.log_probs.argmax(axis=-1)
    same = [row[0] == row[1] for row in zip(likeliest.tolist(), trace.out_ids, strict=True)]
    assert sum(frame.iloc[:, 3] == frame.iloc[:, 1]) >= sum(same)
    at = opened(train_tab="forcing", target="Elle a un petit chien noir.")
    assert "In 1 of 8 rows another piece was likelier" in said(at)


def test_the_bleu_tab_counts_what_the_reader_types() -> None:
    at = opened(train_tab="BLEU", train_mine="le le chat", train_references="le chat noir\nun chat")
    theirs = sacrebleu.BLEU().corpus_score(["le le chat"], [["le chat noir"], ["un chat"]])
    assert f"p1 = {theirs.counts[0]}/{theirs.totals[0]}" in said(at)
    assert "no 4-gram" in said(at)
    at = opened(train_tab="BLEU", text="The dog sees a cat.")
    assert "no reference here" in said(at)
    at = opened(train_tab="BLEU", train_references="x" * 401)
    assert "Too much to count" in said(at)


def test_the_corpus_score_is_sacrebleus() -> None:
    at = opened(train_tab="BLEU")
    found = [cache.translation_at(cache.MODEL, cache.snapshots()[-1], text) for text in references()]
    answers = list(references().values())
    columns = [[answer[i] if i < len(answer) else None for answer in answers] for i in range(2)]
    theirs = sacrebleu.BLEU().corpus_score(found, columns)  # type: ignore[arg-type]
    assert f"BLEU **{theirs.score:.1f}** as a corpus" in said(at)


def test_playing_asks_the_server_for_nothing_and_stops_at_the_end(page: Page, address: str) -> None:
    kept = cache.snapshots()
    sent: list[object] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page.goto(f"{address}training?train_step={kept[-3]}")
    play = page.get_by_role("button", name="Play", exact=True)
    play.wait_for()
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    before, history = len(sent), page.evaluate("history.length")
    play.click()
    page.get_by_role("button", name="Pause", exact=True).wait_for()
    page.locator(".wrote li.chosen").filter(has_text=re.compile(f"^{kept[-1]:,}")).wait_for()
    assert len(sent) == before
    play.wait_for()
    page.wait_for_url(re.compile(f"train_step={kept[-1]}"))
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    assert len(sent) - before == 1  # where the reader is left
    assert page.evaluate("history.length") == history
    page.get_by_role("button", name=f"{kept[1]:,}", exact=True).first.click()
    page.wait_for_url(re.compile(f"train_step={kept[1]}"))
    page.reload()
    page.locator(".wrote li.chosen").filter(has_text=re.compile(f"^{kept[1]:,}")).wait_for()
