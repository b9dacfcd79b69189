"""The doors of the other models: what their traces hold, what may be changed, and what they refuse."""

import pickle
from dataclasses import fields

import numpy as np
import pytest
import torch

from conftest import PAIRS
from model.build import Model, build
from model.config import END, GAP, MASK, PAD, SPECIAL, START, Config, Material, Shape
from model.continuer import Continuer
from model.filler import Filler
from model.reader import MAX_CHARACTERS
from model.recurrent import Recurrent
from model.recurrent_translator import RecurrentTranslator
from model.sampling import Lot
from model.stack import Stack
from model.tokenizer import Tokenizer
from model.trace import AbsentError, Cell, Change, Head, Switch, TextError

TEXT = "The cat looks at me."
FORCED = "Je suis à l'école. Avez-vous vu le chat ?"
L, H, D, N, MOST = 3, 2, 22, 17, 31


def made(tokenizer: Tokenizer, shape: Shape = "encoder-decoder", material: Material = "attention") -> Model:
    """A random model in eval mode; no bias is 0."""
    torch.manual_seed(0)
    layers, heads = (L, H) if material == "attention" else (1, 1)
    config = Config(tokenizer.size, layers, D, heads, N, 0.1, MOST, shape, material)
    model = build(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter += 0.2 * torch.randn_like(parameter)
    return model


@pytest.fixture(scope="module")
def english() -> Tokenizer:
    return Tokenizer.train(
        (line.split("\t")[0] for line in PAIRS.splitlines()), size=113, special=(*SPECIAL, GAP)
    )


@pytest.fixture(scope="module")
def gpt(tokenizer: Tokenizer) -> Continuer:
    model = made(tokenizer, shape="decoder")
    assert isinstance(model, Stack)
    return Continuer("gpt", model, tokenizer)


@pytest.fixture(scope="module")
def bert(english: Tokenizer) -> Filler:
    model = made(english, shape="encoder")
    assert isinstance(model, Stack)
    return Filler("bert", model, english)


def recurrent(tokenizer: Tokenizer, material: Material) -> RecurrentTranslator:
    model = made(tokenizer, material=material)
    assert isinstance(model, Recurrent)
    return RecurrentTranslator("rnn", model, tokenizer)


@pytest.fixture(scope="module")
def attending(tokenizer: Tokenizer) -> RecurrentTranslator:
    return recurrent(tokenizer, "recurrent attention")


@pytest.fixture(scope="module")
def plain(tokenizer: Tokenizer) -> RecurrentTranslator:
    return recurrent(tokenizer, "recurrent")


# --- gpt ---


def test_gpt_goes_on_from_what_was_given_with_the_likeliest_piece(gpt: Continuer) -> None:
    trace = gpt.trace("The cat looks")
    begun = tuple(gpt.tokenizer.ids("The cat looks"))
    assert trace.target_ids[: 1 + len(begun)] == (START, *begun)
    assert trace.given == len(begun)
    assert trace.kinds == ("decoder",)
    assert trace.predicts == "target"
    assert (trace.source, trace.forced, trace.languages) == ((), False, {"target": "en"})
    written = trace.target_ids[1 + len(begun) :]
    assert written or trace.comes_out[-1] == "</s>"
    logs = trace.log_probs.copy()
    logs[:, [PAD, START, 3]] = -np.inf
    best = logs[len(begun) :].argmax(axis=1).tolist()
    assert best[: len(written)] == [*written]
    assert trace.cut == (len(trace.target) == MOST)
    assert trace.cut or best[-1] == END
    assert gpt.go_on("The cat looks") == trace.translation
    assert trace.translation.startswith("The cat looks")


def test_gpts_trace_is_what_the_model_computes(gpt: Continuer) -> None:
    trace = gpt.trace(TEXT, FORCED)
    ids = gpt.tokenizer.target(FORCED)
    assert (trace.target_ids, trace.forced, trace.given) == (tuple(ids[:-1]), True, len(ids) - 2)
    logs = gpt.model(torch.tensor([ids[:-1]]))[0].log_softmax(dim=-1).numpy()
    np.testing.assert_allclose(trace.log_probs, logs, atol=1e-5)
    np.testing.assert_allclose(trace.piece_log_probs, logs[range(len(ids) - 1), ids[1:]], atol=1e-5)
    t, d = len(ids) - 1, D // H
    stages = trace.stages("decoder")
    assert stages.q.shape == stages.v.shape == (L, H, t, d)
    assert stages.weights.shape == (L, H, t, t)
    np.testing.assert_allclose(stages.weights.sum(axis=-1), 1, atol=1e-5)
    assert (np.triu(stages.weights, 1) == 0).all()
    assert trace.fed("decoder").out.shape == (L, t, D)
    entering = trace.entering("decoder", 1)
    np.testing.assert_array_equal(entering, trace.fed("decoder").out[0])
    for kind in ("encoder", "cross"):
        with pytest.raises(AbsentError):
            trace.weights(kind)


def test_gpt_takes_ids_as_a_whole_sentence_and_knows_how_many_were_given(gpt: Continuer) -> None:
    begun = gpt.tokenizer.ids("The cat")
    ids = (*begun, 41, 43, 47)
    trace = gpt.trace("The cat", ids)
    assert (trace.target_ids, trace.given, trace.forced) == ((START, *ids), len(begun), False)
    assert gpt.trace("The cat", ids[1:]).given == 0
    for drawn in gpt.sample("The cat", Lot(), [1, 2, 3]):
        assert list(drawn[: len(begun)]) == begun
        assert gpt.trace("The cat", drawn).given == len(begun)
    assert gpt.sample("The cat", Lot(), [1, 2]) == [gpt.sample("The cat", Lot(), [s])[0] for s in (1, 2)]
    coldest = gpt.sample("The cat", Lot(temperature=0), [7])[0]
    assert (START, *coldest) == gpt.trace("The cat").target_ids
    with pytest.raises(ValueError, match="limit"):
        gpt.trace("The cat", [41] * MOST)


def test_an_unknown_piece_that_was_given_keeps_its_letters(gpt: Continuer) -> None:
    trace = gpt.trace("The Ω")
    again = gpt.trace("The Ω", trace.target_ids[1:])
    assert "Ω" in trace.unknown
    assert (again.target, again.given) == (trace.target, trace.given)


def test_changes_reach_gpts_attention(gpt: Continuer) -> None:
    whole = gpt.trace(TEXT, FORCED)
    seeing = gpt.trace(TEXT, FORCED, Change(look_ahead=Switch("all")))
    assert (np.triu(seeing.weights("decoder"), 1).sum(axis=(-1, -2)) > 0).all()
    blind = gpt.trace(TEXT, FORCED, Change(removed=frozenset({Head("decoder", 1, 0)})))
    assert (blind.stages("decoder").output[1, 0] == 0).all()
    assert not np.allclose(blind.log_probs, whole.log_probs, atol=1e-3)
    padded = gpt.trace(TEXT, FORCED, Change(target_pads=2))
    assert padded.target[-2:] == ("<pad>", "<pad>")
    assert (padded.weights("decoder")[:, :, :-2, -2:] == 0).all()
    assert (padded.piece_log_probs[-2:] == 0).all()
    np.testing.assert_allclose(padded.log_probs[:-2], whole.log_probs, atol=1e-4)


# --- bert ---


def test_bert_guesses_at_every_place_and_says_what_was_hidden(bert: Filler) -> None:
    ids = bert.tokenizer.source(TEXT)
    trace = bert.trace(TEXT, (1, 3))
    shown = [MASK if i in (1, 3) else id_ for i, id_ in enumerate(ids)]
    pieces = [piece.text for piece in bert.tokenizer.encode(TEXT)]
    assert (trace.gaps, trace.hidden) == ((1, 3), (pieces[1], pieces[3]))
    assert trace.source_ids == tuple(shown)
    assert (trace.source[1], trace.source[3], trace.source[0]) == (GAP, GAP, pieces[0])
    assert (trace.target, trace.kinds, trace.predicts) == ((), ("encoder",), "source")
    logs = bert.model(torch.tensor([shown]))[0].log_softmax(dim=-1).numpy()
    np.testing.assert_allclose(trace.log_probs, logs, atol=1e-5)
    n = len(pieces)
    np.testing.assert_allclose(trace.piece_log_probs[:n], logs[range(n), ids[:n]], atol=1e-5)
    assert trace.piece_log_probs[n] == 0
    guesses = logs[:, MASK + 1 :].argmax(axis=1) + MASK + 1
    assert trace.out_ids == (*guesses[:n], END)  # </s> is not guessed at
    assert trace.comes_out == tuple(bert.tokenizer.piece(int(id_)).text for id_ in trace.out_ids)
    assert [row[0].log_prob for row in trace.candidates] == pytest.approx(logs.max(axis=1), abs=1e-4)
    weights = trace.weights("encoder")
    assert weights.shape == (L, H, n + 1, n + 1)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


def test_a_typed_gap_is_a_gap_with_nothing_behind_it(bert: Filler) -> None:
    trace = bert.trace("The [MASK] looks at me.")
    pieces = [piece.text for piece in bert.tokenizer.encode("The")]
    place = len(pieces)
    assert (trace.gaps, trace.hidden) == ((place,), ("",))
    assert trace.source[place] == GAP
    assert trace.source_spaces[place]
    guess = bert.tokenizer.ids(trace.comes_out[place])
    assert trace.piece_log_probs[place] == pytest.approx(max(trace.log_probs[place, MASK + 1 :]), abs=1e-6)
    assert guess
    assert GAP not in trace.translation
    both = bert.trace("[MASK] looks at [MASK].", (2,))
    assert [piece == GAP for piece in both.source].count(True) == 3
    assert both.unknown == ()
    assert sorted(both.hidden)[:2] == ["", ""]
    assert bert.trace("un[MASK].").source_spaces[-3] is False


def test_bert_refuses_gaps_that_are_no_places_of_the_text(bert: Filler) -> None:
    pieces = len(bert.tokenizer.encode(TEXT))
    bert.trace(TEXT, (pieces - 1,))
    for wrong in ((pieces,), (-1,)):
        with pytest.raises(ValueError, match="gaps"):
            bert.trace(TEXT, wrong)


def test_without_gaps_the_sentence_is_read_as_it_is(bert: Filler) -> None:
    assert bert.trace(TEXT).source_ids == tuple(bert.tokenizer.source(TEXT))
    assert bert.trace(TEXT).translation == TEXT
    assert bert.trace(TEXT).gaps == bert.trace(TEXT, ()).gaps == ()


def test_pads_after_the_sentence_change_nothing_for_bert_until_they_are_seen(bert: Filler) -> None:
    whole, padded = bert.trace(TEXT, (1,)), bert.trace(TEXT, (1,), Change(source_pads=2))
    np.testing.assert_allclose(padded.log_probs[:-2], whole.log_probs, atol=1e-4)
    seen = bert.trace(TEXT, (1,), Change(source_pads=2, source_padding=Switch("all")))
    assert (seen.weights("encoder")[..., -2:] > 0).all()


# --- recurrent ---


def test_a_recurrent_trace_is_what_the_model_computes(attending: RecurrentTranslator) -> None:
    trace = attending.trace(TEXT, FORCED)
    source, target = attending.tokenizer.source(TEXT), attending.tokenizer.target(FORCED)[:-1]
    s, t = len(source), len(target)
    stages = trace.stages("cross")
    assert (trace.kinds, trace.languages) == (("cross",), {"source": "en", "target": "fr"})
    assert (stages.q.shape, stages.k.shape) == ((1, 1, t, D), (1, 1, s, D))
    assert (stages.v.shape, stages.output.shape) == ((1, 1, s, 2 * N), (1, 1, t, 2 * N))
    v = attending.model.attention.v.weight[0].numpy()
    scores = np.tanh(stages.q[0, 0][:, None] + stages.k[0, 0][None]) @ v
    np.testing.assert_allclose(stages.scores[0, 0], scores, atol=1e-5)
    powers = np.exp(scores)
    np.testing.assert_allclose(stages.weights[0, 0], powers / powers.sum(axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(stages.output[0, 0], stages.weights[0, 0] @ stages.v[0, 0], atol=1e-5)
    np.testing.assert_array_equal(trace.states["source"], stages.v[0, 0])
    assert trace.states["target"].shape == (t, N)
    logs = attending.model(torch.tensor([source]), torch.tensor([target]))[0].log_softmax(dim=-1)
    np.testing.assert_allclose(trace.log_probs, logs.numpy(), atol=1e-5)


def test_without_attention_there_are_states_and_no_kind(plain: RecurrentTranslator) -> None:
    trace = plain.trace(TEXT)
    assert trace.kinds == ()
    assert {side: state.shape[1] for side, state in trace.states.items()} == {"source": 2 * N, "target": N}
    assert plain.translate(TEXT) == trace.translation
    with pytest.raises(AbsentError):
        trace.weights("cross")


def test_a_recurrent_translation_is_greedy_a_beams_or_drawn(attending: RecurrentTranslator) -> None:
    trace = attending.trace(TEXT)
    assert attending.translate(TEXT) == trace.translation
    found = attending.search(TEXT, 3)
    assert attending.trace(TEXT, found.ids).translation == attending.translate(TEXT, 3)
    greedy = attending.search(TEXT, 1)
    assert attending.trace(TEXT, greedy.ids).target_ids == trace.target_ids
    total = next(node.total for node in found.nodes if node.ids == found.ids)
    logs = attending.trace(TEXT, found.ids).piece_log_probs
    assert logs[: len(found.ids)].sum() == pytest.approx(total, abs=1e-3)
    coldest = attending.sample(TEXT, Lot(temperature=0), [3, 5])
    assert coldest == [trace.target_ids[1:]] * 2


def test_blocking_and_pads_reach_additive_attention(attending: RecurrentTranslator) -> None:
    blocked = attending.trace(TEXT, FORCED, Change(blocked=frozenset({Cell("cross", 3, 2)})))
    assert blocked.weights("cross")[0, 0, 3, 2] == 0
    padded = attending.trace(TEXT, FORCED, Change(source_pads=2))
    assert (padded.weights("cross")[..., -2:] == 0).all()
    np.testing.assert_allclose(padded.log_probs, attending.trace(TEXT, FORCED).log_probs, atol=1e-5)
    assert (padded.states["source"][-2:] == 0).all()
    open_ = attending.trace(TEXT, FORCED, Change(source_pads=2, cross_padding=Switch("all")))
    assert (open_.weights("cross")[..., -2:] > 0).all()


# --- all ---


@pytest.mark.parametrize("door", ["gpt", "bert", "attending", "plain"])
def test_a_door_refuses_what_cannot_be_read_and_what_it_has_not(
    door: str, request: pytest.FixtureRequest
) -> None:
    of = request.getfixturevalue(door)
    most = MOST - 1
    for text, code, got, limit in (
        ("", "empty", 0, 0),
        (" \u200b", "empty", 0, 0),
        ("x" * (MAX_CHARACTERS + 1), "huge", MAX_CHARACTERS + 1, MAX_CHARACTERS),
        ("a " * (most + 1), "long", most + 1, most),
    ):
        with pytest.raises(TextError) as refused:
            of.trace(text)
        assert (refused.value.code, refused.value.got, refused.value.limit) == (code, got, limit)
    assert len(of.trace("a " * most).source or of.trace("a " * most).target) == MOST
    wrong = {
        "positions": "off", "shift": 2, "scale": False, "norm": False, "residual": False,
        "look_ahead": Switch("all"), "source_padding": Switch("all"), "target_padding": Switch("all"),
        "cross_padding": Switch("all"), "source_pads": 1, "target_pads": 1,
    }  # fmt: skip
    for name, value in wrong.items():
        if name in of.config.changes:
            of.trace(TEXT, change=Change(**{name: value}))
        else:
            with pytest.raises(ValueError, match=name):
                of.trace(TEXT, change=Change(**{name: value}))
    for kind in ("encoder", "decoder", "cross"):
        for place in ({"blocked": Cell(kind, 0, 0)}, {"uniform": Head(kind, 0, 0)}):
            change = Change(**{name: frozenset({value}) for name, value in place.items()})
            if kind in of.config.kinds:
                of.trace(TEXT, change=change)
            else:
                with pytest.raises(ValueError, match=r"attention|could change"):
                    of.trace(TEXT, change=change)
    assert "seed" in {field.name for field in fields(Change)}
    of.trace(TEXT, change=Change(seed=3))


@pytest.mark.parametrize("door", ["gpt", "bert", "attending", "plain"])
def test_a_trace_of_any_model_can_be_kept_and_not_altered(door: str, request: pytest.FixtureRequest) -> None:
    of = request.getfixturevalue(door)
    trace = pickle.loads(pickle.dumps(of.trace(TEXT)))
    arrays = [trace.log_probs, *trace.states.values(), *(seen.weights for seen in trace.attention.values())]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
