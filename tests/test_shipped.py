"""The shipped models of other shapes do what their cards say, each on sentences of its own."""

from functools import cache

import numpy as np
import pytest

import model as headlight
from model.config import MASK
from model.continuer import Continuer
from model.filler import Filler
from model.quality import perplexity
from model.recurrent_translator import RecurrentTranslator

SENTENCES = (
    "I don't know what to do.",
    "The cat is on the table.",
    "She wants to go home.",
    "He has a new car.",
)


@cache
def door(name: str) -> object:
    return headlight.load(name)


@pytest.mark.parametrize("name", ["rnn-attention", "rnn"])
def test_a_recurrent_translator_translates(name: str) -> None:
    of = door(name)
    assert isinstance(of, RecurrentTranslator)
    assert of.translate("I am a student.") in ("Je suis étudiant.", "Je suis étudiante.")
    trace = of.trace("I am a student.")
    assert trace.kinds == of.config.kinds == (("cross",) if name == "rnn-attention" else ())
    assert trace.log_prob < 0


def test_additive_attention_found_the_words_that_belong_together() -> None:
    """Nobody told it: the row that chose a word looks at that word more than an even row would."""
    of = door("rnn-attention")
    assert isinstance(of, RecurrentTranslator)
    for english, french, word, said in (
        ("The cat is black.", "Le chat est noir.", "cat", "chat"),
        ("I have a new car.", "J'ai une nouvelle voiture.", "car", "voiture"),
        ("My father is old.", "Mon père est vieux.", "father", "père"),
    ):
        trace = of.trace(english, french)
        row = trace.weights("cross")[0, 0, trace.comes_out.index(said)]
        assert int(row.argmax()) == trace.source.index(word)


def test_gpt_is_less_surprised_by_sentences_than_by_their_words_shuffled() -> None:
    of = door("gpt")
    assert isinstance(of, Continuer)
    rng = np.random.default_rng(0)
    shuffled = [" ".join(rng.permutation(text.split())) for text in SENTENCES]
    whole, mixed = (perplexity(of.model, of.tokenizer, texts).piece for texts in (SENTENCES, shuffled))
    assert whole < mixed / 3
    assert of.go_on("I want to") != "I want to"


def test_bert_guesses_what_the_words_on_both_sides_call_for() -> None:
    of = door("bert")
    assert isinstance(of, Filler)
    for text, right in (
        ("I [MASK] a student.", {"am", "was", "'m"}),
        (
            "She [MASK] to go home.",
            {"wants", "wanted", "has", "had", "decided", "needs", "likes", "used", "tried"},
        ),
        ("He doesn't [MASK] what to do.", {"know"}),
    ):
        trace = of.trace(text)
        assert trace.comes_out[trace.gaps[0]] in right
        assert trace.source_ids[trace.gaps[0]] == MASK
