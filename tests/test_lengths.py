"""BLEU by length: every sentence in one band, and scored as sacrebleu scores it."""

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
import sacrebleu

from model import lengths
from model.lengths import measured, read

ANSWERS = {
    "Stop!": ["Arrête !", "Stop !"],
    "I am tired.": ["Je suis fatigué.", "Je suis fatiguée."],
    "The cat looks at me.": ["Le chat me regarde."],
    "The dog looks at the cat.": ["Le chien regarde le chat."],
    "We are at school, and you are not.": ["Nous sommes à l'école, et vous ne l'êtes pas."],
}
FOUND = {
    "good": [answers[0] for answers in ANSWERS.values()],
    "poor": [
        "Arrête !",
        "Je suis fatigué.",
        "Le chat me voit.",
        "Le chien regarde.",
        "Nous sommes à l'école et toi pas.",
    ],
}
BANDS = ((1, 3), (4, 6), (7, 7), (8, 99))


def test_every_sentence_is_in_the_band_of_its_words_and_an_empty_band_is_left_out() -> None:
    found = measured(ANSWERS, FOUND, BANDS)
    assert [(band.first, band.last, band.sentences) for band in found] == [(1, 3, 2), (4, 6, 2), (8, 8, 1)]


def test_a_band_is_scored_as_sacrebleu_scores_it() -> None:
    for band in measured(ANSWERS, FOUND, BANDS):
        rows = [i for i, text in enumerate(ANSWERS) if band.first <= text.count(" ") + 1 <= band.last]
        right = [[*ANSWERS.values()][row] for row in rows]
        columns = [[each[0] for each in right], [each[-1] for each in right]]
        for name, texts in FOUND.items():
            score = sacrebleu.BLEU().corpus_score([texts[row] for row in rows], columns).score
            assert band.bleu[name] == pytest.approx(score, abs=0.006)
            low, high = band.spread[name]
            assert low <= high
            assert low - 1e-9 <= band.bleu[name] + 0.01
        assert band.bleu["good"] == pytest.approx(100)
        assert band.bleu["poor"] <= 100


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    bands = measured(ANSWERS, FOUND, BANDS)
    path = tmp_path / "lengths.json"
    path.write_text(json.dumps({"sentences": 5, "bands": [asdict(band) for band in bands]}))
    assert read(path) == tuple(bands)


def test_the_shipped_bands_hold_every_held_out_sentence_and_more_than_one_model() -> None:
    bands = read()
    assert sum(band.sentences for band in bands) == json.loads(lengths.FILE.read_text())["sentences"]
    assert all(one.last < other.first for one, other in pairwise(bands))
    for band in bands:
        assert set(band.bleu) == set(band.spread) == set(lengths.NAMES)
        for name, score in band.bleu.items():
            low, high = band.spread[name]
            assert 0 <= low <= high <= 100
            assert low - 5 < score < high + 5
