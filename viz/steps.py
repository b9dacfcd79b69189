"""What one head did, step by step: its sizes, its sums written out, the entropy of its rows.

Shapes: H heads, Q queries, K keys, D d_model, d width of a head, F d_ff.
"""

from dataclasses import dataclass

import numpy as np

from model.trace import Floats, Kind, Trace
from viz.text import _

# The stages in their order, each named by its section in assets/text/head.md.
STAGES = (
    "input",
    "qkv",
    "dot",
    "scale",
    "mask",
    "softmax",
    "mix",
    "concat",
    "output",
    "add",
    "feed",
    "add again",
)
PAPER = {"D": 512, "h": 8, "d": 64, "F": 2048}  # the base model of the paper's table 3


def stage_name(stage: str) -> str:
    return {
        "input": _("What enters"),
        "qkv": _("Queries, keys, values"),
        "dot": _("One query asks every key"),
        "scale": _("Divide by √d_k"),
        "mask": _("Mask"),
        "softmax": _("Softmax, row by row"),
        "mix": _("Mix the values"),
        "concat": _("Lay the heads side by side"),
        "output": _("Multiply by W_O"),
        "add": _("Add & Norm"),
        "feed": _("Feed-forward"),
        "add again": _("Add & Norm again"),
    }[stage]


@dataclass(frozen=True)
class Sizes:
    """How many numbers stand where, for one attention of a trace."""

    queries: int
    keys: int
    model: int  # d_model
    heads: int
    width: int  # d_k = d_v
    hidden: int  # d_ff

    def shapes(self, stage: str, kind: Kind) -> tuple[str, str]:
        """The shapes at a stage, in this model and in the paper's base model (n queries, m keys)."""
        here = {
            "n": self.queries, "m": self.keys, "D": self.model, "h": self.heads, "d": self.width,
            "F": self.hidden,
        }  # fmt: skip
        paper: dict[str, int | str] = {"n": "n", "m": "m", **PAPER}
        formula = _SHAPES["input cross" if (stage, kind) == ("input", "cross") else stage]
        return formula.format(**here), formula.format(**paper)


# n queries, m keys; one formula a stage serves this model and the paper's.
_SHAPES = {
    "input": "{n} × {D} (x)",
    "input cross": "{n} × {D} (x);  {m} × {D} (z)",
    "qkv": "{n} × {D} · {D} × {d} → {n} × {d} (q);  {m} × {D} · {D} × {d} → {m} × {d} (k, v)",
    "dot": "{n} × {d} · {d} × {m} → {n} × {m}",
    "scale": "{n} × {m}, ÷ √{d}",
    "mask": "{n} × {m}",
    "softmax": "{n} × {m}",
    "mix": "{n} × {m} · {m} × {d} → {n} × {d}",
    "concat": "{h} × ({n} × {d}) → {n} × {D}",
    "output": "{n} × {D} · {D} × {D} → {n} × {D}",
    "add": "{n} × {D} + {n} × {D} → {n} × {D}",
    "feed": "{n} × {D} · {D} × {F} → {n} × {F};  · {F} × {D} → {n} × {D}",
    "add again": "{n} × {D} + {n} × {D} → {n} × {D}",
}


def sizes(trace: Trace, kind: Kind) -> Sizes:
    _layers, heads, queries, width = trace.stages(kind).q.shape
    keys = trace.stages(kind).k.shape[2]
    return Sizes(queries, keys, heads * width, heads, width, trace.fed(kind).hidden.shape[-1])


def dots(trace: Trace, kind: Kind, layer: int, head: int) -> Floats:
    """(Q, K): q·k, before the scale."""
    seen = trace.stages(kind)
    return seen.q[layer, head] @ seen.k[layer, head].T


def factor(trace: Trace, kind: Kind) -> float:
    """What a dot product is divided by: √d_k, or 1 where the reader took the scale off."""
    return float(np.sqrt(trace.stages(kind).q.shape[-1])) if trace.change.scale else 1.0


def joined(trace: Trace, kind: Kind, layer: int) -> Floats:
    """(Q, D): the outputs of all heads side by side, head 1 first."""
    output = trace.stages(kind).output[layer]
    return output.transpose(1, 0, 2).reshape(output.shape[1], -1)


def written(left: Floats, right: Floats) -> str:
    """A dot product with its real numbers: "0.12·0.50 + … "."""
    return " + ".join(f"({a:.4f})({b:.4f})" for a, b in zip(left, right, strict=True))


def at_temperature(scores: Floats, allowed: np.ndarray, temperature: float) -> Floats:
    """(K,): softmax of one row over its allowed keys with the scores divided by `temperature`.

    The limits are taken as limits: at 0 the largest score takes all (equal ones share it), at infinity
    the allowed keys are equal.
    """
    weights = np.zeros(scores.shape, np.float64)
    if not allowed.any():
        return weights.astype(np.float32)
    open_ = scores[allowed].astype(np.float64)
    above = open_ - open_.max()
    powers = (above == 0).astype(np.float64) if temperature == 0 else np.exp(above / temperature)
    weights[allowed] = powers / powers.sum()
    return weights.astype(np.float32)


def bits(weights: Floats) -> Floats:
    """[..., K] -> [...]: the entropy of each row in bits; 0 log 0 is 0."""
    safe = np.where(weights > 0, weights, 1).astype(np.float64)
    return -(safe * np.log2(safe) * (weights > 0)).sum(axis=-1) + 0.0
