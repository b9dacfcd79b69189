"""Translate sentences: `python -m model.translate "I am a student."`"""

import argparse
import sys

import model
from model.trace import TextError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sentences", nargs="+")
    parser.add_argument("--model", default="en-fr", help="name of a shipped model, or a model folder")
    parser.add_argument("--beam", type=int, default=1, help="hypotheses kept at each step; 1 is greedy")
    arguments = parser.parse_args()
    translator = model.load(arguments.model)
    for sentence in arguments.sentences:
        try:
            print(translator.translate(sentence, arguments.beam))
        except TextError as error:
            sys.exit(f"cannot translate: {error}")


if __name__ == "__main__":
    main()
