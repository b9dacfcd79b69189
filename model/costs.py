"""The paper's table 1 as an experiment: what kinds of layer cost by formula, and when they really run.

Shapes: n positions, d width, k kernel, r window, h heads of width d / h.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from model.attention import Attention, KeysValues, MultiHeadAttention, Rule

Layer = Literal["attention", "recurrent", "convolution", "restricted"]
LAYERS: tuple[Layer, ...] = ("attention", "recurrent", "convolution", "restricted")
Run = Literal["attention", "bare", "fused", "recurrent", "convolution", "restricted"]
Cell = Literal["rnn", "gru", "lstm"]
CELLS: dict[Cell, int] = {"rnn": 1, "gru": 3, "lstm": 4}  # the pairs of matrices d x d that a cell has
HEAD = 64  # width of a head, as in the paper
MOST = 1_200_000_000  # multiplications of the longest single run
LARGEST = 2**26  # bytes of its attention weights
ENOUGH = 0.03  # seconds after which a run is not repeated


@dataclass(frozen=True)
class Sizes:
    """The letters of table 1, and what the recurrent layer is made of."""

    n: int
    d: int
    k: int = 3
    r: int = 16
    cell: Cell = "rnn"


# --- by formula -------------------------------------------------------------------------------------------


def term(layer: Layer, of: Sizes) -> int:
    """Complexity per layer, the term in table 1 without its O."""
    n, d = of.n, of.d
    return {
        "attention": n * n * d,
        "recurrent": n * d * d,
        "convolution": of.k * n * d * d,
        "restricted": min(of.r, n) * n * d,
    }[layer]


def multiplications(layer: Layer, of: Sizes) -> int:
    """What a real layer multiplies: both products of the weights, four projections, every gate."""
    n, d = of.n, of.d
    return {
        "attention": 2 * n * n * d + 4 * n * d * d,
        "recurrent": 2 * CELLS[of.cell] * n * d * d,
        "convolution": of.k * n * d * d,
        "restricted": 2 * min(of.r, n) * n * d + 4 * n * d * d,
    }[layer]


def crossover(of: Sizes) -> int | None:
    """From which n on real attention multiplies more than the recurrent layer; None where always.

    2 n² d + 4 n d² = 2 g n d² with g the gates of the cell: n = (g - 2) d. Table 1's terms cross at n = d.
    """
    return max(0, CELLS[of.cell] - 2) * of.d or None


def sequential(layer: Layer, of: Sizes) -> int:
    """Operations that have to wait for one another."""
    return of.n if layer == "recurrent" else 1


def path(layer: Layer, of: Sizes, dilated: bool = True) -> int:
    """Steps from the first position to the last, the longest way that a signal goes.

    Windows look back: a position and the k - 1 (or r - 1) before it. A kernel moves on by k - 1 a layer; with
    the dilations 1, k, k², … of its layers it reaches k to the power of their number.
    """
    n = of.n
    if n == 1:
        return 0
    if layer == "attention":
        return 1
    if layer == "recurrent":
        return n - 1
    if layer == "restricted":
        return math.ceil((n - 1) / max(of.r - 1, 1))
    if dilated and of.k > 1:
        steps, reach = 0, 1
        while reach < n:
            steps, reach = steps + 1, reach * of.k
        return steps
    return math.ceil((n - 1) / max(of.k - 1, 1))


def stops(layer: Literal["attention", "recurrent", "plain", "dilated"], n: int, k: int) -> list[int]:
    """The positions that the way from position 0 to n - 1 goes through, both ends included, layer by layer.

    Each is the place after one more step. A dilated kernel takes digit after digit of n - 1 in base k.
    """
    last = n - 1
    if layer == "attention":
        return [0, last] if last else [0]
    if layer == "recurrent":
        return list(range(n))
    at, way, reach = 0, [0], 1
    while at < last or (layer == "dilated" and reach < n):
        if layer == "plain":
            at = min(at + k - 1, last)
        else:
            at, reach = at + (last // reach % k) * reach, reach * k
        way.append(at)
    return way


# --- run --------------------------------------------------------------------------------------------------


class Windowed(MultiHeadAttention):
    """Self-attention restricted to a window: each position reads itself and the r - 1 before it.

    Computed in blocks of r queries, each with its own block of keys and the one before: twice what is needed,
    and never n x n.
    """

    def __init__(self, d_model: int, n_heads: int, window: int) -> None:
        super().__init__(d_model, n_heads)
        self.window = window

    def forward(
        self, q: Tensor, memory: KeysValues, rule: Rule, capture: bool = False
    ) -> tuple[Tensor, Attention | None]:
        """[1, H, n, d] and the keys and values of the same positions -> [1, n, D]; nothing is captured."""
        n = q.size(-2)
        width = min(self.window, n)
        blocks = math.ceil(n / width)
        fill = blocks * width - n
        asked = pad(q, (0, 0, 0, fill)).unflatten(-2, (blocks, width))  # [1, H, blocks, width, d]
        k, v = (pad(each, (0, 0, width, fill)).unfold(-2, 2 * width, width) for each in memory)
        i, j = torch.arange(width)[:, None], torch.arange(2 * width)
        allowed = (j > i) & (j <= i + width)  # of the window, its last place being the query itself
        inside = torch.arange(blocks)[:, None, None] * width + j >= width
        scores = (asked @ k) * rule.scale(q.size(-1))  # [1, H, blocks, width, 2 width]
        weights = scores.masked_fill(~(allowed & inside), -math.inf).softmax(dim=-1)
        output = (weights @ v.transpose(-2, -1)).flatten(2, 3)[..., :n, :]
        return self.w_o(self._merge(output)), None


def heads(d: int) -> int:
    """As many heads as the paper would take for a width."""
    return max(1, d // HEAD)


def build(run: Run, of: Sizes) -> tuple[nn.Module | None, Callable[[Tensor], Tensor]]:
    """A layer with fresh weights and what it does to x [1, n, d].

    `attention` writes its weights out, as this app does; `fused` never holds them all; `bare` is
    softmax(QKᵀ) V with q = k = v = x: no projections.
    """
    rule = Rule(torch.ones(1, 1, 1, 1, dtype=torch.bool))
    if run == "recurrent":
        cell = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[of.cell](of.d, of.d, batch_first=True)
        return cell, lambda x: cell(x)[0]
    if run == "convolution":
        kernel = nn.Conv1d(of.d, of.d, of.k)
        return kernel, lambda x: kernel(pad(x.transpose(1, 2), (of.k - 1, 0))).transpose(1, 2)
    if run == "bare":
        count = heads(of.d)

        def bare(x: Tensor) -> Tensor:
            q = x.unflatten(-1, (count, -1)).transpose(1, 2)
            weights = ((q @ q.transpose(-2, -1)) * rule.scale(q.size(-1))).softmax(dim=-1)
            return (weights @ q).transpose(1, 2).flatten(-2)

        return None, bare
    if run == "restricted":
        window = Windowed(of.d, heads(of.d), of.r)
        return window, lambda x: window(*window.project(x), rule)[0]
    layer = MultiHeadAttention(of.d, heads(of.d))
    return layer, lambda x: layer(*layer.project(x), rule, capture=run == "attention")[0]


@dataclass(frozen=True)
class Measured:
    """One layer at one length."""

    seconds: float  # of the fastest forward pass: what else the machine does makes the others slower
    repeats: int
    bytes: int  # what a training step keeps of the forward pass for the gradient, parameters left out


def kind(run: Run) -> Layer:
    """The row of table 1 that a run belongs to."""
    return "attention" if run in ("bare", "fused") else run  # type: ignore[return-value]


def relevant(run: Run, of: Sizes) -> Sizes:
    """The sizes without what a run does not depend on: what was measured serves all that are equal so."""
    own = {"recurrent": {"cell": of.cell}, "convolution": {"k": of.k}, "restricted": {"r": of.r}}
    return Sizes(of.n, of.d, **own.get(run, {}))  # type: ignore[arg-type]


def fits(run: Run, of: Sizes) -> bool:
    """Whether a run is short and small enough to be tried on a machine that others use."""
    weights = 4 * heads(of.d) * of.n * of.n if kind(run) == "attention" else 0
    return multiplications(kind(run), of) <= MOST and weights <= LARGEST


def measure(run: Run, of: Sizes) -> Measured:
    """Run a layer with fresh weights on random numbers. ValueError where it does not fit.

    Repeated for `ENOUGH` seconds, 3 to 9 times, after a first call that pays for memory.
    """
    if not fits(run, of):
        raise ValueError(f"{run} of {of} is more than is tried here")
    module, layer = build(run, of)
    x = torch.randn(1, of.n, of.d)
    times: list[float] = []
    with torch.inference_mode():
        layer(x)
        while len(times) < 3 or (sum(times) < ENOUGH and len(times) < 9):
            start = time.perf_counter()
            layer(x)
            times.append(time.perf_counter() - start)
    return Measured(min(times), len(times), _kept(module, layer, x))


def _kept(module: nn.Module | None, layer: Callable[[Tensor], Tensor], x: Tensor) -> int:
    """The bytes of all storages that autograd saves, each counted once, parameters left out."""
    own = {each.untyped_storage().data_ptr() for each in module.parameters()} if module else set()
    storages: dict[int, int] = {}

    def note(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage.nbytes()
        return saved

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved):
        answer = layer(x.requires_grad_())
    total = sum(storages.values())
    del answer  # until here it kept all that was noted, so that no address came twice
    return total
