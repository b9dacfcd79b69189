"""A model from elsewhere is opened only where it is allowed, whole, small enough and without its own code."""

import json
import os
import pickle
import shutil
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch
import transformers
from huggingface_hub.errors import RepositoryNotFoundError
from safetensors.torch import load_file, save_file

from model.hub import RefusedError, Settings, load, offered, settings, tiny
from model.hub.shelf import judge


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save("bert", tmp_path_factory.mktemp("made") / "bert")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A model of one's own to spoil."""
    return Path(shutil.copytree(made, tmp_path / "model"))


@pytest.fixture(autouse=True)
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """No test reaches a network, and each may see who tried."""
    asked: list[object] = []

    def refuse(*address: object, **_: object) -> None:
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


def refused(name: str | Path, allow: list[str] | None, **options: Any) -> tuple[str, str]:
    with pytest.raises(RefusedError) as caught:
        load(name, allow, **options)
    sentence = str(caught.value)
    assert sentence
    assert not sentence.endswith(".")
    return caught.value.code, sentence


def refused_folder(folder: Path, **options: Any) -> tuple[str, str]:
    code, sentence = refused("it", [f"it={folder}"], **options)
    assert str(folder) not in sentence  # a reader need not know where a server keeps its files
    return code, sentence


# --- who may be opened --------------------------------------------------------------------------------------


def test_nothing_is_opened_where_nothing_is_allowed(made: Path) -> None:
    assert refused("bert-base-uncased", None)[0] == "off"
    assert refused(made, [])[0] == "off"
    assert settings({}) == Settings()
    assert settings({"HEADLIGHT_MODELS": " , "}).allow == ()


def test_the_environment_says_who_may_be_opened() -> None:
    told = settings(
        {
            "HEADLIGHT_MODELS": "openai-community/gpt2, /data/bert,small=/data/models/x@y ,a/b@refs",
            "HEADLIGHT_MODELS_CACHE": "/cache",
            "HEADLIGHT_MODELS_BYTES": "1000",
        }
    )
    assert told.cache == Path("/cache")
    assert told.limit == 1000
    known = offered(told.allow)
    assert [*known] == ["openai-community/gpt2", "bert", "small", "a/b"]
    assert known["bert"].folder == Path("/data/bert")
    assert known["small"].folder == Path("/data/models/x@y")
    assert known["a/b"].revision == "refs"
    with pytest.raises(ValueError, match="many"):
        settings({"HEADLIGHT_MODELS_BYTES": "many"})


def test_a_list_cannot_offer_what_no_model_is_called() -> None:
    assert (
        offered(["../x y/..=", "a b/c", "x/y/z", "-x/y", "alias=owner/model", "a/b@../c", "", "a..b="]) == {}
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("gpt2", "listed"),
        ("owner/other", "listed"),
        ("", "name"),
        ("a b", "name"),
        ("a/b/c", "name"),
        ("x" * 300, "name"),
        ("owner/model\n", "name"),
        ("owner/model@main", "name"),
        ("https://huggingface.co/owner/model", "name"),
        ("../model", "outside"),
        ("owner/../model", "outside"),
        ("/etc", "outside"),
        ("~", "outside"),
        ("./model", "outside"),
        ("..\\model", "outside"),
    ],
)
def test_what_is_not_on_the_list_is_refused_by_its_name(
    name: str, code: str, nobody_is_asked: list[object]
) -> None:
    assert refused(name, ["owner/model"])[0] == code
    assert nobody_is_asked == []


def test_a_folder_is_opened_by_its_path_or_its_name(made: Path) -> None:
    for name in (str(made), "bert", str(made.parent / "." / "bert")):
        assert load(name, [str(made)]).name == "bert"
    assert load("other", [f"other={made}"]).name == "other"
    assert refused(made.parent, [str(made)])[0] == "outside"


# --- what must be installed ---------------------------------------------------------------------------------


def test_without_transformers_a_sentence_says_what_to_install(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    code, sentence = refused_folder(made)
    assert code == "packages"
    assert "requirements-hf.txt" in sentence


def test_a_transformers_that_runs_code_of_configurations_is_refused(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The name `transformers` above may not be this one: it puts itself in its own place anew now and then.
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "5.2.9")
    code, sentence = refused_folder(made)
    assert code == "packages"
    assert "5.2.9" in sentence


def test_a_tokenizer_that_needs_a_package_says_so(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError("sentencepiece")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", missing)
    assert refused_folder(made)[0] == "packages"


# --- what its files must be ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named_or_meant(folder: Path, name: str) -> None:
    (folder / name).unlink()
    code, sentence = refused_folder(folder)
    assert code == "missing"
    assert name in sentence or "tokenizer" in sentence


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    assert refused_folder(tmp_path / "nothing")[0] == "missing"


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl"])
def test_weights_that_can_hold_code_are_never_opened(folder: Path, name: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"

    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(canary),)

    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb()))
    assert refused_folder(folder)[0] == "pickle"
    assert not canary.exists()


def test_a_pickle_beside_safetensors_is_not_opened_either(folder: Path, tmp_path: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"not even a pickle")
    assert load("it", [f"it={folder}"]).kinds == {"encoder": (3, 2)}


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("config.json", {"auto_map": {"AutoModel": "modeling.Canary"}}),
        ("config.json", {"auto_map": {"AutoConfig": "owner/other--configuration.Canary"}}),
        ("config.json", {"_attn_implementation_internal": "owner/kernel"}),
        ("config.json", {"_attn_implementation": "owner/kernel"}),
        ("config.json", {"attn_implementation": {"": "owner/kernel"}}),
        ("config.json", {"text_config": {"deeper": [{"auto_map": {"AutoModel": "x.Y"}}]}}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["tokenization.Canary", None]}}),
    ],
)
def test_code_of_its_own_is_never_run(
    folder: Path, tmp_path: Path, file: str, change: dict[str, Any]
) -> None:
    canary = tmp_path / "canary"
    code = f"import os; os.mkdir({str(canary)!r})\nclass Canary: pass\n"
    for name in ("modeling.py", "tokenization.py", "configuration.py"):
        (folder / name).write_text(code)
    tiny.alter(folder, file, **change)
    code, sentence = refused_folder(folder)
    assert code == "code"
    assert "never" in sentence
    assert not canary.exists()


def test_a_file_that_lies_elsewhere_is_not_followed(folder: Path, made: Path, tmp_path: Path) -> None:
    weights = folder / "model.safetensors"
    weights.rename(tmp_path / "elsewhere.safetensors")
    weights.symlink_to(tmp_path / "elsewhere.safetensors")
    code, sentence = refused_folder(folder)
    assert code == "outside"
    assert "model.safetensors" in sentence


def test_a_link_to_a_folder_elsewhere_is_not_followed(folder: Path) -> None:
    (folder / "more").symlink_to("/etc")
    assert refused_folder(folder)[0] == "outside"


def test_a_folder_may_be_reached_by_a_link_itself(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert load("link", [str(tmp_path / "link")]).kinds == {"encoder": (3, 2)}


def test_an_index_names_only_files_of_its_own_folder(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "model.safetensors", tmp_path / "other.safetensors")
    for name in ("../other.safetensors", str(tmp_path / "other.safetensors"), "model.bin", "a/b.safetensors"):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
        assert refused_folder(folder)[0] == "outside"
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": 3}}))
    assert refused_folder(folder)[0] == "broken"


def test_weights_in_parts_are_read(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    for file, held in parts.items():
        save_file({name: weights[name] for name in held}, folder / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, held in parts.items() for name in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load("it", [f"it={folder}"]).kinds == {"encoder": (3, 2)}
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert refused_folder(folder)[0] == "missing"


@pytest.mark.parametrize("keep", [0, 7, 9, 500, -1])
def test_weights_that_are_cut_off_are_refused_by_their_header(folder: Path, keep: int) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:keep])
    assert refused_folder(folder)[0] == "broken"


def test_a_small_file_that_tells_of_terabytes_takes_no_memory(folder: Path) -> None:
    for shape in ([2**40], [-1], [1.5], "x", [True]):
        header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"1234")
        assert refused_folder(folder)[0] == "broken"
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    assert refused_folder(folder)[0] == "broken"


def test_more_than_the_limit_is_refused_before_it_is_loaded(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = 4 * sum(tensor.numel() for tensor in load_file(made / "model.safetensors").values())
    assert judge(made, made, needed).parameters * 4 == needed
    monkeypatch.setattr(
        transformers.AutoConfig, "from_pretrained", lambda *_, **__: pytest.fail("was loaded")
    )
    assert refused_folder(made, limit=needed - 1)[0] == "large"


def test_a_configuration_that_asks_for_more_than_its_files_hold_is_refused(folder: Path) -> None:
    rows = json.loads((folder / "config.json").read_text())["vocab_size"]
    tiny.alter(folder, "config.json", vocab_size=10**9)
    assert refused_folder(folder)[0] == "large"
    tiny.alter(folder, "config.json", vocab_size=rows, num_hidden_layers=10**7)
    assert refused_folder(folder)[0] == "broken"
    tiny.alter(folder, "config.json", num_hidden_layers=5)
    code, sentence = refused_folder(folder)
    assert code == "broken"
    assert "none of its files" in sentence  # else two layers would be random


def test_sizes_that_do_not_fit_the_weights_are_refused(folder: Path) -> None:
    tiny.alter(folder, "config.json", hidden_size=24)
    assert refused_folder(folder)[0] == "broken"
    tiny.alter(folder, "config.json", hidden_size="wide")
    assert refused_folder(folder)[0] in ("architecture", "broken")


def test_half_a_head_is_no_head(folder: Path) -> None:
    """Where the weights of the head are missing, what is left predicts nothing, instead of at random."""
    weights = load_file(folder / "model.safetensors")
    held = {name: tensor for name, tensor in weights.items() if not name.startswith("cls.")}
    assert len(held) < len(weights)
    save_file(held, folder / "model.safetensors", metadata={"format": "pt"})
    door = load("it", [f"it={folder}"])
    assert not door.predicts
    assert door.trace("The [MASK] sat.").comes_out == ()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}', '{"a": 1e', "[" * 100_000, "\udc80"])
def test_a_configuration_that_is_no_json_object_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8", errors="surrogateescape")
    assert refused_folder(folder)[0] == "broken"


def test_a_configuration_is_not_read_beyond_its_size(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"x": "y" * 2**21}))
    assert refused_folder(folder)[0] == "broken"
    nested: dict[str, Any] = {}
    for _ in range(100):
        nested = {"x": nested}
    (folder / "config.json").write_text(json.dumps(nested))
    assert refused_folder(folder)[0] == "broken"


def test_a_vocabulary_is_not_read_beyond_its_size(folder: Path) -> None:
    with (folder / "tokenizer.json").open("r+b") as file:
        file.truncate(2**26 + 1)  # which takes no room on most disks
    code, sentence = refused_folder(folder)
    assert code == "broken"
    assert "tokenizer.json" in sentence


def test_an_architecture_that_nobody_knows_is_said_so(folder: Path) -> None:
    tiny.alter(folder, "config.json", model_type="crystal-ball")
    code, sentence = refused_folder(folder)
    assert code == "architecture"
    assert "crystal-ball" in sentence
    assert "BERT" in sentence


def test_a_model_that_reads_no_text_is_said_so(folder: Path) -> None:
    config = transformers.ViTConfig(
        hidden_size=22,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=23,
        image_size=4,
        patch_size=2,
    )
    transformers.ViTModel(config).save_pretrained(folder)
    assert refused_folder(folder)[0] == "architecture"


def test_adapters_and_quantised_weights_are_said_to_be_so(folder: Path) -> None:
    tiny.alter(folder, "config.json", quantization_config={"quant_method": "bitsandbytes"})
    assert "quantised" in refused_folder(folder)[1]
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "/etc"}))
    code, sentence = refused_folder(folder)
    assert code == "architecture"
    assert "adapter" in sentence


def test_every_refusal_survives_a_pickle() -> None:
    error = pickle.loads(pickle.dumps(RefusedError("large", "too large")))
    assert (error.code, str(error)) == ("large", "too large")


def test_progress_goes_forward_to_the_end(made: Path) -> None:
    told: list[tuple[str, float]] = []
    load("bert", [str(made)], progress=lambda step, share: told.append((step, share)))
    shares = [share for _step, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert [step for step, _share in told] == ["files", "tokenizer", "weights", "look", "look"]


# --- from the Hub -------------------------------------------------------------------------------------------


@pytest.fixture
def hub(made: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A Hub that offers one model, and remembers what was asked of it."""
    files = {path.name: path.stat().st_size for path in made.iterdir()}
    hub = SimpleNamespace(files=files, total=None, asked=[], commit="c" * 40, tokens=[], times=1)

    class Api:
        def __init__(self, token: object = None) -> None:
            hub.tokens.append(token)

        def model_info(self, name: str, **_: object) -> SimpleNamespace:
            if name != "owner/model":
                response = SimpleNamespace(headers={}, request=None, status_code=404)
                raise RepositoryNotFoundError("404", response=response)  # type: ignore[arg-type]
            siblings = [SimpleNamespace(rfilename=file, size=size) for file, size in hub.files.items()]
            return SimpleNamespace(siblings=siblings, safetensors=SimpleNamespace(total=hub.total or 0))

    def download(
        name: str, file: str, *, revision: str | None, cache_dir: Path, token: object, tqdm_class: Any
    ) -> str:
        hub.tokens.append(token)
        hub.asked.append(file)
        bar = tqdm_class(unit="B", total=1, initial=0, desc=file, disable=False)
        for _ in range(hub.times):
            bar.update(made.joinpath(file).stat().st_size)
        place = Path(cache_dir, "models--owner--model")
        snapshot, blob = place / "snapshots" / hub.commit, place / "blobs" / file
        for each in (snapshot, blob.parent, place / "refs"):
            each.mkdir(parents=True, exist_ok=True)
        (place / "refs" / "main").write_text(hub.commit)
        if (made / file).exists():
            shutil.copy(made / file, blob)
        if not (snapshot / file).exists():
            (snapshot / file).symlink_to(Path("../../blobs", file))
        return str(snapshot / file)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return hub


def test_a_model_of_the_hub_is_fetched_once_and_then_opened_without_network(
    hub: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobody_is_asked: list[object]
) -> None:
    hub.files |= {"pytorch_model.bin": 5, "modeling.py": 5, "onnx/model.onnx": 5, "model.fp16.safetensors": 5}
    told: list[tuple[str, float]] = []
    door = load("owner/model", ["owner/model"], tmp_path, lambda step, share: told.append((step, share)))
    assert door.kinds == {"encoder": (3, 2)}
    assert door.name == "owner/model"
    assert {*hub.asked} == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert hub.asked[-1] == "model.safetensors"  # what is small and may be refused comes first
    assert {*hub.tokens} == {False}  # nobody's credentials
    assert ("download", 0.8) in told
    assert [share for _step, share in told] == sorted(share for _step, share in told)

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda **_: pytest.fail("asked again"))
    again = load("owner/model", ["owner/model"], tmp_path)
    assert again.trace("The cat").source == door.trace("The cat").source
    assert nobody_is_asked == []


def test_without_a_network_a_sentence_says_so(tmp_path: Path, nobody_is_asked: list[object]) -> None:
    code, sentence = refused("owner/model", ["owner/model"], cache_dir=tmp_path)
    assert code == "network"
    assert "cannot be reached" in sentence
    assert nobody_is_asked


def test_a_model_that_the_hub_does_not_know_is_said_so(hub: SimpleNamespace, tmp_path: Path) -> None:
    assert refused("owner/gone", ["owner/gone"], cache_dir=tmp_path)[0] == "missing"


def test_pickles_on_the_hub_are_not_fetched(hub: SimpleNamespace, tmp_path: Path) -> None:
    hub.files = {"config.json": 5, "pytorch_model.bin": 5}
    assert refused("owner/model", ["owner/model"], cache_dir=tmp_path)[0] == "pickle"
    assert hub.asked == []


def test_what_is_too_large_on_the_hub_is_not_fetched(hub: SimpleNamespace, tmp_path: Path) -> None:
    hub.files["model.safetensors"] = 10**12
    assert refused("owner/model", ["owner/model"], cache_dir=tmp_path)[0] == "large"
    hub.files["model.safetensors"], hub.total = 10**6, 10**12  # of few bytes each
    assert refused("owner/model", ["owner/model"], cache_dir=tmp_path)[0] == "large"
    assert hub.asked == []


def test_a_hub_that_sends_more_than_it_said_is_left(hub: SimpleNamespace, tmp_path: Path) -> None:
    hub.times = 3
    code, sentence = refused("owner/model", ["owner/model"], cache_dir=tmp_path)
    assert code == "large"
    assert "more than it said" in sentence


def test_what_the_hub_sends_is_judged_like_any_folder(hub: SimpleNamespace, tmp_path: Path) -> None:
    assert load("owner/model", ["owner/model"], tmp_path)
    blob = tmp_path / "models--owner--model" / "blobs" / "config.json"
    told = json.loads(blob.read_text())
    blob.write_text(json.dumps({**told, "auto_map": {"AutoModel": "x.Y"}}))
    assert refused("owner/model", ["owner/model"], cache_dir=tmp_path)[0] == "code"
    blob.unlink()
    blob.symlink_to("/etc/hostname")
    assert refused("owner/model", ["owner/model"], cache_dir=tmp_path)[0] == "outside"


def test_two_sessions_that_open_models_at_once_get_both(tmp_path: Path, made: Path) -> None:
    """transformers changes torch itself while it loads, so loads take turns."""
    from concurrent.futures import ThreadPoolExecutor

    gpt = tiny.save("gpt2", tmp_path / "gpt2")
    allow = [str(made), str(gpt)]
    with ThreadPoolExecutor(4) as pool:
        doors = list(pool.map(lambda name: load(name, allow), ["bert", "gpt2"] * 3))
    for door in doors:
        assert not any(parameter.is_meta for parameter in door.engine.model.parameters())
        wanted = load(door.name, allow).trace("The cat")
        got = door.trace("The cat")
        for kind in got.kinds:
            assert torch.equal(torch.tensor(got.weights(kind)), torch.tensor(wanted.weights(kind)))
