"""A model on disk: what comes back is what was saved, and what was altered is refused by name."""

import ast
from pathlib import Path

import pytest
import torch

import model as headlight
from conftest import ROOT, TEXT, random_model
from model import checkpoint
from model.checkpoint import CHECKSUMS, CONFIG, TOKENIZER, WEIGHTS, CheckpointError
from model.training.loop import SHIP
from model.translator import Translator

SNAPSHOT = "snapshots/step-000011.safetensors"


@pytest.fixture
def folder(translator: Translator, tmp_path: Path) -> Path:
    checkpoint.save_snapshot(tmp_path / "tiny", translator.model, 11)
    checkpoint.save(tmp_path / "tiny", translator.model, translator.tokenizer)
    return tmp_path / "tiny"


def load_all(folder: Path) -> None:
    checkpoint.load(folder)
    checkpoint.load_snapshot(folder, 11)


def test_what_comes_back_is_what_was_saved_to_half_precision(translator: Translator, folder: Path) -> None:
    loaded, tokenizer = checkpoint.load(folder)
    assert loaded.config == translator.model.config
    assert tokenizer.encode(TEXT) == translator.tokenizer.encode(TEXT)
    for name, saved in translator.model.state_dict().items():
        got = loaded.state_dict()[name]
        assert got.dtype == torch.float32
        assert ((got - saved).abs() <= saved.abs() * 2**-11 + 2**-25).all(), name


def test_a_loaded_model_is_ready_to_read_and_cannot_learn(folder: Path) -> None:
    for model in (checkpoint.load(folder)[0], checkpoint.load_snapshot(folder, 11)):
        assert not any(module.training for module in model.modules())
        assert not any(parameter.requires_grad for parameter in model.parameters())


def test_what_was_loaded_saves_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "again", *checkpoint.load(folder))
    for name in (WEIGHTS, CONFIG, TOKENIZER):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_a_model_opens_by_its_folder(translator: Translator, folder: Path) -> None:
    loaded = headlight.load(folder)
    assert loaded.name == "tiny"
    torch.testing.assert_close(
        torch.tensor(loaded.trace(TEXT, "Le chat.").log_probs),
        torch.tensor(translator.trace(TEXT, "Le chat.").log_probs),
        atol=0.02,
        rtol=0,
    )


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, TOKENIZER, SNAPSHOT])
def test_one_flipped_bit_anywhere_is_found_and_named(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for place in (0, len(whole) // 2, len(whole) - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        (folder / name).write_bytes(flipped)
        with pytest.raises(CheckpointError, match=name):
            load_all(folder)
    (folder / name).write_bytes(whole)
    load_all(folder)


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, TOKENIZER, SNAPSHOT, CHECKSUMS])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        load_all(folder)


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, TOKENIZER, SNAPSHOT])
def test_a_file_without_a_checksum_is_named(folder: Path, name: str) -> None:
    lines = (folder / CHECKSUMS).read_text().splitlines(keepends=True)
    (folder / CHECKSUMS).write_text("".join(line for line in lines if name not in line))
    with pytest.raises(CheckpointError, match=name):
        load_all(folder)


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\x00", b"no checksum in here\n"])
def test_damaged_checksums_are_a_damaged_model(folder: Path, damage: bytes) -> None:
    (folder / CHECKSUMS).write_bytes(damage)
    with pytest.raises(CheckpointError, match=folder.name):
        load_all(folder)


@pytest.mark.parametrize("config", ['{"vocabulary": 211, "d_model": 16}', '{"layers": 3}', "{"])
def test_a_sealed_config_that_is_not_of_these_weights_is_refused(folder: Path, config: str) -> None:
    (folder / CONFIG).write_text(config)
    checkpoint.seal(folder)
    with pytest.raises(CheckpointError, match=folder.name):
        load_all(folder)


def test_no_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        headlight.load(tmp_path / "nowhere")


def test_a_snapshot_is_off_by_at_most_half_a_unit_of_its_row(translator: Translator, folder: Path) -> None:
    loaded = checkpoint.load_snapshot(folder, 11).state_dict()
    for name, saved in translator.model.state_dict().items():
        largest = saved.abs().amax(dim=-1, keepdim=True) if saved.dim() > 1 else saved.abs()
        share = 1 / 254 if saved.dim() > 1 else 2**-11
        assert ((loaded[name] - saved).abs() <= largest * share + 1e-7).all(), name


def test_a_row_of_zeros_survives_a_snapshot(tmp_path: Path, translator: Translator) -> None:
    model = random_model(vocabulary=translator.tokenizer.size)
    model.embedding.weight[5] = 0
    checkpoint.save_snapshot(tmp_path, model, 0)
    checkpoint.save(tmp_path, model, translator.tokenizer)
    assert not checkpoint.load_snapshot(tmp_path, 0).embedding.weight[5].any()


def test_snapshots_are_listed_by_step(translator: Translator, tmp_path: Path) -> None:
    assert checkpoint.snapshots(tmp_path) == []
    for step in (1_000_000, 7, 999_999, 0, 15_000):
        checkpoint.save_snapshot(tmp_path, translator.model, step)
    assert checkpoint.snapshots(tmp_path) == [0, 7, 15_000, 999_999, 1_000_000]


def test_every_file_of_a_finished_run_stands_under_its_checksum(run: Path) -> None:
    folder = run / SHIP
    listed = {line.partition("  ")[2] for line in (folder / CHECKSUMS).read_text().splitlines()}
    snapshots = {f"snapshots/step-{step:06d}.safetensors" for step in checkpoint.snapshots(folder)}
    assert listed == {WEIGHTS, CONFIG, TOKENIZER, *snapshots}
    assert len(snapshots) == 5


def test_nothing_in_the_model_unpickles() -> None:
    for path in (ROOT / "model").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}, path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in {("torch", "load"), ("torch", "save")}, path
