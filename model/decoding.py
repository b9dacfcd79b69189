"""Choosing the target piece by piece: greedily for a batch, or by beam search for one sentence.

Shapes: B batch, S source positions, V vocabulary; a beam is a batch of hypotheses.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from model.attention import KeysValues
from model.config import END, PAD, START, UNKNOWN, Config
from model.masks import Rules, rules
from model.recurrent import Recurrent
from model.steps import Steps
from model.trace import NEUTRAL, Change, Switch
from model.transformer import Encoded, Transformer

NEVER = [PAD, START, UNKNOWN]  # pieces that no translation contains
LENGTH_PENALTY = 0.6  # α of section 6.1


def limit(source_length: int, config: Config) -> int:
    """The most pieces a translation may have: source length + 50 (section 6.1), and room for <s>."""
    return min(source_length + 50, config.max_pieces - 1)


def log_probabilities(logits: Tensor) -> Tensor:
    """[..., V] -> [..., V]: log-softmax, and -inf for the pieces that no translation contains."""
    scores = logits.log_softmax(dim=-1)
    scores[..., NEVER] = -torch.inf
    return scores


def likeliest(logits: Tensor) -> Tensor:
    """[..., V] -> [...]: the piece with the largest of `log_probabilities`, without computing them."""
    return logits.index_fill(-1, torch.tensor(NEVER, device=logits.device), -torch.inf).argmax(dim=-1)


def _room(source: Tensor, config: Config, change: Change = NEUTRAL) -> Rules:
    """The rules for any target up to the limit."""
    longest = torch.full((1, limit(source.size(1), config)), START, device=source.device)
    return rules(source, longest, config, change)


def steps(
    model: Transformer | Recurrent, source: Tensor, change: Change = NEUTRAL
) -> Callable[[Tensor], Tensor]:
    """A translation of `source` [B, S] under way: called with the pieces [B] that go in, it returns the next
    logits [B, V], up to the limit.
    """
    if isinstance(model, Recurrent):
        return Strides(model, source, change)
    paper = _room(source, model.config, change)
    memory = model.keys_values(model.encode(source, paper).memory)
    return Steps(model, memory, paper, source.size(0), limit(source.size(1), model.config))


class Strides:
    """The same of a recurrent model, which carries one state from piece to piece."""

    def __init__(self, model: Recurrent, source: Tensor, change: Change = NEUTRAL) -> None:
        longest = torch.full((1, limit(source.size(1), model.config)), START, device=source.device)
        self._model, self._memory = model, model.encode(source)
        self._rule = model.rule(source, longest, change)
        self._state: Tensor | None = None
        self._done = 0

    def __call__(self, last: Tensor) -> Tensor:
        told = self._model.decode(last[:, None], self._memory, self._rule, self._state, self._done)
        self._state, self._done = told.states[:, -1], self._done + 1
        return self._model.logits(told.hidden[:, -1])

    def keep(self, parents: Tensor) -> None:
        """Go on from these rows of the batch."""
        self._state = None if self._state is None else self._state[parents]


class Growth:
    """The same for hypotheses about one sentence [1, S], which may come and go between steps."""

    def __init__(self, model: Transformer, source: Tensor) -> None:
        self._model, self._rules = model, _room(source, model.config)
        self._memory = model.keys_values(model.encode(source, self._rules).memory)
        self._past: tuple[KeysValues, ...] | None = None

    def __call__(self, last: Tensor) -> Tensor:
        memory = spread(self._memory, len(last))
        step = self._model.decode(last[:, None], memory, self._rules, self._past)
        self._past = step.cache
        return self._model.logits(step.hidden[:, -1])

    def keep(self, parents: Tensor) -> None:
        """Go on from these rows of the batch."""
        self._past = tuple((keys[parents], values[parents]) for keys, values in self._past or ())


def growth(model: Transformer | Recurrent, source: Tensor) -> Growth | Strides:
    """Called with the last pieces [B] of hypotheses about `source` [1, S], it returns the next logits."""
    return Strides(model, source) if isinstance(model, Recurrent) else Growth(model, source)


@torch.inference_mode()
def greedy(model: Transformer | Recurrent, source: Tensor, change: Change = NEUTRAL) -> list[list[int]]:
    """The likeliest next piece, again and again, for source ids [B, S]. Returns ids without <s> and </s>.

    Under a change the look-ahead mask must be on and nothing shuffled: else a piece once read would
    have to be read again, see `greedy_without_cache`. The bare steps know no layer without Add & Norm either.
    """
    batch, room = source.size(0), limit(source.size(1), model.config)
    step = steps(model, source, change)
    last = torch.full((batch,), START, device=source.device)
    ended = torch.zeros_like(last, dtype=torch.bool)
    chosen: list[Tensor] = []
    limits = (source != PAD).sum(dim=1) + 50  # each its own: a batch changes nothing
    for length in range(room):
        last = likeliest(step(last))
        ended = ended | (last == END) | (length >= limits)
        if ended.all():
            break
        chosen.append(last.masked_fill(ended, PAD))
    sentences = torch.stack(chosen, dim=1).tolist() if chosen else [[] for _ in range(batch)]
    return [[id_ for id_ in sentence if id_ != PAD] for sentence in sentences]


@torch.inference_mode()
def greedy_without_cache(model: Transformer, source: Tensor, change: Change) -> list[int]:
    """Greedy for one sentence [1, S], each step a pass over the whole target so far under `change`.

    With the look-ahead mask off, the rows of earlier pieces change at every step, as do their positions
    in a shuffle.
    """
    encoded: Encoded | None = None
    ids: list[int] = []
    for step in range(limit(int((source != PAD).sum()), model.config)):
        target = torch.tensor([[START, *ids, *[PAD] * change.target_pads]])
        changed = rules(source, target, model.config, change)
        encoded = encoded or model.encode(source, changed)
        hidden = model.decode(target, model.keys_values(encoded.memory), changed).hidden[:, step]
        chosen = int(likeliest(model.logits(hidden)))
        if chosen == END:
            break
        ids.append(chosen)
    return ids


def greedy_changed(model: Transformer, source: Tensor, change: Change) -> list[int]:
    """Greedy for one sentence [1, S] under `change`, by the quicker way where it is the same."""
    added = change.residual and change.norm
    if change.look_ahead == Switch() and change.positions != "shuffled" and added:
        return greedy(model, source, change)[0]
    return greedy_without_cache(model, source, change)


def penalty(length: int) -> float:
    """lp(Y) of Wu et al. 2016, eq. 14. A hypothesis is worth log P / lp, else short ones win by length."""
    return ((5 + length) / 6) ** LENGTH_PENALTY


class Grown(NamedTuple):
    """What one step of a beam search considered: a hypothesis kept before, and one more piece."""

    parent: int  # its place among those kept at the step before
    piece: int
    total: float  # log P so far
    state: Literal["kept", "ended", "dropped"]


@torch.inference_mode()
def beam_search(
    model: Transformer | Recurrent,
    source: Tensor,
    size: int,
    watch: Callable[[list[Grown]], None] | None = None,
) -> list[int]:
    """The best of `size` hypotheses kept at every step, for source ids [1, S]. Ids without <s> and </s>.

    `watch` is shown what each step considered, the best first. The next step goes on from the kept ones.
    """
    step = growth(model, source)
    hypotheses = torch.full((1, 1), START, device=source.device)
    totals = torch.zeros(1, device=source.device)
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, limit(source.size(1), model.config) + 1):
        scores = totals[:, None] + log_probabilities(step(hypotheses[:, -1]))
        # Twice the beam: were every best candidate an ending, enough open ones would still be left.
        best, flat = scores.flatten().topk(min(2 * size, scores.numel()))
        parents, pieces = flat // scores.size(1), flat % scores.size(1)
        for score, parent, piece in zip(best[:size], parents[:size], pieces[:size], strict=True):
            if piece == END:
                finished.append((score.item() / penalty(length), hypotheses[parent, 1:].tolist()))
        still = (pieces != END).nonzero().flatten()[:size]
        if watch:
            ended, kept = (pieces[:size] == END).nonzero().flatten().tolist(), still.tolist()
            rows = zip(parents.tolist(), pieces.tolist(), best.tolist(), strict=True)
            watch(
                [
                    Grown(*row, "ended" if place in ended else "kept" if place in kept else "dropped")
                    for place, row in enumerate(rows)
                ]
            )
        # An open hypothesis can at best keep its total and grow to the limit.
        hope = best[still[0]].item() / penalty(limit(source.size(1), model.config))
        if len(finished) >= size and max(finished)[0] >= hope:
            break
        parents, totals = parents[still], best[still]
        hypotheses = torch.cat([hypotheses[parents], pieces[still][:, None]], dim=1)
        step.keep(parents)
    if not finished:
        finished = [(totals[0].item(), hypotheses[0, 1:].tolist())]
    return max(finished)[1]


def spread(memory: Sequence[KeysValues], size: int) -> list[KeysValues]:
    """The keys and values of one sentence for a batch of `size`, not copied."""
    return [(keys.expand(size, -1, -1, -1), values.expand(size, -1, -1, -1)) for keys, values in memory]


def padded(sentences: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Tensor:
    """Id lists of different lengths as one tensor [B, longest], padded on the right."""
    longest = max(map(len, sentences))
    rows = [[*sentence, *[PAD] * (longest - len(sentence))] for sentence in sentences]
    return torch.tensor(rows, device=device)
