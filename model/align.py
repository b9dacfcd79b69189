"""Score every cross-attention head as a word aligner: `python -m model.align --pairs FILE`.

Each French sentence of the gold set is forced on the decoder; each French word is linked to the English
word that a head reads most; the links are held against those drawn by hand. Beside them stand a random
and a diagonal aligner, and eflomal trained on FILE and the gold sentences, which must be installed by
hand (`pip install eflomal==2.0.0`, it compiles C). Without --pairs its results are kept as they are.
"""

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

import numpy as np
from tqdm import tqdm

import model
from model import words
from model.reader import MODELS
from model.recurrent_translator import RecurrentTranslator
from model.translator import Translator
from model.words import READS, Gold, Links, Read, aer, halves, links, read_gold

Aligning = Translator | RecurrentTranslator  # what has a cross-attention, and translates
RESULT = "alignment.json"
RANDOM_DRAWS = 200
RUNS = 5  # of the statistical aligner, which draws at random and cannot be seeded


def rates(found: Sequence[Links], gold: Sequence[Gold]) -> dict[str, float]:
    """The error rate on the choosing half, on the reporting half and on both."""
    choose, report = (aer(list(found[start::2]), half) for start, half in enumerate(halves(gold)))
    return {"choose": round(choose, 4), "report": round(report, 4), "all": round(aer(found, gold), 4)}


def merged(translator: Aligning, gold: Sequence[Gold], read: Read) -> list[words.Merged]:
    """The cross-attention between words over each gold pair, the French forced. Raises ValueError.

    A pair whose words are not the gold's, which a rare piece of the tokenizer could cause, is an error.
    """
    found = []
    for pair in gold:
        one = words.cross_words(translator.trace(pair.english, pair.french), read)
        rows, columns = one.real()
        if (
            tuple(one.rows[n] for n in rows) != pair.target
            or tuple(one.columns[m] for m in columns) != pair.source
        ):
            raise ValueError(f"the model cuts {pair.english!r} or {pair.french!r} into other words")
        found.append(one)
    return found


def score_heads(translator: Aligning, gold: Sequence[Gold], read: Read) -> dict[str, Any]:
    """Error rates of every head [layer][head], and of the mean of each layer's heads [layer]."""
    all_words = merged(translator, gold, read)
    chosen = [words.favourites(one) for one in all_words]
    means = [
        words.favourites(words.Merged(one.rows, one.columns, one.weights.mean(axis=1, keepdims=True)))
        for one in all_words
    ]
    layers, heads, _words = chosen[0].shape

    def of(table: list[words.Indices], layer: int, head: int) -> dict[str, float]:
        return rates([links(one[layer, head]) for one in table], gold)

    return {
        "heads": [[of(chosen, layer, head) for head in range(heads)] for layer in range(layers)],
        "layers": [of(means, layer, 0) for layer in range(layers)],
    }


def best(table: dict[str, Any]) -> dict[str, Any]:
    """The head with the lowest error on the choosing half, and its error on the other."""
    all_of = [
        (one["choose"], layer, head)
        for layer, row in enumerate(table["heads"])
        for head, one in enumerate(row)
    ]
    _rate, layer, head = min(all_of)
    return {"layer": layer, "head": head, **table["heads"][layer][head]}


def diagonal(gold: Sequence[Gold]) -> list[Links]:
    """Each French word linked to the English word at the same share of the way."""
    return [
        links(
            round(t * (len(pair.source) - 1) / max(1, len(pair.target) - 1)) for t in range(len(pair.target))
        )
        for pair in gold
    ]


def random_links(gold: Sequence[Gold], seed: int) -> list[Links]:
    """Each French word linked to an English word drawn at random: a head that knows nothing."""
    random = np.random.default_rng(seed)
    return [links(random.integers(len(pair.source), size=len(pair.target)).tolist()) for pair in gold]


def symmetrise(forward: Links, backward: Links) -> Links:
    """grow-diag-final-and of two one-sided alignments (Koehn et al. 2003).

    From the links of both, grow to neighbouring links of either that reach a word without a link; then
    add links of either between two words that have none.
    """
    found = set(forward & backward)
    union = forward | backward
    around = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]

    def lacks(link: words.Link, either: Callable[[Iterable[bool]], bool]) -> bool:
        return either((link[0] not in {s for s, _t in found}, link[1] not in {t for _s, t in found}))

    grown = True
    while grown:
        grown = False
        for s, t in sorted(found):
            for a, b in around:
                link = s + a, t + b
                if link in union and link not in found and lacks(link, any):
                    found.add(link)
                    grown = True
    for side in (forward, backward):
        for link in sorted(side):
            if link not in found and lacks(link, all):
                found.add(link)
    return frozenset(found)


def statistical(pairs_file: Path, gold: Sequence[Gold]) -> dict[str, Any]:
    """`eflomal` trained on a corpus and the gold sentences, `RUNS` times; the median run's links."""
    from importlib.metadata import version

    from eflomal import Aligner

    from model.training import corpus

    pairs = [(words.cut(p.source), words.cut(p.target)) for p in corpus.read_pairs(pairs_file)]
    pairs = [*((list(p.source), list(p.target)) for p in gold), *pairs]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        forward, backward = Path(folder, "forward"), Path(folder, "backward")
        for _run in tqdm(range(RUNS), desc="eflomal"):
            Aligner().align(
                [" ".join(source) + "\n" for source, _target in pairs],
                [" ".join(target) + "\n" for _source, target in pairs],
                links_filename_fwd=str(forward),
                links_filename_rev=str(backward),
            )
            sides = [_read_links(file, len(gold)) for file in (forward, backward)]
            runs.append([symmetrise(*both) for both in zip(*sides, strict=True)])
    scores = [rates(run, gold) for run in runs]
    middle = scores.index(sorted(scores, key=lambda score: score["all"])[RUNS // 2])
    return {
        "name": f"eflomal {version('eflomal')}",
        "corpus_sha256": hashlib.sha256(pairs_file.read_bytes()).hexdigest(),
        "pairs": len(pairs),
        "runs": scores,
        **{part: round(median(score[part] for score in scores), 4) for part in scores[0]},
        "links": [sorted(map(list, one)) for one in runs[middle]],
    }


def _read_links(file: Path, count: int) -> list[Links]:
    lines = file.read_text(encoding="utf-8").splitlines()[:count]
    return [
        frozenset((int(s), int(t)) for s, t in (link.split("-") for link in line.split())) for line in lines
    ]


def survey(translator: Aligning, gold: Sequence[Gold]) -> dict[str, Any]:
    """Everything but the statistical aligner."""
    drawn = [rates(random_links(gold, seed), gold) for seed in range(RANDOM_DRAWS)]
    reads = {read: score_heads(translator, gold, read) for read in READS}
    return {
        "gold": {
            "pairs": len(gold),
            "sure": sum(len(pair.sure) for pair in gold),
            "possible": sum(len(pair.possible) for pair in gold),
        },
        "reads": reads,
        "best": {read: best(table) for read, table in reads.items()},
        "diagonal": rates(diagonal(gold), gold),
        "random": {
            **{part: round(mean(one[part] for one in drawn), 4) for part in drawn[0]},
            "spread": round(pstdev(one["all"] for one in drawn), 4),
            "draws": RANDOM_DRAWS,
        },
    }


def load(folder: Path) -> dict[str, Any] | None:
    """The shipped results of a model; None where it has none."""
    path = folder / RESULT
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="en-fr", help="name of a shipped model, or a model folder")
    parser.add_argument("--pairs", type=Path, help="corpus for the statistical aligner, as in training")
    arguments = parser.parse_args()
    folder = MODELS / arguments.model if (MODELS / arguments.model).is_dir() else Path(arguments.model)
    gold = read_gold()
    door = model.load(folder)
    if not isinstance(door, Aligning) or "cross" not in door.config.kinds:
        parser.error(f"{door.name} has no attention from one language to another")
    found = survey(door, gold)
    # The statistical aligner knows nothing of the model: what one model has of it holds for all.
    known = load(folder) or load(MODELS / "en-fr") or {}
    found["aligner"] = statistical(arguments.pairs, gold) if arguments.pairs else known.get("aligner")
    text = json.dumps(found, ensure_ascii=False, indent=None)
    # One line a head or a pair: what changes shows up as that line.
    text = text.replace("[{", "[\n{").replace("}, {", "},\n{").replace("]], [[", "]],\n[[")
    (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    print(json.dumps({**found["best"], "diagonal": found["diagonal"], "random": found["random"]}, indent=1))
    if found["aligner"]:
        print({part: found["aligner"][part] for part in ("name", "choose", "report", "all")})


if __name__ == "__main__":
    main()
