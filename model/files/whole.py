"""A whole `Trace` to arrays and a text, and back, bit for bit.

The dataclasses of `model.trace` say themselves what is written: an array goes into the file under its path,
such as "attention.cross.q", all else into a JSON text. Reading asks the same types what must be there.
"""

import json
import types
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from model.files.containers import WHOLE, Parts, pack, parse, suffix
from model.files.gate import (
    CHARACTERS,
    HEADS,
    LONGEST,
    UNPACKED,
    FileError,
    Numbers,
    finite,
    named,
    readable,
    shaped,
)
from model.files.tensors import check
from model.trace import KINDS, Stages, Trace, asks

FORMAT = "headlight trace 1"  # the number goes up when an older version could not read what is written


def write(trace: Trace, ending: str) -> bytes:
    """See `model.files.write`."""
    arrays: dict[str, Numbers] = {}
    said = {"format": FORMAT, "trace": _encoded(trace, "", arrays)}
    size = sum(array.nbytes for array in arrays.values())
    if size > UNPACKED:
        raise FileError("huge", "the numbers of the trace", f"{size:,} bytes", f"at most {UNPACKED:,}")
    try:
        document = json.dumps(said, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise FileError("nan", "the trace", "a NaN or an infinity", "finite numbers") from error
    read({WHOLE: document, **arrays})  # what would not be read is not written
    return pack(suffix(ending), arrays, document)


def read(parts: Parts) -> Trace:
    """The trace in what `containers.unpack` found. Raises FileError."""
    document = parts[WHOLE]
    if isinstance(document, np.ndarray) and document.dtype == np.uint8 and document.ndim == 1:
        document = document.tobytes()
    elif isinstance(document, str):
        document = document.encode("utf-8", "surrogatepass")
    else:
        raise FileError("damaged", named(WHOLE), "other values", "the text of a trace")
    said = parse(document)
    if said.get("format") != FORMAT:
        raise FileError("version", "the format", named(said.get("format")), named(FORMAT))
    arrays = {name: value for name, value in parts.items() if name != WHOLE}
    trace: Trace = _decoded(Trace, said.get("trace"), "", arrays)
    if arrays:
        raise FileError("member", "a name in the file", named(min(arrays)), "what a trace has")
    judge(trace)
    return trace


# --- there ------------------------------------------------------------------------------------------------


def _encoded(value: Any, path: str, arrays: dict[str, Numbers]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[path[1:]] = value
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: _encoded(getattr(value, each.name), f"{path}.{each.name}", arrays)
            for each in fields(value)
        }
    if isinstance(value, Mapping):
        return {name: _encoded(each, f"{path}.{name}", arrays) for name, each in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((_encoded(each, path, arrays) for each in value), key=json.dumps)
    if isinstance(value, (list, tuple)):
        return [_encoded(each, path, arrays) for each in value]
    return value.item() if isinstance(value, np.generic) else value


# --- and back ---------------------------------------------------------------------------------------------


@cache
def _hints(of: type) -> dict[str, Any]:
    return get_type_hints(of)


def _decoded(hint: Any, value: Any, path: str, arrays: dict[str, Any]) -> Any:
    """A value of the type `hint`; the arrays that it takes are gone from `arrays` afterwards."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if type(None) in args and value is None and path[1:] not in arrays:
            return None
        return _first(args, value, path, arrays)
    if origin is np.ndarray:
        return _array(args, value, path, arrays)
    if origin is Literal:
        return value if isinstance(value, str) and value in args else _wrong(path, value)
    if origin is tuple and isinstance(value, list):
        return tuple(_decoded(args[0], each, path, arrays) for each in value)
    if origin is frozenset and isinstance(value, list):
        return frozenset(_decoded(args[0], each, path, arrays) for each in value)
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, dict):
        return {
            _decoded(args[0], name, path, arrays): _decoded(args[1], each, f"{path}.{name}", arrays)
            for name, each in value.items()
        }
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, dict):
        return _dataclass(hint, value, path, arrays)
    if hint is float and type(value) is int:
        return float(value) if abs(value) < 2**53 else _wrong(path, value)
    if hint is str and isinstance(value, str):
        return readable(value)
    return value if hint in (bool, int, float) and type(value) is hint else _wrong(path, value)


def _first(hints: tuple[Any, ...], value: Any, path: str, arrays: dict[str, Any]) -> Any:
    """By the first of several types that it fits."""
    for hint in hints:
        try:
            return _decoded(hint, value, path, arrays)
        except FileError as error:
            last = error
    raise last


def _array(args: tuple[Any, ...], value: Any, path: str, arrays: dict[str, Any]) -> Numbers:
    array = arrays.pop(path[1:], None)
    want = np.dtype(get_args(args[1])[0])
    if value is not None or not isinstance(array, np.ndarray) or array.dtype != want:
        got = array.dtype if isinstance(array, np.ndarray) else "no array"
        raise FileError("missing" if array is None else "type", named(path[1:]), got, f"an array of {want}")
    return array


def _dataclass(hint: type, value: dict[str, Any], path: str, arrays: dict[str, Any]) -> Any:
    """The class itself, or the one made from it that has these fields: `Stages` for `Seen`."""
    found = [each for each in (hint, *hint.__subclasses__()) if value.keys() <= set(_names(each))]
    if not found:
        raise FileError(
            "version", f"the fields of {named(path[1:])}", named(", ".join(value)), "those of a trace"
        )
    made = min(found, key=lambda each: len(_names(each)))
    given = {
        name: _decoded(_hints(made)[name], each, f"{path}.{name}", arrays) for name, each in value.items()
    }
    try:
        return made(**given)
    except TypeError as error:
        raise FileError(
            "missing", f"the fields of {named(path[1:])}", named(", ".join(value)), "all"
        ) from error


def _names(of: type) -> list[str]:
    return [each.name for each in fields(of)]


def _wrong(path: str, value: Any) -> Any:
    raise FileError("type", named(path[1:]), named(value), "another value")


# --- what must be true of a trace -------------------------------------------------------------------------


def judge(trace: Trace) -> None:
    """Raise FileError where the parts of a trace contradict each other or cannot be shown."""
    lengths = {side: len(trace.pieces(side)) for side in ("source", "target")}
    for piece in (*trace.source, *trace.target, *trace.comes_out):
        if any(sign in piece for sign in "\n\t"):
            raise FileError("tokens", "a piece", f"{named(piece)}, which has lines or tabs", "signs for them")
        if len(piece) > 8 * CHARACTERS:
            got = f"{named(piece)} of {len(piece)} characters"
            raise FileError("huge", "a piece", got, f"at most {8 * CHARACTERS}")
    for side, length in lengths.items():
        if length > LONGEST:
            raise FileError("huge", f"{side}", f"{length} pieces", f"at most {LONGEST}")
        for name in (f"{side}_ids", f"{side}_spaces"):
            _as_many(name, len(getattr(trace, name)), (0, length))
    predicted = lengths["target"] or lengths["source"]
    _as_many("comes_out", len(trace.comes_out), (0, predicted))
    _as_many("candidates", len(trace.candidates), (0, predicted))
    _as_many("hidden", len(trace.hidden), (0, len(trace.gaps)))
    if any(not 0 <= gap < lengths["source"] for gap in trace.gaps):
        raise FileError("tokens", "gaps", str(trace.gaps[:9]), f"places of {lengths['source']} pieces")
    if not 0 <= trace.given <= lengths["target"]:
        raise FileError("tokens", "given", trace.given, f"0 to {lengths['target']}")
    if trace.kinds != tuple(kind for kind in KINDS if kind in trace.kinds):
        raise FileError("member", "the kinds of attention", ", ".join(trace.kinds), ", ".join(KINDS))
    heads = [_attention(trace, kind) for kind in trace.kinds]
    if heads:
        try:
            trace.change.check(*map(max, zip(*heads, strict=True)))
        except ValueError as error:
            raise FileError("member", "the change", named(error), "what the model has") from error
    for kind in trace.sublayers:
        queries = lengths[asks(kind)]
        added = trace.added(kind)
        _alike(f"sublayers.{kind}", {"update": added.update, "out": added.out}, (None, queries, None))
    for side, fed in trace.feeds.items():
        _alike(f"feeds.{side}", {"update": fed.update, "out": fed.out}, (None, lengths[side], None))
        _alike(f"feeds.{side}", {"hidden": fed.hidden}, (fed.out.shape[0], lengths[side], None))
    for side, entered in trace.embeddings.items():
        arrays = {"pieces": entered.pieces, "positions": entered.positions, "sum": entered.sum}
        _alike(f"embeddings.{side}", arrays, (lengths[side], None))
    for side, states in trace.states.items():
        _alike("states", {side: states}, (lengths[side], None))
    for name in ("log_probs", "piece_log_probs"):
        array: Numbers = getattr(trace, name)
        if array.size and (array.ndim != (2 if name == "log_probs" else 1) or len(array) != predicted):
            raise FileError("shape", name, shaped(array.shape), f"{predicted} rows")
        finite(name, array, array != -np.inf)


def _attention(trace: Trace, kind: Any) -> tuple[int, int]:
    """Layers and heads."""
    seen = trace.seen(kind)
    queries, keys = map(len, trace.axes(kind))
    maps = {"weights": seen.weights, "allowed": seen.allowed}
    if seen.scores is not None:
        maps["scores"] = seen.scores
    n_layers, n_heads, *_axes = _alike(f"attention.{kind}", maps, (None, None, queries, keys))
    if n_layers * n_heads > HEADS:
        raise FileError("huge", f"{kind}", f"{n_layers} layers of {n_heads} heads", f"at most {HEADS} heads")
    check(kind, seen.weights, seen.allowed)
    if isinstance(seen, Stages):
        for name, array, length in (("q", seen.q, queries), ("k", seen.k, keys)):
            _alike(f"attention.{kind}", {name: array}, (n_layers, n_heads, length, None))
        _alike(f"attention.{kind}", {"v": seen.v}, (n_layers, n_heads, keys, None))
        _alike(f"attention.{kind}", {"output": seen.output}, (n_layers, n_heads, queries, seen.v.shape[3]))
    return n_layers, n_heads


def _alike(name: str, arrays: Mapping[str, Numbers], want: tuple[int | None, ...]) -> tuple[int, ...]:
    """The one shape of finite arrays, which has the lengths `want` where these are not None."""
    shape = next(iter(arrays.values())).shape
    for part, array in arrays.items():
        fits = len(array.shape) == len(want) and all(
            length in (None, axis) for length, axis in zip(want, array.shape, strict=True)
        )
        if not fits or array.shape != shape or 0 in shape:
            axes = "(" + ", ".join("any" if length is None else str(length) for length in want) + ")"
            raise FileError("shape", f"{name}.{part}", shaped(array.shape), axes)
        if array.dtype != bool:
            finite(f"{name}.{part}", array)
    return shape


def _as_many(name: str, got: int, want: tuple[int, int]) -> None:
    if got not in want:
        raise FileError("tokens", name, got, " or ".join(map(str, want)))
