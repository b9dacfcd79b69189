"""Attention from a file, and a whole trace into one. Numpy and safetensors; no torch, nothing is ever run.

    model.files.save("mine.npz", weights=out.attentions, source=tokens)      # from one's own torch code
    trace = model.files.read("mine.npz", Path("mine.npz").read_bytes())

RULES, for .npz, .safetensors and .json:

weights       "weights" holds one kind of attention; "encoder", "decoder" and "cross" hold several. The axes
              are (layers, heads, queries, keys), as in `torch.stack(attentions)` without the batch. With
              three they are (heads, queries, keys) of one layer, with two (queries, keys) of one head, with
              five (layers, batch, heads, queries, keys), and the batch must be 1. In a .npz or .safetensors
              layers may also be arrays of their own: "weights.0", "weights.1" ... The names that
              `transformers` gives (attentions, encoder_attentions, ...) mean the same.
numbers       float16, bfloat16, 32 or 64, kept as float32. Each from 0 to 1, the keys of a query sum to 1
              within 0.001, or 0.01 for bfloat16. No NaN, no infinity.
tokens        "source" and "target", or "queries" and "keys", as many as there are weights along their axis.
              Where queries and keys are the same tokens, one list is enough. Without tokens the places
              1, 2, 3 ... stand there. In a .npz they are an array of text, in a .safetensors a JSON list
              in the metadata.
kind          "kind" says whose attention "weights" are: "encoder", "decoder" or "cross". Unsaid, it is cross
              where there are two lists of tokens or the map is not square; decoder where the tokens are
              the target's or no query gives weight to a later key; else encoder.
mask          "mask", or "cross.mask" beside "cross": True or 1 where a query may look, of any shape that
              numpy spreads over the weights, such as (keys,) or (queries, keys). What it forbids must weigh
              0. A query that may look nowhere is shown as that, whatever numbers stand in its row. Without
              a mask a query may look everywhere, but for later keys in a decoder that gives them no weight,
              and but for a query all of whose weights are 0.
scores        "scores", or "cross.scores": what softmax was taken of, before the mask; it must
              give the weights.
limits        64 MiB of numbers, 8 MiB of JSON, 512 tokens along an axis, 2048 heads, 200 characters a token.
              Other names in a file are refused: they are often a misspelling. "about" is passed over: there
              Headlight's own JSON says which picture it is of.

A whole trace, as `write` makes it, is such a file too, with all that a model showed.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from model.files import whole
from model.files.containers import SUFFIXES, WHOLE, suffix, unpack
from model.files.gate import LARGEST, FileError
from model.files.recorded import Recorded
from model.files.tensors import array_of, build
from model.trace import Kind, Trace

__all__ = ["LARGEST", "SUFFIXES", "FileError", "Recorded", "read", "save", "write"]


def read(name: str, content: bytes) -> Trace:
    """The trace in a file of this name, by the rules above. Raises FileError, and nothing else."""
    parts = unpack(name, content)
    return whole.read(parts) if WHOLE in parts else build(parts)


def write(trace: Trace, format: str) -> bytes:
    """A whole trace as ".npz" or ".safetensors", which `read` loads again bit for bit.

    Equal traces make equal bytes. Raises FileError where a trace is too large, or would not be read again.
    """
    return whole.write(trace, format if format.startswith(".") else f".{format}")


def save(
    path: str | Path,
    weights: Any = None,
    *,
    encoder: Any = None,
    decoder: Any = None,
    cross: Any = None,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    kind: Kind | None = None,
    mask: Any = None,
    scores: Any = None,
) -> Trace:
    """Save attention out of one's own code as a .npz or .safetensors that `read` takes, and return it.

    Weights, mask and scores are arrays, tensors of torch on any device, or lists and tuples of them, as in
    `outputs.attentions`; their meaning, and the tokens', is that of the rules above. For several kinds,
    give mask and scores as mappings: `mask={"cross": allowed}`. What is saved has passed the same gate as
    what is read. Raises FileError where the arrays are no attention, OSError where the disk says no; then
    nothing is left at `path` but what stood there before.
    """
    parts: dict[str, Any] = {"source": source, "target": target, "queries": queries, "keys": keys}
    parts = {name: list(tokens) for name, tokens in parts.items() if tokens is not None}
    if kind is not None:
        parts["kind"] = kind
    given = {"weights": weights, "encoder": encoder, "decoder": decoder, "cross": cross}
    for name, values in (("mask", mask), ("scores", scores)):
        each = (
            {f"{of}.{name}": value for of, value in values.items()} if isinstance(values, Mapping) else None
        )
        given |= {name: values} if each is None else each
    parts |= {name: _array(name, value) for name, value in given.items() if value is not None}
    path = Path(path)
    ending = suffix(path.name)
    trace = build(parts)
    content = write(trace, ending)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return trace


def _array(name: str, value: Any) -> np.ndarray:
    """An array out of whatever holds one: numpy, torch or lists of these, which become the first axis."""
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float)):
        layers = [_array(name, each) for each in value]
        shapes = {layer.shape for layer in layers}
        if len(shapes) > 1:
            got = " and ".join(map(str, sorted(shapes)[:3]))
            raise FileError("shape", f'"{name}"', f"layers of shapes {got}", "layers of one shape")
        return np.stack(layers)
    if callable(getattr(value, "detach", None)):  # a tensor of torch, which this file does not import
        value = value.detach().cpu()
        if not str(value.dtype).endswith(("bool", "float16", "float32", "float64")) or "bf" in str(
            value.dtype
        ):
            value = value.float()
    if hasattr(value, "__array__"):
        value = np.asarray(value)
    return array_of(name, value)
