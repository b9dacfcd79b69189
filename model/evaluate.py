"""Score a model: `python -m model.evaluate --pairs FILE` prints one line of JSON.

FILE holds tab-separated English and French. Every French line of an English sentence is a right
answer. `--validation` keeps only the sentences that the model's training held out.
"""

import argparse
import json
from pathlib import Path

import sacrebleu

import model
from model.quality import score, translations
from model.training import corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--model", default="en-fr", help="name of a shipped model, or a model folder")
    parser.add_argument("--beam", type=int, default=1, help="hypotheses kept at each step; 1 is greedy")
    parser.add_argument("--validation", action="store_true", help="only what a training with --seed held out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out", type=int, default=1500)
    arguments = parser.parse_args()

    translator = model.load(arguments.model)
    pairs = corpus.read_pairs(arguments.pairs)
    if arguments.validation:
        pairs = corpus.split(pairs, arguments.held_out, arguments.seed)[1]
    answers = corpus.references(pairs)
    found = translations(translator.model, translator.tokenizer, list(answers), arguments.beam)
    bleu = score(sacrebleu.BLEU(), found, list(answers.values()))
    chrf = score(sacrebleu.CHRF(), found, list(answers.values()))
    print(
        json.dumps(
            {
                "bleu": round(bleu.score, 2),
                "chrf": round(chrf.score, 2),
                "sentences": len(answers),
                "beam": arguments.beam,
                "signature": bleu.signature,
                "chrf_signature": chrf.signature,
            }
        )
    )


if __name__ == "__main__":
    main()
