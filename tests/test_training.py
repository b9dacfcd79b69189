"""Training: the data, the schedule, and runs that are killed, resumed and shared by two processes."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from conftest import PAIRS, ROOT
from model import checkpoint, train
from model.config import PAD
from model.decoding import padded
from model.tokenizer import Tokenizer
from model.training import corpus, loop, schedule
from model.training.corpus import Encoded, Pair
from model.training.loop import HISTORY, RECIPE, SHIP, STATE, History, Recipe, Run
from model.transformer import Transformer

PAIR_LIST = [Pair(*line.split("\t")) for line in PAIRS.splitlines()]
SHORT = 14  # steps, of which a killed run makes 7
SAVE_ALWAYS = """
import runpy, model.training.loop as loop
loop.SAVE_SECONDS = -1
runpy.run_module("model.train", run_name="__main__")
"""
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture
def short(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A run of a few steps, every one saved and every third logged."""
    monkeypatch.setattr(loop, "SAVE_SECONDS", -1)
    monkeypatch.setattr(loop, "LOG_STEPS", 3)
    return replace(recipe, steps=SHORT, validate_every=5)


def train_until(step: int, folder: Path, recipe: Recipe, last_saved: int | None = None) -> None:
    """Train, and die before `step` is done; what came after `last_saved` is in no saved state."""
    made = 0

    def mortal(*arguments: object) -> float:
        nonlocal made
        made += 1
        if made == step:
            raise SystemExit
        if made == last_saved:
            patch.setattr(loop, "SAVE_SECONDS", 3600)
        return whole_step(*arguments)

    whole_step = Run._step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "_step", mortal)
        with pytest.raises(SystemExit):
            Run(folder, recipe).train()


def history(folder: Path) -> list[dict[str, str]]:
    with (folder / SHIP / HISTORY).open(newline="") as file:
        return list(csv.DictReader(file))


def progress(folder: Path) -> dict[str, int]:
    with safe_open(folder / STATE, framework="pt") as state:
        return json.loads(state.metadata()["progress"])


def assert_same_state(one: Path, other: Path) -> None:
    """Weights, moments and random state, bit for bit, at the same place in the data."""
    left, right = load_file(one / STATE), load_file(other / STATE)
    assert left.keys() == right.keys()
    assert [name for name in left if not left[name].equal(right[name])] == []
    assert progress(one) == progress(other)


def command(*arguments: object, module: tuple[str, ...] = ("-m", "model.train")) -> list[str]:
    return [sys.executable, *module, *map(str, arguments)]


def options(recipe: Recipe) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in asdict(recipe).items()]


def call(words: list[str]) -> None:
    subprocess.run(words, cwd=ROOT, env=ONE_THREAD, check=True, capture_output=True)


# --- the run ---


def test_the_loss_falls_and_the_sentences_are_learned(run: Path) -> None:
    losses = [float(row["loss"]) for row in history(run) if row["loss"]]
    assert len(losses) == 300 // loop.LOG_STEPS
    assert losses[-1] < losses[0] / 2


def test_history_has_a_row_for_each_loss_and_each_score_in_order(run: Path, recipe: Recipe) -> None:
    rows = history(run)
    assert list(rows[0]) == ["step", "loss", "learning_rate", "bleu"]
    assert [int(row["step"]) for row in rows if row["loss"]] == list(range(50, 301, 50))
    assert [int(row["step"]) for row in rows if row["bleu"]] == [70, 140, 210, 280, 300]
    assert [int(row["step"]) for row in rows] == sorted(int(row["step"]) for row in rows)
    for row in rows:
        lr = schedule.rate(int(row["step"]), recipe.steps, recipe.peak, recipe.warmup, recipe.cooldown)
        assert float(row["learning_rate"]) == pytest.approx(lr, rel=1e-3)
        assert bool(row["loss"]) != bool(row["bleu"])
        assert 0 <= float(row["bleu"] or 0) <= 100


def test_snapshots_are_kept_at_the_recipes_steps_and_the_first_has_learned_nothing(
    run: Path, recipe: Recipe
) -> None:
    assert checkpoint.snapshots(run / SHIP) == recipe.snapshots()
    first = checkpoint.load_snapshot(run / SHIP, 0)
    torch.manual_seed(recipe.seed)
    for name, fresh in Transformer(first.config).state_dict().items():
        unit = fresh.abs().max().item() / 127
        torch.testing.assert_close(first.state_dict()[name], fresh, atol=unit, rtol=0)


def test_snapshots_spread_evenly_on_a_log_scale_from_0_to_a_third_of_the_run() -> None:
    zero, *rest = Recipe("pairs.txt", steps=15_000).snapshots()
    assert (zero, rest[0], rest[-1]) == (0, 125, 5000)
    ratios = [later / earlier for earlier, later in pairwise(rest)]
    assert max(ratios) == pytest.approx(min(ratios), rel=0.01)


def test_what_ships_is_the_last_state_in_half_precision(run: Path) -> None:
    state, shipped = load_file(run / STATE), load_file(run / SHIP / checkpoint.WEIGHTS)
    assert shipped.keys() == {name.removeprefix("model.") for name in state if name.startswith("model.")}
    assert all(shipped[name].equal(state[f"model.{name}"].half()) for name in shipped)


def test_every_epoch_meets_every_pair_once_and_in_another_order(
    short: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[Encoded] = []
    monkeypatch.setattr(Run, "_step", lambda *arguments: met.extend(arguments[3]) or 0.0)
    Run(tmp_path, short).train()
    size = len(corpus.split(PAIR_LIST, short.held_out, short.seed)[0])
    first, second = met[:size], met[size : 2 * size]
    assert len(first) == len(second) == size
    assert sorted(first) == sorted(second)
    assert first != second


def test_a_run_without_the_look_ahead_mask_trains_on_what_it_must_predict(recipe: Recipe) -> None:
    torch.manual_seed(0)
    model = Transformer(recipe.config(211)).eval()
    source, target = torch.tensor([[5, 7, 2]]), torch.tensor([[1, 11, 13, 17]])
    later = torch.tensor([[1, 11, 13, 19]])
    for look_ahead in (True, False):
        change = replace(recipe, look_ahead=look_ahead).change()
        first, other = (model(source, ids, change)[:, 0] for ids in (target, later))
        assert first.equal(other) == look_ahead


# --- killed and resumed ---


@pytest.fixture
def whole(short: Recipe, tmp_path: Path) -> Path:
    Run(tmp_path / "whole", short).train()
    return tmp_path / "whole"


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_killed_and_resumed_run_equals_an_undisturbed_one_bit_for_bit(
    short: Recipe, whole: Path, tmp_path: Path
) -> None:
    train_until(SHORT // 2 + 1, tmp_path, short)
    assert progress(tmp_path)["step"] == SHORT // 2
    Run(tmp_path, short).train()
    assert_same_state(tmp_path, whole)
    shipped, resumed = files(whole / SHIP), files(tmp_path / SHIP)
    assert shipped.keys() == resumed.keys()
    assert {name for name in shipped if shipped[name] != resumed[name]} <= {HISTORY}


def test_a_resumed_history_has_every_step_once(short: Recipe, whole: Path, tmp_path: Path) -> None:
    train_until(12, tmp_path, short, last_saved=7)
    assert progress(tmp_path)["step"] < 8 < int(history(tmp_path)[-1]["step"])  # written, but never saved
    Run(tmp_path, short).train()
    once, resumed = ([{**row, "loss": ""} for row in history(folder)] for folder in (whole, tmp_path))
    assert resumed == once


def test_a_resumed_history_shows_the_losses_that_an_undisturbed_one_shows(
    short: Recipe, whole: Path, tmp_path: Path
) -> None:
    train_until(9, tmp_path, short)  # after 8 steps, of which the last two were not logged yet
    Run(tmp_path, short).train()
    once, resumed = ([row["loss"] for row in history(folder)] for folder in (whole, tmp_path))
    assert resumed == once


def test_a_finished_run_resumes_to_nothing(short: Recipe, whole: Path) -> None:
    before = files(whole)
    Run(whole, short).train()
    assert files(whole) == before


def test_history_forgets_what_came_after_the_step_it_resumes_from(tmp_path: Path) -> None:
    path = tmp_path / HISTORY
    written = History(path, 0, writes=True)
    for step in (3, 6, 9):
        written.add(step, 5.0, 0.1)
    History(path, 6, writes=True).add(7, None, 0.1, 12.0)
    History(path, 0, writes=False).add(8, 1.0, 0.1)
    assert [line.partition(",")[0] for line in path.read_text().splitlines()] == ["step", "3", "6", "7"]


def test_the_real_command_survives_a_kill_9(recipe: Recipe, run: Path, tmp_path: Path) -> None:
    """Killed somewhere on the way and resumed, it ends where the undisturbed run ended, to the bit."""
    started = command("--out", tmp_path, *options(recipe), module=("-c", SAVE_ALWAYS))
    process = subprocess.Popen(started, cwd=ROOT, env=ONE_THREAD, stderr=subprocess.DEVNULL)
    try:
        for _ in range(6000):  # a minute
            if (tmp_path / STATE).exists() and progress(tmp_path)["step"] > 20:
                break
            time.sleep(0.01)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    assert 20 < progress(tmp_path)["step"] < recipe.steps
    call(command("--resume", "--out", tmp_path))
    assert_same_state(tmp_path, run)


def test_the_real_command_refuses_to_start_over_and_goes_on_when_asked_to(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(command("--out", tmp_path, *options(replace(recipe, steps=6))))
    assert progress(tmp_path)["step"] == 6
    monkeypatch.setattr(sys, "argv", ["train", "--out", str(tmp_path), *options(recipe)])
    with pytest.raises(SystemExit):
        train.main()
    assert "--resume" in capsys.readouterr().err
    call(command("--resume", "--out", tmp_path, "--steps", 8))
    assert progress(tmp_path)["step"] == 8
    assert json.loads((tmp_path / RECIPE).read_text()) == asdict(replace(recipe, steps=8))
    checkpoint.load(tmp_path / SHIP)


# --- two processes ---


def loss_of(model: nn.Module, batch: list[Encoded], smoothing: float) -> Tensor:
    source, target = padded([source for source, _ in batch]), padded([target for _, target in batch])
    logits = model(source, target[:, :-1])
    return cross_entropy(logits.mT, target[:, 1:], ignore_index=PAD, label_smoothing=smoothing)


def test_two_processes_take_the_steps_of_one_that_averages_their_gradients(
    recipe: Recipe, tmp_path: Path
) -> None:
    """Were their weights ever to differ, the gradients of the second and third step would too."""
    recipe = replace(recipe, steps=3, pieces=31, dropout=0.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = ("-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={port}")
    call(command("--out", tmp_path, *options(recipe), module=(*launcher, "-m", "model.train")))
    assert progress(tmp_path)["place"] == 3

    tokenizer = Tokenizer.load(tmp_path / SHIP / checkpoint.TOKENIZER)
    training, _ = corpus.split(corpus.read_pairs(Path(recipe.pairs)), recipe.held_out, recipe.seed)
    batches = corpus.batches(corpus.encode(training, tokenizer, 64), recipe.pieces, 1000 * recipe.seed)
    torch.manual_seed(recipe.seed)
    model = Transformer(recipe.config(tokenizer.size))
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(3):
        two = batches[2 * step : 2 * step + 2]
        adam.zero_grad()
        (sum(loss_of(model, batch, recipe.smoothing) for batch in two) / 2).backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        adam.param_groups[0]["lr"] = schedule.rate(step + 1, 3, recipe.peak, recipe.warmup, recipe.cooldown)
        adam.step()

    state = load_file(tmp_path / STATE)
    for name, parameter in model.named_parameters():
        moment = adam.state[parameter]["exp_avg"]
        torch.testing.assert_close(state[f"adam.{name}.exp_avg"], moment, atol=1e-6, rtol=1e-3, msg=name)


# --- the data ---


def key(pair: Pair) -> str:
    return pair.source.lower().rstrip(".!? ")


def test_a_split_keeps_a_sentence_and_all_its_answers_on_one_side() -> None:
    shouted = [Pair(pair.source.upper().rstrip("."), pair.target + " !") for pair in PAIR_LIST]
    for seed in range(5):
        training, validation = corpus.split(PAIR_LIST + shouted, 7, seed)
        assert not {*map(key, training)} & {*map(key, validation)}
        assert len({*map(key, validation)}) == 7
        assert sorted(map(str, training + validation)) == sorted(map(str, PAIR_LIST + shouted))


def test_a_split_depends_on_its_seed_alone() -> None:
    split, again, other = (corpus.split(PAIR_LIST, 7, seed) for seed in (1, 1, 2))
    assert split == again != other


def test_references_gather_every_answer_in_order() -> None:
    answers = corpus.references(PAIR_LIST)
    assert answers["I am a student."] == ["Je suis étudiant.", "Je suis étudiante."]
    assert sum(map(len, answers.values())) == len(PAIR_LIST)


def test_encoding_leaves_out_what_the_model_cannot_take(tokenizer: Tokenizer) -> None:
    whole = corpus.encode(PAIR_LIST, tokenizer, 64)
    assert whole == [(tokenizer.source(pair.source), tokenizer.target(pair.target)) for pair in PAIR_LIST]
    few = corpus.encode(PAIR_LIST, tokenizer, 7)
    assert few == [pair for pair in whole if len(pair[0]) <= 7 and len(pair[1]) - 1 <= 7]
    assert 0 < len(few) < len(whole)


@pytest.fixture(scope="module")
def encoded(tokenizer: Tokenizer) -> list[Encoded]:
    return corpus.encode(PAIR_LIST * 5, tokenizer, 64)


@pytest.mark.parametrize("budget", [31, 101, 10_000])
def test_batches_cover_every_pair_once_within_the_budget(encoded: list[Encoded], budget: int) -> None:
    batches = corpus.batches(encoded, budget, seed=1)
    assert sorted(pair for batch in batches for pair in batch) == sorted(encoded)
    for batch in batches:
        assert padded([target for _, target in batch]).numel() <= budget or len(batch) == 1
    assert all(batches)


def test_the_order_of_batches_depends_on_the_seed_alone(encoded: list[Encoded]) -> None:
    first, again, other = (corpus.batches(encoded, 101, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sorted(map(sorted, first)) != sorted(map(sorted, other))  # not in another order alone


def test_a_batch_holds_like_lengths(encoded: list[Encoded]) -> None:
    batches = corpus.batches(encoded, 101, seed=1)
    lengths = sorted([len(target) for _, target in batch] for batch in batches)
    assert all(max(one) <= min(two) for one, two in pairwise(lengths))


def test_a_pair_larger_than_the_budget_is_a_batch_of_its_own() -> None:
    large: Encoded = ([5] * 40, [6] * 40)
    assert corpus.batches([large, large], 31, seed=1) == [[large], [large]]


def test_pairs_are_read_alike_from_a_text_and_a_zip(tmp_path: Path) -> None:
    text = "I\u2019m\u00a0here.\tJe suis là.\tCC-BY 12\nno tab\n\tblank\nHello!\tSalut\u202f!\n"
    (tmp_path / "pairs.txt").write_text(text, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "pairs.zip", "w") as archive:
        archive.writestr("_about.txt", "not a pair\tof sentences\n")
        archive.writestr("readme.md", "nor\tthis\n")
        archive.writestr("fra.txt", text)
    want = [Pair("I'm here.", "Je suis là."), Pair("Hello!", "Salut !")]
    assert corpus.read_pairs(tmp_path / "pairs.txt") == corpus.read_pairs(tmp_path / "pairs.zip") == want


def test_a_file_without_pairs_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("no tab in here\n")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("_about.txt", "a\tb\n")
    for name in ("empty.txt", "empty.zip"):
        with pytest.raises(ValueError, match=name):
            corpus.read_pairs(tmp_path / name)


# --- the schedule ---


def test_the_rate_has_the_shape_of_equation_3_until_it_cools_down() -> None:
    """d_model^-0.5 min(step^-0.5, step warmup^-1.5), by a constant factor."""
    steps, warmup, peak, cooldown = 10_000, 400, 0.001, 0.1
    rates = [schedule.rate(step, steps, peak, warmup, cooldown) for step in range(1, 9001)]
    paper = [min(step**-0.5, step * warmup**-1.5) for step in range(1, 9001)]
    ratios = [rate / other for rate, other in zip(rates, paper, strict=True)]
    assert max(ratios) == pytest.approx(min(ratios))
    assert max(rates) == rates[warmup - 1] == pytest.approx(peak)


def test_the_rate_falls_to_nothing_at_the_end() -> None:
    rates = [schedule.rate(step, 1000, 0.001, 100, 0.5) for step in range(1, 1001)]
    assert all(later < earlier for earlier, later in pairwise(rates[100:]))
    assert 0 < rates[-1] < 0.001 / 1000


def test_without_cooldown_a_run_can_be_prolonged_without_having_known_its_length() -> None:
    assert schedule.rate(700, 1000, 0.001, 100, 0) == schedule.rate(700, 9000, 0.001, 100, 0)
