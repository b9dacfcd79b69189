"""What the Transformer replaced: translation by recurrent networks, with attention and without.

With attention it is the model of Bahdanau, Cho and Bengio (2015): the decoder's state asks, every state of a
bidirectional encoder answers, and the weights are a softmax over e = vᵀ tanh(W s + U h). Without, the decoder
reads the same last states of the encoder at every step (Cho et al. 2014); all other sizes are equal.
Other than in the papers: torch's GRU, which resets after the product with the state and not before; one tanh
layer where the paper takes the larger of two (maxout); dropout; one embedding for all, as in the Transformer.
Shapes: B batch, S source, T target positions, D d_model, N d_ff the width of a state, V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from model.attention import Attention, Rule, weigh
from model.config import PAD, Config
from model.embedding import Tied
from model.masks import rules
from model.trace import NEUTRAL, Change


class Additive(nn.Module):
    """e = vᵀ tanh(W s + U h) (Bahdanau et al. 2015, appendix A.1.2). One head; the values are the h."""

    def __init__(self, n_state: int, n_memory: int, n_hidden: int) -> None:
        super().__init__()
        self.w = nn.Linear(n_state, n_hidden)
        self.u = nn.Linear(n_memory, n_hidden, bias=False)
        self.v = nn.Linear(n_hidden, 1, bias=False)

    def forward(self, state: Tensor, keys: Tensor, memory: Tensor, rule: Rule) -> Attention:
        """States [B, Q, N] ask the memory [B, K, 2N], whose keys U h [B, K, D] are made once."""
        q, k = self.w(state), keys
        scores = self.v(torch.tanh(q[:, :, None] + k[:, None])).squeeze(-1)
        q, k, v, scores = (each[:, None] for each in (q, k, memory, scores))  # the axis of heads
        return weigh(q, k, v, scores, rule)


class Memory(NamedTuple):
    """What the encoder leaves to the decoder."""

    states: Tensor  # [B, S, 2N]  forward and backward state of each piece; 0 at a pad
    summary: Tensor  # [B, 2N]  the last state of each direction
    start: Tensor  # [B, N]  the decoder's first state
    keys: Tensor | None  # [B, S, D]  U h; None without attention


class Told(NamedTuple):
    """What the decoder did: row t has read target[t]."""

    hidden: Tensor  # [B, T, D]  what the output layer reads
    states: Tensor  # [B, T, N]
    seen: tuple[Attention, ...]  # of each step, one query each; () without attention


class Recurrent(Tied):
    """A bidirectional GRU reads, a GRU writes."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        d, n = config.d_model, config.d_ff
        self.encoder = nn.GRU(d, n, batch_first=True, bidirectional=True)
        self.first = nn.Linear(n, n)
        self.cell = nn.GRUCell(d + 2 * n, n)
        self.attention = Additive(n, 2 * n, d) if config.material == "recurrent attention" else None
        self.last = nn.Linear(d + n + 2 * n, d)
        self.dropout = nn.Dropout(config.dropout)
        self.reset()

    def forward(self, source: Tensor, target: Tensor, change: Change = NEUTRAL) -> Tensor:
        """Logits [B, T, V] of the next piece after each of `target` [B, T], given `source` [B, S]."""
        rule = self.rule(source, target, change)
        return self.logits(self.decode(target, self.encode(source), rule).hidden)

    def rule(self, source: Tensor, target: Tensor, change: Change = NEUTRAL) -> Rule:
        """What governs the one attention. Raises ValueError for a change of what is not there."""
        return rules(source, target, self.config, change).cross[0]

    def encode(self, source: Tensor) -> Memory:
        """Read `source` [B, S] in both directions, but not the pads that follow </s>: their states are 0."""
        read = self.dropout(self.embed(source, None).pieces)
        lengths = (source != PAD).sum(dim=1).cpu()
        packed = pack_padded_sequence(read, lengths, batch_first=True, enforce_sorted=False)
        states, last = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=source.size(1))
        start = torch.tanh(self.first(last[1]))  # of the backward state, which has read the first piece last
        keys = self.attention.u(states) if self.attention is not None else None
        return Memory(states, torch.cat([last[0], last[1]], dim=-1), start, keys)

    def decode(
        self, target: Tensor, memory: Memory, rule: Rule, state: Tensor | None = None, start: int = 0
    ) -> Told:
        """Write after `target` [B, T], whose first piece is the `start`-th, from `state` [B, N] on.

        At each step the state before the piece asks; then the piece and the answer renew the state.
        """
        read = self.dropout(self.embed(target, None).pieces)
        batch = target.size(0)  # of hypotheses, perhaps, about one source
        state = memory.start.expand(batch, -1) if state is None else state
        states, answers, seen = [], [], []
        for t in range(target.size(1)):
            answer = memory.summary.expand(batch, -1)
            if self.attention is not None and memory.keys is not None:
                here = rule.rows(start + t, start + t + 1, memory.states.size(1))
                asked = self.attention(state[:, None], memory.keys, memory.states, here)
                seen.append(asked)
                answer = asked.output[:, 0, 0]
            state = self.cell(torch.cat([read[:, t], answer], dim=-1), state)
            states.append(state)
            answers.append(answer)
        written, context = torch.stack(states, dim=1), torch.stack(answers, dim=1)
        hidden = torch.tanh(self.last(torch.cat([read, written, context], dim=-1)))
        return Told(self.dropout(hidden), written, tuple(seen))


def joined(steps: Sequence[Attention]) -> Attention:
    """The attentions of single steps as one, a row for each."""
    first = steps[0]

    def rows(name: str) -> Tensor:
        return torch.cat([getattr(step, name) for step in steps], dim=2)

    allowed = torch.cat([step.allowed.expand_as(step.weights) for step in steps], dim=2)
    return Attention(rows("q"), first.k, first.v, rows("scores"), allowed, rows("weights"), rows("output"))
