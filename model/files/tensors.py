"""The rules by which weights and tokens become a `Trace`; `model.files` states them for readers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from model.files.gate import (
    HEADS,
    LONGEST,
    UNPACKED,
    FileError,
    Numbers,
    finite,
    named,
    shaped,
    shown,
)
from model.trace import KINDS, NEUTRAL, Flags, Floats, Kind, Seen, Side, Trace, asked, asks

CLOSE = 1e-3  # how far from 1 the weights of a query may sum
COARSE = 1e-2  # the same of bfloat16, which keeps two digits and a half
LOOSE = 2e-2  # how far from softmax(scores) the weights may be: scores of 16 bits are coarse

WEIGHTS = "weights"
LISTS = ("source", "target", "queries", "keys")
_ALIASES = {  # what `transformers` and others call them
    "attentions": "weights",
    "attention": "weights",
    "attention_weights": "weights",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
    "tokens": "source",
    "allowed": "mask",
}
_LAYER = re.compile(r"(weights|encoder|decoder|cross)\.(\d{1,3})")
ABOUT = "about"  # what Headlight's own JSON says of the picture; nothing is made of it
_NAMES = {WEIGHTS, "mask", "scores", "kind", *LISTS, *KINDS} | {
    f"{kind}.{part}" for kind in KINDS for part in ("mask", "scores")
}
_AXES = "(layers, heads, queries, keys)"


def build(parts: Mapping[str, Any]) -> Trace:
    """The trace of what a file or a call gives, by the names of `model.files`. Raises FileError."""
    given = _names(parts)
    weights = {name: _ranked(name, given[name]) for name in (WEIGHTS, *KINDS) if name in given}
    if not weights:
        raise FileError(
            "missing", "the file", _listed(given) or "nothing", '"weights" or "encoder", "decoder", "cross"'
        )
    lists = {name: _tokens(name, given[name]) for name in LISTS if name in given}
    if WEIGHTS in weights:
        if len(weights) > 1:
            raise FileError("member", "weights", _listed(weights), '"weights" alone, or kinds alone')
        kind = _kind(given.get("kind"), weights[WEIGHTS], lists)
        weights = {kind: weights[WEIGHTS]}
        for part in ("mask", "scores"):
            if part in given:
                if f"{kind}.{part}" in given:
                    raise FileError("member", "names", f'"{part}" and "{kind}.{part}"', "one of the two")
                given[f"{kind}.{part}"] = given[part]
        lists = _sides(kind, lists)
    else:
        for name in ("mask", "scores", "kind", "queries", "keys"):
            if name in given:
                want = (
                    f'"{next(iter(weights))}.{name}"'
                    if name in ("mask", "scores")
                    else '"source" and "target"'
                )
                raise FileError("member", "a name beside those of kinds", f'"{name}"', want)
    for name in given:
        kind_, _, part = name.partition(".")
        if part and kind_ not in weights:
            raise FileError("missing", f'"{name}"', f'no "{kind_}" beside it', "the weights that it is about")
    pieces = _pieces(cast("dict[Kind, Numbers]", weights), lists)
    attention: dict[Kind, Seen] = {}
    for kind in KINDS:
        if kind in weights:
            mask, scores = given.get(f"{kind}.mask"), given.get(f"{kind}.scores")
            attention[kind] = _seen(kind, weights.pop(kind), mask, scores)
    return _trace(attention, pieces)


def _trace(attention: Mapping[Kind, Seen], pieces: Mapping[Side, Sequence[tuple[str, bool]]]) -> Trace:
    words = {side: tuple(piece for piece, _space in pieces[side]) for side in pieces}
    spaces = {side: tuple(space for _piece, space in pieces[side]) for side in pieces}
    texts = {
        side: "".join(" " * space + piece for piece, space in pieces[side]).removeprefix(" ")
        for side in pieces
    }
    return Trace(
        text=texts.get("source", texts.get("target", "")),
        change=NEUTRAL,
        attention=attention,
        source=words.get("source", ()),
        target=words.get("target", ()),
        source_spaces=spaces.get("source", ()),
        target_spaces=spaces.get("target", ()),
    )


# --- names ------------------------------------------------------------------------------------------------


def _names(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts under the names of this file, layers of their own put together."""
    given: dict[str, Any] = {}
    layers: dict[str, dict[int, Any]] = {}
    for name, value in parts.items():
        if name == ABOUT:
            continue
        if name.startswith("arr_"):  # what numpy.savez calls what has no name: one array, or one a layer
            name = WEIGHTS if name == "arr_0" and "arr_1" not in parts else f"{WEIGHTS}.{name[4:]}"
        head, dot, tail = name.partition(".")
        name = _ALIASES.get(head, head) + dot + _ALIASES.get(tail, tail)
        if layer := _LAYER.fullmatch(name):
            layers.setdefault(layer[1], {})[int(layer[2])] = value
            continue
        if name not in _NAMES:
            raise FileError("member", "a name in the file", named(name), f"one of {_listed(sorted(_NAMES))}")
        if name in given:
            raise FileError("member", "a name in the file", f'"{name}" under two names', "each name once")
        given[name] = value
    for name, each in layers.items():
        if name in given or sorted(each) != list(range(len(each))):
            got = (
                f"{named(name)} and its layers"
                if name in given
                else f"layers {_numbers(each)} of {named(name)}"
            )
            raise FileError("member", "layers by number", got, "0, 1, 2 and so on, each once")
        arrays = [array_of(f"{name}.{layer}", each[layer]) for layer in range(len(each))]
        given[name] = _stacked(name, arrays)
    return given


def _stacked(name: str, layers: Sequence[Numbers]) -> Numbers:
    shapes = [layer.shape for layer in layers]
    for index, shape in enumerate(shapes):
        if shape != shapes[0]:
            got = f"{shaped(shape)} in layer {index + 1} after {shaped(shapes[0])}"
            raise FileError("shape", named(name), got, "layers of one shape")
    if len(shapes[0]) not in (2, 3, 4):
        raise FileError(
            "shape", named(name), f"{shaped(shapes[0])} a layer", "(heads, queries, keys) a layer"
        )
    if len(shapes[0]) == 4:
        _one(name, shapes[0][0], shapes[0], "each layer's [0:1]")
    if len(shapes[0]) == 2:
        layers = [layer[None] for layer in layers]
    return np.stack(layers)


def array_of(name: str, value: Any) -> Numbers:
    """Numbers as an array; nested lists too. Raises FileError."""
    if isinstance(value, (str, bytes, Mapping)) or value is None:
        got = "nothing" if value is None else "an object" if isinstance(value, Mapping) else "text"
        raise FileError("type", named(name), got, "numbers")
    if isinstance(value, (list, tuple)) and not len(value):
        raise FileError("missing", named(name), "an empty list", f"weights {_AXES}")
    try:
        array = value if isinstance(value, np.ndarray) else np.asarray(value, np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        got = "lists of several lengths, or what is no number"
        raise FileError("shape", named(name), got, "numbers in lists of one length") from error
    if array.dtype.kind not in "biuf":
        raise FileError("type", named(name), f"numbers of type {array.dtype}", "float16, 32 or 64")
    return array


def _ranked(name: str, value: Any) -> Numbers:
    """(L, H, Q, K), by the rules for fewer and for more axes."""
    array = array_of(name, value)
    shape = array.shape
    if not 2 <= len(shape) <= 5 or 0 in shape:
        raise FileError("shape", named(name), shaped(shape), f"{_AXES}, or fewer axes")
    if len(shape) == 5:
        if shape[0] == 1 < shape[1]:  # to guess would show sentences as layers
            got = f"{shaped(shape)}: {shape[1]} sentences in one layer, or as many layers of one sentence"
            raise FileError(
                "batch", named(name), got, f"{name}[:, 0:1] of the former, {name}[0] of the latter"
            )
        _one(name, shape[1], shape, f"{name}[:, 0:1]")
        array = array[:, 0]
    array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    n_layers, n_heads, *axes = array.shape
    if max(axes) > LONGEST:
        raise FileError("huge", named(name), f"{max(axes)} tokens along an axis", f"at most {LONGEST}")
    if n_layers * n_heads > HEADS:
        raise FileError(
            "huge", named(name), f"{n_layers} layers of {n_heads} heads", f"at most {HEADS} heads in all"
        )
    if array.size * 4 > UNPACKED:
        got = f"{array.size * 4:,} bytes of {shaped(array.shape)}"
        raise FileError("huge", named(name), got, f"at most {UNPACKED:,}: fewer layers, or fewer tokens")
    return array


def _one(name: str, batch: int, shape: tuple[int, ...], how: str) -> None:
    if batch != 1:
        raise FileError(
            "batch", named(name), f"a batch of {batch} in {shaped(shape)}", f"one item; choose, as {how}"
        )


# --- tokens -----------------------------------------------------------------------------------------------


def _tokens(name: str, value: Any) -> list[str]:
    if not isinstance(value, (list, tuple)):
        got = "text" if isinstance(value, str) else "numbers" if isinstance(value, np.ndarray) else "no list"
        raise FileError("type", f'tokens "{name}"', got, "a list of texts")
    if value and all(isinstance(each, (list, tuple)) for each in value):
        if len(value) != 1:
            raise FileError(
                "batch", f'tokens "{name}"', f"a batch of {len(value)}", "one item; choose a list"
            )
        return _tokens(name, value[0])
    if len(value) > LONGEST:
        raise FileError("huge", f'tokens "{name}"', len(value), f"at most {LONGEST}")
    for index, each in enumerate(value):
        if not isinstance(each, str):
            got = f"{type(each).__name__} in place {index + 1}"
            raise FileError("type", f'tokens "{name}"', got, "texts alone")
    return list(value)


def _kind(said: Any, weights: Numbers, lists: Mapping[str, list[str]]) -> Kind:
    """Whose attention "weights" are, where a file does not say it in so many words."""
    if said is not None:
        if not isinstance(said, str) or said not in KINDS:
            raise FileError("member", '"kind"', named(said), _listed(KINDS))
        return said
    square = weights.shape[2] == weights.shape[3]
    rows, columns = lists.get("queries"), lists.get("keys")
    if not square or {"source", "target"} <= lists.keys():
        return "cross"
    if rows is not None and columns is not None and rows != columns:
        return "cross"
    return "decoder" if "target" in lists or _looks_back(weights) else "encoder"


def _sides(kind: Kind, lists: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The tokens of source and target, from those of queries and keys."""
    if kind == "cross":
        pairs = {"source": ("source", "keys"), "target": ("target", "queries")}
        for names in pairs.values():
            if all(name in lists for name in names):
                raise FileError("tokens", "tokens", f'both "{names[0]}" and "{names[1]}"', "one of the two")
        found = {side: [lists[name] for name in names if name in lists] for side, names in pairs.items()}
        return {side: each[0] for side, each in found.items() if each}
    one = list(lists.values())
    if any(each != one[0] for each in one):
        got = f"different lists {_listed(lists)}"
        raise FileError(
            "tokens", f"tokens of {kind} attention", got, "one list: queries and keys are the same"
        )
    return {asks(kind): one[0]} if one else {}


def _pieces(
    weights: Mapping[Kind, Numbers], lists: Mapping[str, list[str]]
) -> dict[Side, Sequence[tuple[str, bool]]]:
    """What stands along the axes, and whether a space is before it; places where a file names nothing."""
    lengths: dict[Side, tuple[int, str]] = {}
    for kind, array in weights.items():
        for side, length, axis in (
            (asks(kind), array.shape[2], "queries"),
            (asked(kind), array.shape[3], "keys"),
        ):
            here = f"{length} {axis} of {kind}"
            first, there = lengths.setdefault(side, (length, here))
            if first != length:
                raise FileError("shape", f"the {side}'s length", f"{there}, but {here}", "as many in both")
    found: dict[Side, Sequence[tuple[str, bool]]] = {}
    for side, (length, where) in lengths.items():
        tokens = lists.get(side)
        if tokens is None:
            found[side] = [(str(place + 1), place > 0) for place in range(length)]
        elif len(tokens) != length:
            raise FileError("tokens", f'tokens "{side}"', len(tokens), f"{length}, for {where}")
        else:
            found[side] = shown(tokens)
    for name in lists:
        if name not in found:
            raise FileError("tokens", f'tokens "{name}"', f"no axis for them in {_listed(weights)}", "none")
    return found


# --- numbers ----------------------------------------------------------------------------------------------


def _seen(kind: Kind, weights: Numbers, mask: Any, scores: Any) -> Seen:
    floats = _floats(weights)
    if mask is None:
        finite(f"{kind} weights", weights)
        allowed = _look_ahead(kind, floats)
        allowed &= floats.any(axis=-1, keepdims=True)
    else:
        allowed = _mask(kind, mask, floats.shape)
        empty = ~allowed.any(axis=-1, keepdims=True)
        if empty.any():  # softmax leaves there what it likes: NaN, or the same for every key
            floats = np.where(empty, np.float32(0), floats)
    check(kind, floats, allowed)
    return Seen(floats, allowed, None if scores is None else _scores(kind, scores, floats, allowed))


def check(kind: Kind, weights: Floats, allowed: Flags) -> None:
    """Raise FileError for what is no attention: not finite, below 0, over 1, not summing to 1."""
    finite(f"{kind} weights", weights)
    close = CLOSE if (weights.view(np.uint32) & 0xFFFF).any() else COARSE  # bits that bfloat16 has not
    for sign, code, extreme in (("below 0", "range", weights.min()), ("above 1", "range", weights.max())):
        if not 0 <= extreme <= 1 + close:
            at = weights.argmin() if sign == "below 0" else weights.argmax()
            got = f"{extreme:.4g}, {sign}, {_where(np.unravel_index(at, weights.shape))}"
            raise FileError(code, f"{kind} weights", got, "0 to 1, as softmax gives them")
    shut = ~allowed & (weights != 0)
    if shut.any():
        cell = tuple(axis[0] for axis in np.nonzero(shut))
        raise FileError(
            "mask", f"{kind} weights", f"{weights[cell]:.4g} {_where(cell)}, which the mask forbids", "0"
        )
    sums = weights.sum(axis=-1, dtype=np.float64)
    off = np.where(allowed.any(axis=-1), abs(sums - 1), 0)
    if off.max() > close:
        row = np.unravel_index(off.argmax(), off.shape)
        want = f"1 within {close:g}; is dropout off, and are keys the last axis?"
        raise FileError("sum", f"the sum of a query's {kind} weights", f"{sums[row]:.4f} {_where(row)}", want)


def _floats(array: Numbers) -> Floats:
    with np.errstate(over="ignore"):  # an infinity, which is refused after this
        return np.ascontiguousarray(array, np.float32)


def _where(at: Sequence[Any]) -> str:
    """A place as the screen counts it."""
    return "at " + ", ".join(
        f"{name} {int(each) + 1}" for name, each in zip(("layer", "head", "query", "key"), at, strict=False)
    )


def _looks_back(weights: Numbers) -> bool:
    """Whether no query of a square map of two or more gives any weight to a later key."""
    size = weights.shape[2]
    later = np.triu(np.ones((size, size), bool), 1)
    return size > 1 and weights.shape[3] == size and not (weights != 0).any(axis=(0, 1))[later].any()


def _look_ahead(kind: Kind, weights: Floats) -> Flags:
    """Where a query may look if no mask says so."""
    allowed = np.ones(weights.shape, bool)
    if kind == "decoder" and _looks_back(weights):
        allowed &= np.tril(np.ones(weights.shape[2:], bool))
    return allowed


def _mask(kind: Kind, value: Any, shape: tuple[int, ...]) -> Flags:
    mask = np.atleast_1d(array_of(f"{kind} mask", value))
    if mask.ndim == 5:
        _one("mask", mask.shape[1], mask.shape, "mask[:, 0:1]")
        mask = mask[:, 0]
    if mask.dtype != bool:
        other = (mask != 0) & (mask != 1)
        if other.any():
            got = f"{mask[tuple(axis[0] for axis in np.nonzero(other))]}"
            raise FileError("mask", f"{kind} mask", got, "True or 1 where a query may look, else False or 0")
        mask = mask.astype(bool)
    try:
        return np.broadcast_to(mask, shape).copy()
    except ValueError as error:
        raise FileError(
            "mask", f"{kind} mask", shaped(mask.shape), f"{shaped(shape)}, or fewer axes"
        ) from error


def _scores(kind: Kind, value: Any, weights: Floats, allowed: Flags) -> Floats:
    scores = _floats(_ranked(f"{kind}.scores", value))
    if scores.shape != weights.shape:
        raise FileError("shape", f"{kind} scores", shaped(scores.shape), shaped(weights.shape))
    finite(f"{kind} scores, before the mask,", scores)
    high = np.max(scores, axis=-1, keepdims=True, where=allowed, initial=-np.inf)
    powers = np.where(allowed, np.exp(np.minimum(scores - np.where(np.isfinite(high), high, 0), 0)), 0)
    sums = powers.sum(axis=-1, keepdims=True)
    off = abs(powers / np.where(sums == 0, 1, sums) - weights)
    if off.max() > LOOSE:
        at = np.unravel_index(off.argmax(), off.shape)
        got = f"a softmax that is {off[at]:.4f} off the weight {_where(at)}"
        raise FileError(
            "scores", f"{kind} scores", got, "scores, before the mask, of which these are the softmax"
        )
    return scores


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(named(name) for name in list(names)[:20])


def _numbers(layers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(layers)[:10]))
