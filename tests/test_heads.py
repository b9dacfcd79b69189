"""Heads measured, given roles, removed and flattened: each number against one worked out another way."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

import model
from model import checkpoint, heads, survey, words
from model.attention import Rule, attend, attend_fused
from model.heads import ROLES, WHERE, Role, Tally, role_counts, rollout
from model.trace import KINDS, NEUTRAL, Change, Head, Kind, Trace
from model.training.corpus import Pair
from model.translator import Translator
from tests.conftest import FORCED, PAIRS, TEXT

B, H, Q, K, D = 2, 3, 5, 7, 11
FLAT = torch.tensor([False, True, False])[:, None, None]


# --- the uniform test -------------------------------------------------------------------------------------


def test_a_uniform_head_weighs_its_allowed_keys_alike_and_the_others_do_not_notice() -> None:
    q, k, v = torch.randn(B, H, Q, D), torch.randn(B, H, K, D), torch.randn(B, H, K, D)
    mask = torch.rand(B, 1, Q, K) < 0.6
    mask[0, 0, 2] = False  # a row with nothing allowed
    mask[..., 0] |= ~mask.any(dim=-1) & (torch.arange(Q) != 2)
    flat, whole = attend(q, k, v, Rule(mask, uniform=FLAT)), attend(q, k, v, Rule(mask))
    counts = mask.sum(dim=-1, keepdim=True)
    assert_close(flat.weights[:, 1], (mask / counts.clamp(min=1))[:, 0], atol=1e-6, rtol=0)
    assert (flat.weights[0, 1, 2] == 0).all()
    assert torch.equal(flat.weights[:, ::2], whole.weights[:, ::2])
    assert torch.equal(flat.scores, whole.scores)  # what the head would have liked is still shown
    means = (mask.float() @ v / counts.clamp(min=1))[:, 1]  # a plain average of values
    assert_close(flat.output[:, 1], means, atol=1e-6, rtol=0)
    assert_close(attend_fused(q, k, v, Rule(mask, uniform=FLAT)), flat.output, atol=1e-5, rtol=0)
    theirs = scaled_dot_product_attention(q * ~FLAT, k, v, attn_mask=mask)
    assert_close(flat.output[1], theirs[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_flattened_head_of_a_trace_is_flat_and_only_later_layers_move(
    translator: Translator, kind: Kind
) -> None:
    before = translator.trace(TEXT, FORCED)
    after = translator.trace(TEXT, FORCED, Change(uniform=frozenset({Head(kind, 1, 0)})))
    allowed = after.allowed(kind)[1, 0]
    assert np.allclose(after.weights(kind)[1, 0], allowed / allowed.sum(axis=-1, keepdims=True), atol=1e-6)
    assert np.array_equal(after.weights(kind)[1, 1], before.weights(kind)[1, 1])
    assert np.array_equal(after.weights(kind)[0], before.weights(kind)[0])
    assert not np.allclose(after.weights(kind)[2], before.weights(kind)[2], atol=1e-4)
    assert not np.allclose(after.log_probs, before.log_probs, atol=1e-4)


def test_a_change_names_only_heads_that_are_there(translator: Translator) -> None:
    with pytest.raises(ValueError, match="head 2 of 2"):
        translator.trace(TEXT, FORCED, Change(uniform=frozenset({Head("cross", 0, 2)})))


def test_decoding_under_a_flat_head_agrees_with_a_pass_over_what_it_wrote(translator: Translator) -> None:
    """The cache of the decoder and the one pass afterwards follow the same rule."""
    change = Change(uniform=frozenset({Head("decoder", 0, 1), Head("cross", 2, 0)}))
    free = translator.trace(TEXT, change=change)
    plain = translator.trace(TEXT)
    never = {"<pad>", "<s>", "<unk>"}
    for trace in (free, plain):
        best = [next(one.piece for one in row if one.piece not in never) for row in trace.candidates]
        assert best[: len(best) - trace.cut] == list(trace.comes_out[: len(best) - trace.cut])
    assert free.comes_out != plain.comes_out


# --- measures ---------------------------------------------------------------------------------------------


def with_rows(trace: Trace, kind: Kind, rows: np.ndarray) -> Trace:
    """The trace whose every head of a kind has these weights (Q, K)."""
    stages = trace.stages(kind)
    weights = np.broadcast_to(rows, stages.weights.shape).astype(np.float32)
    return replace(trace, attention={**trace.attention, kind: replace(stages, weights=weights)})


def pointing(trace: Trace, kind: Kind, keys: list[int]) -> Trace:
    """Every row's whole weight on one key."""
    return with_rows(trace, kind, np.eye(len(trace.axes(kind)[1]))[keys])


def even(trace: Trace, kind: Kind) -> Trace:
    allowed = trace.allowed(kind)[0, 0]
    return with_rows(trace, kind, allowed / allowed.sum(axis=-1, keepdims=True))


def means(trace: Trace, kind: Kind) -> dict[str, float]:
    """The means of the first head."""
    return {name: float(of[0, 0]) for name, of in Tally.of(trace, kind).means().items()}


@pytest.mark.parametrize("kind", KINDS)
def test_an_even_head_is_as_wide_as_can_be_and_a_pointing_one_as_narrow(trace: Trace, kind: Kind) -> None:
    wide = means(even(trace, kind), kind)
    assert wide["entropy"] == pytest.approx(1, abs=1e-6)
    assert wide["broad"] == 1
    narrow = means(pointing(trace, kind, [0] * len(trace.axes(kind)[0])), kind)
    assert narrow["entropy"] == pytest.approx(0, abs=1e-6)
    assert narrow["largest"] == 1
    assert narrow["broad"] == 0


def test_measures_equal_plain_loops_over_rows_with_a_choice(trace: Trace) -> None:
    for kind in KINDS:
        queries, keys = map(len, trace.axes(kind))
        found = Tally.of(trace, kind).means()
        weights, allowed = trace.weights(kind)[1, 1], trace.allowed(kind)[1, 1]
        entropy, largest, far = [], [], []
        for q in range(queries):
            row = weights[q][allowed[q]].tolist()
            if len(row) < 2:
                continue
            entropy.append(-sum(w * math.log(w) for w in row) / math.log(len(row)))
            largest.append(max(row))
            at = q * (keys - 1) / (queries - 1) if kind == "cross" else q
            far.append(sum(float(w) * abs(at - k) for k, w in enumerate(weights[q])))
        assert len(entropy) == queries - (kind == "decoder")
        assert found["entropy"][1, 1] == pytest.approx(np.mean(entropy), abs=1e-5)
        assert found["largest"][1, 1] == pytest.approx(np.mean(largest), abs=1e-5)
        assert found["distance"][1, 1] == pytest.approx(np.mean(far), abs=1e-5)


def test_a_random_head_is_the_same_each_time_and_blind_to_the_future(trace: Trace) -> None:
    one, again, other = (heads.randomised(trace, seed) for seed in (3, 3, 4))
    for kind in KINDS:
        weights = one.weights(kind)
        assert weights.shape == (1, 1, *trace.weights(kind).shape[2:])
        assert np.array_equal(weights, again.weights(kind))
        assert not np.array_equal(weights, other.weights(kind))
        assert np.allclose(weights.sum(axis=-1), 1, atol=1e-6)
        assert (weights[~one.allowed(kind)] == 0).all()


# --- roles ------------------------------------------------------------------------------------------------

S, T = 7, 13  # the sentences of conftest; the source ends in "." and </s>
CASES: list[tuple[Role, Kind, list[int], float]] = [
    ("previous", "encoder", [0, 0, 1, 2, 3, 4, 5], 1),
    ("previous", "decoder", [0, *range(T - 1)], 1),
    ("previous", "encoder", [1, 2, 3, 4, 5, 6, 6], 0),
    ("next", "encoder", [1, 2, 3, 4, 5, 6, 0], 1),
    ("next", "encoder", [1, 2, 3, 3, 3, 3, 3], 3 / 6),
    ("same", "encoder", list(range(S)), 1),
    ("same", "decoder", [0, *range(T - 1)], 0),  # row 0 has no choice and is not asked
    ("first", "decoder", [0] * T, 1),
    ("first", "encoder", [0] * S, 1),  # the first piece itself is not asked
    ("first", "cross", [0] * T, 1),
    ("end", "encoder", [6] * S, 1),
    ("end", "cross", [6] * 4 + [0] * 9, 4 / 13),
    ("mark", "encoder", [5] * S, 1),
    ("mark", "cross", [5] * T, 1),
    ("mark", "cross", [6] * T, 0),  # </s> is no mark
]


@pytest.mark.parametrize(("role", "kind", "keys", "share"), CASES)
def test_a_role_holds_in_the_rows_that_were_made_to_fit_it(
    trace: Trace, role: Role, kind: Kind, keys: list[int], share: float
) -> None:
    hits, rows = role_counts(pointing(trace, kind, keys), role, kind)
    assert hits.shape == rows.shape == trace.weights(kind).shape[:2]
    assert np.allclose(hits / rows, share)


def test_a_row_that_can_see_no_mark_is_not_asked_for_one(trace: Trace) -> None:
    marks = [place for place, piece in enumerate(trace.target) if heads.is_mark(piece)]
    assert marks
    _hits, rows = role_counts(trace, "mark", "decoder")
    assert (rows == T - 1 - min(marks)).all()
    assert [heads.is_mark(piece) for piece in (".", "?", "-", "</s>", "<pad>", "a", "5", "l'")] == [
        True, True, True, False, False, False, False, False,
    ]  # fmt: skip


def test_a_broad_row_reads_as_if_evenly_over_three_quarters_of_its_keys(trace: Trace) -> None:
    for keys, share in ((6, 1), (5, 0)):  # evenly over 6 of 7 keys, or over 5
        rows = np.zeros((S, S))
        rows[:, :keys] = 1 / keys
        assert means(with_rows(trace, "encoder", rows), "encoder")["broad"] == share


def test_pads_are_not_asked(translator: Translator) -> None:
    plain, padded = (translator.trace(TEXT, FORCED, Change(source_pads=n, target_pads=n)) for n in (0, 3))
    for kind in KINDS:
        for role in ROLES:
            if kind in WHERE[role] and role not in heads.READING:
                assert np.array_equal(role_counts(plain, role, kind), role_counts(padded, role, kind))


def test_the_mean_weight_of_a_rule_equals_a_plain_loop(trace: Trace) -> None:
    weights, pieces = trace.weights("decoder")[2, 1], trace.target
    before = [weights[q, q - 1] for q in range(1, T)]
    marks = [
        sum(weights[q, k] for k in range(q) if heads.is_mark(pieces[k]))
        for q in range(1, T)
        if any(map(heads.is_mark, pieces[:q]))
    ]
    assert heads.mean_weight(trace, "previous", "decoder")[2, 1] == pytest.approx(np.mean(before), abs=1e-6)
    assert heads.mean_weight(trace, "mark", "decoder")[2, 1] == pytest.approx(np.mean(marks), abs=1e-6)
    short = even(trace, "cross")
    assert np.allclose(heads.mean_weight(short, "end", "cross"), 1 / S, atol=1e-6)


def test_a_head_gets_the_rule_that_holds_most_often_if_it_holds_in_half_of_the_rows() -> None:
    assert heads.given({"previous": 0.6, "same": 0.7, "first": 0.1, "align in": None}) == "same"
    assert heads.given({"previous": 0.5}) == "previous"
    assert heads.given({"previous": 0.49, "same": 0.4}) is None
    assert heads.given({}) is None


def test_an_aligning_head_reads_a_linked_word_for_the_piece_that_comes_out_or_goes_in(trace: Trace) -> None:
    """Every row on one English piece: right for as many French words as that word is linked to."""
    source, target = words.cut(trace.text), words.cut(trace.translation)
    cat = source.index("cat")
    possible = frozenset({(cat, 0), (cat, 3), (0, 1)})
    column = (
        trace.source.index("cat")
        if "cat" in trace.source
        else words.word_of(trace.source, trace.source_spaces).tolist().index(cat)
    )
    for role in heads.READING:
        hits, rows = heads.aligned(pointing(trace, "cross", [column] * T), role, possible)
        assert (rows == len(target)).all()
        assert (hits == 2).all()
    # One place apart: what is right for the pieces that come out is wrong for those that go in.
    keys = [column, 0] * 7
    out, _rows = heads.aligned(pointing(trace, "cross", keys[:T]), "align out", possible)
    into, _rows = heads.aligned(pointing(trace, "cross", keys[:T]), "align in", possible)
    assert not np.array_equal(out, into)


# --- rollout ----------------------------------------------------------------------------------------------


def test_rows_of_a_rollout_sum_to_1_after_every_layer(trace: Trace) -> None:
    layers = trace.weights("encoder").shape[0]
    assert rollout(trace, "encoder").shape == (layers, S, S)
    for kind in ("decoder", "cross"):
        assert rollout(trace, kind).shape == (layers, T, S + T)
        assert np.array_equal(rollout(trace, "decoder"), rollout(trace, kind))
    for kind in KINDS:
        assert np.allclose(rollout(trace, kind).sum(axis=-1), 1, atol=1e-5)


def test_an_encoders_rollout_is_the_product_of_its_layers_with_half_of_each_row_kept(trace: Trace) -> None:
    """Abnar and Zuidema 2020: Ã = (W + I) / 2 normalised, R = Ã_L ... Ã_1."""
    product = np.eye(S)
    for weights, found in zip(trace.weights("encoder"), rollout(trace, "encoder"), strict=True):
        mixed = weights.mean(axis=0) + np.eye(S)
        product = mixed / mixed.sum(axis=-1, keepdims=True) @ product
        assert np.allclose(found, product, atol=1e-5)


def test_a_decoders_rollout_is_the_same_product_over_both_sentences_at_once(trace: Trace) -> None:
    """One chain of square matrices over English and French rows together, worked out as such."""
    size, eye = S + T, np.eye(S + T)
    product = eye.copy()
    for weights in trace.weights("encoder").mean(axis=1):
        step = eye.copy()
        step[:S, :S] = (np.eye(S) + weights) / 2
        product = step @ product
    for layer in range(3):
        own, cross = eye.copy(), eye.copy()
        own[S:, S:] = (np.eye(T) + trace.weights("decoder")[layer].mean(axis=0)) / 2
        cross[S:, S:] /= 2
        cross[S:, :S] = trace.weights("cross")[layer].mean(axis=0) / 2
        product = cross @ own @ product
        assert product.shape == (size, size)
        assert np.allclose(rollout(trace, "cross")[layer], product[S:], atol=1e-5)


def test_a_rollout_sees_no_french_of_the_future(trace: Trace) -> None:
    assert (np.triu(rollout(trace, "decoder")[-1][:, S:], 1) == 0).all()


# --- the survey -------------------------------------------------------------------------------------------

SOME = [Pair(*line.split("\t")) for line in PAIRS.splitlines()[:11]]


def test_losses_equal_the_traces_own(translator: Translator) -> None:
    """In batches without capture, against one captured pass a sentence."""
    for change in (NEUTRAL, Change(removed=frozenset({Head("cross", 1, 0)}))):
        total, pieces = survey.losses(translator, SOME, change)
        for pair, loss, count in zip(SOME, total, pieces, strict=True):
            trace = translator.trace(pair.source, pair.target, change)
            assert loss == pytest.approx(-trace.log_prob, abs=1e-3)
            assert count == len(trace.comes_out)


@pytest.mark.parametrize("loss", survey.LOSSES)
def test_what_each_head_costs_in_one_batch_equals_a_pass_for_each(
    translator: Translator, loss: survey.Loss
) -> None:
    found = survey.costs(translator, TEXT, FORCED, loss)
    assert found.shape == (3, 3, 2)
    whole = translator.trace(TEXT, FORCED).piece_log_probs.mean()
    for (kind, layer, head), cost in np.ndenumerate(found):
        change = {loss: frozenset({Head(KINDS[kind], layer, head)})}
        one = translator.trace(TEXT, FORCED, replace(NEUTRAL, **change)).piece_log_probs.mean()  # type: ignore[arg-type]
        assert cost == pytest.approx(whole - one, abs=1e-4)
    assert abs(found).min() > 1e-4


def test_the_error_of_a_mean_over_pieces_is_that_of_a_ratio() -> None:
    differences, pieces = np.array([1.0, 4.0, 1.0, 6.0]), np.array([2.0, 4.0, 2.0, 4.0])
    value, error = survey.per_piece(differences, pieces)
    assert value == 1
    assert error == pytest.approx(math.sqrt((1 + 0 + 1 + 4) * 4 / 3) / 12)
    assert survey.per_piece(3 * pieces, pieces) == (3, 0)  # each sentence as the next: nothing left open


@pytest.fixture(scope="module")
def folder(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    checkpoint.save(path, translator.model, translator.tokenizer)
    return path


def test_a_survey_holds_what_a_direct_computation_gives_and_can_be_resumed(
    folder: Path, tmp_path: Path
) -> None:
    """Importance of each head: what the loss of forced translations gains when its output is 0."""
    notes = tmp_path / "notes.jsonl"
    found = survey.survey(folder, SOME, notes, workers=1)
    loaded = Translator("saved", *checkpoint.load(folder))
    assert found["sentences"] == len({pair.source for pair in SOME}) < len(SOME)
    firsts = list({pair.source: pair for pair in reversed(SOME)}.values())[::-1]

    def loss(change: Change) -> float:
        traces = [loaded.trace(pair.source, pair.target, change) for pair in firsts]
        return -sum(trace.log_prob for trace in traces) / sum(len(trace.comes_out) for trace in traces)

    whole = loss(NEUTRAL)
    assert found["loss"] == pytest.approx(whole, abs=1e-4)
    assert [(one["kind"], one["layer"], one["head"]) for one in found["heads"]] == [
        (head.kind, head.layer, head.head) for head in heads.all_heads(3, 2)
    ]
    for one in found["heads"][::5]:
        head = frozenset({Head(one["kind"], one["layer"], one["head"])})
        assert one["removed"] == pytest.approx(loss(Change(removed=head)) - whole, abs=1e-4)
        assert one["uniform"] == pytest.approx(loss(Change(uniform=head)) - whole, abs=1e-4)
        assert one["removed_error"] > 0
    for kind in KINDS:
        total = Tally.of(loaded.trace(firsts[0].source, firsts[0].target), kind)
        for pair in firsts[1:]:
            total.add(Tally.of(loaded.trace(pair.source, pair.target), kind))
        for one in found["heads"]:
            if one["kind"] == kind:
                for name, of in total.means().items():
                    assert one[name] == pytest.approx(of[one["layer"], one["head"]], abs=1e-4)

    # Half of the notes gone, the last line cut short: the rest is computed again, and nothing else.
    lines = notes.read_text().splitlines()
    half = [*lines[: len(lines) // 2], lines[len(lines) // 2][:20]]
    marked = [json.loads(line) for line in half[1:-1]]
    for one in marked:
        if "error" in one:
            one["error"] += 1.0  # a mark on what was there before
    notes.write_text("\n".join([half[0], *map(json.dumps, marked), half[-1]]))
    again = survey.survey(folder, SOME, notes, workers=0)
    errors = [
        (old[f"{loss}_error"], new[f"{loss}_error"])
        for old, new in zip(found["heads"], again["heads"], strict=True)
        for loss in survey.LOSSES
    ]
    kept = sum(new > 1 for _old, new in errors)
    assert kept == sum("error" in one for one in marked) > 0
    assert all(new in (old, pytest.approx(old + 1, abs=1e-5)) for old, new in errors)


def test_notes_on_another_model_are_begun_anew(folder: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    notes.write_text('{"about": "another"}\n{"name": "removed cross 0 0", "loss": 9, "error": 9}\n')
    found = survey.survey(folder, SOME[:2], notes, workers=0)
    assert max(one["removed"] for one in found["heads"]) < 9


def test_the_shipped_rates_of_aligning_are_those_of_the_shipped_model() -> None:
    """From weights and gold set alone; the rest of the survey needs the corpus."""
    folder = survey.MODELS / "en-fr"
    shipped = survey.load(folder)
    assert shipped
    found = survey.aligned(model.load(folder))
    for one in shipped["heads"][-24:]:
        for role in heads.READING:
            # Another processor may turn a tie over.
            assert one[role] == pytest.approx(found[role][one["layer"], one["head"]], abs=0.006)
    assert len(shipped["heads"]) == 72
    assert all(one["removed_error"] > 0 for one in shipped["heads"])
