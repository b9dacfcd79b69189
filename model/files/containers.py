"""Bytes to named arrays and texts, and back: .npz, .safetensors and .json.

What a file declares is read and added up before memory is taken for it. Nothing in a file is ever run, and
no name in it becomes a path: `zipfile` and `json` of the standard library read, numpy only looks at bytes.
"""

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import safetensors.numpy

from model.files.gate import (
    BRACKETS,
    LARGEST,
    LARGEST_JSON,
    LONGEST,
    MEMBERS,
    NAMES,
    NUMBERS,
    UNPACKED,
    FileError,
    Numbers,
    named,
    shaped,
)

Parts = dict[str, Any]  # arrays, lists and texts by name
WHOLE = "headlight"  # under this name stands what a whole trace says beside its arrays

SUFFIXES = (".npz", ".safetensors", ".json")
_WANT = "a .npz, .safetensors or .json file"
_PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".joblib")

# What numpy writes before an array, and nothing else: a header is a Python expression, and not evaluated.
_HEADER = re.compile(
    rb"\{'descr': '(?P<type>[<>|=]?[a-zA-Z]\d{0,6})', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>(?:\d{1,19}, ?)*(?:\d{1,19})?)\),? ?\} *\n"
)
_HEADER_BYTES = 4096
_NUMPY_TYPES = re.compile(r"[<>|=]?(?:f[248]|[iu][1248]|b1|U\d{0,6})")
_TENSOR_TYPES = {
    "BOOL": "|b1",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "BF16": "<u2",
    **{f"{sign}{bits}": f"<{sign.lower()}{bits // 8}" for sign in "UI" for bits in (8, 16, 32, 64)},
}
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest of a zip, and always the same


def suffix(name: str) -> str:
    """The ending of a file's name that says how to read it. Raises FileError."""
    dot = name.lower().rpartition(".")[1] + name.lower().rpartition(".")[2]
    if dot in SUFFIXES:
        return dot
    if dot in _PICKLES:
        raise FileError("pickle", "the file", f"{dot}, which may hold a program", _WANT)
    raise FileError("format", "the file's name", named(name), _WANT)


def unpack(name: str, content: bytes) -> Parts:
    """What stands in a file, by its name. Raises FileError."""
    ending = suffix(name)
    if len(content) > LARGEST:
        raise FileError("huge", "the file", f"{len(content):,} bytes", f"at most {LARGEST:,}")
    found = _kind_of(content)
    if found != ending and (found or ending != ".safetensors"):  # whose first bytes are any number
        raise FileError(
            "pickle" if found == "a pickle" else "format",
            f"what a {ending} file holds",
            found or ("nothing" if not content else "other bytes"),
            ending,
        )
    return _READERS[ending](content)


def _kind_of(content: bytes) -> str:
    """What the first bytes say that this is."""
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ".npz"
    if content.startswith(b"\x93NUMPY"):
        return "a .npy file"
    if content.startswith(b"\x80") and content[1:2] in b"\x02\x03\x04\x05" and content[8:9] != b"{":
        return "a pickle"
    if content[8:9] == b"{" and int.from_bytes(content[:8], "little") < 2**40:
        return ".safetensors"
    if content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return ".json"
    return ""


# --- .npz -------------------------------------------------------------------------------------------------


def _npz(content: bytes) -> Parts:
    # Each entry of a zip's directory begins so, and by chance one stands among numbers at times, never many.
    if content.count(b"PK\x01\x02") > 2 * MEMBERS:
        raise FileError("huge", "arrays in the file", f"more than {MEMBERS}", f"at most {MEMBERS}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _members(archive, len(content))
    except FileError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,  # a place before the file's first byte
        ValueError,
        KeyError,
        IndexError,
        OverflowError,
        NotImplementedError,  # a zip of another sort
        RuntimeError,  # a zip under a password
    ) as error:
        raise FileError(
            "damaged", "the file", "a zip that cannot be read to its end", "a whole .npz"
        ) from error


def _members(archive: zipfile.ZipFile, size: int) -> Parts:
    listed = archive.infolist()
    if len(listed) > MEMBERS:
        raise FileError("huge", "arrays in the file", len(listed), f"at most {MEMBERS}")
    names = [info.filename for info in listed]
    for info in listed:
        name = info.orig_filename
        if not re.fullmatch(r"[\w.-]{1,80}\.npy", name, re.ASCII) or ".." in name or name.startswith("."):
            code = "pickle" if name.endswith(".pkl") else "member"
            raise FileError(code, "a name in the file", named(name), 'arrays with plain names, "weights.npy"')
        if names.count(info.filename) > 1:
            raise FileError("member", "a name in the file", f"{named(name)} twice", "each name once")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileError(
                "damaged", named(name), "a compression that numpy does not write", "deflate or none"
            )
    declared = sum(info.file_size for info in listed)
    if declared > 8 * 2**20 and declared > 100 * size:
        raise FileError(
            "bomb", "bytes inside the file", f"{declared:,} in a file of {size:,}", "100 times at most"
        )
    heads = [_header(archive, info) for info in listed]
    _within(sum(math.prod(shape) * _held(kind) for kind, shape, *_ in heads))
    return {
        info.filename.removesuffix(".npy"): _array(archive, info, *head)
        for info, head in zip(listed, heads, strict=True)
    }


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[Any, tuple[int, ...], bool, int]:
    """The type, shape, order and first byte of an array, which are all that its size says."""
    with archive.open(info) as file:
        start = file.read(min(_HEADER_BYTES, info.file_size))
    broken = FileError(
        "damaged", named(info.filename), "no header of a numpy array", "what numpy.savez writes"
    )
    if start[:6] != b"\x93NUMPY" or len(start) < 12 or start[6] not in (1, 2, 3):
        raise broken
    wide = 2 if start[6] == 1 else 4
    begin = 8 + wide
    end = begin + int.from_bytes(start[8:begin], "little")
    if end > len(start):
        raise broken
    if b"'O'" in start[begin:end] or b"|O" in start[begin:end]:
        raise FileError("pickle", named(info.filename), "an array of Python objects", "numbers or text")
    if b"'descr': [" in start[begin:end]:
        raise FileError("type", named(info.filename), "an array of records", "numbers or text")
    match = _HEADER.fullmatch(start[begin:end])
    if not match:
        raise broken
    written = match["type"].decode()
    if not _NUMPY_TYPES.fullmatch(written):
        raise FileError(
            "type", named(info.filename), f"numbers of type {written}", "float16, 32 or 64, or text"
        )
    kind = np.dtype(written)
    shape = tuple(int(axis) for axis in re.findall(rb"\d+", match["shape"]))
    _sane(info.filename, shape)
    if kind.kind == "U" and math.prod(shape) > 2 * LONGEST:
        raise FileError(
            "huge", named(info.filename), f"{math.prod(shape):,} texts", f"at most {2 * LONGEST:,}"
        )
    if math.prod(shape) * kind.itemsize != info.file_size - end:
        got = f"{info.file_size - end:,} bytes for the shape {shaped(shape)} of {written}"
        raise FileError("damaged", named(info.filename), got, f"{math.prod(shape) * kind.itemsize:,}")
    return kind, shape, match["fortran"] == b"True", end


def _array(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    kind: Any,
    shape: tuple[int, ...],
    fortran: bool,
    start: int,
) -> Any:
    with archive.open(info) as file:
        raw = file.read(info.file_size)  # and no more, whatever it holds; here its checksum is compared
    if len(raw) != info.file_size:
        raise FileError("damaged", named(info.filename), f"{len(raw):,} bytes", f"{info.file_size:,}")
    size = math.prod(shape)
    array = np.frombuffer(raw, kind, size, start) if size * kind.itemsize else np.zeros(size, kind)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array.tolist() if kind.kind == "U" else _native(array)


# --- .safetensors -----------------------------------------------------------------------------------------


def _safetensors(content: bytes) -> Parts:
    size = int.from_bytes(content[:8], "little")
    if len(content) < 10:
        raise FileError("damaged", "the file", f"{len(content)} bytes", "a header and numbers")
    if size > len(content) - 8:
        raise FileError(
            "damaged", "the header", f"{size:,} bytes", f"at most the file's {len(content) - 8:,}"
        )
    header = parse(content[8 : 8 + size])
    texts = header.pop("__metadata__", {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise FileError("damaged", "__metadata__ of the header", "other values", "text")
    if len(header) > MEMBERS:
        raise FileError("huge", "arrays in the file", len(header), f"at most {MEMBERS}")
    body = memoryview(content)[8 + size :]
    places = {name: _place(name, entry, len(body)) for name, entry in header.items()}
    _within(sum(math.prod(shape) * _held(kind) for kind, shape, *_ in places.values()))
    end = 0
    for name, (_kind, _shape, start, stop) in sorted(places.items(), key=lambda each: each[1][2:]):
        if start != end:
            raise FileError("damaged", named(name), f"its first byte at {start:,}", f"{end:,}")
        end = stop
    if end != len(body):
        raise FileError("damaged", "the numbers", f"{len(body):,} bytes", f"{end:,}")
    parts: Parts = {}
    for name, (kind, shape, start, stop) in places.items():
        array = np.frombuffer(body[start:stop], kind) if stop > start else np.zeros(0, kind)
        if header[name]["dtype"] == "BF16":  # the upper half of a float32
            array = (array.astype(np.uint32) << 16).view(np.float32)
        parts[name] = _native(array.reshape(shape))
    for name, text in texts.items():
        if name in parts:
            raise FileError("member", "a name in the file", f"{named(name)} twice", "each name once")
        parts[name] = _text(name, text)
    return parts


def _place(name: str, entry: Any, size: int) -> tuple[Any, tuple[int, ...], int, int]:
    """The type, shape, first and last byte of a tensor."""
    broken = FileError(
        "damaged", f"the header of {named(name)}", "another entry", "dtype, shape, data_offsets"
    )
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise broken
    shape, offsets = entry["shape"], entry["data_offsets"]
    for numbers in (shape, offsets):
        whole = isinstance(numbers, list) and all(type(each) is int and 0 <= each < 2**63 for each in numbers)
        if not whole:
            raise broken
    _sane(name, shape)
    if len(offsets) != 2 or not isinstance(entry["dtype"], str):
        raise broken
    if entry["dtype"] not in _TENSOR_TYPES:
        raise FileError(
            "type", named(name), f"numbers of type {named(entry['dtype'])}", "F16, BF16, F32 or F64"
        )
    kind = np.dtype(_TENSOR_TYPES[entry["dtype"]])
    start, stop = offsets
    if stop > size or stop - start != math.prod(shape) * kind.itemsize:
        got = f"bytes {start:,} to {stop:,} of {size:,} for the shape {shaped(tuple(shape))}"
        raise FileError("damaged", named(name), got, f"{math.prod(shape) * kind.itemsize:,} bytes")
    return kind, tuple(shape), start, stop


def _text(name: str, text: str) -> Any:
    """A text of the metadata: JSON where it is a list, else the text itself."""
    if name == WHOLE or not text.lstrip().startswith("["):
        return text
    return parse(text.encode("utf-8", "surrogatepass"), listed=True)


# --- .json ------------------------------------------------------------------------------------------------


# Counted before anything is made of them: an empty list takes twenty times the two bytes that it has here.
_FEW = (
    ("brackets", (b"[", b"{"), BRACKETS),
    ("names", (b":",), NAMES),
    ("numbers", (b",",), NUMBERS),
)


def parse(content: bytes, listed: bool = False) -> Any:
    """Strict JSON, an object or a list: no NaN or infinity, no name twice, few brackets. Raises FileError."""
    if len(content) > LARGEST_JSON:
        raise FileError("huge", "the JSON", f"{len(content):,} bytes", f"at most {LARGEST_JSON:,}")
    for what, marks, most in _FEW:
        count = sum(map(content.count, marks))
        if count > most:
            raise FileError("nested", f"{what} in the JSON", f"{count:,}", f"at most {most:,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError("damaged", "the JSON", f"no UTF-8 from byte {error.start:,} on", "UTF-8") from error
    try:
        value = json.loads(text, parse_constant=_constant, object_pairs_hook=_object)
    except FileError:
        raise
    except json.JSONDecodeError as error:
        raise FileError("damaged", "the JSON", f"{error.msg} in line {error.lineno}", "JSON") from error
    except RecursionError as error:
        raise FileError("nested", "brackets within brackets", "hundreds", "6 or fewer") from error
    except ValueError as error:  # an integer of thousands of digits
        raise FileError("damaged", "the JSON", "a number that no array holds", "JSON") from error
    if not isinstance(value, list if listed else dict):
        want = "a list, [...]" if listed else 'an object, {"weights": ...}'
        raise FileError("damaged", "the JSON", "another value", want)
    return value


def _constant(name: str) -> float:
    raise FileError("nan", "the JSON", name, "finite numbers")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _value in pairs).most_common(1)[0][0]
        raise FileError("member", "a name in the JSON", f"{named(twice)} twice", "each name once")
    return found


_READERS: Mapping[str, Callable[[bytes], Parts]] = {
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".json": parse,
}


# --- and back ---------------------------------------------------------------------------------------------


def pack(ending: str, arrays: Mapping[str, Numbers], document: str) -> bytes:
    """A .npz or .safetensors file of these arrays and a text; equal bytes for equal values."""
    arrays = {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}
    if ending == ".safetensors":
        return safetensors.numpy.save(dict(arrays), {WHOLE: document})
    if ending != ".npz":
        raise FileError("format", "the format", named(ending), ".npz or .safetensors")
    arrays[WHOLE] = np.frombuffer(document.encode(), np.uint8)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _DATE)
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, member.getvalue())
    return file.getvalue()


def _native(array: Numbers) -> Numbers:
    """In this machine's byte order, in memory of its own."""
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _sane(name: str, shape: Sequence[int]) -> None:
    """Raise FileError for a shape that no array has, or one of nothing that pretends to be large."""
    if len(shape) > 8 or math.prod(filter(None, shape)) > UNPACKED:
        axes = f"{len(shape)} axes" if len(shape) > 8 else f"the shape {shaped(tuple(shape))}"
        raise FileError("huge", named(name), axes, f"at most {UNPACKED:,} numbers along 5 axes")


def _held(kind: Any) -> int:
    """Bytes of a number once it is read; those of 16 bits become float32."""
    return kind.itemsize if kind.kind in "bU" else max(kind.itemsize, 4)


def _within(size: int) -> None:
    if size > UNPACKED:
        raise FileError("huge", "the numbers in the file", f"{size:,} bytes", f"at most {UNPACKED:,}")
