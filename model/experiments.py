"""What pages try beyond a trace: stand-in masks, random vectors, timings, what training does. Numpy out."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.attention import Attention, KeysValues, MultiHeadAttention, Rule, attend
from model.layers import AddNorm, DecoderLayer, EncoderLayer
from model.positions import sinusoids
from model.trace import Flags, Floats, Kind
from model.transformer import Transformer


def masked_softmax(
    scores: Floats, allowed: Flags, value: float, dtype: type[np.floating]
) -> NDArray[np.floating]:
    """softmax(scores + M) (Q, K), with M = 0 where `allowed` and `value` elsewhere, all in `dtype`.

    Whatever falls out is returned: NaN for a row of -inf, a flat row where a finite stand-in covers
    it whole, rows of float16 that only nearly sum to 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mask = np.where(allowed, 0.0, value).astype(dtype)
        masked = scores.astype(dtype) + mask
        shifted = np.exp(masked - masked.max(axis=-1, keepdims=True))
        return shifted / shifted.sum(axis=-1, keepdims=True)


# --- one head: its matrices, random queries and keys, timings ---------------------------------------------


@dataclass(frozen=True, eq=False)
class Projections:
    """The learned matrices of one head: q = x w_q + b_q, and so on."""

    w_q: Floats  # (D, d)
    w_k: Floats  # (D, d)
    w_v: Floats  # (D, d)
    w_o: Floats  # (d, D)  the rows of W_O that read this head
    b_q: Floats  # (d,)
    b_k: Floats  # (d,)
    b_v: Floats  # (d,)
    b_o: Floats  # (D,)  shared by all heads


def projections(model: Transformer, kind: Kind, layer: int, head: int) -> Projections:
    """Copies of what one head learned."""
    encoder, decoder = cast(EncoderLayer, model.encoder[layer]), model.decoder_layers[layer]
    attention = {
        "encoder": encoder.attention,
        "decoder": decoder.attention,
        "cross": decoder.cross_attention,
    }[kind]
    d = model.config.d_k
    part = slice(head * d, (head + 1) * d)

    def of(linear: nn.Linear) -> tuple[Floats, Floats]:
        return linear.weight[part].T.detach().numpy().copy(), linear.bias[part].detach().numpy().copy()

    (w_q, b_q), (w_k, b_k), (w_v, b_v) = of(attention.w_q), of(attention.w_k), of(attention.w_v)
    w_o = attention.w_o.weight[:, part].T.detach().numpy().copy()
    return Projections(w_q, w_k, w_v, w_o, b_q, b_k, b_v, attention.w_o.bias.detach().numpy().copy())


@dataclass(frozen=True, eq=False)
class RandomHead:
    """Random queries and keys of one width: what the scale does, measured."""

    d_k: int
    spread: float  # standard deviation of q·k over all draws
    dots: Floats  # (8,)  of the first draw: one query, eight keys
    gradient: float  # mean norm of the softmax Jacobian over the draws, without the scale
    gradient_scaled: float  # the same with it
    largest: float  # mean largest weight without the scale
    largest_scaled: float


KEYS = 8
DRAWS = 400


def random_head(d_k: int, seed: int) -> RandomHead:
    """`DRAWS` queries with `KEYS` keys each, all entries independent with mean 0 and variance 1."""
    random = np.random.default_rng([seed, d_k])
    q = random.standard_normal((DRAWS, 1, d_k), np.float32)
    k = random.standard_normal((DRAWS, KEYS, d_k), np.float32)
    dots = (q * k).sum(axis=-1)
    raw, scaled = softmax(dots), softmax(dots / np.sqrt(d_k))
    return RandomHead(
        d_k=d_k,
        spread=float(dots.std()),
        dots=dots[0],
        gradient=float(jacobian_norm(raw).mean()),
        gradient_scaled=float(jacobian_norm(scaled).mean()),
        largest=float(raw.max(axis=-1).mean()),
        largest_scaled=float(scaled.max(axis=-1).mean()),
    )


def softmax(scores: Floats) -> Floats:
    """[..., K] -> [..., K]"""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def jacobian_norm(weights: Floats) -> Floats:
    """[..., K] -> [...]: the Frobenius norm of diag(p) - p pᵀ, the derivative of softmax by its input."""
    squares = (weights**2).sum(axis=-1)
    # ‖diag(p) - ppᵀ‖² = Σp² - 2Σp³ + (Σp²)²; rounding may leave it a hair under 0.
    return np.sqrt(np.maximum(squares - 2 * (weights**3).sum(axis=-1) + squares**2, 0))


@dataclass(frozen=True)
class Timing:
    """Seconds for all scores of one head: `pieces` queries by as many keys."""

    pieces: int
    dot: float
    additive: float


@torch.inference_mode()
def time_scores(d_k: int, pieces: int = 64, repeats: int = 15) -> Timing:
    """The scores of both compatibility functions at one width, projections left out; medians.

    Dot product: q kᵀ. Additive (Bahdanau et al. 2015): vᵀ tanh(q + k), a hidden layer as wide as the key.
    """
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, pieces, d_k, generator=generator)
    v = torch.randn(d_k, generator=generator)

    def dot() -> torch.Tensor:
        return q @ k.T

    def additive() -> torch.Tensor:
        return (q[:, None] + k[None]).tanh() @ v

    seconds = []
    for score in (dot, additive):
        score()  # the first call pays for memory
        times = []
        for _repeat in range(repeats):
            start = time.perf_counter()
            score()
            times.append(time.perf_counter() - start)
        seconds.append(median(times))
    return Timing(pieces, *seconds)


# --- positions --------------------------------------------------------------------------------------------


def encoding(count: int, d_model: int) -> Floats:
    """The encodings (N, D) of the positions 0 to `count` - 1."""
    return sinusoids(torch.arange(count), d_model).numpy()


def turns(d_model: int) -> NDArray[np.float64]:
    """(D/2,): the angle in radians by which each pair of dimensions turns from one position to the next.

    Read off the encoding of position 1: it lies that far round the circle, and never a half turn.
    """
    pairs = sinusoids(torch.ones(1), d_model)[0].double().numpy().reshape(-1, 2)
    return np.arctan2(pairs[:, 0], pairs[:, 1])


# --- training: label smoothing, dropout -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The loss of each row under label smoothing (section 5.4), beside the plain one, in nats."""

    plain: Floats  # (T,)  -log p of the right piece
    smoothed: Floats  # (T,)  cross-entropy with the smoothed target
    floor: float  # the entropy of that target: no prediction costs less


def smoothed_target(pieces: int, smoothing: float) -> tuple[float, float]:
    """What the target asks of the right piece, and of each other one: ε is shared over all `pieces`."""
    other = smoothing / pieces
    return 1 - smoothing + other, other


def smoothed_floor(pieces: int, smoothing: float) -> float:
    """The entropy of the smoothed target in nats. 0 without smoothing."""
    right, other = smoothed_target(pieces, smoothing)
    rest = (pieces - 1) * other * np.log(other) if other else 0.0
    return float(-(right * np.log(right) + rest))


def smoothed_loss(log_probs: Floats, right: NDArray[np.int64], smoothing: float) -> Smoothed:
    """The losses of `log_probs` (T, V) where the pieces `right` (T,) should have come out."""
    plain = -np.take_along_axis(log_probs, right[:, None], axis=-1)[:, 0]
    uniform = -log_probs.mean(axis=-1, dtype=np.float64)
    smoothed = (1 - smoothing) * plain + smoothing * uniform
    return Smoothed(plain, smoothed.astype(np.float32), smoothed_floor(log_probs.shape[-1], smoothing))


def smoothed_curve(share: Floats, pieces: int, smoothing: float) -> Floats:
    """The loss where the right piece has each `share` (N,) in (0, 1) and the others are equally likely."""
    right, other = smoothed_target(pieces, smoothing)
    share = share.astype(np.float64)
    rest = (pieces - 1) * other * np.log((1 - share) / (pieces - 1)) if other else 0.0
    return (-(right * np.log(share) + rest)).astype(np.float32)


Place = Literal["sublayer", "embedding", "attention"]
PLACES: tuple[Place, ...] = ("sublayer", "embedding", "attention")


class Dropped(nn.Module):
    """Dropout from a seed of its own: torch's draws from one generator that all threads share."""

    def __init__(self, rate: float, generator: torch.Generator) -> None:
        super().__init__()
        self.rate, self.generator = rate, generator

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.rand(x.shape, generator=self.generator) >= self.rate
        return x * kept / (1 - self.rate)


class DroppedAttention(MultiHeadAttention):
    """softmax, dropout, times V: the third place, not in the paper's text but in its code and BERT's."""

    def __init__(self, d_model: int, n_heads: int, dropout: nn.Module) -> None:
        super().__init__(d_model, n_heads)
        self.dropout = dropout

    def forward(
        self, q: Tensor, memory: KeysValues, rule: Rule, capture: bool = False
    ) -> tuple[Tensor, Attention | None]:
        """As in `MultiHeadAttention`; the weights of the record are those that met the values."""
        seen = attend(q, *memory, rule)
        weights = self.dropout(seen.weights)
        output = weights @ seen.v if rule.keep is None else weights @ seen.v * rule.keep
        return self.w_o(self._merge(output)), seen._replace(
            weights=weights, output=output
        ) if capture else None


def with_dropout(model: Transformer, places: Collection[Place], rate: float, seed: int) -> Transformer:
    """The same weights, shared and not copied, with dropout at `places`, as in training.

    A pass draws from `seed` on, so a second pass of what is returned differs from the first.
    """
    dropout = Dropped(rate, torch.Generator().manual_seed(seed))
    with torch.device("meta"):  # a shell: the weights are put in afterwards
        shell = Transformer(model.config)
        layers = [*cast(Sequence[EncoderLayer], shell.encoder), *shell.decoder_layers]
        if "attention" in places:
            sizes = model.config.d_model, model.config.n_heads
            for layer in layers:
                layer.attention = DroppedAttention(*sizes, dropout)
                if isinstance(layer, DecoderLayer):
                    layer.cross_attention = DroppedAttention(*sizes, dropout)
    shell.load_state_dict(model.state_dict(), assign=True)
    shell.eval().requires_grad_(False)
    if "embedding" in places:
        shell.dropout = dropout  # type: ignore[assignment]
    if "sublayer" in places:
        for norm in (module for module in shell.modules() if isinstance(module, AddNorm)):
            norm.dropout = dropout  # type: ignore[assignment]
    return shell
