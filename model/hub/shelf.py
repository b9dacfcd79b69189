"""The files of a model, judged before anything is made of them: where they lie, what they hold, how much.

Neither torch nor transformers here: only headers and JSON are read.
"""

import json
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

from model.hub.refusal import RefusedError

Step = Literal["files", "download", "weights", "tokenizer", "look"]
Progress = Callable[[Step, float], None]  # what is being done, and the share of all that is behind

CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".msgpack", ".h5")
TEXTS = (".json", ".txt", ".model", ".spm")  # configurations and vocabularies; none of them is run
MOST_JSON = 64 * 2**20  # bytes; tokenizers of large vocabularies have twenty million
MOST_CONFIG = 2**20
MOST_HEADER = 2**26
MOST_FILES = 1000
CODE = ("auto_map", "custom_generate", "use_kernels", "_attn_implementation_internal")
DEEPEST = 32  # levels of a configuration
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def silent(step: Step, share: float) -> None:
    """Progress for nobody."""


@dataclass(frozen=True)
class Shelf:
    """A folder whose files were found to be in order."""

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, tuple[int, ...]]  # shapes by name, of all files of weights

    @property
    def parameters(self) -> int:
        return sum(prod(shape) for shape in self.tensors.values())


def judge(folder: Path, root: Path, limit: int) -> Shelf:
    """Look through a model's folder, whose files must lie under `root`. Raises RefusedError."""
    if not folder.is_dir():
        raise RefusedError("missing", "the folder of this model is not there")
    for path in _files(folder):
        if not path.resolve().is_relative_to(root.resolve()):
            raise RefusedError("outside", f"{path.name} lies outside the folder of the model")
        if path.suffix in TEXTS and path.is_file() and path.stat().st_size > MOST_JSON:
            raise RefusedError("broken", f"{path.name} has more than {MOST_JSON:,} bytes")
    if (folder / "adapter_config.json").exists():
        raise RefusedError("architecture", "this is an adapter to another model, not a model")
    config = _read(folder / CONFIG, MOST_CONFIG)
    _plain(config)
    if config.get("quantization_config"):
        raise RefusedError("architecture", "its weights are quantised; only plain weights are read")
    extra = folder / "tokenizer_config.json"
    if extra.exists():
        _plain(_read(extra, MOST_JSON))
    tensors: dict[str, tuple[int, ...]] = {}
    for path in _weights(folder):
        tensors |= _header(path)
    needed = 4 * sum(prod(shape) for shape in tensors.values())
    if needed > limit:
        raise RefusedError(
            "large", f"its weights take {needed / 2**30:.1f} GiB, the limit is {limit / 2**30:.1f} GiB"
        )
    return Shelf(folder, config, tensors)


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for where, folders, names in os.walk(folder):  # which follows no links to folders
        for name in (*folders, *names):
            count += 1
            if count > MOST_FILES:
                raise RefusedError("broken", f"more than {MOST_FILES} files in the folder of the model")
            yield Path(where, name)


def _read(path: Path, most: int) -> dict[str, Any]:
    """A JSON object of a file, strictly."""
    if not path.is_file():
        raise RefusedError("missing", f"{path.name} is missing")
    if path.stat().st_size > most:
        raise RefusedError("broken", f"{path.name} has more than {most:,} bytes")
    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no)
    except (ValueError, RecursionError, OSError) as error:
        raise RefusedError("broken", f"{path.name} is not JSON that can be read") from error
    if not isinstance(value, dict):
        raise RefusedError("broken", f"{path.name} is not a JSON object")
    return value


def _no(constant: str) -> None:
    raise ValueError(constant)


def _plain(value: object, depth: int = 0) -> None:
    """Refuse a configuration that asks for code of its own, at any depth.

    `auto_map` names classes in the model's own files, `_attn_implementation` and its like name code on the
    Hub, which transformers below 5.3 ran unasked (CVE-2026-4372).
    """
    if depth > DEEPEST:
        raise RefusedError("broken", "its configuration is nested too deeply")
    if isinstance(value, dict):
        for key, inner in value.items():
            harmless = not inner or ("attn_implementation" in key and inner in (True, "eager", "sdpa"))
            if key in CODE or "attn_implementation" in key:
                if not harmless or (inner and key in CODE):
                    raise RefusedError(
                        "code", f"it wants to run code of its own ({key}), which is never done"
                    )
                continue
            _plain(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _plain(inner, depth + 1)


def _weights(folder: Path) -> list[Path]:
    """The files that hold the weights, as the index names them."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        named = _read(folder / INDEX, MOST_JSON).get("weight_map")
        if not isinstance(named, dict) or not all(isinstance(name, str) for name in named.values()):
            raise RefusedError("broken", f"{INDEX} names no files")
        paths = [folder / name for name in sorted({*named.values()})]
        for path in paths:
            if path.parent != folder or path.suffix != ".safetensors":
                raise RefusedError("outside", f"{INDEX} names a file that is none of this folder's weights")
            if not path.is_file():
                raise RefusedError("missing", f"{path.name} is missing")
        return paths
    if any(path.suffix in PICKLES for path in folder.iterdir()):
        raise RefusedError(
            "pickle",
            "its weights are not safetensors but in a format that can hold code, which is never opened",
        )
    raise RefusedError("missing", f"{WEIGHTS} is missing")


def _header(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a file of safetensors, where its header fits the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else size
        if 8 + length > size or length > MOST_HEADER:
            raise RefusedError("broken", f"{path.name} is not a whole file of safetensors")
        try:
            header = json.loads(file.read(length), parse_constant=_no)
            found, data = {}, 0
            for name, tensor in header.items():
                if name == "__metadata__":
                    continue
                shape = tuple(tensor["shape"])
                if not all(type(side) is int and side >= 0 for side in shape):
                    raise ValueError(shape)
                found[name] = shape
                data += prod(shape) * BYTES[tensor["dtype"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RefusedError("broken", f"the header of {path.name} cannot be read") from error
    if 8 + length + data != size:
        raise RefusedError(
            "broken", f"{path.name} has {size:,} bytes, its header tells of {8 + length + data:,}"
        )
    return found
