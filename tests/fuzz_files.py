"""Files that went wrong: `python -m tests.fuzz_files --count 10000` reads as many altered ones.

Nothing but `FileError` may come of it, in half a second and 200 MiB; what is accepted must be attention. The
tests read a few hundred. No torch here: the traces are drawn, not computed.
"""

import argparse
import io
import json
import random
import resource
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import safetensors.numpy

from model import files
from model.trace import (
    KINDS,
    Added,
    Candidate,
    Cell,
    Change,
    Embedding,
    Fed,
    Head,
    Kind,
    Seen,
    Stages,
    Switch,
    Trace,
    asked,
    asks,
)

SECONDS, MEMORY = 0.5, 200 * 2**20  # of processor time a file; bytes that the process grows by in all
ODD_TEXTS = ("", "\0", "\ud800", "a" * 5000, "\u202e", "</script>", "=1+1", "../../x", "NaN", "$x$", "[[[[")
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 10**400, 0.5, -0.1, 1e308, [], {}, [[]], [None], *ODD_TEXTS),
)


def softmaxed(
    rng: np.random.Generator, shape: Sequence[int], allowed: np.ndarray | None = None
) -> np.ndarray:
    """Weights over the last axis, 0 where nothing is allowed."""
    allowed = np.ones(shape, bool) if allowed is None else allowed
    powers = np.where(allowed, np.exp(rng.normal(size=shape)), 0)
    sums = powers.sum(axis=-1, keepdims=True)
    return (powers / np.where(sums == 0, 1, sums)).astype(np.float32)


def drawn(
    rng: np.random.Generator,
    kinds: Sequence[Kind] = KINDS,
    source: Sequence[str] = ("a", "b", "b", "c", "</s>"),
    target: Sequence[str] = ("<s>", "x", "y", "z", "y", "w", "v"),
    layers: int = 3,
    heads: int = 2,
    everything: bool = True,
) -> Trace:
    """A trace of random numbers of the right shapes, that holds something in every field, or the least."""
    sides = {side for kind in kinds for side in (asks(kind), asked(kind))}
    pieces = {"source": tuple(source), "target": tuple(target)}
    size = {side: len(pieces[side]) for side in pieces}

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    attention: dict[Kind, Seen] = {}
    for kind in kinds:
        queries, keys = size[asks(kind)], size[asked(kind)]
        allowed = rng.random((layers, heads, queries, keys)) < 0.8
        allowed[-1, -1, -1] = False  # a query that may look nowhere
        weights = softmaxed(rng, allowed.shape, allowed)
        attention[kind] = Seen(weights, allowed, floats(*allowed.shape) if everything else None)
        if everything and kind != "cross":
            attention[kind] = Stages(
                weights=weights,
                allowed=allowed,
                scores=floats(*allowed.shape),
                q=floats(layers, heads, queries, 11),
                k=floats(layers, heads, keys, 11),
                v=floats(layers, heads, keys, 13),
                output=floats(layers, heads, queries, 13),
            )
    here = {side: pieces[side] for side in ("source", "target") if side in sides}
    if not everything:
        return Trace(text="a text", change=Change(), attention=attention, **here)
    predicted = size["target"] if "target" in sides else size["source"]
    return Trace(
        text="  a text \N{GREEK SMALL LETTER ALPHA}",
        change=Change(
            source_padding=Switch("all"),
            look_ahead=Switch((0, layers - 1)),
            blocked=frozenset({Cell(kinds[0], 1, 2), Cell(kinds[0], 0, 1, 0, heads - 1)}),
            removed=frozenset({Head(kinds[0], layers - 1, 0)}),
            positions="shuffled",
            seed=int(rng.integers(1000)),
            scale=False,
            source_pads=1,
        ),
        attention=attention,
        **here,
        **{f"{side}_ids": tuple(range(3, 3 + size[side])) for side in here},
        **{f"{side}_spaces": tuple(bool(rng.integers(2)) for _ in here[side]) for side in here},
        comes_out=tuple(f"o{place}" for place in range(predicted)),
        languages={side: "fr" for side in here},
        unknown=("b",),
        translation="x y",
        forced=bool(rng.integers(2)),
        cut=bool(rng.integers(2)),
        given=1 if "target" in sides else 0,
        gaps=(0, 2) if "source" in sides else (),
        hidden=("b", "") if "source" in sides else (),
        sublayers={
            kind: Added(floats(layers, size[asks(kind)], 17), floats(layers, size[asks(kind)], 17))
            for kind in kinds
        },
        feeds={side: Fed(*(floats(layers, size[side], width) for width in (17, 17, 23))) for side in here},
        embeddings={side: Embedding(*(floats(size[side], 17) for _ in range(3))) for side in here},
        states={side: floats(size[side], 19) for side in here},
        log_probs=floats(predicted, 29),
        piece_log_probs=floats(predicted),
        candidates=tuple(
            tuple(Candidate(f"c{place}", float(rng.normal())) for place in range(3)) for _ in range(predicted)
        ),
    )


def as_npz(parts: dict[str, Any], compressed: bool = False) -> bytes:
    """What `numpy.savez` writes of these."""
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **parts)
    return file.getvalue()


def seeds(rng: np.random.Generator) -> list[tuple[str, bytes]]:
    """Good files of every sort."""
    weights = softmaxed(rng, (3, 2, 7, 7), np.broadcast_to(np.tril(np.ones((7, 7), bool)), (3, 2, 7, 7)))
    cross = softmaxed(rng, (3, 2, 7, 5))
    texts = ["Ġa", "b", "Ġc", "d", "ü", "Ġ", "g"]
    simple = {"weights": weights, "tokens": np.array(texts), "mask": np.tril(np.ones((7, 7), bool))}
    whole = drawn(rng)
    header = {"source": json.dumps(texts[:5]), "target": json.dumps(texts)}
    return [
        ("simple.npz", as_npz(simple)),
        (
            "small.npz",
            as_npz({f"arr_{layer}": each for layer, each in enumerate(weights.astype("f2"))}, True),
        ),
        ("kinds.npz", as_npz({"decoder": weights.astype("f8"), "cross": np.asfortranarray(cross)}, True)),
        ("cross.safetensors", safetensors.numpy.save({"cross": cross, "decoder": weights}, header)),
        ("cross.json", json.dumps({"weights": cross.tolist(), "target": texts, "keys": texts[:5]}).encode()),
        ("one.json", json.dumps({"weights": weights[0, 0].tolist(), "mask": [1] * 7}).encode()),
        ("whole.npz", files.write(whole, ".npz")),
        ("whole.safetensors", files.write(whole, ".safetensors")),
        ("least.npz", files.write(drawn(rng, ("encoder",), everything=False), ".npz")),
    ]


# --- ways of going wrong ----------------------------------------------------------------------------------


def flip(lot: random.Random, content: bytearray) -> bytes:
    for _ in range(lot.choice((1, 1, 2, 8, 64))):
        content[_place(lot, content)] ^= 1 << lot.randrange(8)
    return bytes(content)


def cut(lot: random.Random, content: bytearray) -> bytes:
    return bytes(content[: lot.randrange(len(content))])


def splice(lot: random.Random, content: bytearray) -> bytes:
    """Leave out, repeat, move or overwrite a stretch."""
    one, other = sorted((lot.randrange(len(content)), lot.randrange(len(content))))
    other = min(other, one + lot.choice((1, 8, 64, 4096)))
    stretch = content[one:other]
    at = lot.randrange(len(content))
    return bytes(
        lot.choice(
            (
                content[:one] + content[other:],
                content[:other] + content[one:],
                content[:at] + stretch + content[at:],
                content[:one] + bytes(other - one) + content[other:],
                content[:one] + lot.randbytes(other - one) + content[other:],
                content + stretch,
                stretch + content,
            )
        )
    )


def field_(lot: random.Random, content: bytearray) -> bytes:
    """A number of 2, 4 or 8 bytes set to what breaks programs, where zip and headers keep theirs."""
    marks = [at for mark in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06") for at in _all(content, mark)]
    start = lot.choice(marks) if marks else 0
    for _ in range(lot.choice((1, 1, 2, 3))):
        size = lot.choice((2, 4, 8))
        at = min(start + lot.randrange(64), len(content) - size)
        value = lot.choice((0, 1, 7, 255, 2**15, 2**16 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1))
        content[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(content)


def digits(lot: random.Random, content: bytearray) -> bytes:
    """A digit or a letter of a header turned into another."""
    places = [at for at in range(len(content)) if chr(content[at]) in "0123456789<f|bUOFI8[](){}'\":,"]
    if not marked(content):
        places = places or [0]
    for _ in range(lot.choice((1, 2, 4))):
        content[lot.choice(places)] = ord(lot.choice("0123456789<>|fbiuUOSV[](){}'\":, e-"))
    return bytes(content)


def marked(content: bytes | bytearray) -> bool:
    return content.startswith(b"PK")


def structure(lot: random.Random, content: bytearray) -> bytes:
    """A whole file with something odd in it: right checksums and lengths, wrong content."""
    raw = bytes(content)
    if marked(raw):
        return _odd_npz(lot, raw)
    if raw[8:9] == b"{" and int.from_bytes(raw[:8], "little") < 2**30:
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        said = header.get("__metadata__", {})
        if "headlight" in said and lot.random() < 0.7:
            said["headlight"] = _odd_json(lot, said["headlight"])
            written = json.dumps(header)
        else:
            written = _odd_json(lot, json.dumps(header))
        encoded = written.encode("utf-8", "surrogatepass")
        return len(encoded).to_bytes(8, "little") + encoded + raw[8 + size :]
    return _odd_json(lot, raw.decode()).encode("utf-8", "surrogatepass")


def _odd_npz(lot: random.Random, raw: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = lot.choice(list(members))
    if "headlight.npy" in members and lot.random() < 0.7:
        name = "headlight.npy"
        text = bytes(np.load(io.BytesIO(members[name]))).decode()
        odd = np.frombuffer(_odd_json(lot, text).encode("utf-8", "surrogatepass"), np.uint8)
        members[name] = _npy(odd)
    else:
        way = lot.randrange(7)
        if way == 0:
            members[name] = digits(lot, bytearray(members[name][:128])) + members[name][128:]
        elif way == 1:
            array = np.load(io.BytesIO(members[name]))
            kinds = ("f2", "f4", ">f8", "i8", "b1", "U1", "c8")
            with np.errstate(all="ignore"):
                try:
                    members[name] = _npy(np.asfortranarray(array).astype(lot.choice(kinds)))
                except ValueError:
                    members[name] = b""
        elif way == 2:
            members[
                lot.choice(("../x.npy", "/etc/x.npy", "a/b.npy", "x.pkl", "data.pkl", "w.npy", ".npy"))
            ] = b"x"
        elif way == 3:
            members[f"{lot.choice(('encoder', 'mask', 'kind', 'scores', 'source'))}.npy"] = members.pop(name)
        elif way == 4:
            del members[name]
        elif way == 5:
            members[name] = _npy(_reshaped(lot, np.load(io.BytesIO(members[name]))))
        else:
            array = np.load(io.BytesIO(members[name])).copy()
            if array.dtype.kind == "f" and array.size:
                odd = lot.choice((np.nan, np.inf, -np.inf, -1e-9, 1.5, 1e30))
                with np.errstate(all="ignore"):
                    array.flat[lot.randrange(array.size)] = array.dtype.type(odd)
            members[name] = _npy(array)
    file = io.BytesIO()
    method = lot.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", method) as archive:
        for each, data in members.items():
            archive.writestr(zipfile.ZipInfo(each), data, method)
    return file.getvalue()


def _reshaped(lot: random.Random, array: np.ndarray) -> np.ndarray:
    """The same or fewer numbers along other axes."""
    fewer = array[..., :-1] if array.ndim else array
    return lot.choice(
        (
            array[None],
            array.T,
            array.ravel(),
            array[:0],
            np.array(array.ravel()[0] if array.size else 1),
            fewer,
        )
    )


def _npy(array: np.ndarray) -> bytes:
    member = io.BytesIO()
    np.save(member, array)
    return member.getvalue()


def _odd_json(lot: random.Random, text: str) -> str:
    """One value somewhere in it replaced, left out, doubled, wrapped or renamed."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    holders: list[Any] = []
    _holders(value, holders)
    for _ in range(lot.choice((1, 1, 2, 5))):
        holder = lot.choice(holders)
        if not holder:
            continue
        key = lot.choice(list(holder)) if isinstance(holder, dict) else lot.randrange(len(holder))
        way = lot.randrange(6)
        if way == 0:
            del holder[key]
        elif way == 1 and isinstance(holder, dict):
            holder[lot.choice((*holder, "x", "__class__", *ODD_TEXTS))] = holder[key]
        elif way == 2:
            holder[key] = [holder[key]]
        else:
            holder[key] = lot.choice(ODD_VALUES)
    written = json.dumps(value, ensure_ascii=lot.random() < 0.5)
    way = lot.randrange(12)
    if way == 0:
        return written.replace("0", lot.choice(("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000)), 1)
    if way == 1:
        return "[" * lot.choice((20, 2000, 200_000)) + written
    if way == 2 and written.startswith("{"):
        return written[:-1] + "," + written[1:]  # every name twice
    return written


def _holders(value: Any, found: list[Any]) -> None:
    if isinstance(value, (dict, list)):
        found.append(value)
        for each in value.values() if isinstance(value, dict) else value:
            _holders(each, found)


def _all(content: bytearray, mark: bytes) -> Iterator[int]:
    at = content.find(mark)
    while at >= 0:
        yield at
        at = content.find(mark, at + 1)


def _place(lot: random.Random, content: bytearray) -> int:
    """Half of them where headers are: in the first or last few hundred bytes."""
    near = lot.choice((0, max(0, len(content) - 400)))
    few = lot.random() < 0.5
    return near + lot.randrange(min(400, len(content) - near)) if few else lot.randrange(len(content))


WAYS: tuple[Callable[[random.Random, bytearray], bytes], ...] = (
    *(flip, cut, splice, field_, digits, *5 * (structure,)),
)


# --- reading them -----------------------------------------------------------------------------------------


@dataclass
class Report:
    """What became of the files."""

    count: int = 0
    accepted: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0  # seconds of processor time
    grown: int = 0  # bytes

    def __str__(self) -> str:
        codes = ", ".join(f"{code} {count}" for code, count in self.codes.most_common())
        return (
            f"{self.count} altered files: {self.accepted} still attention, "
            f"{self.count - self.accepted} refused ({codes}); "
            f"slowest {self.slowest:.3f} s, memory grew by {self.grown / 2**20:.0f} MiB"
        )


def fuzz(count: int, seed: int = 0, tick: Callable[[int], None] = lambda done: None) -> Report:
    """Read so many altered files. Any error but `FileError` is let through, and it is said of which file."""
    lot = random.Random(seed)
    good = seeds(np.random.default_rng(seed))
    report = Report()
    before = _memory()
    for done in range(count):
        name, content = good[done % len(good)]
        way = lot.choice(WAYS)
        content = way(lot, bytearray(content))
        if lot.random() < 0.01:
            name = lot.choice(("x.npz", "x.safetensors", "x.json", "x.pt", "x", "../x.npz\0"))
        start = time.process_time()
        try:
            trace = files.read(name, content)
        except files.FileError as error:
            report.codes[error.code] += 1
            said = str(error)
            assert said.isprintable(), said
            assert len(said) < 800, said
        except BaseException:
            print(f"file {done} of seed {seed}, {name}, {way.__name__}", file=sys.stderr)
            raise
        else:
            report.accepted += 1
            judge(trace)
        finally:
            report.slowest = max(report.slowest, time.process_time() - start)
        report.count += 1
        tick(done)
    report.grown = _memory() - before
    return report


def judge(trace: Trace) -> None:
    """What must be true of whatever is shown."""
    for kind in trace.kinds:
        weights, allowed = trace.weights(kind), trace.allowed(kind)
        assert weights.shape == allowed.shape
        assert weights.shape[2:] == tuple(map(len, trace.axes(kind)))
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert not weights[~allowed].any()
        sums = weights.sum(axis=-1, dtype=np.float64)
        assert (abs(sums - 1)[~trace.empty(kind)] <= 0.01).all()
        assert not sums[trace.empty(kind)].any()
    for text in (trace.text, trace.translation, *trace.source, *trace.target, *trace.comes_out):
        assert "\0" not in text
        text.encode()


def _memory() -> int:
    """The most that this process ever held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked_for = parser.parse_args(arguments)
    report = fuzz(
        asked_for.count,
        asked_for.seed,
        lambda done: None if done % 1000 else print(f"{done} of {asked_for.count}", file=sys.stderr),
    )
    print(report)
    if report.slowest > SECONDS or report.grown > MEMORY:
        sys.exit(f"want {SECONDS} s and {MEMORY / 2**20:.0f} MiB at most")


if __name__ == "__main__":
    main()
