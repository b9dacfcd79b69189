"""The trace: what it holds, that it is what decoding saw, and that nobody can alter it."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from conftest import FORCED, ROOT, TEXT, arrays, assert_same
from model.config import END, PAD, START
from model.decoding import greedy, log_probabilities
from model.masks import rules
from model.reader import MAX_CHARACTERS
from model.tokenizer import Tokenizer, clean
from model.trace import KINDS, Cell, Change, Head, Switch, TextError, Trace
from model.transformer import Decoded, Transformer
from model.translator import Translator

L, H, D, d, S, T, V = 3, 2, 22, 11, 7, 13, 211
DARK = Change(  # rows with nothing allowed, in each kind
    blocked=frozenset(
        {Cell("encoder", 4, key) for key in range(S)}
        | {Cell("decoder", 0, 0, layer=1)}
        | {Cell("cross", 8, key, head=1) for key in range(S)}
    )
)
CHANGES = [
    Change(),
    Change(look_ahead=Switch("all"), cross_padding=Switch("all"), source_pads=2),
    Change(positions="shuffled", seed=3, target_pads=2),
    Change(removed=frozenset({Head("cross", 1, 0)}), scale=False),
    DARK,
]
CAUSAL = [Change(shift=4), Change(blocked=frozenset({Cell("cross", 2, 1)})), *CHANGES[3:]]


def test_every_array_has_its_own_shape_and_no_two_axes_are_as_long(trace: Trace) -> None:
    assert len({L, H, D, d, S, T, V}) == 7
    for kind, queries, keys in (("encoder", S, S), ("decoder", T, T), ("cross", T, S)):
        stages = trace.stages(kind)
        assert stages.q.shape == stages.output.shape == (L, H, queries, d)
        assert stages.k.shape == stages.v.shape == (L, H, keys, d)
        assert stages.scores.shape == stages.allowed.shape == stages.weights.shape == (L, H, queries, keys)
        assert (trace.weights(kind), trace.scores(kind)) == (stages.weights, stages.scores)
        assert tuple(map(len, trace.axes(kind))) == (queries, keys)
        assert trace.empty(kind).shape == (L, H, queries)
    for embedding, length in ((trace.embedding("source"), S), (trace.embedding("target"), T)):
        assert embedding.pieces.shape == embedding.positions.shape == embedding.sum.shape == (length, D)
    assert trace.log_probs.shape == (T, V)
    assert trace.piece_log_probs.shape == (T,)
    assert len(trace.source) == len(trace.source_spaces) == S
    assert len(trace.target) == len(trace.target_spaces) == len(trace.comes_out) == len(trace.candidates) == T
    assert {array.dtype for array in arrays(trace).values()} == {np.dtype("float32"), np.dtype("bool")}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_sum_to_1_or_are_empty_blocked_cells_are_0_and_nothing_is_nan(
    translator: Translator, change: Change
) -> None:
    trace = translator.trace(TEXT, FORCED, change)
    for kind in KINDS:
        empty = trace.empty(kind)
        np.testing.assert_allclose(trace.weights(kind).sum(axis=-1), ~empty, atol=1e-5)
        assert (trace.weights(kind)[~trace.allowed(kind)] == 0).all()
        assert (trace.stages(kind).output[empty] == 0).all()
    for name, array in arrays(trace).items():
        assert np.isfinite(array).all(), name


def test_empty_flags_exactly_the_rows_with_nothing_allowed(translator: Translator, trace: Trace) -> None:
    dark = translator.trace(TEXT, FORCED, DARK)
    empty = {kind: set(zip(*map(tuple, dark.empty(kind).nonzero()), strict=True)) for kind in KINDS}
    assert empty == {
        "encoder": {(layer, head, 4) for layer in range(L) for head in range(H)},
        "decoder": {(1, head, 0) for head in range(H)},
        "cross": {(layer, 1, 8) for layer in range(L)},
    }
    assert not any(trace.empty(kind).any() for kind in KINDS)


def test_what_comes_out_is_what_goes_in_one_place_on(translator: Translator, tokenizer: Tokenizer) -> None:
    for change, pads in ((Change(), ()), (Change(target_pads=2), ("<pad>", "<pad>"))):
        trace = translator.trace(TEXT, FORCED, change)
        pieces = tuple(piece.text for piece in tokenizer.encode(FORCED))
        assert trace.target == ("<s>", *pieces, *pads)
        assert trace.comes_out == (*pieces, "</s>", *pads)


def test_pieces_and_spaces_spell_the_sentences(trace: Trace) -> None:
    for pieces, spaces, text in (
        (trace.source[:-1], trace.source_spaces[:-1], trace.text),
        (trace.target[1:], trace.target_spaces[1:], trace.translation),
    ):
        spelled = [" " * space + piece for space, piece in zip(spaces, pieces, strict=True)]
        assert "".join(spelled).strip() == text


def test_probabilities_are_those_of_the_pieces_that_come_out(trace: Trace, tokenizer: Tokenizer) -> None:
    ids = tokenizer.target(FORCED)[1:]
    np.testing.assert_allclose(np.exp(trace.log_probs.astype(float)).sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(trace.piece_log_probs, trace.log_probs[np.arange(T), ids])
    assert trace.log_prob == pytest.approx(sum(trace.piece_log_probs.tolist()), abs=1e-4)


def test_candidates_are_the_ten_likeliest_pieces_likeliest_first(trace: Trace, tokenizer: Tokenizer) -> None:
    for row, candidates in zip(trace.log_probs, trace.candidates, strict=True):
        best = np.argsort(-row)[:10]
        assert [candidate.log_prob for candidate in candidates] == row[best].tolist()
        assert [candidate.piece for candidate in candidates] == [tokenizer.piece(int(i)).text for i in best]


def test_the_shown_stages_are_one_chain_of_equations(trace: Trace) -> None:
    for kind in KINDS:
        seen = trace.stages(kind)
        np.testing.assert_allclose(seen.scores, seen.q @ seen.k.swapaxes(-2, -1) / d**0.5, atol=1e-5)
        powers = np.exp(seen.scores) * seen.allowed
        np.testing.assert_allclose(seen.weights, powers / powers.sum(axis=-1, keepdims=True), atol=1e-6)
        np.testing.assert_allclose(seen.output, seen.weights @ seen.v, atol=1e-5)


def test_a_given_target_is_read_and_not_chosen(translator: Translator, tokenizer: Tokenizer) -> None:
    forced, own = translator.trace(TEXT, "  L\u2019école\u00a0! "), translator.trace(TEXT)
    assert (forced.forced, forced.cut, own.forced) == (True, False, False)
    assert forced.translation == "L'école !"
    assert forced.target == ("<s>", *(piece.text for piece in tokenizer.encode("L'école !")))
    assert own.translation == translator.translate(TEXT)
    assert forced.weights("encoder").tobytes() == own.weights("encoder").tobytes()


def test_forcing_the_models_own_translation_shows_the_same(trained: Translator) -> None:
    own = trained.trace(TEXT)
    forced = trained.trace(TEXT, own.translation)
    assert own.target == forced.target
    for name, array in arrays(own).items():
        np.testing.assert_array_equal(array, arrays(forced)[name], err_msg=name)


def test_pieces_outside_the_vocabulary_are_named(translator: Translator) -> None:
    trace = translator.trace("The 猫 looks.", "Le \U0001f408.")
    assert trace.unknown == ("猫", "\U0001f408")
    assert "猫" in trace.source
    assert "\U0001f408" in trace.target


def steps(translator: Translator, trace: Trace) -> list[Decoded]:
    """The same target again, piece by piece from the cache, as decoding goes."""
    model, tokenizer = translator.model, translator.tokenizer
    source = torch.tensor([[*tokenizer.source(trace.text), *[PAD] * trace.change.source_pads]])
    target = torch.tensor([[START, *tokenizer.ids(trace.translation)]])
    changed = rules(source, target, model.config, trace.change)
    memory = model.keys_values(model.encode(source, changed).memory)
    done: list[Decoded] = []
    for piece in target[0]:
        past = done[-1].cache if done else None
        done.append(model.decode(piece[None, None], memory, changed, past, capture=True))
    return done


@pytest.mark.parametrize("change", [Change(), *CAUSAL])
def test_row_t_of_the_trace_is_what_step_t_of_decoding_saw(translator: Translator, change: Change) -> None:
    trace = translator.trace(TEXT, FORCED, change)
    for t, step in enumerate(steps(translator, trace)):
        for layer, seen in enumerate(step.seen):
            for kind, keys in (("decoder", t + 1), ("cross", S)):
                weights = getattr(seen, kind).weights[0, :, 0]
                np.testing.assert_allclose(trace.weights(kind)[layer, :, t, :keys], weights, atol=1e-5)
        log_probs = translator.model.logits(step.hidden)[0, 0].log_softmax(dim=-1)
        np.testing.assert_allclose(trace.log_probs[t], log_probs, atol=1e-5)


def test_the_trace_shows_the_choice_that_each_step_of_greedy_decoding_made(trained: Translator) -> None:
    trace = trained.trace(TEXT)
    ids = [*greedy(trained.model, torch.tensor([trained.tokenizer.source(TEXT)]))[0], END]
    assert not trace.cut
    assert log_probabilities(torch.from_numpy(trace.log_probs.copy())).argmax(dim=-1).tolist() == ids


def test_with_look_ahead_off_the_last_row_is_what_the_last_step_saw(
    trained: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[Decoded] = []
    decode = Transformer.decode

    def watched(*arguments: object, **options: object) -> Decoded:
        passes.append(decode(*arguments, **options))
        return passes[-1]

    monkeypatch.setattr(Transformer, "decode", watched)
    trace = trained.trace(TEXT, change=Change(look_ahead=Switch("all")))
    last = passes[-2]  # the pass after it is the trace's own
    assert not trace.cut
    assert len(passes) - 1 == len(trace.target) == last.hidden.size(1)
    assert trace.comes_out[-1] == "</s>"
    log_probs = trained.model.logits(last.hidden)[0, -1].log_softmax(dim=-1)
    np.testing.assert_allclose(trace.log_probs[-1], log_probs, atol=1e-5)
    assert int(log_probabilities(torch.from_numpy(trace.log_probs[-1].copy())).argmax()) == END
    assert trace.allowed("decoder").all()


@pytest.mark.parametrize("number", [1, 5])
def test_a_translation_in_pads_is_the_translation(trained: Translator, number: int) -> None:
    padded = trained.trace(TEXT, change=Change(source_pads=number, target_pads=number))
    assert padded.translation == trained.translate(TEXT)
    assert padded.cut == trained.trace(TEXT).cut


@pytest.mark.parametrize("pickled", [False, True])
def test_a_trace_cannot_be_written_to_even_after_a_pickle(trace: Trace, pickled: bool) -> None:
    held = pickle.loads(pickle.dumps(trace)) if pickled else trace
    assert_same(held, trace)
    for name, array in arrays(held).items():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        assert not array.flags.writeable, name
    for value in (held, held.stages("encoder"), held.embedding("source"), held.change):
        with pytest.raises(FrozenInstanceError):
            value.text = "other"


def test_threads_on_one_translator_each_get_their_own_arrays(translator: Translator) -> None:
    texts = [TEXT, "I don't know.", "Have you seen Paris?", "It's 10 o'clock."]
    alone = [translator.trace(text, FORCED) for text in texts]
    with ThreadPoolExecutor(max_workers=4) as pool:
        traces = pool.map(lambda text: translator.trace(text, FORCED), texts * 25)
        for one, other in zip(traces, alone * 25, strict=True):
            assert_same(one, other)


def test_the_words_of_the_trace_load_without_torch() -> None:
    code = "import sys, model.trace; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "code", "got", "limit"),
    [
        ("", "empty", 0, 0),
        (" \u200b\x00\u202e ", "empty", 0, 0),
        ("8" * 31, "long", 31, 30),
        ("8" * (MAX_CHARACTERS + 1), "huge", MAX_CHARACTERS + 1, MAX_CHARACTERS),
    ],
)
def test_a_text_that_cannot_be_read_says_why_on_either_side(
    translator: Translator, text: str, code: str, got: int, limit: int
) -> None:
    for source, target in ((text, None), (text, FORCED), (TEXT, text)):
        with pytest.raises(TextError) as caught:
            translator.trace(source, target)
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert (error.code, error.got, error.limit) == (code, got, limit)


def test_the_longest_text_that_is_accepted_fills_the_model(translator: Translator) -> None:
    trace = translator.trace("8" * 30, "8" * 30)
    assert len(trace.source) == len(trace.target) == translator.model.config.max_pieces


def test_a_translation_that_the_limit_cut_is_one_that_the_model_accepts(translator: Translator) -> None:
    trace = translator.trace(TEXT)
    assert trace.cut
    assert len(trace.target) <= translator.model.config.max_pieces


def test_the_text_of_a_trace_is_the_cleaned_one(translator: Translator) -> None:
    messy = " J\u2019aime\u00a0\u202ele  chat\u2026\x00 "
    assert translator.trace(messy, FORCED).text == clean(messy) == "J'aime le chat..."
