"""Translate sentences: `python -m model.translate "I am a student."`; gpt goes on, bert fills each [MASK]."""

import argparse
import sys

import model
from model.continuer import Continuer
from model.filler import Filler
from model.trace import TextError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sentences", nargs="+")
    parser.add_argument("--model", default="en-fr", help="name of a shipped model, or a model folder")
    parser.add_argument("--beam", type=int, default=1, help="hypotheses kept at each step; 1 is greedy")
    arguments = parser.parse_args()
    door = model.load(arguments.model)
    for sentence in arguments.sentences:
        try:
            if isinstance(door, (Continuer, Filler)):
                print(door.trace(sentence).translation)
            else:
                print(door.translate(sentence, arguments.beam))
        except TextError as error:
            sys.exit(f"cannot translate: {error}")


if __name__ == "__main__":
    main()
