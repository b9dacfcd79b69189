"""Beams written down, draws by lot, and the film of a translation: each against what it is made of."""

import math
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conftest import PAIRS, TEXT, random_model
from model import words
from model.config import END, PAD, START, UNKNOWN
from model.decoding import NEVER, beam_search, greedy, limit, log_probabilities, penalty
from model.masks import rules
from model.sampling import Lot, drawn, sample, search, shares
from model.tokenizer import Tokenizer
from model.trace import Kind, Trace
from model.transformer import Transformer
from model.translator import Translator
from viz import film
from viz.figures.decode import beam_tree, two_losses
from viz.pages.decode.forcing import parting, under
from viz.pages.decode.grow import passes
from viz.reading import Map
from viz.tables import draws, two_runs
from viz.theme import PALETTES

LIGHT = PALETTES["light"]
ENGLISH = [line.split("\t")[0] for line in PAIRS.splitlines()][::7]
LOGS = st.lists(st.floats(-20, 0), min_size=7, max_size=23).map(
    lambda logs: torch.tensor([-3.0, -3.0, 0.0, -3.0, *logs]).log_softmax(dim=0)
)


@pytest.fixture(scope="module")
def opinionated(tokenizer: Tokenizer) -> Translator:
    """A model of strong opinions: its beams differ and its draws do not."""
    model = random_model(5, sharp=3.0, max_pieces=17, vocabulary=tokenizer.size)
    return Translator("opinionated", model, tokenizer)


SEEDS = range(10)


@pytest.fixture(params=SEEDS)
def tiny(request: pytest.FixtureRequest) -> Transformer:
    """Three ordinary pieces and little room, so that sentences end, and at every rank."""
    return random_model(request.param, sharp=3.0, vocabulary=7, n_layers=2, max_pieces=5)


SOURCES = [torch.tensor([[4, END]]), torch.tensor([[6, 4, 4, 5, END]])]


def ids_of(translator: Translator, text: str) -> torch.Tensor:
    return torch.tensor([translator.tokenizer.source(text)])


# --- beam search, written down ---


@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_is_written_down_is_the_beam_search_itself(
    tiny: Transformer, tokenizer: Tokenizer, size: int
) -> None:
    for source in SOURCES:
        seen = search(tiny, tokenizer, source, size)
        assert list(seen.ids) == beam_search(tiny, source, size)
        for node in seen.nodes:
            parent = None if node.parent is None else seen.nodes[node.parent]
            assert node.ids[:-1] == (parent.ids if parent else ())
            assert node.step == (parent.step + 1 if parent else 0)
            assert parent is None or parent.state == "kept"
            assert node.worth == pytest.approx(node.total / penalty(len(node.ids)))
            assert node.piece == tokenizer.piece(node.ids[-1]).text
        for step in range(seen.nodes[-1].step + 1):
            here = [node for node in seen.nodes if node.step == step]
            assert all(one.total >= other.total for one, other in pairwise(here))
        path = [node for node in seen.nodes if node.chosen]
        assert [node.ids[-1] for node in path] == [*seen.ids, END][: len(path)]
        ended = [node for node in seen.nodes if node.state == "ended"]
        if ended:
            assert path[-1].worth == max(node.worth for node in ended)


def test_every_step_of_a_beam_considers_the_best_of_all_continuations(
    tiny: Transformer, tokenizer: Tokenizer
) -> None:
    """Worked again from whole passes: nothing cached, every continuation of every kept sentence scored."""
    for source, size in ((SOURCES[0], 3), (SOURCES[1], 3)):
        seen = search(tiny, tokenizer, source, size)
        kept: dict[tuple[int, ...], float] = {(): 0.0}
        for step in range(seen.nodes[-1].step + 1):
            every = {}
            for ids, total in kept.items():
                logs = log_probabilities(tiny(source, torch.tensor([[START, *ids]]))[0, -1])
                every |= {(*ids, piece): total + log for piece, log in enumerate(logs.tolist())}
            best = sorted(every, key=every.__getitem__, reverse=True)[: 2 * size]
            best = [ids for ids in best if every[ids] > -math.inf]
            here = [node for node in seen.nodes if node.step == step and node.total > -math.inf]
            assert [node.ids for node in here] == best
            np.testing.assert_allclose([node.total for node in here], [every[ids] for ids in best], atol=1e-4)
            kept = {ids: every[ids] for ids in [ids for ids in best if ids[-1] != END][:size]}
            assert {node.ids for node in here if node.state == "kept"} == set(kept)
            ended = [rank for rank, ids in enumerate(best[:size]) if ids[-1] == END]
            assert [rank for rank, node in enumerate(here) if node.state == "ended"] == ended


def test_sentences_do_end_in_these_beams_and_at_every_rank(tokenizer: Tokenizer) -> None:
    """What the two tests above walk over is there to be walked over."""
    ranks = set()
    for seed, source in product(SEEDS, SOURCES):
        model = random_model(seed, sharp=3.0, vocabulary=7, n_layers=2, max_pieces=5)
        seen = search(model, tokenizer, source, 3)
        for step in range(seen.nodes[-1].step + 1):
            here = [node for node in seen.nodes if node.step == step]
            ranks |= {rank for rank, node in enumerate(here) if node.state == "ended"}
    assert ranks >= {0, 1}


@pytest.mark.parametrize("size", [1, 4])
def test_the_maps_of_a_beam_are_those_of_its_sentence_step_by_step(
    opinionated: Translator, size: int
) -> None:
    """Decoded again with the cache, one piece a pass and captured: row t of the trace is what step t saw."""
    for text in ENGLISH:
        found = opinionated.search(text, size)
        trace = opinionated.trace(text, found.ids)
        assert trace.target_ids == (START, *found.ids)
        assert not trace.forced
        model, source = opinionated.model, ids_of(opinionated, text)
        governed = rules(source, torch.full((1, len(trace.target)), START), model.config)
        memory = model.keys_values(model.encode(source, governed).memory)
        past = None
        with torch.inference_mode():
            for step, piece in enumerate(trace.target_ids):
                decoded = model.decode(torch.tensor([[piece]]), memory, governed, past, capture=True)
                past = decoded.cache
                for layer, seen in enumerate(decoded.seen):
                    assert seen.cross
                    assert seen.decoder
                    np.testing.assert_allclose(
                        trace.weights("cross")[layer, :, step], seen.cross.weights[0, :, 0], atol=1e-5
                    )
                    np.testing.assert_allclose(
                        trace.weights("decoder")[layer, :, step, : step + 1],
                        seen.decoder.weights[0, :, 0],
                        atol=1e-5,
                    )
        (end,) = [node for node in found.nodes if node.chosen and node.step == len(found.ids)] or [None]
        if end and end.ids[-1] == END:
            assert end.total == pytest.approx(trace.log_prob, abs=1e-4)


# --- draws by lot ---


@given(
    logs=LOGS,
    temperature=st.sampled_from([0.25, 0.7, 1.0, 2.0]),
    k=st.integers(0, 9),
    p=st.sampled_from([0.3, 0.8, 0.95, 1.0]),
)
def test_shares_are_softmax_over_the_pieces_that_the_filters_let_in(
    logs: torch.Tensor, temperature: float, k: int, p: float
) -> None:
    """Worked again in torch with loops, the filters one after the other."""
    found = shares(logs.numpy(), Lot(temperature, k, p))
    assert found.sum() == pytest.approx(1)
    masked = logs.double().clone()
    masked[[PAD, START, UNKNOWN]] = -math.inf
    whole = (masked / temperature).softmax(dim=0)
    order = sorted(range(len(logs)), key=lambda piece: -masked[piece].item())
    allowed = [piece for piece in order if whole[piece] > 0][: k or None]
    total = sum(whole[piece].item() for piece in allowed)
    kept, reached = [], 0.0
    for piece in allowed:
        if p < 1 and reached >= p:
            break
        kept.append(piece)
        reached += whole[piece].item() / total
    inside = sum(whole[piece].item() for piece in kept)
    want = np.zeros(len(logs))
    want[kept] = [whole[piece].item() / inside for piece in kept]
    np.testing.assert_allclose(found, want, atol=1e-9)


def test_the_limits_of_the_lot() -> None:
    logs = torch.tensor([0.0, 0.0, -3.0, 0.0, -1.0, -1.5, -0.5]).log_softmax(dim=0).numpy()
    for lot in (Lot(temperature=0), Lot(top_k=1), Lot(top_p=1e-9), Lot(temperature=1e-3)):
        assert shares(logs, lot)[6] == pytest.approx(1)
    flat = shares(logs, Lot(temperature=1e6))
    np.testing.assert_allclose(flat[[2, 4, 5, 6]], 0.25, atol=1e-5)
    assert not shares(logs, Lot())[NEVER].any()
    for bad in ({"temperature": -1}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}):
        with pytest.raises(ValueError, match="cannot draw"):
            Lot(**bad)


@given(logs=LOGS, at=st.floats(0, 1, exclude_max=True))
def test_a_piece_without_a_share_is_never_drawn(logs: torch.Tensor, at: float) -> None:
    found = shares(logs.numpy(), Lot(top_k=2))
    assert found[drawn(found, at)] > 0


def test_pieces_are_drawn_as_often_as_they_should_be(opinionated: Translator) -> None:
    model = random_model(5, sharp=0.3, max_pieces=17, vocabulary=opinionated.tokenizer.size)
    source, lot = ids_of(opinionated, TEXT), Lot(top_k=4)
    first = [(ids or [END])[0] for ids in sample(model, source, lot, range(400))]
    logs = model(source, torch.tensor([[START]]))[0, -1].log_softmax(dim=-1)
    want = shares(logs.numpy(), lot)
    met = Counter(first)
    assert set(met) <= set(np.flatnonzero(want).tolist())
    for piece in np.flatnonzero(want).tolist():
        # Four standard deviations of a share of 400 draws.
        assert met[piece] / 400 == pytest.approx(want[piece], abs=4 * (0.25 / 400) ** 0.5)


def test_a_seed_says_which_draw_also_in_a_batch_and_cold_draws_are_greedy(opinionated: Translator) -> None:
    for text in ENGLISH:
        source = ids_of(opinionated, text)
        lot = Lot(1.3, 0, 0.95)
        many = sample(opinionated.model, source, lot, [3, 4, 5])
        assert [sample(opinionated.model, source, lot, [seed])[0] for seed in (3, 4, 5)] == many
        for cold in (Lot(temperature=0), Lot(top_k=1)):
            assert sample(opinionated.model, source, cold, [7])[0] == greedy(opinionated.model, source)[0]
        longest = limit(source.size(1), opinionated.model.config)
        assert all(len(ids) <= longest and not set(ids) & {*NEVER, END} for ids in many)


# --- the film ---


@pytest.fixture(scope="module")
def chosen(opinionated: Translator) -> Trace:
    return opinionated.trace(TEXT, "Je suis à l'école aujourd'hui.")


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_a_step_shows_what_a_pass_over_the_pieces_so_far_shows(
    opinionated: Translator, chosen: Trace, kind: Kind
) -> None:
    for head in (0, None):
        whole = film.rows(Map(chosen, kind, 1, head), False)
        for step in range(len(chosen.target)):
            so_far = opinionated.trace(TEXT, chosen.target_ids[1 : step + 1])
            weights = Map(so_far, kind, 1, head).weights
            seen = whole.seen[step]
            assert seen == weights.shape[1]
            np.testing.assert_allclose(whole.weights[step, :seen], weights[-1], atol=1e-5)
            np.testing.assert_allclose(whole.weights[step, seen:], 0)


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_rows_of_words_sum_to_1_and_end_as_the_merged_map(chosen: Trace, kind: Kind) -> None:
    picture = Map(chosen, kind, 2, 1)
    merged = film.rows(picture, True)
    np.testing.assert_allclose(merged.weights.sum(axis=-1), 1, atol=1e-5)
    for step, row in enumerate(merged.weights):
        assert not row[merged.seen[step] :].any()
    spaces = (*chosen.target_spaces[1:], False)
    group = words.word_of(chosen.comes_out, spaces)
    key_spaces = chosen.source_spaces if kind == "cross" else chosen.target_spaces
    whole = words.merge(picture.weights, group, words.word_of(chosen.axes(kind)[1], key_spaces))
    assert len(set(merged.group)) < len(merged.group)  # some word has several pieces
    assert len(merged.keys) < len(chosen.axes(kind)[1]) or kind == "cross"
    for word, row in enumerate(whole):
        last = max(step for step, mine in enumerate(merged.group) if mine == word)
        np.testing.assert_allclose(merged.weights[last], row, atol=1e-6)
        assert merged.labels[last] == "→ " + words.names(chosen.comes_out, group)[word]


def test_what_may_come_next_is_the_ten_likeliest_the_chosen_one_and_the_end(
    opinionated: Translator, chosen: Trace
) -> None:
    name = str
    right = (*chosen.target_ids[1:], END)
    for step in range(len(chosen.target)):
        found = film.following(chosen, step, name, None)
        logs = chosen.log_probs[step]
        assert [each.share for each in found[:10]] == sorted(np.exp(logs).tolist(), reverse=True)[:10]
        assert [each.piece for each in found if each.chosen] == [str(right[step])]
        assert [each.piece for each in found if each.end] == [str(END)]
        assert all(each.share == pytest.approx(float(np.exp(logs[int(each.piece)]))) for each in found)
        assert {each.piece for each in found if each.never} <= {str(id_) for id_ in NEVER}
        lot = shares(logs, Lot(top_k=3))
        assert all(each.drawn == lot[int(each.piece)] for each in film.following(chosen, step, name, lot))


def test_the_count_of_passes_says_whether_it_is_training_or_translating() -> None:
    assert "Training" in passes(3, 8, "forced")
    assert "one pass" in passes(3, 8, "forced")
    assert "step 3 of 8" in passes(3, 8, "greedy")
    assert "Training" not in passes(3, 8, "beam", 4)
    assert "up to 4 hypotheses" in passes(3, 8, "beam", 4)


# --- a teacher beside free running ---


def test_two_runs_are_equal_until_they_part(opinionated: Translator) -> None:
    free = opinionated.trace(TEXT)
    forced = opinionated.trace(TEXT, (*free.target_ids[1:4], free.target_ids[1], free.target_ids[2]))
    place = parting(forced, free)
    assert place == 3 or forced.target_ids[4] == free.target_ids[4]
    assert place is not None
    twice = under(forced, free)
    np.testing.assert_allclose(twice[: place + 1], -forced.piece_log_probs[: place + 1], atol=1e-5)
    for step in range(place + 1, min(len(twice), len(free.target))):
        so_far = opinionated.trace(TEXT, free.target_ids[1 : step + 1])
        right = (*forced.target_ids[1:], END)[step]
        assert twice[step] == pytest.approx(-float(so_far.log_probs[step, right]), abs=1e-4)
    assert all(each is None for each in twice[len(free.target) :])
    assert parting(free, free) is None
    shorter = opinionated.trace(TEXT, free.target_ids[1:3])
    assert parting(shorter, free) == 2  # the teacher stops where the model goes on
    frame = two_runs(forced, free, twice)
    assert len(frame) == max(len(forced.target), len(free.target))
    assert frame.iloc[0, 2] == f"{-forced.piece_log_probs[0]:.3f}"


def test_the_lines_are_the_two_losses_and_the_mark_stands_before_the_parting(
    opinionated: Translator, chosen: Trace
) -> None:
    free = opinionated.trace(TEXT)
    twice, place = under(chosen, free), parting(chosen, free)
    figure = two_losses(chosen, twice, place, LIGHT)
    by_name = {part.name: part for part in figure.data}
    np.testing.assert_allclose(by_name["teacher forcing"].y, -chosen.piece_log_probs)
    want = [np.nan if each is None else each for each in twice]
    np.testing.assert_array_equal(by_name["free running"].y, want)
    assert place is not None
    assert figure.layout.shapes[0].x0 == place - 0.5


def test_the_tree_shows_every_hypothesis_where_its_step_and_rank_say(opinionated: Translator) -> None:
    seen = opinionated.search(TEXT, 3)
    figure = beam_tree(seen.nodes, 3, LIGHT)
    by_name = {part.name: part for part in figure.data}
    for state in ("kept", "ended", "dropped"):
        mine = [node for node in seen.nodes if node.state == state]
        assert by_name[state].y.tolist() == [node.step for node in mine]
        for node, text in zip(mine, by_name[state].text or (), strict=True):
            assert f"{node.total:.2f}" in text
            assert text.startswith("<b>") == node.chosen
    edges = len(by_name["chosen edges"].x) // 3
    assert edges == sum(node.chosen for node in seen.nodes)
    assert edges + len(by_name["edges"].x) // 3 == len(seen.nodes)


def test_draws_are_listed_with_their_own_probability(opinionated: Translator) -> None:
    free = opinionated.trace(TEXT)
    other = opinionated.trace(TEXT, free.target_ids[1:3])
    frame = draws([4, 5], [other, free], free)
    assert frame.iloc[:, 0].tolist() == [4, 5]
    assert frame.iloc[:, 3].tolist() == [f"{other.log_prob:.3f}", f"{free.log_prob:.3f}"]
    assert frame.iloc[:, 4].tolist() == ["", "yes"]


def test_a_trace_over_ids_is_the_trace_over_their_text(translator: Translator) -> None:
    by_text = translator.trace(TEXT, "Je suis à l'école.")
    by_ids = translator.trace(TEXT, by_text.target_ids[1:])
    assert by_ids.translation == by_text.translation
    assert not by_ids.forced
    np.testing.assert_array_equal(by_ids.weights("cross"), by_text.weights("cross"))


def test_a_model_is_not_changed_by_watching(opinionated: Translator) -> None:
    assert isinstance(opinionated.model, Transformer)
    one = opinionated.search(TEXT, 4)
    assert one == opinionated.search(TEXT, 4)
