"""A model on disk: safetensors, config and tokenizer in one folder, every file under a checksum.

weights.safetensors   fp16        config.json   tokenizer.json   history.csv
snapshots/step-000100.safetensors   8 bits a row; heads as they were on the way
checksums.sha256      as `sha256sum -c` reads it
"""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.build import Model, build
from model.config import Config
from model.tokenizer import Tokenizer

WEIGHTS, CONFIG, TOKENIZER, CHECKSUMS = (
    "weights.safetensors",
    "config.json",
    "tokenizer.json",
    "checksums.sha256",
)
SNAPSHOTS = "snapshots"
SCALE = ".scale"  # beside a matrix of 8-bit rows: the value of one unit in each row


class CheckpointError(ValueError):
    """A model folder that is incomplete, altered, or not what its config says."""


def save(folder: Path, model: Model, tokenizer: Tokenizer) -> None:
    """Write weights in fp16, config and tokenizer, and put every file of the folder under its checksum."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / WEIGHTS)
    model.config.save(folder / CONFIG)
    tokenizer.save(folder / TOKENIZER)
    seal(folder)


def seal(folder: Path) -> None:
    """Write the checksum of every file that a load reads."""
    files = [folder / WEIGHTS, folder / CONFIG, folder / TOKENIZER, *_snapshot_files(folder)]
    lines = [f"{_digest(file)}  {file.relative_to(folder).as_posix()}\n" for file in files]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def load(folder: Path) -> tuple[Model, Tokenizer]:
    """The model in eval mode, in float32, laid out for use, and its tokenizer. Raises CheckpointError."""
    for name in (WEIGHTS, CONFIG, TOKENIZER):
        _verify(folder, name)
    model = _build(folder, _stored(folder, WEIGHTS))
    model.lay_out()
    return model, _tokenizer(folder, model.config.vocabulary)


def save_snapshot(folder: Path, model: Model, step: int) -> None:
    """Write the weights as they are at `step`, each row of a matrix in 8 bits.

    The largest entry of a row is 127 units, so an entry is off by at most 1/254 of it.
    """
    (folder / SNAPSHOTS).mkdir(parents=True, exist_ok=True)
    tensors: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if tensor.dim() < 2:
            tensors[name] = tensor.half()
            continue
        unit = tensor.abs().amax(dim=1).clamp_min(1e-12) / 127
        tensors[name] = (tensor / unit[:, None]).round().to(torch.int8).contiguous()
        tensors[name + SCALE] = unit
    save_file(tensors, folder / SNAPSHOTS / f"step-{step:06d}.safetensors")


def snapshots(folder: Path) -> list[int]:
    """The steps of which a snapshot is kept, ascending."""
    return [int(file.stem[5:]) for file in _snapshot_files(folder)]


def load_snapshot(folder: Path, step: int) -> Model:
    """The model as it was at `step` of its training, in eval mode. Raises CheckpointError."""
    name = f"{SNAPSHOTS}/step-{step:06d}.safetensors"
    _verify(folder, name)
    stored = _stored(folder, name)
    tensors = {
        name: tensor * stored[name + SCALE][:, None] if name + SCALE in stored else tensor
        for name, tensor in stored.items()
        if not name.endswith(SCALE)
    }
    return _build(folder, tensors)


def _build(folder: Path, tensors: dict[str, Tensor]) -> Model:
    try:
        model = build(Config.load(folder / CONFIG))
        model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    except (RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"the weights in {folder.name} do not fit its config: {error}") from error
    for name, tensor in model.state_dict().items():
        if not tensor.isfinite().all():
            raise CheckpointError(f"the weights in {folder.name} are not all numbers: {name}")
    return model.eval().requires_grad_(False)


def _stored(folder: Path, name: str) -> dict[str, Tensor]:
    try:
        return load_file(folder / name)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{folder.name}: {name} holds no tensors ({error})") from error


def _tokenizer(folder: Path, vocabulary: int) -> Tokenizer:
    """That of the model: with one of another size, pieces would be read as others or not at all."""
    try:
        tokenizer = Tokenizer.load(folder / TOKENIZER)
    except Exception as error:  # `tokenizers` raises bare ones
        raise CheckpointError(f"the tokenizer in {folder.name} cannot be read: {error}") from error
    if tokenizer.size != vocabulary:
        raise CheckpointError(
            f"the tokenizer in {folder.name} has {tokenizer.size} pieces, its config says {vocabulary}"
        )
    return tokenizer


def _snapshot_files(folder: Path) -> list[Path]:
    return sorted((folder / SNAPSHOTS).glob("step-*.safetensors"), key=lambda file: int(file.stem[5:]))


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _verify(folder: Path, name: str) -> None:
    try:
        lines = (folder / CHECKSUMS).read_text(encoding="utf-8", errors="replace").splitlines()
        want = {file: digest for digest, _, file in (line.partition("  ") for line in lines)}.get(name)
        got = _digest(folder / name)
    except OSError as error:
        unread = Path(error.filename).relative_to(folder)  # it may be the checksums themselves
        raise CheckpointError(f"{folder.name}: {unread} cannot be read ({error.strerror})") from error
    if want != got:
        raise CheckpointError(f"{folder.name}: the SHA-256 of {name} is {got}, want {want}")
