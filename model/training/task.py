"""What each shape of model learns, and what tells how well: the next piece of a translation or of a sentence,
or a hidden one.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from model.build import Model
from model.config import PAD, Shape
from model.decoding import padded
from model.hiding import hide
from model.quality import bleu, filled, perplexity
from model.recurrent import Recurrent
from model.stack import Stack
from model.tokenizer import Tokenizer
from model.trace import Change
from model.training import corpus
from model.training.corpus import Encoded, Pair
from model.transformer import Transformer

Metric = Literal["bleu", "perplexity", "accuracy"]


class Task(Protocol):
    """One way to learn from sentence pairs."""

    metric: Metric  # the name of what `score` measures, as history.csv writes it

    def encode(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_pieces: int) -> list[Encoded]:
        """What is learned, without what is longer than the model accepts."""

    def loss(
        self, model: nn.Module, batch: Sequence[Encoded], device: torch.device, smoothing: float
    ) -> Tensor:
        """Mean cross-entropy in nats a piece asked about."""

    def score(self, model: Model, tokenizer: Tokenizer, pairs: Sequence[Pair], most: int) -> float:
        """How well the first `most` English sentences come out."""


class Translating:
    """The next piece of the French, given the English and the French so far."""

    metric: Metric = "bleu"

    def __init__(self, change: Change) -> None:
        self.change = change

    def encode(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_pieces: int) -> list[Encoded]:
        return corpus.encode(pairs, tokenizer, max_pieces)

    def loss(
        self, model: nn.Module, batch: Sequence[Encoded], device: torch.device, smoothing: float
    ) -> Tensor:
        source = padded([source for source, _ in batch], device)
        target = padded([target for _, target in batch], device)
        logits = model(source, target[:, :-1], self.change)
        return _cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), smoothing)

    def score(self, model: Model, tokenizer: Tokenizer, pairs: Sequence[Pair], most: int) -> float:
        assert isinstance(model, (Transformer, Recurrent))
        return bleu(model, tokenizer, dict(list(corpus.references(pairs).items())[:most])).score


class Continuing:
    """The next piece of an English sentence, given its beginning."""

    metric: Metric = "perplexity"

    def encode(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_pieces: int) -> list[Encoded]:
        encoded = [tokenizer.target(text) for text in corpus.sentences(pairs)]
        return [([], ids) for ids in encoded if len(ids) - 1 <= max_pieces]

    def loss(
        self, model: nn.Module, batch: Sequence[Encoded], device: torch.device, smoothing: float
    ) -> Tensor:
        ids = padded([ids for _, ids in batch], device)
        return _cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), smoothing)

    def score(self, model: Model, tokenizer: Tokenizer, pairs: Sequence[Pair], most: int) -> float:
        assert isinstance(model, Stack)
        return perplexity(model, tokenizer, corpus.sentences(pairs)[:most]).piece


class Filling:
    """The pieces of an English sentence that are hidden, given the others."""

    metric: Metric = "accuracy"

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def encode(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_pieces: int) -> list[Encoded]:
        encoded = [tokenizer.source(text) for text in corpus.sentences(pairs)]
        return [([], ids) for ids in encoded if len(ids) <= max_pieces]

    def loss(
        self, model: nn.Module, batch: Sequence[Encoded], device: torch.device, smoothing: float
    ) -> Tensor:
        ids = padded([ids for _, ids in batch], device)
        shown, chosen = hide(ids, self.vocabulary)
        return _cross_entropy(model(shown, at=chosen), ids[chosen], smoothing)

    def score(self, model: Model, tokenizer: Tokenizer, pairs: Sequence[Pair], most: int) -> float:
        assert isinstance(model, Stack)
        return 100 * filled(model, tokenizer, corpus.sentences(pairs)[:most]).first


def texts(shape: Shape, pairs: Sequence[Pair]) -> list[str]:
    """What a model of this shape reads or writes: both languages, or English alone."""
    if shape == "encoder-decoder":
        return [text for pair in pairs for text in (pair.source, pair.target)]
    return corpus.sentences(pairs)


def task(shape: Shape, vocabulary: int, change: Change) -> Task:
    """What a model of this shape learns; `change` governs a translator while it learns."""
    if shape == "decoder":
        return Continuing()
    return Translating(change) if shape == "encoder-decoder" else Filling(vocabulary)


def _cross_entropy(logits: Tensor, ids: Tensor, smoothing: float) -> Tensor:
    return cross_entropy(logits, ids, ignore_index=PAD, label_smoothing=smoothing)
