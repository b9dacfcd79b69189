"""Attention out of files: what is read, what is refused and how fast, and whole traces there and back."""

import io
import json
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT, TEXT, assert_same
from fuzz_files import MEMORY, SECONDS, as_npz, drawn, fuzz, softmaxed
from model import files
from model.build import build
from model.config import Config, Material, Shape
from model.continuer import Continuer
from model.files import FileError, Recorded
from model.files.gate import readable
from model.filler import Filler
from model.recurrent import Recurrent
from model.recurrent_translator import RecurrentTranslator
from model.tokenizer import Tokenizer
from model.trace import KINDS, NEUTRAL, AbsentError, Change, Kind, Switch, Trace
from model.translator import Translator

FORMATS = (".npz", ".safetensors")
LAYERS, HEADS, QUERIES, KEYS = 3, 2, 7, 5  # no two axes are as long
SOURCE = ["the", "cat", "the", "dog", "</s>"]
TARGET = ["<s>", "le", "chat", "le", "chien", ".", "!"]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def cross(rng: np.random.Generator) -> np.ndarray:
    return softmaxed(rng, (LAYERS, HEADS, QUERIES, KEYS))


@pytest.fixture
def square(rng: np.random.Generator) -> np.ndarray:
    return softmaxed(rng, (LAYERS, HEADS, KEYS, KEYS))


@pytest.fixture
def causal(rng: np.random.Generator) -> np.ndarray:
    shape = (LAYERS, HEADS, KEYS, KEYS)
    return softmaxed(rng, shape, np.broadcast_to(np.tril(np.ones((KEYS, KEYS), bool)), shape))


def read(**parts: Any) -> Trace:
    """Of a .npz; lists are texts."""
    named = {name.replace("__", "."): value for name, value in parts.items()}
    return files.read("mine.npz", as_npz({name: np.array(value) for name, value in named.items()}))


def refused(name: str, content: bytes) -> FileError:
    """How a file is refused, which must take little time and memory."""
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(FileError) as caught:
            files.read(name, content)
        taken, most = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < SECONDS
    assert most < 16 * 2**20
    error = caught.value
    assert str(error) == f"{error.what}: got {error.got}, want {error.want}"
    assert "\n" not in str(error)
    return error


def code(**parts: Any) -> str:
    return refused("mine.npz", as_npz({name: np.asarray(value) for name, value in parts.items()})).code


# --- what is read -----------------------------------------------------------------------------------------


def test_the_numbers_of_a_file_are_the_numbers_of_the_trace(cross: np.ndarray) -> None:
    header = {"source": json.dumps(SOURCE), "target": json.dumps(TARGET)}
    of = {
        "a.npz": as_npz({"weights": cross, "source": np.array(SOURCE), "target": np.array(TARGET)}),
        "a.NPZ": as_npz({"weights": np.asfortranarray(cross), "keys": np.array(SOURCE)}, compressed=True),
        "a.safetensors": safetensors.numpy.save({"weights": cross}, header),
    }
    for name, content in of.items():
        trace = files.read(name, content)
        assert trace.kinds == ("cross",)
        np.testing.assert_array_equal(trace.weights("cross"), cross, strict=True)
        assert trace.allowed("cross").all()
        assert trace.source == tuple(SOURCE)
    assert files.read("a.npz", of["a.npz"]).axes("cross") == (tuple(TARGET), tuple(SOURCE))
    assert files.read("a.NPZ", of["a.NPZ"]).target == ("1", "2", "3", "4", "5", "6", "7")
    text = json.dumps({"weights": cross.tolist(), "source": SOURCE, "target": TARGET})
    said = files.read("a.json", text.encode())
    np.testing.assert_allclose(said.weights("cross"), cross, rtol=0, atol=1e-7)
    assert said.axes("cross") == (tuple(TARGET), tuple(SOURCE))


def test_halves_doubles_and_bfloat16_become_float32(square: np.ndarray) -> None:
    for kind in ("<f2", ">f4", ">f8"):
        trace = read(weights=square.astype(kind))
        np.testing.assert_array_equal(trace.weights("encoder"), square.astype(kind).astype(np.float32))
        assert trace.weights("encoder").dtype == np.dtype("=f4")
    tensor = torch.from_numpy(square).to(torch.bfloat16)
    trace = files.read("a.safetensors", safetensors.torch.save({"weights": tensor}))
    np.testing.assert_array_equal(trace.weights("encoder"), tensor.float().numpy())
    assert abs(trace.weights("encoder").sum(axis=-1) - 1).max() > 1e-3  # which would be refused of float32


def test_fewer_axes_are_one_layer_and_one_head_and_a_batch_of_one_is_dropped(cross: np.ndarray) -> None:
    np.testing.assert_array_equal(read(weights=cross[1]).weights("cross"), cross[1:2])
    np.testing.assert_array_equal(read(weights=cross[1, 1]).weights("cross"), cross[1:2, 1:2])
    np.testing.assert_array_equal(read(weights=cross[:, None]).weights("cross"), cross)
    np.testing.assert_array_equal(read(weights=cross[:1]).weights("cross"), cross[:1])
    by_layer = {f"weights.{layer}": cross[layer][None] for layer in range(LAYERS)}
    np.testing.assert_array_equal(files.read("a.npz", as_npz(by_layer)).weights("cross"), cross)
    unnamed = io.BytesIO()
    np.savez(unnamed, *cross)
    np.testing.assert_array_equal(files.read("a.npz", unnamed.getvalue()).weights("cross"), cross)
    whole = io.BytesIO()
    np.savez(whole, cross)
    np.testing.assert_array_equal(files.read("a.npz", whole.getvalue()).weights("cross"), cross)


def test_the_kind_is_said_or_seen(cross: np.ndarray, square: np.ndarray, causal: np.ndarray) -> None:
    assert read(weights=square).kinds == ("encoder",)
    assert read(weights=square, tokens=SOURCE).source == tuple(SOURCE)
    assert read(weights=square, tokens=SOURCE).target == ()
    assert read(weights=causal).kinds == ("decoder",)
    assert read(weights=causal, tokens=SOURCE).target == tuple(SOURCE)
    assert read(weights=causal, kind="encoder").kinds == ("encoder",)
    assert read(weights=square, target=SOURCE).kinds == ("decoder",)
    assert read(weights=cross).kinds == ("cross",)
    assert read(weights=square, source=SOURCE, target=TARGET[:5]).kinds == ("cross",)
    assert read(weights=square, queries=SOURCE, keys=SOURCE).kinds == ("encoder",)
    assert read(weights=square, queries=SOURCE, keys=TARGET[:5]).axes("cross")[0] == tuple(SOURCE)
    assert read(weights=np.ones((1, 1))).kinds == ("encoder",)
    assert code(weights=square, kind="encoder", queries=SOURCE, keys=TARGET[:5]) == "tokens"
    assert code(weights=cross, source=SOURCE, keys=SOURCE) == "tokens"
    assert code(encoder=square, queries=SOURCE) == "member"
    assert code(encoder=square, target=SOURCE) == "tokens"


def test_several_kinds_stand_in_one_file(
    cross: np.ndarray, square: np.ndarray, rng: np.random.Generator
) -> None:
    target = softmaxed(rng, (LAYERS, HEADS, QUERIES, QUERIES))
    trace = read(cross_attentions=cross, encoder_attentions=square, decoder_attentions=target, source=SOURCE)
    assert trace.kinds == KINDS
    for kind, weights in zip(KINDS, (square, target, cross), strict=True):
        np.testing.assert_array_equal(trace.weights(kind), weights)
        queries, keys = trace.axes(kind)
        assert (len(queries), len(keys)) == weights.shape[2:]
    assert trace.source == tuple(SOURCE)


def test_a_mask_says_where_a_query_may_look(square: np.ndarray, causal: np.ndarray) -> None:
    triangle = np.tril(np.ones((KEYS, KEYS), bool))
    for mask in (triangle, triangle.astype(int), triangle[None, None], triangle[None, None, None]):
        np.testing.assert_array_equal(
            read(weights=causal, mask=mask).allowed("decoder"), np.broadcast_to(triangle, causal.shape)
        )
    padded = square.copy()
    padded[..., 3:] = 0
    padded /= padded.sum(axis=-1, keepdims=True)
    allowed = read(weights=padded, mask=[1, 1, 1, 0, 0]).allowed("encoder")
    np.testing.assert_array_equal(allowed, np.broadcast_to([True] * 3 + [False] * 2, square.shape))
    assert read(encoder=padded, encoder__allowed=[1, 1, 1, 0, 0]).allowed("encoder")[..., 3:].sum() == 0
    assert code(**{"weights": square, "mask": triangle, "encoder.mask": triangle}) == "member"
    assert read(weights=padded).allowed("encoder").all()  # zeros alone say nothing of an encoder
    assert not read(weights=causal).allowed("decoder")[0, 0, 0, 1]
    assert code(weights=square, mask=triangle) == "mask"
    assert code(weights=square, mask=np.where(triangle, 0, -1e9)) == "mask"
    assert code(weights=square, mask=np.ones((4, 4))) == "mask"
    assert code(weights=square, mask=0.5) == "mask"
    assert code(weights=square, mask=np.inf) == "mask"


@pytest.mark.parametrize("odd", [0.0, 0.25, np.nan])
def test_a_query_that_may_look_nowhere_is_empty_whatever_stands_in_its_row(
    square: np.ndarray, odd: float
) -> None:
    mask = np.ones((KEYS, KEYS), bool)
    mask[2] = False
    weights = square.copy()
    weights[:, :, 2] = odd
    trace = read(weights=weights, mask=mask)
    assert trace.empty("encoder").sum() == LAYERS * HEADS
    assert trace.empty("encoder")[:, :, 2].all()
    assert not trace.weights("encoder")[:, :, 2].any()
    if odd == 0:  # a row of zeros is one without a mask too
        np.testing.assert_array_equal(read(weights=weights).empty("encoder"), trace.empty("encoder"))
    else:
        assert code(weights=weights) in ("nan", "sum")


def test_scores_must_give_the_weights(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(LAYERS, HEADS, QUERIES, KEYS)).astype(np.float32)
    weights = torch.softmax(torch.from_numpy(scores), dim=-1).numpy()
    np.testing.assert_array_equal(read(weights=weights, scores=scores).scores("cross"), scores)
    assert code(weights=weights, scores=scores * 2) == "scores"
    assert code(weights=weights, scores=scores[:, :1]) == "shape"
    assert code(weights=weights, scores=np.full_like(scores, -np.inf)) == "nan"
    assert code(weights=weights, scores=scores.swapaxes(0, 1)) == "shape"
    with pytest.raises(AbsentError):
        read(weights=weights).scores("cross")


@pytest.mark.parametrize(
    ("tokens", "pieces", "text"),
    [
        (["The", "cat", "</s>"], ["The", "cat", "</s>"], "The cat </s>"),
        (["The", " cat", "s"], ["The", "cat", "s"], "The cats"),
        (["ĠSe", "Ã¡n", "Ċ", "x", "Ġ"], ["Se", "án", "⏎", "x", "␣"], "Seán⏎x ␣"),
        (["▁The", "▁c", "at", "▁"], ["The", "c", "at", "␣"], "The cat ␣"),
        (["[CLS]", "play", "##ing"], ["[CLS]", "play", "ing"], "[CLS] playing"),
        (["pla", "y</w>", "it</w>"], ["pla", "y", "it"], "play it"),
        (["", "a\nb", "\0", "x\ud800", "\u202ec"], ["␣", "a⏎b", "<U+0000>", "x<U+D800>", "<U+202E>c"], None),
        (["<b>x</b> $y$", "</script>"], ["<b>x</b> $y$", "</script>"], None),
        (["e\u0301", "the", "the"], ["e\u0301", "the", "the"], None),
    ],
)
def test_what_is_shown_is_the_token(tokens: list[str], pieces: list[str], text: str | None) -> None:
    size = len(tokens)
    said = json.dumps({"weights": np.eye(size).tolist(), "source": tokens, "kind": "encoder"})
    trace = files.read("a.json", said.encode())
    assert trace.source == tuple(pieces)
    assert text in (None, trace.text)
    assert trace.text == "".join(
        " " * space + piece for space, piece in zip(trace.source_spaces, trace.source, strict=True)
    ).removeprefix(" ")


@given(st.text(st.characters(exclude_categories=())))
def test_every_text_can_be_shown_after_the_gate_and_is_gated_once(text: str) -> None:
    seen = readable(text)
    seen.encode()
    assert readable(seen) == seen
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in seen if letter not in "\n\t")


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "want", "says"),
    [
        (lambda w: {"weights": w[0, 0, 0]}, "shape", "(5,)"),
        (lambda w: {"weights": w[None, :, None]}, "shape", "(1, 3, 1, 2, 7, 5)"),
        (lambda w: {"weights": w[:, :, :0]}, "shape", "(3, 2, 0, 5)"),
        (lambda w: {"weights": np.stack([w, w], 1)}, "batch", "a batch of 2"),
        (lambda w: {"weights": w[None]}, "batch", "3 sentences in one layer, or as many layers"),
        (lambda w: {"weights": w, "source": [SOURCE, SOURCE]}, "batch", "a batch of 2"),
        (lambda w: {"weights": w * 2}, "range", "above 1, at layer 1"),
        (lambda w: {"weights": -w}, "range", "below 0, at layer"),
        (lambda w: {"weights": w.swapaxes(2, 3)}, "sum", "are keys the last axis?"),
        (lambda w: {"weights": w * 0.7}, "sum", "0.7000 at layer"),
        (lambda w: {"weights": w * 0.998}, "sum", "want 1 within 0.001"),
        (lambda w: {"weights": np.where(w == w.max(), np.nan, w)}, "nan", "nan at ("),
        (lambda w: {"weights": np.where(w == w.max(), np.inf, w)}, "nan", "inf at ("),
        (lambda w: {"weights": w.astype(np.float64) * 1e300}, "nan", "inf at ("),
        (lambda w: {"weights": w, "source": SOURCE[:4]}, "tokens", "got 4, want 5, for 5 keys of cross"),
        (lambda w: {"weights": w, "target": SOURCE}, "tokens", "got 5, want 7, for 7 queries of cross"),
        (lambda w: {"weights": w, "source": np.arange(5)}, "type", "numbers, want a list of texts"),
        (lambda w: {"weights": w, "source": "the cat"}, "type", "text, want a list of texts"),
        (lambda w: {"weights": w, "source": ["x" * 201] * 5}, "huge", "201 characters"),
        (lambda w: {"weights": np.full((1, 513), 1 / 513)}, "huge", "513 tokens"),
        (lambda w: {"weights": np.ones((2049, 1, 1))}, "huge", "1 layers of 2049 heads"),
        (lambda w: {"weights": w, "encoder": w}, "member", '"weights" alone'),
        (lambda w: {"weights": w, "maks": w}, "member", '"maks"'),
        (lambda w: {"weights": w, "attentions": w}, "member", "under two names"),
        (lambda w: {"encoder": w[:, :, :5], "cross": np.full((7, 4), 0.25)}, "shape", "but 4 keys of cross"),
        (lambda w: {"encoder": w}, "shape", "7 queries of encoder, but 5 keys of encoder"),
        (lambda w: {"weights": w, "kind": "encoder"}, "shape", "7 queries of encoder"),
        (lambda w: {"weights": w, "kind": "sideways"}, "member", '"sideways"'),
        (lambda w: {"cross": w, "mask": w > 0}, "member", '"cross.mask"'),
        (lambda w: {"cross": w, "decoder.mask": [[1]]}, "missing", 'no "decoder"'),
        (lambda w: {"source": SOURCE}, "missing", '"weights" or "encoder"'),
        (lambda w: {"weights.0": w[0], "weights.2": w[2]}, "member", "layers 0, 2"),
        (lambda w: {"weights.0": w[0], "weights.1": w[1, :1]}, "shape", "(1, 7, 5) in layer 2"),
        (lambda w: {"weights": w.astype(complex)}, "type", "<c16"),
        (lambda w: {"weights": np.array([None, 1])}, "pickle", "Python objects"),
        (lambda w: {"weights": np.zeros(3, [("a", "f4")])}, "type", "records"),
        (lambda w: {"weights": np.array(["a"])}, "shape", "no number"),
    ],
)
def test_what_is_no_attention_is_refused_with_what_was_got_and_wanted(
    cross: np.ndarray, change: Callable[[np.ndarray], dict[str, Any]], want: str, says: str
) -> None:
    parts = {name: np.asarray(value) for name, value in change(cross).items()}
    error = refused("a.npz", as_npz(parts))
    assert (error.code, says in str(error)) == (want, True), error


def test_a_file_must_be_what_its_name_says(cross: np.ndarray) -> None:
    npz, tensors = as_npz({"weights": cross}), safetensors.numpy.save({"weights": cross})
    single = io.BytesIO()
    np.save(single, cross)
    for name, content, want in (
        ("a.json", npz, "format"),
        ("a.npz", tensors, "format"),
        ("a.safetensors", npz, "format"),
        ("a.npz", b'{"weights": [[1]]}', "format"),
        ("a.npz", single.getvalue(), "format"),
        ("a.npy", single.getvalue(), "format"),
        ("a.txt", b"x", "format"),
        ("npz", npz, "format"),
        ("a.pt", npz, "pickle"),
        ("a.npz", pickle.dumps([1.0]), "pickle"),
        *((f"a{ending}", b"", "format") for ending in (".npz", ".json")),
        ("a.safetensors", b"", "damaged"),
        *((f"a{ending}", b"\xff" * 64, "format") for ending in (".npz", ".json")),
        ("a.safetensors", b"\xff" * 64, "damaged"),
    ):
        assert refused(name, content).code == want, name


class Canary:
    def __reduce__(self) -> tuple[object, ...]:
        return print, ("a pickle ran",)


def test_a_pickle_never_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    objects = io.BytesIO()
    np.savez(objects, weights=np.array([Canary()], dtype=object))
    torch.save({"weights": torch.ones(1)}, tmp_path / "a.pt")
    for content in (objects.getvalue(), pickle.dumps(Canary()), (tmp_path / "a.pt").read_bytes()):
        assert refused("a.npz", content).code in ("pickle", "member")
    assert capsys.readouterr().out == ""


def header(shape: str, kind: str = "<f4") -> bytes:
    """Of a .npy that declares this."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def lying(content: bytes, size: int) -> bytes:
    """The same zip, that says of each member that it has so many bytes."""
    altered = bytearray(content)
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        place = altered.find(mark)
        while place >= 0:
            altered[place + at : place + at + 4] = struct.pack("<I", size)
            place = altered.find(mark, place + 4)
    return bytes(altered)


def tensors(entry: dict[str, Any] | bytes, body: bytes = b"", size: int | None = None) -> bytes:
    text = entry if isinstance(entry, bytes) else json.dumps(entry).encode()
    return (len(text) if size is None else size).to_bytes(8, "little") + text + body


ZEROS = bytes(50 * 2**20)
HALVES = header("(17825792,)", "<f2") + ZEROS[: 2 * 17825792]  # 34 MiB, which become 68
NOISE = header("(131072,)") + np.random.default_rng(0).bytes(4 * 131072)  # as much as keeps it from a bomb
EMPTY = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
FOUR = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
TERABYTES = {"dtype": "F32", "shape": [2**20, 2**20], "data_offsets": [0, 2**42]}


@pytest.mark.parametrize(
    ("name", "content", "codes"),
    [
        ("a.npz", lambda: zipped({"weights.npy": header("(1000000, 1000000)")}), {"huge"}),
        ("a.npz", lambda: zipped({"weights.npy": header("(10000, 1000)")}), {"damaged"}),
        ("a.npz", lambda: zipped({"weights.npy": header("(0, 9000000000000000000)")}), {"huge"}),
        ("a.npz", lambda: zipped({"weights.npy": header("(" + "9" * 19 + ",)" * 3)}), {"damaged"}),
        ("a.npz", lambda: zipped({"weights.npy": header("(" * 2000)}), {"damaged"}),
        ("a.npz", lambda: zipped({"weights.npy": header("(2, __import__('os').getpid())")}), {"damaged"}),
        ("a.npz", lambda: zipped({"weights.npy": header("(3000,)", "<U1") + bytes(12000)}), {"huge"}),
        ("a.npz", lambda: zipped({"weights.npy": ZEROS}), {"bomb"}),
        ("a.npz", lambda: zipped({f"weights.{layer}.npy": ZEROS[: 2**20] for layer in range(60)}), {"bomb"}),
        (
            "a.npz",
            lambda: lying(zipped({"a.npy": header("(2000,)") + ZEROS}), len(header("(2000,)")) + 8000),
            {"damaged"},
        ),
        ("a.npz", lambda: zipped({"a.npy": header("(9,)") + bytes(40)}), {"damaged"}),
        ("a.npz", lambda: zipped({"a.npy": HALVES, "b.npy": NOISE}), {"huge"}),
        ("a.npz", lambda: lying(zipped({"weights.npy": header("(9,)")}), 2**32 - 2), {"bomb"}),
        ("a.npz", lambda: zipped({"weights.npy": b"x"}, zipfile.ZIP_LZMA), {"damaged"}),
        ("a.npz", lambda: zipped({f"{index}.npy": b"" for index in range(300)}), {"huge"}),
        ("a.npz", lambda: b"PK\x03\x04" + (b"PK\x01\x02" + bytes(42)) * 200_000, {"huge"}),
        ("a.npz", lambda: zipped({"../weights.npy": header("(1, 1)") + b"\0\0\x80?"}), {"member"}),
        ("a.npz", lambda: zipped({"/etc/weights.npy": header("(1, 1)") + b"\0\0\x80?"}), {"member"}),
        ("a.npz", lambda: zipped({"..\\weights.npy": header("(1, 1)") + b"\0\0\x80?"}), {"member"}),
        ("a.npz", lambda: zipped({"weights.txt": b"1"}), {"member"}),
        ("a.npz", lambda: zipped({"archive/data.pkl": b"x"}), {"pickle"}),
        ("a.npz", lambda: bytes(73 * 2**20), {"huge"}),
        ("a.safetensors", lambda: tensors(b"{}", size=2**63), {"damaged"}),
        ("a.safetensors", lambda: tensors({"weights": TERABYTES}), {"huge", "damaged"}),
        (
            "a.safetensors",
            lambda: tensors({"weights": {**TERABYTES, "shape": [2**62] * 4}}),
            {"huge", "damaged"},
        ),
        ("a.safetensors", lambda: tensors({"weights": {**TERABYTES, "shape": [1] * 9}}), {"huge"}),
        ("a.safetensors", lambda: tensors({"weights": {**TERABYTES, "shape": [-1]}}), {"damaged"}),
        (
            "a.safetensors",
            lambda: tensors({"w": {**EMPTY, "dtype": "F8_E4M3"}}),
            {"type"},
        ),
        (
            "a.safetensors",
            lambda: tensors({"w": EMPTY}, b"x"),
            {"damaged"},
        ),
        (
            "a.safetensors",
            lambda: tensors({"v": EMPTY, "w": {**FOUR, "data_offsets": [4, 8]}}, bytes(8)),
            {"damaged"},
        ),
        ("a.safetensors", lambda: tensors({"v": FOUR, "w": FOUR}, bytes(4)), {"damaged"}),
        ("a.safetensors", lambda: tensors({"v": FOUR, "w": {**FOUR, "shape": [2]}}, bytes(8)), {"damaged"}),
        ("a.safetensors", lambda: tensors({f"{index}": 1 for index in range(300)}), {"huge"}),
        ("a.safetensors", lambda: tensors(b'{"a": 1, "a": 1}'), {"member"}),
        ("a.safetensors", lambda: tensors(b"[" * 100_000), {"damaged", "nested"}),
        ("a.safetensors", lambda: tensors(b'{"a": ' + b"[" * 100_000), {"nested"}),
        ("a.safetensors", lambda: tensors(b'{"__metadata__": {"source": 1}}'), {"damaged"}),
        ("a.json", lambda: b'{"weights": ' + b"[" * 90_000, {"nested"}),
        ("a.json", lambda: b'{"weights": [' + b"[]," * 200_000 + b"0]}", {"nested"}),
        ("a.json", lambda: b'{"weights": [' + b"1," * 3_000_000 + b"1]}", {"nested"}),
        ("a.json", lambda: b'{"weights": [[NaN]]}', {"nan"}),
        ("a.json", lambda: b'{"weights": [[-Infinity]]}', {"nan"}),
        ("a.json", lambda: b'{"weights": [[1e999]]}', {"nan"}),
        ("a.json", lambda: b'{"weights": [[1' + b"0" * 400 + b"]]}", {"nan", "shape"}),
        ("a.json", lambda: b'{"weights": [[1' + b"0" * 5000 + b"]]}", {"damaged"}),
        ("a.json", lambda: b'{"weights": [[1]], "weights": [[1]]}', {"member"}),
        ("a.json", lambda: b'{"weights": [[1]], "tokens": ["\xff"]}', {"damaged"}),
        ("a.json", lambda: b'{"weights": [[1, 0], [1]]}', {"shape"}),
        ("a.json", lambda: b'{"weights": [[null]]}', {"nan", "shape"}),
        ("a.json", lambda: b'{"weights": []}', {"missing"}),
        ("a.json", lambda: b'{"weights": {}}', {"type"}),
        ("a.json", lambda: b'{"weights": null}', {"type"}),
        ("a.json", lambda: b"[[1]]", {"damaged"}),
        ("a.json", lambda: b'{"weights": [[1]]', {"damaged"}),
        ("a.json", lambda: b'{"weights": [[1]], "tokens": [1]}', {"type"}),
        ("a.json", lambda: b'{"weights": "' + b"x" * (9 * 2**20) + b'"}', {"huge"}),
    ],
)
def test_what_would_take_time_or_memory_is_refused_before_it_does(
    name: str, content: Callable[[], bytes], codes: set[str]
) -> None:
    assert refused(name, content()).code in codes


def test_a_bit_that_turned_is_found_by_the_checksum_of_a_zip(cross: np.ndarray) -> None:
    content = bytearray(as_npz({"weights": cross}))
    content[len(content) // 2] ^= 1
    assert refused("a.npz", bytes(content)).code == "damaged"


def test_a_name_is_used_once(square: np.ndarray) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("weights.npy", header("(1, 1)") + b"\0\0\x80?")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("weights.npy", b"")
    assert refused("a.npz", file.getvalue()).code == "member"
    both = safetensors.numpy.save({"weights": square}, {"weights": "[]"})
    assert refused("a.safetensors", both).code == "member"


def test_a_good_file_of_the_largest_sort_is_read_in_bounded_memory() -> None:
    weights = np.full((36, 512, 512), 1 / 512, np.float16)
    content = as_npz({"weights": weights})
    tracemalloc.start()
    try:
        trace = files.read("a.npz", content)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert trace.weights("encoder").shape == (1, 36, 512, 512)
    assert most < MEMORY
    with pytest.raises(FileError, match="the trace: got 80,"):
        files.write(Trace(**{**vars(trace), "states": {"source": np.ones((512, 2**14), np.float32)}}), ".npz")


def test_files_that_went_wrong_are_refused_and_nothing_else_happens() -> None:
    report = fuzz(400, seed=2)
    assert report.count == 400
    assert report.codes.total() > 200
    assert report.accepted > 10
    assert report.slowest < SECONDS
    assert report.grown < MEMORY


# --- whole traces, there and back -------------------------------------------------------------------------


@contextmanager
def both_ways(trace: Trace) -> Iterator[list[Trace]]:
    back = []
    for ending in FORMATS:
        content = files.write(trace, ending)
        assert content == files.write(trace, ending[1:])
        back.append(files.read(f"a{ending}", content))
        assert files.write(back[-1], ending) == content
    yield back


@pytest.mark.parametrize("change", [NEUTRAL, Change(look_ahead=Switch("all"), source_pads=2, scale=False)])
def test_a_trace_of_a_model_comes_back_bit_for_bit(translator: Translator, change: Change) -> None:
    trace = translator.trace(TEXT, change=change)
    with both_ways(trace) as back:
        for other in back:
            assert other.kinds == trace.kinds
            assert (other.change, other.languages) == (trace.change, trace.languages)
            assert_same(trace, other)
            assert_same(other, trace)
            assert not other.weights("cross").flags.writeable


@pytest.mark.parametrize(
    ("shape", "material", "kinds"),
    [
        ("decoder", "attention", ("decoder",)),
        ("encoder", "attention", ("encoder",)),
        ("encoder-decoder", "recurrent attention", ("cross",)),
        ("encoder-decoder", "recurrent", ()),
    ],
)
def test_a_trace_of_every_door_comes_back_bit_for_bit(
    tokenizer: Tokenizer, shape: Shape, material: Material, kinds: tuple[Kind, ...]
) -> None:
    layers, heads = (3, 2) if material == "attention" else (1, 1)
    model = build(Config(tokenizer.size, layers, 22, heads, 17, 0.1, 31, shape, material))
    model.eval().requires_grad_(False)
    door: Any = RecurrentTranslator("a", model, tokenizer) if isinstance(model, Recurrent) else None
    door = door or {"decoder": Continuer, "encoder": Filler}[shape]("a", model, tokenizer)
    trace = door.trace(TEXT)
    assert trace.kinds == kinds
    with both_ways(trace) as back:
        for other in back:
            same_in_all(trace, other)


WORDS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=9)
PIECES = st.lists(WORDS, min_size=3, max_size=11)


@settings(max_examples=40)
@given(
    kinds=st.sets(st.sampled_from(KINDS)).map(lambda kinds: tuple(kind for kind in KINDS if kind in kinds)),
    source=PIECES,
    target=PIECES,
    layers=st.integers(1, 3),
    heads=st.integers(1, 5),
    everything=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_trace_comes_back_bit_for_bit(
    kinds: tuple[Kind, ...],
    source: list[str],
    target: list[str],
    layers: int,
    heads: int,
    everything: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    trace = drawn(rng, kinds or ("decoder",), source, target, layers, heads, everything)
    with both_ways(trace) as back:
        for other in back:
            same_in_all(trace, other)


def same_in_all(one: Any, other: Any) -> None:
    """Field by field, of whatever class."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            same_in_all(one[name], other[name])
    elif hasattr(one, "__dataclass_fields__"):
        for name in one.__dataclass_fields__:
            same_in_all(getattr(one, name), getattr(other, name))
    else:
        assert one == other


def test_a_trace_without_attention_comes_back() -> None:
    states = {"source": np.ones((3, 19), np.float32)}
    trace = Trace(text="a b", change=NEUTRAL, attention={}, source=("a", "b", "</s>"), states=states)
    with both_ways(trace) as back:
        for other in back:
            same_in_all(trace, other)


def test_numpy_and_safetensors_read_what_is_written(trace: Trace) -> None:
    with zipfile.ZipFile(io.BytesIO(files.write(trace, ".npz"))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}  # not today
    with np.load(io.BytesIO(files.write(trace, ".npz"))) as loaded:
        np.testing.assert_array_equal(loaded["attention.cross.q"], trace.stages("cross").q)
        assert json.loads(bytes(loaded["headlight"]))["format"] == "headlight trace 1"
    read_back = safetensors.numpy.load(files.write(trace, ".safetensors"))
    np.testing.assert_array_equal(read_back["attention.cross.q"], trace.stages("cross").q)


def document(change: Callable[[dict[str, Any]], object], rng: np.random.Generator) -> bytes:
    """A whole trace as .npz with a changed text, or changed arrays under "arrays"."""
    with np.load(io.BytesIO(files.write(drawn(rng), ".npz"))) as loaded:
        arrays = dict(loaded)
    said = json.loads(bytes(arrays["headlight"]))
    said["arrays"] = arrays
    change(said)
    arrays = said.pop("arrays")
    arrays["headlight"] = np.frombuffer(json.dumps(said).encode(), np.uint8)
    return as_npz(arrays)


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda said: said["trace"].__setitem__(name, value)


def _array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, Any]], object]:
    return lambda said: said["arrays"].__setitem__(name, change(said["arrays"][name]))


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (lambda said: said.__setitem__("format", "headlight trace 2"), "version"),
        (lambda said: said.__setitem__("trace", [1]), "type"),
        (_set("source", ["a", "b"]), "tokens"),
        (_set("source", ["a", 1, "b", "c", "d"]), "type"),
        (_set("text", "x" * 20_001), "huge"),
        (_set("source", ["x" * 1601, "b", "b", "c", "d"]), "huge"),
        (_set("source", ["a\nb", "b", "b", "c", "d"]), "tokens"),
        (_set("soul", 1), "version"),
        (_set("cut", 1), "type"),
        (_set("given", 8), "tokens"),
        (_set("gaps", [0, 5]), "tokens"),
        (_set("comes_out", ["a"]), "tokens"),
        (_set("candidates", [[{"piece": "a", "log_prob": "b"}]]), "type"),
        (_set("candidates", [[{"piece": "a", "log_prob": float("nan")}]] * 7), "nan"),
        (lambda said: said["trace"].pop("attention"), "missing"),
        (lambda said: said["trace"]["attention"].pop("cross"), "member"),
        (lambda said: said["trace"]["change"].__setitem__("positions", "sideways"), "type"),
        (lambda said: said["trace"]["change"]["removed"].__setitem__(0, {"kind": "cross"}), "missing"),
        (lambda said: said["trace"]["change"]["look_ahead"].__setitem__("off", [3]), "member"),
        (lambda said: said["arrays"].pop("attention.cross.weights"), "missing"),
        (_array("attention.cross.weights", lambda array: array.astype(np.float64)), "type"),
        (_array("attention.cross.weights", lambda array: array * 0.9), "sum"),
        (_array("attention.cross.weights", lambda array: array[..., :4]), "shape"),
        (_array("attention.cross.allowed", np.logical_not), "mask"),
        (_array("attention.encoder.q", lambda array: array[:, :, :4]), "shape"),
        (_array("attention.encoder.k", lambda array: array * np.nan), "nan"),
        (_array("attention.encoder.output", lambda array: array[..., :12]), "shape"),
        (_array("feeds.target.hidden", lambda array: array[:2]), "shape"),
        (_array("embeddings.source.sum", lambda array: array[:, :3]), "shape"),
        (_array("states.source", lambda array: array[:2]), "shape"),
        (_array("log_probs", lambda array: array[:3]), "shape"),
        (_array("log_probs", lambda array: array[0, 0]), "shape"),
        (_array("piece_log_probs", lambda array: array + np.inf), "nan"),
    ],
)
def test_a_trace_that_contradicts_itself_is_refused(
    rng: np.random.Generator, change: Callable[[dict[str, Any]], object], want: str
) -> None:
    error = refused("a.npz", document(change, rng))
    assert error.code == want, error


def test_text_of_a_whole_trace_passes_the_gate_too(rng: np.random.Generator) -> None:
    pieces = ["a\ud800", "\u202e", "b\0", "c", "d"]
    trace = files.read("a.npz", document(_set("source", pieces), rng))
    assert trace.source == ("a<U+D800>", "<U+202E>", "b<U+0000>", "c", "d")


def test_what_would_not_be_read_again_is_not_written(rng: np.random.Generator) -> None:
    good = drawn(rng, ("encoder",), everything=False)
    weights = good.weights("encoder").copy()
    weights[0, 0, 0] *= 2
    bad = type(good.seen("encoder"))(weights, good.allowed("encoder"))
    with pytest.raises(FileError):
        files.write(Trace(text="", change=NEUTRAL, attention={"encoder": bad}, source=good.source), ".npz")
    with pytest.raises(FileError, match="json"):
        files.write(good, ".json")
    with pytest.raises(FileError, match="513 pieces"):
        files.write(Trace(text="", change=NEUTRAL, attention={}, source=("a",) * 513), ".npz")
    with pytest.raises(FileError, match="20,001 characters"):
        files.write(Trace(text="a" * 20_001, change=NEUTRAL, attention={}), ".npz")


# --- from one's own code ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_what_torch_gives_is_saved_and_loads_again(tmp_path: Path, ending: str, cross: np.ndarray) -> None:
    given = tuple(torch.from_numpy(layer[None]).requires_grad_() for layer in cross)  # a layer (1, H, Q, K)
    path = tmp_path / f"mine{ending}"
    saved = files.save(path, given, source=SOURCE, target=TARGET, kind="cross")
    back = files.read(path.name, path.read_bytes())
    same_in_all(saved, back)
    np.testing.assert_array_equal(back.weights("cross"), cross)
    assert back.axes("cross") == (tuple(TARGET), tuple(SOURCE))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_tensors_arrays_and_lists_of_any_sort_are_saved(
    tmp_path: Path, cross: np.ndarray, square: np.ndarray, rng: np.random.Generator
) -> None:
    path = tmp_path / "a.npz"
    for each in (
        cross,
        torch.from_numpy(cross),
        list(cross),
        cross.tolist(),
        [list(layer) for layer in cross],
    ):
        np.testing.assert_array_equal(files.save(path, each).weights("cross"), cross)
    half = torch.from_numpy(cross).to(torch.bfloat16)
    np.testing.assert_array_equal(files.save(path, half).weights("cross"), half.float().numpy())
    scores = torch.from_numpy(rng.normal(size=cross.shape))
    allowed = torch.ones(KEYS, dtype=torch.bool)
    allowed[2] = False
    weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)
    several = files.save(
        path, encoder=square, cross=weights, mask={"cross": allowed}, scores={"cross": scores}
    )
    assert several.kinds == ("encoder", "cross")
    np.testing.assert_array_equal(several.allowed("cross")[0, 0, 0], allowed.numpy())
    np.testing.assert_array_equal(several.scores("cross"), scores.float().numpy())


@pytest.mark.parametrize(
    ("weights", "want"),
    [
        ((), "missing"),
        (None, "missing"),
        ((None,), "type"),
        ([[0.2, 0.2]], "sum"),
        ("abc", "type"),
        ([[]], "missing"),
    ],
)
def test_what_is_no_attention_is_not_saved(tmp_path: Path, weights: Any, want: str) -> None:
    path = tmp_path / "a.npz"
    path.write_text("what stood there")
    with pytest.raises(FileError) as caught:
        files.save(path, weights)
    assert caught.value.code == want
    assert path.read_text() == "what stood there"
    assert [each.name for each in tmp_path.iterdir()] == ["a.npz"]


def test_more_than_is_read_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(FileError, match='"weights": got 68,157,440 bytes'):  # of float32, not of what came
        files.save(tmp_path / "a.npz", np.zeros((65, 512, 512), bool))


def test_generated_steps_of_several_lengths_are_refused_in_a_sentence(tmp_path: Path) -> None:
    steps = [torch.ones(1, 1, 1, length) / length for length in (3, 4)]
    with pytest.raises(FileError, match="layers of one shape"):
        files.save(tmp_path / "a.npz", steps)


def test_nothing_is_left_where_the_disk_says_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        files.save(tmp_path / "a.npz", [[1.0]])
    assert list(tmp_path.iterdir()) == []


# --- the door ---------------------------------------------------------------------------------------------


def test_a_recorded_trace_answers_once_and_says_what_it_cannot(rng: np.random.Generator) -> None:
    trace = drawn(rng, ("encoder", "cross"), everything=False)
    door = Recorded("mine.npz", trace)
    assert door.kinds == {"encoder": (3, 2), "cross": (3, 2)}
    assert door.max_pieces == 7
    assert door.trace() is door.trace("a text", None, NEUTRAL) is trace
    for asked in (("another text",), ("", "un chat"), ("", None, Change(scale=False)), ("", [3, 4])):
        with pytest.raises(AbsentError):
            door.trace(*asked)


def test_files_are_read_without_torch() -> None:
    code = "import sys, model.files; assert not {'torch', 'streamlit', 'tokenizers'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_refusal_can_be_pickled() -> None:
    error = FileError("sum", "x", 1, "y" * 999)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code) == (str(error), "sum")
