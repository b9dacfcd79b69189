"""Every shape of model learns by the same command: short runs, killed and resumed, and what they log."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy

from conftest import PAIRS
from model import checkpoint
from model.config import END, GAP, MASK, PAD, START
from model.decoding import padded
from model.hiding import choose, hide
from model.quality import filled, perplexity
from model.stack import Stack
from model.tokenizer import Tokenizer
from model.trace import NEUTRAL
from model.training import corpus, history, loop
from model.training.corpus import Pair
from model.training.loop import HISTORY, SHIP, STATE, Recipe, Run
from model.training.task import Continuing, Filling, task

PAIR_LIST = [Pair(*line.split("\t")) for line in PAIRS.splitlines()]
WAYS = {
    "gpt": {"shape": "decoder", "vocabulary": 101},
    "bert": {"shape": "encoder", "vocabulary": 101},
    "rnn-attention": {"material": "recurrent attention", "n_layers": 1, "n_heads": 1, "d_ff": 23},
    "rnn": {"material": "recurrent", "n_layers": 1, "n_heads": 1, "d_ff": 23},
}


@pytest.fixture(scope="module", params=WAYS)
def finished(
    request: pytest.FixtureRequest, recipe: Recipe, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of a run of one shape."""
    folder = tmp_path_factory.mktemp(request.param)
    chosen = replace(recipe, **WAYS[request.param], steps=120, warmup=20, keep_snapshots=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "LOG_STEPS", 20)
        Run(folder, chosen).train()
    return folder


def test_the_loss_falls_and_the_history_names_what_it_measured(finished: Path) -> None:
    with (finished / SHIP / HISTORY).open(newline="") as file:
        columns = next(csv.reader(file))
    config = checkpoint.load(finished / SHIP)[0].config
    metric = {"decoder": "perplexity", "encoder": "accuracy"}.get(config.shape, "bleu")
    assert columns == ["step", "loss", "learning_rate", metric]
    curves = history.read(finished / SHIP / HISTORY)
    assert curves.metric == metric
    assert curves.validated.tolist() == [70, 120]
    assert curves.loss[-1] < curves.loss[0] * 0.85
    assert (curves.scores >= (1 if metric == "perplexity" else 0)).all()


def test_no_snapshot_is_kept_where_none_is_asked_for(finished: Path) -> None:
    assert checkpoint.snapshots(finished / SHIP) == []


def test_models_of_one_language_have_a_tokenizer_of_that_language(finished: Path) -> None:
    model, tokenizer = checkpoint.load(finished / SHIP)
    french = any("é" in tokenizer.piece(id_).text for id_ in range(tokenizer.size))
    assert french == (model.config.shape == "encoder-decoder")
    assert (tokenizer.piece(MASK).text == GAP) == (model.config.shape == "encoder")


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_run_of_any_shape_ends_where_an_undisturbed_one_ends(
    recipe: Recipe, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SAVE_SECONDS", -1)
    short = replace(recipe, **WAYS[way], steps=8, validate_every=4, keep_snapshots=False)
    Run(tmp_path / "whole", short).train()
    whole_step, made = Run._step, 0

    def mortal(*arguments: object) -> float:
        nonlocal made
        made += 1
        if made == 6:
            raise SystemExit
        return whole_step(*arguments)

    monkeypatch.setattr(Run, "_step", mortal)
    with pytest.raises(SystemExit):
        Run(tmp_path / "killed", short).train()
    monkeypatch.setattr(Run, "_step", whole_step)
    Run(tmp_path / "killed", short).train()
    one, other = (load_file(tmp_path / name / STATE) for name in ("whole", "killed"))
    assert [name for name in one if not one[name].equal(other[name])] == []


def test_a_tokenizer_can_be_taken_over(recipe: Recipe, tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    taken = replace(recipe, **WAYS["rnn"], steps=1, tokenizer=str(tmp_path / "tokenizer.json"))
    Run(tmp_path / "run", taken).train()
    assert (tmp_path / "run" / SHIP / checkpoint.TOKENIZER).read_bytes() == (
        tmp_path / "tokenizer.json"
    ).read_bytes()


def test_what_is_held_out_of_the_pairs_is_held_out_of_the_english(tokenizer: Tokenizer) -> None:
    training, validation = corpus.split(PAIR_LIST, 7, 1)
    seen = {tuple(ids) for _none, ids in Continuing().encode(training, tokenizer, 64)}
    kept = {tuple(tokenizer.target(pair.source)) for pair in validation}
    assert not seen & kept
    assert len(seen) == len({pair.source for pair in training})
    assert {(START, *ids) for _none, ids in Filling(211).encode(training, tokenizer, 64)} == seen


# --- losses and scores against their definitions ---


def language_model(folder: Path) -> tuple[Stack, Tokenizer]:
    model, tokenizer = checkpoint.load(folder / SHIP)
    assert isinstance(model, Stack)
    return model, tokenizer


@pytest.mark.parametrize("finished", ["gpt", "bert"], indirect=True)
def test_losses_and_scores_are_what_their_definitions_say(finished: Path) -> None:
    model, tokenizer = language_model(finished)
    learning = task(model.config.shape, tokenizer.size, NEUTRAL)
    sentences = corpus.sentences(PAIR_LIST)
    batch = learning.encode(PAIR_LIST, tokenizer, 64)[:5]
    loss = learning.loss(model, batch, torch.device("cpu"), 0.0)
    if model.config.shape == "decoder":
        logs = [
            model(torch.tensor([ids[: t + 1]]))[0, t].log_softmax(dim=-1)[ids[t + 1]].item()
            for _none, ids in batch
            for t in range(len(ids) - 1)
        ]
        assert loss.item() == pytest.approx(-sum(logs) / len(logs), rel=1e-4)
        found = perplexity(model, tokenizer, sentences[:5])
        assert found.piece == pytest.approx(math.exp(-sum(logs) / len(logs)), rel=1e-4)
        words = sum(text.count(" ") + 1 for text in sentences[:5])
        assert (found.pieces, found.words) == (len(logs), words)
        assert found.word == pytest.approx(math.exp(-sum(logs) / words), rel=1e-4)
        return
    torch.manual_seed(5)
    loss = learning.loss(model, batch, torch.device("cpu"), 0.0)
    torch.manual_seed(5)
    ids = padded([ids for _none, ids in batch])
    shown, chosen = hide(ids, tokenizer.size)
    assert loss.item() == pytest.approx(cross_entropy(model(shown)[chosen], ids[chosen]).item(), rel=1e-5)

    one = filled(model, tokenizer, sentences[:5], seed=3)
    ids = padded(sorted((tokenizer.source(text) for text in sentences[:5]), key=len))
    asked = choose(ids, torch.Generator().manual_seed(3))
    order = model(ids.masked_fill(asked, MASK))[asked].argsort(dim=-1, descending=True)
    ranks = (order == ids[asked][:, None]).nonzero()[:, 1]
    assert one.hidden == len(ranks) == int(asked.sum())
    assert one.first == pytest.approx((ranks == 0).float().mean().item())
    assert one.commonest == pytest.approx(ids[asked].bincount().max().item() / len(ranks))
    assert one.five == pytest.approx((ranks < 5).float().mean().item())
    assert not (asked & ((ids == END) | (ids == PAD))).any()
