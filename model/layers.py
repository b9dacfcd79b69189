"""The two kinds of layer in figure 1 (Vaswani et al. 2017, sections 3.1 and 3.3).

Every sub-layer is wrapped as LayerNorm(x + Dropout(Sublayer(x))).
Shapes: B batch, S source positions, T target positions, D d_model, F d_ff.
"""

from typing import NamedTuple

from torch import Tensor, nn

from model.attention import Attention, KeysValues, MultiHeadAttention, Rule, along_inputs, append
from model.config import Config


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, the same at every position (eq. 2)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)

    def lay_out(self) -> None:
        """Keep W_1 as it is read fastest; its values do not change."""
        self.w_1.weight.data = along_inputs(self.w_1.weight.data)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, D] -> what is added to it, [B, T, D], and the hidden row behind that, [B, T, F]."""
        hidden = self.w_1(x).relu()
        return self.w_2(hidden), hidden


class AddNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (sections 3.1 and 5.4)."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, update: Tensor, rule: Rule) -> Tensor:
        """x and what is added to it, each [B, T, D] -> [B, T, D]; without a half where `rule` says so."""
        total = x + self.dropout(update) if rule.residual else self.dropout(update)
        return self.norm(total) if rule.norm else total


class SubLayer(NamedTuple):
    """What one sub-layer did to x: LayerNorm(x + update)."""

    update: Tensor  # [B, T, D]
    out: Tensor  # [B, T, D]  after Add & Norm
    hidden: Tensor | None = None  # [B, T, F]  of the feed-forward network


class EncoderLayer(nn.Module):
    """Figure 1, left: self-attention, then feed-forward."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.add_1 = AddNorm(config.d_model, config.dropout)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.add_2 = AddNorm(config.d_model, config.dropout)

    def forward(
        self, x: Tensor, rule: Rule, capture: bool = False
    ) -> tuple[Tensor, Attention | None, tuple[SubLayer, ...]]:
        """Revise x [B, S, D]. The sub-layers come back in their order, and only on `capture`."""
        update, seen = self.attention(*self.attention.project(x), rule, capture)
        x = self.add_1(x, update, rule)
        fed, hidden = self.feed_forward(x)
        out = self.add_2(x, fed, rule)
        return out, seen, (SubLayer(update, x), SubLayer(fed, out, hidden)) if capture else ()


class DecoderSeen(NamedTuple):
    """The two attentions of one decoder layer; None where nothing was captured."""

    decoder: Attention | None
    cross: Attention | None


class DecoderLayer(nn.Module):
    """Figure 1, right: masked self-attention, attention over the source, feed-forward."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.add_1 = AddNorm(config.d_model, config.dropout)
        self.cross_attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.add_2 = AddNorm(config.d_model, config.dropout)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.add_3 = AddNorm(config.d_model, config.dropout)

    def forward(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues,
        own_rule: Rule,
        cross_rule: Rule,
        capture: bool = False,
    ) -> tuple[Tensor, KeysValues, DecoderSeen, tuple[SubLayer, ...]]:
        """Revise x [B, T, D], reading the target, `past` and itself, and the source through `memory`.

        Returns with it what the next step finds in `past`.
        """
        q, own = self.attention.project(x)
        own = append(past, own) if past else own
        update, decoder = self.attention(q, own, own_rule, capture)
        x = first = self.add_1(x, update, own_rule)
        asked = self.cross_attention.queries(x)
        read, cross = self.cross_attention(asked, memory, cross_rule, capture)
        x = second = self.add_2(x, read, own_rule)
        fed, hidden = self.feed_forward(x)
        out = self.add_3(x, fed, own_rule)
        done = (SubLayer(update, first), SubLayer(read, second), SubLayer(fed, out, hidden))
        return out, own, DecoderSeen(decoder, cross), done if capture else ()
