"""How good a translation is: BLEU and chrF against every right answer, by sacrebleu."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sacrebleu
import torch

from model.decoding import beam_search, greedy, padded
from model.tokenizer import Tokenizer
from model.transformer import Transformer

BATCH = 64


class Score(NamedTuple):
    """A corpus score from 0 to 100, and sacrebleu's signature of how it was computed."""

    score: float
    signature: str


def translations(
    model: Transformer, tokenizer: Tokenizer, sources: Sequence[str], beam: int = 1
) -> list[str]:
    """Translate cleaned sentences, by batches of like length."""
    device = next(model.parameters()).device
    limit = model.config.max_pieces
    encoded = [tokenizer.source(source)[-limit:] for source in sources]
    order = sorted(range(len(sources)), key=lambda index: len(encoded[index]))
    found = [""] * len(sources)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        if beam == 1:
            ids = greedy(model, padded([encoded[index] for index in batch], device))
        else:
            ids = [beam_search(model, torch.tensor([encoded[index]], device=device), beam) for index in batch]
        for index, sentence in zip(batch, ids, strict=True):
            found[index] = tokenizer.decode(sentence)
    return found


def bleu(
    model: Transformer, tokenizer: Tokenizer, references: Mapping[str, Sequence[str]], beam: int = 1
) -> Score:
    """BLEU of greedy (or beam) translations, all references of a sentence counting."""
    found = translations(model, tokenizer, list(references), beam)
    return score(sacrebleu.BLEU(), found, list(references.values()))


def score(
    metric: sacrebleu.BLEU | sacrebleu.CHRF, found: Sequence[str], answers: Sequence[Sequence[str]]
) -> Score:
    """One sacrebleu metric over a corpus; a sentence may have any number of answers."""
    most = max(map(len, answers))
    # sacrebleu takes None for a sentence with fewer answers; its annotation does not say so.
    columns: Any = [[answer[i] if i < len(answer) else None for answer in answers] for i in range(most)]
    return Score(metric.corpus_score(list(found), columns).score, str(metric.get_signature()))
