"""Score a model: `python -m model.evaluate --pairs FILE` prints one line of JSON.

FILE holds tab-separated English and French. Every French line of an English sentence is a right
answer; models of one language read the English alone. `--validation` keeps only the sentences that the
model's training held out.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import sacrebleu

import model
from model.continuer import Continuer
from model.filler import Filler
from model.quality import Filled, Perplexity, Translates, filled, perplexity, score, translations
from model.tokenizer import Tokenizer
from model.training import corpus
from model.training.corpus import Pair


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--model", default="en-fr", help="name of a shipped model, or a model folder")
    parser.add_argument("--beam", type=int, default=1, help="hypotheses kept at each step; 1 is greedy")
    parser.add_argument("--validation", action="store_true", help="only what a training with --seed held out")
    parser.add_argument("--seed", type=int, default=1, help="of the split, and of the pieces that are hidden")
    parser.add_argument("--held-out", type=int, default=1500)
    arguments = parser.parse_args()

    door = model.load(arguments.model)
    pairs = corpus.read_pairs(arguments.pairs)
    if arguments.validation:
        pairs = corpus.split(pairs, arguments.held_out, arguments.seed)[1]
    if isinstance(door, Continuer):
        found = unsure(perplexity(door.model, door.tokenizer, corpus.sentences(pairs)))
    elif isinstance(door, Filler):
        found = guessed(filled(door.model, door.tokenizer, corpus.sentences(pairs), arguments.seed))
    else:
        found = translated(door.model, door.tokenizer, pairs, arguments.beam)
    print(json.dumps({**found, "sentences": len(corpus.sentences(pairs))}))


def unsure(found: Perplexity) -> dict[str, Any]:
    """Of a decoder alone."""
    return {
        "perplexity_per_piece": round(found.piece, 2),
        "perplexity_per_word": round(found.word, 2),
        "pieces": found.pieces,
        "words": found.words,
    }


def guessed(found: Filled) -> dict[str, Any]:
    """Of an encoder alone, in per cent of the hidden pieces."""
    return {
        "first": round(100 * found.first, 2),
        "among_five": round(100 * found.five, 2),
        "always_the_commonest": round(100 * found.commonest, 2),
        "hidden": found.hidden,
    }


def translated(model: Translates, tokenizer: Tokenizer, pairs: list[Pair], beam: int) -> dict[str, Any]:
    """BLEU and chrF against all answers."""
    answers = corpus.references(pairs)
    found = translations(model, tokenizer, list(answers), beam)
    bleu = score(sacrebleu.BLEU(), found, list(answers.values()))
    chrf = score(sacrebleu.CHRF(), found, list(answers.values()))
    return {
        "bleu": round(bleu.score, 2),
        "chrf": round(chrf.score, 2),
        "beam": beam,
        "signature": bleu.signature,
        "chrf_signature": chrf.signature,
    }


if __name__ == "__main__":
    main()
