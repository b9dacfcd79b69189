"""How good a translation is: BLEU and chrF against every right answer, by sacrebleu."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import sacrebleu
import torch
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from torch import Tensor

from model.config import MASK, PAD
from model.decoding import beam_search, greedy, padded
from model.hiding import choose
from model.recurrent import Recurrent
from model.stack import Stack
from model.tokenizer import Tokenizer
from model.transformer import Transformer

BATCH = 64


Translates = Transformer | Recurrent


class Score(NamedTuple):
    """A corpus score from 0 to 100, and sacrebleu's signature of how it was computed."""

    score: float
    signature: str


def translations(model: Translates, tokenizer: Tokenizer, sources: Sequence[str], beam: int = 1) -> list[str]:
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
    model: Translates,
    tokenizer: Tokenizer,
    references: Mapping[str, Sequence[str]],
    beam: int = 1,
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


# --- language models --------------------------------------------------------------------------------------


class Perplexity(NamedTuple):
    """e to the mean negative log-probability: as unsure as a fair choice among so many."""

    piece: float  # </s> is a piece
    word: float  # the same sum, shared out over words between spaces
    pieces: int
    words: int


class Filled(NamedTuple):
    """Shares from 0 to 1 of the hidden pieces that were guessed."""

    first: float  # the likeliest piece is the right one
    five: float  # it is among the five likeliest
    commonest: float  # of a guesser that knows no more than which piece is hidden most often
    hidden: int


@torch.inference_mode()
def perplexity(model: Stack, tokenizer: Tokenizer, sentences: Sequence[str]) -> Perplexity:
    """How unsure a decoder alone is of whole sentences, </s> included."""
    total, pieces = 0.0, 0
    for ids in _batches(
        [tokenizer.target(text)[-model.config.max_pieces - 1 :] for text in sentences], model
    ):
        logs = model(ids[:, :-1]).log_softmax(dim=-1).gather(2, ids[:, 1:, None])[..., 0]
        real = ids[:, 1:] != PAD
        total, pieces = total - logs[real].sum().item(), pieces + int(real.sum())
    words = sum(len(text.split()) for text in sentences)
    return Perplexity(math.exp(total / pieces), math.exp(total / words), pieces, words)


@torch.inference_mode()
def filled(model: Stack, tokenizer: Tokenizer, sentences: Sequence[str], seed: int = 1) -> Filled:
    """How often an encoder alone guesses pieces hidden behind [MASK]: 15 % of them, drawn by `seed`."""
    chance = torch.Generator().manual_seed(seed)
    hits, met = torch.zeros(2), Counter[int]()
    for ids in _batches([tokenizer.source(text)[-model.config.max_pieces :] for text in sentences], model):
        chosen = choose(ids.cpu(), chance).to(ids.device)
        right = (
            model(ids.masked_fill(chosen, MASK), at=chosen).topk(5, dim=-1).indices == ids[chosen][:, None]
        )
        hits += torch.stack([right[:, 0].sum(), right.sum()]).cpu()
        met.update(ids[chosen].tolist())
    hidden = met.total()
    return Filled(hits[0].item() / hidden, hits[1].item() / hidden, max(met.values()) / hidden, hidden)


def _batches(encoded: Sequence[Sequence[int]], model: Stack) -> Iterator[Tensor]:
    """Padded batches of like length."""
    order = sorted(encoded, key=len)
    for start in range(0, len(order), BATCH):
        yield padded(order[start : start + BATCH], model.embedding.weight.device)


# --- how BLEU counts, one translation at a time -----------------------------------------------------------

ORDERS = 4  # n-grams of 1 to 4 tokens
State = Literal["matched", "clipped", "missing"]


@dataclass(frozen=True)
class Count:
    """One translation against its references, as BLEU counts it (Papineni et al. 2002).

    Where several equal n-grams are more than any one reference has, the later ones are "clipped".
    """

    tokens: tuple[str, ...]  # as sacrebleu cuts them (13a): marks stand alone
    states: tuple[tuple[State, ...], ...]  # by order 1..4, then by the token at which the n-gram starts
    length: int  # of the reference closest in length, the shorter of two equally close
    references: tuple[tuple[str, ...], ...]

    @property
    def matched(self) -> tuple[int, ...]:
        """By order."""
        return tuple(states.count("matched") for states in self.states)

    @property
    def total(self) -> tuple[int, ...]:
        """By order."""
        return tuple(map(len, self.states))


def shared(seen: Count, reference: Sequence[str], order: int) -> tuple[bool, ...]:
    """For each token of `reference`: whether it is in an n-gram of `order` that the translation has too."""
    mine = {*_grams(seen.tokens, order)}
    grams = _grams(tuple(reference), order)
    return tuple(
        any(grams[start] in mine for start in range(max(0, at - order + 1), min(at + 1, len(grams))))
        for at in range(len(reference))
    )


class Tally(NamedTuple):
    """BLEU worked out of counts: of one translation, or pooled over a corpus."""

    matched: tuple[int, ...]  # by order 1..4
    total: tuple[int, ...]
    precisions: tuple[float, ...]  # in per cent; where nothing matched, sacrebleu's stand-in
    brevity: float  # 1, or less where the translation is shorter than its reference
    score: float  # 0 to 100


def count(translation: str, references: Sequence[str]) -> Count:
    """Mark every n-gram of `translation`. Needs a reference."""
    cut = Tokenizer13a()
    tokens, *answers = (tuple(cut(text).split()) for text in (translation, *references))
    length = min((abs(len(answer) - len(tokens)), len(answer)) for answer in answers)[1]
    states = tuple(_states(tokens, answers, order) for order in range(1, ORDERS + 1))
    return Count(tokens, states, length, tuple(answers))


def tally(counts: Sequence[Count]) -> Tally:
    """Corpus BLEU: matches and totals are added up first, and only then divided.

    Where no n-gram of an order matched, the product would be 0: like sacrebleu, 1/2 of a match is put
    there, then 1/4 at the next such order (Chen and Cherry 2014, method 3). Where there is no n-gram of
    an order at all, or nothing matched, the score is 0.
    """
    matched = tuple(sum(each.matched[order] for each in counts) for order in range(ORDERS))
    total = tuple(sum(each.total[order] for each in counts) for order in range(ORDERS))
    tokens, length = total[0], sum(each.length for each in counts)
    brevity = 1.0 if tokens >= length else math.exp(1 - length / tokens) if tokens else 0.0
    precisions, half = [0.0] * ORDERS, 1.0
    for order in range(ORDERS if any(matched) else 0):
        if not total[order]:
            break
        half = half if matched[order] else half / 2
        precisions[order] = 100 * (matched[order] or half) / total[order]
    score = brevity * math.prod(precisions) ** (1 / ORDERS)
    return Tally(matched, total, tuple(precisions), brevity, score)


def _states(tokens: tuple[str, ...], answers: Sequence[tuple[str, ...]], order: int) -> tuple[State, ...]:
    """What became of each n-gram of `order`, by its start."""
    room = Counter[tuple[str, ...]]()
    for answer in answers:
        room |= Counter(_grams(answer, order))  # the most that any one reference has
    seen = Counter[tuple[str, ...]]()
    states: list[State] = []
    for gram in _grams(tokens, order):
        seen[gram] += 1
        states.append("matched" if seen[gram] <= room[gram] else "clipped" if room[gram] else "missing")
    return tuple(states)


def _grams(tokens: tuple[str, ...], order: int) -> list[tuple[str, ...]]:
    return [tokens[start : start + order] for start in range(len(tokens) - order + 1)]
