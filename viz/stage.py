"""What the stage is sent: the maps of a trace, or of a sentence before and after a change, as one `bytes`.

    4 bytes  length of the header, little-endian
    header   JSON: the sentences' pieces, the sizes, and of each part its name, type, shape and place
    parts    arrays, each at a multiple of 4; deflated together where the header says so

A part is named "<set>.<kind>.<layer>" (weights), "<set>.<kind>.masks" (every mask that occurs, once),
"<set>.<kind>.mask" (which one each head has) or "<set>.<kind>.stats". Shapes: L layers, H heads, Q queries,
K keys, M masks. `assets/component/stage/data.js` reads this.
"""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from model.trace import Floats, Side, Trace, asked, asks
from viz.reading import language, outgoing, reason_codes

LONGEST = 512  # pieces along an axis
EXACT = 2**18  # numbers: as many are sent as float32, more of them as 16 bits
WHOLE = 2**23  # bytes of weights: more of them are sent layer by layer, as they are looked at
DENSE = 2**15  # bytes: fewer are not worth the browser's time to inflate

Codes = NDArray[np.uint8]
Bits = Literal[8, 16, 32]
Place = tuple[str, int]  # a kind and a layer


@dataclass(frozen=True, eq=False)
class Maps:
    """The maps of one kind, and what stands along their axes."""

    weights: Floats  # (L, H, Q, K)
    codes: Codes  # (L, H, Q, K)  why a cell is blocked, an index into `reading.REASONS`; 0 where it is not
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    comes_out: tuple[str, ...] | None = None
    sides: tuple[Side, Side] = ("source", "source")  # whose pieces lie along queries and keys
    names: tuple[str, str] = ("", "")  # what these are called


@dataclass(frozen=True)
class Payload:
    """The bytes, and a name for the pictures in them: equal names, equal pictures."""

    name: str
    bytes: bytes


def maps(trace: Trace) -> dict[str, Maps]:
    """The maps of every kind of a trace."""
    return {
        kind: Maps(
            trace.weights(kind),
            reason_codes(kind, trace.axes(kind)[1], trace.allowed(kind)),
            *trace.axes(kind),
            outgoing(trace, kind),
            (asks(kind), asked(kind)),
            (language(trace.languages, asks(kind)), language(trace.languages, asked(kind))),
        )
        for kind in trace.kinds
    }


def pack(sets: Sequence[Mapping[str, Maps]], look: Place | None = None, bits: Bits | None = None) -> Payload:
    """One set of maps, or the same before and after a change.

    Long inputs are sent layer by layer: then only the weights of the kind and layer `look` are in the
    payload. `bits` of a weight: 32 is the number itself, 16 and 8 are steps of 1/65535 and 1/255. Raises
    ValueError where an axis has more than `LONGEST` pieces or the sets do not match.
    """
    first = sets[0]
    for others in sets:
        for kind, each in others.items():
            if max(each.weights.shape[2:]) > LONGEST:
                raise ValueError(f"{max(each.weights.shape[2:])} pieces; the stage draws at most {LONGEST}")
            if each.weights.shape != first[kind].weights.shape:
                raise ValueError(f"{kind}: {each.weights.shape} beside {first[kind].weights.shape}")
    numbers = sum(each.weights.size for others in sets for each in others.values())
    bits = bits or (32 if numbers <= EXACT else 16)
    whole = numbers * bits // 8 <= WHOLE
    name = blake2b(digest_size=9)
    parts: list[tuple[str, NDArray[Any]]] = []
    for index, others in enumerate(sets):
        for kind, each in others.items():
            name.update(np.ascontiguousarray(each.weights).data)
            name.update(np.ascontiguousarray(each.codes).data)
            place = f"{index}.{kind}"
            for layer, weights in enumerate(each.weights):
                if whole or look in (None, (kind, layer)):
                    parts.append((f"{place}.{layer}", _fewer(weights, bits)))
            masks, which = _masks(each.codes)
            parts += [(f"{place}.masks", masks), (f"{place}.mask", which), (f"{place}.stats", _stats(each))]
    kinds = {
        kind: {
            "layers": each.weights.shape[0],
            "heads": each.weights.shape[1],
            "queries": each.queries,
            "keys": each.keys,
            "out": each.comes_out,
            "sides": each.sides,
            "names": each.names,
        }
        for kind, each in first.items()
    }
    name.update(json.dumps(kinds).encode())
    header = {"name": name.hexdigest(), "sets": len(sets), "kinds": kinds}
    return Payload(name.hexdigest(), _bytes(header, parts))


def _fewer(weights: Floats, bits: Bits) -> NDArray[Any]:
    if bits == 32:
        return np.asarray(weights, np.float32)
    steps = 2**bits - 1
    return np.rint(np.clip(weights, 0, 1) * steps).astype(np.uint16 if bits == 16 else np.uint8)


def _masks(codes: Codes) -> tuple[Codes, NDArray[np.uint16]]:
    """The different masks (M, Q, K), and which of them each head has, and the mean of a layer: (L, H + 1).

    In the mean a cell is open that any head may look at.
    """
    shut = np.where((codes == 0).any(axis=1), 0, codes.max(axis=1))[:, None]  # (L, 1, Q, K)
    found: dict[bytes, int] = {}
    masks: list[Codes] = []
    which = np.zeros((codes.shape[0], codes.shape[1] + 1), np.uint16)
    for layer, head in np.ndindex(*which.shape):
        mask = shut[layer, 0] if head == codes.shape[1] else codes[layer, head]
        key = mask.tobytes()
        if key not in found:
            found[key] = len(masks)
            masks.append(mask)
        which[layer, head] = found[key]
    return np.stack(masks).astype(np.uint8), which


def _stats(each: Maps) -> Floats:
    """(L, H + 1, 3): how far row sums are from 1 at most, least and largest weight; the mean of heads last.

    Of rows and cells that are allowed, from the numbers before any bits were dropped.
    """
    weights = np.concatenate([each.weights, each.weights.mean(axis=1, keepdims=True)], axis=1)
    allowed = each.codes == 0
    allowed = np.concatenate([allowed, allowed.any(axis=1, keepdims=True)], axis=1)
    off = abs(weights.sum(axis=-1) - 1) * allowed.any(axis=-1)
    least = np.where(allowed, weights, np.inf).min(axis=(-2, -1))
    most = np.where(allowed, weights, 0).max(axis=(-2, -1))
    return np.stack([off.max(axis=-1), np.where(np.isinf(least), 0, least), most], -1).astype(np.float32)


def _bytes(header: dict[str, Any], parts: list[tuple[str, NDArray[Any]]]) -> bytes:
    listed, at = [], 0
    for part, array in parts:
        listed.append([part, array.dtype.str[1:], array.shape, at])
        at += -(-array.nbytes // 4) * 4
    body = b"".join(_aligned(parts))
    # The bits of a float32 are noise: only numbers of fewer bits deflate, and the fast way does it as well.
    fewer = any(part[-1].isdigit() and array.dtype != np.float32 for part, array in parts)
    if fewer and len(body) >= DENSE and len(small := zlib.compress(body, 1)) < 0.9 * len(body):
        body = small
        header["deflated"] = True
    head = json.dumps(header | {"parts": listed}, separators=(",", ":")).encode()
    return len(head).to_bytes(4, "little") + head + body


def _aligned(parts: list[tuple[str, NDArray[Any]]]) -> Iterator[bytes]:
    """Little-endian; of 16 bits all low bytes and then all high ones, which deflates better."""
    for _part, array in parts:
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        if array.dtype == np.uint16:
            raw = raw[::2] + raw[1::2]
        yield raw + bytes(-len(raw) % 4)
