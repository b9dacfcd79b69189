"""Ways to choose the target other than the likeliest piece: by lot, and what a beam search saw on its way.

Shapes: V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import END, PAD, START
from model.decoding import NEVER, Grown, beam_search, growth, limit, penalty
from model.recurrent import Recurrent
from model.tokenizer import Tokenizer
from model.trace import Floats
from model.transformer import Transformer

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Lot:
    """How a piece is drawn. The filters come in this order: sampling temperature, top-k, top-p."""

    temperature: float = 1.0  # log-probabilities are divided by it; at 0 the likeliest piece takes all
    top_k: int = 0  # only so many likeliest pieces; 0 is all
    top_p: float = (
        1.0  # only the fewest likeliest pieces that have this share together (Holtzman et al. 2020)
    )

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.top_k < 0 or not 0 < self.top_p <= 1:
            raise ValueError(f"cannot draw by {self}")


def shares(log_probs: Floats, lot: Lot) -> Shares:
    """(V,) -> (V,): the probability of each piece under `lot`; 0 for one that is never drawn.

    A piece that ties with the last one let in is left out where it stands later in the vocabulary.
    """
    logs = log_probs.astype(np.float64)
    logs[NEVER] = -np.inf
    order = np.argsort(-logs, kind="stable")
    above = logs[order] - logs[order[0]]
    powers = (np.arange(len(above)) == 0) * 1.0 if lot.temperature == 0 else np.exp(above / lot.temperature)
    if lot.top_k:
        powers[lot.top_k :] = 0
    powers /= powers.sum()
    if lot.top_p < 1:
        before = np.cumsum(powers) - powers  # what the likelier pieces have together
        powers[before >= lot.top_p] = 0
        powers /= powers.sum()
    found = np.zeros(len(powers))
    found[order] = powers
    return found


def drawn(shares: Shares, at: float) -> int:
    """The piece that `at`, from 0 to 1, falls on, the pieces lying side by side, as wide as their shares."""
    ends = np.cumsum(shares)
    return int(np.searchsorted(ends, at * ends[-1], side="right"))


@torch.inference_mode()
def sample(model: Transformer | Recurrent, source: Tensor, lot: Lot, seeds: Sequence[int]) -> list[list[int]]:
    """One translation of source ids [1, S] for each seed. Returns ids without <s> and </s>."""
    longest = limit(source.size(1), model.config)
    step = growth(model, source)
    chance = [np.random.default_rng(seed) for seed in seeds]
    last = torch.full((len(seeds),), START)
    found: list[list[int]] = [[] for _ in seeds]
    for _step in range(longest):
        logs = step(last).log_softmax(dim=-1).numpy()
        last = torch.full_like(last, PAD)
        for row, ids in enumerate(found):
            if not ids or ids[-1] != END:
                ids.append(drawn(shares(logs[row], lot), chance[row].random()))
                last[row] = ids[-1]
        if all(ids[-1] == END for ids in found):
            break
    return [ids[:-1] if ids[-1] == END else ids for ids in found]


@dataclass(frozen=True)
class Node:
    """A hypothesis that a beam search considered."""

    ids: tuple[int, ...]  # without <s>
    piece: str  # the last of them
    text: str
    parent: int | None  # the node it grew from, by its place among all; None at the first step
    step: int  # from 0: the place of its last piece
    total: float  # log P
    worth: float  # log P / lp: what finished hypotheses are compared by
    state: str  # "kept", "ended" or "dropped"
    chosen: bool  # it is the translation, or leads to it


@dataclass(frozen=True)
class Search:
    """A beam search: everything that it considered, step by step, and what it chose."""

    nodes: tuple[Node, ...]
    ids: tuple[int, ...]  # of the translation, without <s> and </s>


def search(model: Transformer | Recurrent, tokenizer: Tokenizer, source: Tensor, size: int) -> Search:
    """`beam_search` for source ids [1, S], written down."""
    steps: list[list[Grown]] = []
    ids = tuple(beam_search(model, source, size, steps.append))
    nodes: list[Node] = []
    kept: list[int | None] = [None]
    for step, grown in enumerate(steps):
        alive: list[int | None] = []
        for each in grown:
            parent = kept[each.parent]
            path = (*(nodes[parent].ids if parent is not None else ()), each.piece)
            if each.state == "kept":
                alive.append(len(nodes))
            chosen = each.state != "dropped" and path == (*ids, END)[: len(path)]
            worth = each.total / penalty(step + 1)
            piece, text = tokenizer.piece(each.piece).text, tokenizer.decode(path)
            nodes.append(Node(path, piece, text, parent, step, each.total, worth, each.state, chosen))
        kept = alive
    return Search(tuple(nodes), ids)
