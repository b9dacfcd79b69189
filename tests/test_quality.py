"""Scores of translations, against sacrebleu itself and against what must score 100."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
import torch

from conftest import PAIRS, ROOT
from model import checkpoint
from model.quality import bleu, score, translations
from model.training.loop import SHIP
from model.translator import Translator

ENGLISH = [*dict.fromkeys(line.split("\t")[0] for line in PAIRS.splitlines())]
FOUND = ["Le chat me regarde aussi.", "Je ne sais pas.", "Avez-vous vu le chien ?"]
ANSWERS = [
    ["Le chat me regarde.", "Le chat me voit aussi."],
    ["Je ne sais pas.", "Je l'ignore."],
    ["As-tu vu le chien ?", "Avez-vous vu un chien ?"],
]

Metric = type[sacrebleu.BLEU | sacrebleu.CHRF]
each_metric = pytest.mark.parametrize("metric", [sacrebleu.BLEU, sacrebleu.CHRF])


@each_metric
def test_a_score_is_the_one_that_sacrebleu_gives(metric: Metric) -> None:
    ours, theirs = score(metric(), FOUND, ANSWERS), metric()
    columns = [list(column) for column in zip(*ANSWERS, strict=True)]
    assert ours.score == theirs.corpus_score(FOUND, columns).score
    assert ours.signature == str(theirs.get_signature())
    assert 0 < ours.score < 100


@each_metric
def test_any_one_of_the_right_answers_scores_100(metric: Metric) -> None:
    answers = [["Quel long détour pour rien.", FOUND[0]], [FOUND[1]], ["Non, merci bien.", "Si ?", FOUND[2]]]
    assert score(metric(), FOUND, answers).score == pytest.approx(100)


@each_metric
def test_a_missing_answer_counts_as_one_given_twice(metric: Metric) -> None:
    uneven = [ANSWERS[0], ANSWERS[1][:1], ANSWERS[2][1:]]
    doubled = [(answers * 2)[:2] for answers in uneven]
    assert score(metric(), FOUND, uneven).score == pytest.approx(score(metric(), FOUND, doubled).score)


def test_a_model_scores_100_against_its_own_translations(trained: Translator) -> None:
    answers = {english: ["Rien de tel.", trained.translate(english)] for english in ENGLISH}
    assert bleu(trained.model, trained.tokenizer, answers).score == pytest.approx(100)
    wrong = {english: ["Rien de tel que cela."] for english in ENGLISH}
    assert bleu(trained.model, trained.tokenizer, wrong).score < 10


@pytest.mark.parametrize("beam", [1, 3])
def test_translations_come_in_the_order_of_their_sources(trained: Translator, beam: int) -> None:
    sources = ENGLISH[::-2]
    found = translations(trained.model, trained.tokenizer, sources, beam)
    assert found == [trained.translate(source, beam) for source in sources]


def test_evaluate_prints_one_line_of_json(run: Path, trained: Translator, pairs_file: Path) -> None:
    options = [f"--pairs={pairs_file}", f"--model={run / SHIP}", "--beam=2"]
    command = [sys.executable, "-m", "model.evaluate", *options]
    (line,) = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    printed = json.loads(line)
    answers: dict[str, list[str]] = {}
    for english, french in (pair.split("\t") for pair in PAIRS.splitlines()):
        answers.setdefault(english, []).append(french)
    found = translations(trained.model, trained.tokenizer, list(answers), beam=2)
    assert printed["sentences"] == len(answers)
    for name, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF())):
        assert printed[name] == pytest.approx(score(metric, found, list(answers.values())).score, abs=0.01)
    assert "nrefs:var" in printed["signature"]
    assert "version:" in printed["signature"]


def test_scoring_leaves_the_weights_alone(run: Path, trained: Translator) -> None:
    model, tokenizer = checkpoint.load(run / SHIP)
    bleu(model, tokenizer, {english: ["Non."] for english in ENGLISH})
    for name, weights in trained.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], weights), name
