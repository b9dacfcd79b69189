"""Sentence pairs: read, split without leaks, cut into pieces, batched by length."""

import random
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from model.tokenizer import Tokenizer, clean

Encoded = tuple[list[int], list[int]]  # source ids with </s>; target ids from <s> to </s>


@dataclass(frozen=True)
class Pair:
    """An English sentence and one right French answer, both cleaned."""

    source: str
    target: str


def read_pairs(path: Path) -> list[Pair]:
    """Tab-separated pairs from a text file, or from the .txt and .tsv members of a zip.

    The first two columns count; lines with fewer, blank halves and members whose name starts
    with an underscore are passed over. Raises ValueError where no pair is found.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if Path(name).suffix in {".txt", ".tsv"}]
            texts = [archive.read(name) for name in names if not Path(name).name.startswith("_")]
    else:
        texts = [path.read_bytes()]
    pairs = []
    for line in b"\n".join(texts).decode("utf-8").split("\n"):  # splitlines would cut at U+2028 too
        columns = [clean(column) for column in line.split("\t")[:2]]
        if len(columns) == 2 and all(columns):
            pairs.append(Pair(*columns))
    if not pairs:
        raise ValueError(f"{path} holds no tab-separated pairs")
    return pairs


def split(pairs: Sequence[Pair], held_out: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Training and validation pairs; `held_out` English sentences, with all their answers, validate.

    Sentences that differ in case or closing marks alone count as one.
    """
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[_key(pair.source)].append(pair)
    chosen = set(random.Random(seed).sample(sorted(groups), held_out))
    training = [pair for key, group in groups.items() if key not in chosen for pair in group]
    return training, [pair for key in sorted(chosen) for pair in groups[key]]


def _key(sentence: str) -> str:
    return sentence.casefold().rstrip(" .!?")


def references(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Every right answer of each English sentence, in the order met."""
    answers: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        answers[pair.source].append(pair.target)
    return dict(answers)


def sentences(pairs: Sequence[Pair]) -> list[str]:
    """The English sentences, each once, in the order met."""
    return list(dict.fromkeys(pair.source for pair in pairs))


def encode(pairs: Sequence[Pair], tokenizer: Tokenizer, max_pieces: int) -> list[Encoded]:
    """The pairs as ids, without those that are longer than the model accepts."""
    encoded = [(tokenizer.source(pair.source), tokenizer.target(pair.target)) for pair in pairs]
    return [pair for pair in encoded if max(len(pair[0]), len(pair[1]) - 1) <= max_pieces]


def batches(pairs: Sequence[Encoded], pieces: int, seed: int) -> list[list[Encoded]]:
    """One epoch of batches in random order, each of like lengths and about `pieces` target pieces.

    The order depends on `seed` alone, so that a resumed run meets the batches it would have met.
    """
    rng = random.Random(seed)
    jitter = [(len(target) + rng.random() * 0.9, len(source) + rng.random() * 2) for source, target in pairs]
    order = sorted(range(len(pairs)), key=jitter.__getitem__)
    made: list[list[Encoded]] = []
    batch: list[Encoded] = []
    for index in order:
        longest = max([len(pairs[index][1]), *(len(target) for _, target in batch)])
        if batch and longest * (len(batch) + 1) > pieces:
            made.append(batch)
            batch = []
        batch.append(pairs[index])
    made.append(batch)
    rng.shuffle(made)
    return made
