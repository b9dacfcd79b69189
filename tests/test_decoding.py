"""Greedy and beam search against every sequence there is, and against each other."""

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from conftest import PAIRS, TEXT, random_model
from model import decoding
from model.config import END, PAD, START, UNKNOWN, Config
from model.decoding import (
    beam_search,
    greedy,
    greedy_changed,
    greedy_without_cache,
    limit,
    log_probabilities,
    padded,
    penalty,
)
from model.masks import rules
from model.steps import Steps
from model.trace import Cell, Change, Head, Switch
from model.transformer import Transformer
from model.translator import Translator

V = 7  # three ordinary pieces, so that every translation can be tried
ENGLISH = [line.split("\t")[0] for line in PAIRS.splitlines()]


@pytest.fixture(params=range(12))
def tiny(request: pytest.FixtureRequest) -> Transformer:
    """A model of strong opinions, so that short and long translations both win."""
    return random_model(request.param, sharp=3.0, vocabulary=V, n_layers=2, max_pieces=5)


SOURCES = [torch.tensor([[4, END]]), torch.tensor([[6, 4, 4, 5, END]])]


def worths(model: Transformer, source: Tensor) -> dict[tuple[int, ...], float]:
    """log P / lp of every translation that ends within the limit, each scored in a single pass."""
    found = {}
    for length in range(limit(source.size(1), model.config)):
        every = torch.tensor(list(product(range(UNKNOWN + 1, V), repeat=length)), dtype=torch.long)
        goes_in, comes_out = (pad(every, edge, value=id_) for edge, id_ in (((1, 0), START), ((0, 1), END)))
        log_probs = model(source.expand(len(every), -1), goes_in).log_softmax(dim=-1)
        totals = log_probs.gather(2, comes_out[..., None]).sum(dim=(1, 2))
        found |= dict(zip(map(tuple, every.tolist()), (totals / penalty(length + 1)).tolist(), strict=True))
    return found


def test_a_wide_beam_finds_the_best_of_all_translations(tiny: Transformer) -> None:
    for source in SOURCES:
        worth = worths(tiny, source)
        found = beam_search(tiny, source, size=4 * len(worth))
        assert worth[tuple(found)] == pytest.approx(max(worth.values()), abs=1e-5)


def test_a_beam_of_1_never_ends_worse_than_greedy(tiny: Transformer) -> None:
    """It walks greedy's way, but may walk on, since the length penalty can make up for it."""
    for source in SOURCES:
        worth, chosen = worths(tiny, source), greedy(tiny, source)[0]
        found = beam_search(tiny, source, size=1)
        assert found[: len(chosen)] == chosen
        if tuple(chosen) in worth:
            assert worth[tuple(found)] >= worth[tuple(chosen)] - 1e-5


def unhurried(model: Transformer, source: Tensor, size: int) -> list[int]:
    """Beam search in its plainest form: nothing cached, and to the very end."""
    beam, finished = {(): 0.0}, {}
    for length in range(1, limit(source.size(1), model.config) + 1):
        grown: dict[tuple[int, ...], float] = {}
        for ids, total in beam.items():
            log_probs = log_probabilities(model(source, torch.tensor([[START, *ids]]))[0, -1])
            grown |= {(*ids, piece): total + more for piece, more in enumerate(log_probs.tolist())}
        best = sorted(grown, key=grown.__getitem__, reverse=True)[: 2 * size]
        finished |= {ids[:-1]: grown[ids] / penalty(length) for ids in best[:size] if ids[-1] == END}
        beam = {ids: grown[ids] for ids in [ids for ids in best if ids[-1] != END][:size]}
    return list(max(finished or beam, key=(finished or beam).__getitem__))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_beam_that_stops_early_misses_nothing(size: int) -> None:
    for seed in range(12):
        model = random_model(seed, sharp=2.0, vocabulary=V, n_layers=2, max_pieces=11)
        assert beam_search(model, SOURCES[1], size) == unhurried(model, SOURCES[1], size)


@pytest.mark.parametrize("size", [1, 2])
def test_an_early_end_does_not_win_where_a_longer_translation_is_worth_more(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt, sure, end = ([0, 0, 0.4, 0, 0.35, 0.15, 0.1], [0, 0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0, 0])
    steps = iter([doubt, *[sure] * 8, end])
    monkeypatch.setattr(
        decoding, "log_probabilities", lambda logits: torch.tensor(next(steps)).log() + 0 * logits
    )
    assert 0.35 ** (1 / penalty(10)) > 0.4 ** (1 / penalty(1))
    assert beam_search(random_model(vocabulary=V, max_pieces=17), SOURCES[0], size) == [4] * 9


def test_the_length_penalty_is_that_of_wu_et_al() -> None:
    assert penalty(1) == 1
    assert penalty(7) == pytest.approx(2**0.6)
    assert all(penalty(length) < penalty(length + 1) for length in range(1, 60))


def test_greedy_takes_the_likeliest_piece_at_every_step(trained: Translator) -> None:
    for english in ENGLISH[::5]:
        source = torch.tensor([trained.tokenizer.source(english)])
        chosen = greedy(trained.model, source)[0]
        logits = trained.model(source, torch.tensor([[START, *chosen]]))
        assert log_probabilities(logits)[0].argmax(dim=-1).tolist() == [*chosen, END]


def test_greedy_in_a_batch_equals_greedy_one_by_one(trained: Translator) -> None:
    sources = [trained.tokenizer.source(english) for english in ENGLISH]
    together = greedy(trained.model, padded(sources))
    assert together == [greedy(trained.model, torch.tensor([source]))[0] for source in sources]
    assert len({*map(len, sources)}) > 3
    assert len({*map(len, together)}) > 3


def prefer(model: Transformer, piece: int, by: float) -> Transformer:
    """Raise the logit of one piece everywhere."""
    row = model.embedding.weight[piece]
    model.decoder[-1].add_3.norm.bias += by * row / (row @ row)
    return model


def test_in_a_batch_too_a_sentence_is_cut_at_its_own_limit() -> None:
    never_ends = prefer(random_model(vocabulary=31, max_pieces=67), END, -30)
    sources = [[5, 6, END], [*range(4, 20), END]]
    alone = [greedy(never_ends, torch.tensor([source]))[0] for source in sources]
    assert len(alone[0]) < len(alone[1])
    assert greedy(never_ends, padded(sources)) == alone


def test_the_limit_is_50_pieces_more_than_the_source_or_what_the_model_accepts() -> None:
    roomy, tight = (Config(vocabulary=V, max_pieces=most) for most in (1000, 11))
    assert limit(20, roomy) - limit(10, roomy) == 10
    assert 58 < limit(9, roomy) <= 59
    assert limit(9, tight) <= 11


def test_greedy_under_a_change_that_changes_nothing_is_greedy(trained: Translator) -> None:
    for english in ENGLISH[::7]:
        source = torch.tensor([trained.tokenizer.source(english)])
        assert greedy_changed(trained.model, source, Change()) == greedy(trained.model, source)[0]


CHANGES = [
    Change(),
    Change(positions="off"),
    Change(shift=3, scale=False),
    Change(source_padding=Switch("all"), cross_padding=Switch((1,))),
    Change(blocked=frozenset({Cell("decoder", 3, 1, 1, 0), Cell("cross", 2, 4), Cell("cross", 1, 0, 2)})),
    Change(removed=frozenset({Head("cross", 1, 0), Head("decoder", 2, 1)})),
    Change(uniform=frozenset({Head("decoder", 0, 1), Head("cross", 2, 0)})),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("laid_out", [False, True])
def test_each_step_of_a_batch_is_the_row_of_the_whole_pass(change: Change, laid_out: bool) -> None:
    model = random_model(vocabulary=31)
    if laid_out:
        model.lay_out()
    source = padded([[17, 4, 9, 4, 30, 11, END], [29, 6, END]])
    target = torch.tensor([[START, 6, 7, 22, 13], [START, 12, 12, 25, 5]])
    changed = rules(source, target, model.config, change)
    memory = model.keys_values(model.encode(source, changed).memory)
    step = Steps(model, memory, changed, batch=2, room=5)
    for now, want in enumerate(model(source, target, change).unbind(dim=1)):
        torch.testing.assert_close(step(target[:, now]), want, atol=1e-5, rtol=0)


@pytest.mark.parametrize("favourite", [PAD, START, UNKNOWN])
def test_no_translation_contains_a_special_piece_however_likely(favourite: int) -> None:
    model = prefer(random_model(vocabulary=31, max_pieces=11), favourite, 30)
    source = torch.tensor([[9, 4, 17, END]])
    free = model(source, torch.tensor([[START, 9, 4]]))[0].argmax(dim=-1)
    assert free.tolist() == [favourite] * 3
    found = [greedy(model, source)[0], greedy_changed(model, source, Change())]
    found += [beam_search(model, source, size) for size in (1, 2, 5, 40)]
    assert not {PAD, START, END, UNKNOWN} & {id_ for ids in found for id_ in ids}


def test_log_probabilities_leave_the_allowed_pieces_as_they_are() -> None:
    logits: Tensor = torch.randn(3, V)
    found = log_probabilities(logits)
    assert (found[:, [PAD, START, UNKNOWN]] == -torch.inf).all()
    kept = [END, *range(UNKNOWN + 1, V)]
    assert found[:, kept].equal(logits.log_softmax(dim=-1)[:, kept])


def test_the_decoders_translate_the_same_through_the_door(trained: Translator) -> None:
    source = torch.tensor([trained.tokenizer.source("I love the cat.")])
    for beam, ids in ((1, greedy(trained.model, source)[0]), (4, beam_search(trained.model, source, 4))):
        assert trained.translate("I love the cat.", beam) == trained.tokenizer.decode(ids)


def test_padding_fills_every_sentence_up_on_the_right() -> None:
    assert padded([[4, 5, END], [6, END]]).tolist() == [[4, 5, END], [6, END, PAD]]


@pytest.mark.parametrize(
    "change",
    [
        Change(),
        Change(positions="off"),
        Change(shift=3, scale=False),
        Change(source_pads=3, source_padding=Switch("all"), target_pads=2),
        Change(blocked=frozenset({Cell("decoder", 2, 0), Cell("cross", 1, 3)})),
        Change(removed=frozenset({Head("cross", 1, 0)})),
        Change(target_pads=2, target_padding=Switch("all")),
    ],
)  # fmt: skip
def test_with_a_cache_and_without_the_same_pieces_are_chosen(translator: Translator, change: Change) -> None:
    source = torch.tensor([[*translator.tokenizer.source(TEXT), *[PAD] * change.source_pads]])
    model = translator.model
    assert greedy_changed(model, source, change) == greedy_without_cache(model, source, change)
