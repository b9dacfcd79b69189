"""What attention brought, by the length of the sentence: `python -m model.lengths --pairs FILE`.

BLEU of greedy translations of the held-out sentences, for each translator and each band of lengths, and the
count of sentences in it. Long ones are few in this corpus: their score is a matter of some sentences.
Numpy only but for the measuring; `read` is what a page needs.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

MODELS = Path(__file__).parent.parent / "assets" / "models"
FILE = MODELS / "lengths.json"
NAMES = ("en-fr", "rnn-attention", "rnn")
BANDS = ((1, 3), (4, 5), (6, 7), (8, 9), (10, 12), (13, 99))  # English words, both ends included
DRAWS = 200  # of sentences with replacement, for the spread


@dataclass(frozen=True)
class Band:
    """All sentences whose English has so many words, and how they came out."""

    first: int
    last: int  # of the longest sentence met, in the last band
    sentences: int
    bleu: dict[str, float]  # by model
    spread: dict[str, tuple[float, float]]  # 95 % of redrawn samples lie between


def read(path: Path = FILE) -> tuple[Band, ...]:
    """What was measured, short sentences first."""
    rows = json.loads(path.read_text(encoding="utf-8"))["bands"]
    return tuple(
        Band(**{**row, "spread": {name: tuple(ends) for name, ends in row["spread"].items()}}) for row in rows
    )


def measured(
    answers: dict[str, list[str]],
    found: Mapping[str, Sequence[str]],
    bands: Sequence[tuple[int, int]] = BANDS,
) -> list[Band]:
    """The bands that hold a sentence; `found` are the translations by each model, in the order of answers."""
    import numpy as np
    import sacrebleu

    from model.quality import count, score, tally

    sources, right = [*answers], [*answers.values()]
    words = [len(source.split()) for source in sources]
    made = []
    for first, last in bands:
        rows = [row for row, length in enumerate(words) if first <= length <= last]
        if not rows:
            continue
        bleu, spread = {}, {}
        for name, texts in found.items():
            here = [texts[row] for row in rows]
            bleu[name] = round(score(sacrebleu.BLEU(), here, [right[row] for row in rows]).score, 2)
            counts = [count(texts[row], right[row]) for row in rows]
            chance = np.random.default_rng(0)
            drawn = [
                tally([counts[i] for i in chance.integers(len(counts), size=len(counts))]).score
                for _ in range(DRAWS)
            ]
            low, high = np.percentile(drawn, (2.5, 97.5))
            spread[name] = (round(float(low), 2), round(float(high), 2))
        made.append(Band(first, min(last, max(words)), len(rows), bleu, spread))
    return made


def main() -> None:
    import model
    from model.continuer import Continuer
    from model.filler import Filler
    from model.quality import translations
    from model.training import corpus

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--models", nargs="+", default=NAMES)
    parser.add_argument("--seed", type=int, default=1, help="of the split, as in training")
    parser.add_argument("--held-out", type=int, default=1500)
    arguments = parser.parse_args()

    held_out = corpus.split(corpus.read_pairs(arguments.pairs), arguments.held_out, arguments.seed)[1]
    answers = corpus.references(held_out)
    found = {}
    for name in arguments.models:
        door = model.load(name)
        if isinstance(door, (Continuer, Filler)):
            parser.error(f"{name} does not translate")
        found[name] = translations(door.model, door.tokenizer, list(answers))
    bands = measured(answers, found)
    said = {"sentences": len(answers), "bands": [asdict(band) for band in bands]}
    arguments.out.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    for band in bands:
        print(f"{band.first}-{band.last} words, {band.sentences} sentences: {band.bleu}")


if __name__ == "__main__":
    main()
