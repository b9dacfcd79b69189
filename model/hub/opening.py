"""From a name to a model that can be looked into: allowed, fetched, judged, read, and tried once."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from model.hub.door import HubModel
from model.hub.fetching import fetch
from model.hub.looking import look
from model.hub.refusal import RefusedError
from model.hub.seeing import NAME as OURS
from model.hub.seeing import register
from model.hub.settings import NAME, Entry, offered
from model.hub.shelf import Progress, Shelf, judge

OLDEST = (5, 3)  # of transformers: before, a configuration could name code to be run (CVE-2026-4372)
FAMILIES = "BERT, RoBERTa, DistilBERT, GPT-2, Llama, T5, Marian, BART and their like"
LAYERS = ("hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers")
HERE = {"local_files_only": True, "trust_remote_code": False}
_one_at_a_time = threading.Lock()  # transformers changes torch itself while it loads


def opened(name: str, allow: Sequence[str], cache: Path | None, progress: Progress, limit: int) -> HubModel:
    """See `model.hub.load`."""
    entry = _entry(name, allow)
    _packages()
    progress("files", 0.0)
    if entry.folder is None:
        shelf = fetch(entry, cache, progress, limit)
    else:
        shelf = judge(entry.folder, entry.folder, limit)
    with _one_at_a_time:
        config = _configuration(shelf)
        progress("tokenizer", 0.8)
        tokenizer = _tokenizer(shelf.folder)
        for attention in (OURS, "eager"):  # the latter where a family has attention of its own alone
            progress("weights", 0.85)
            model = _model(shelf, config, limit, attention)
            progress("look", 0.95)
            found = look(entry.name, model, tokenizer) if model is not None else None
            if found is not None:
                progress("look", 1.0)
                return found
    raise RefusedError("attention", "this model does not hand over what its attention weighs")


def _entry(name: str, allow: Sequence[str]) -> Entry:
    """The model of the list that `name` means."""
    if not allow:
        raise RefusedError("off", "models from elsewhere are switched off on this server")
    known = offered(allow)
    if name in known:
        return known[name]
    for entry in known.values():
        if entry.folder is not None and Path(name).expanduser().resolve() == entry.folder.resolve():
            return entry
    if Path(name).is_absolute() or name.startswith((".", "~", "\\")) or ".." in name:
        raise RefusedError("outside", "a folder is opened only where this server's list names it")
    if not NAME.fullmatch(name):
        raise RefusedError("name", "no model can be called so: a name looks like owner/model")
    listed = ", ".join(sorted(known)) or "none"
    raise RefusedError("listed", f"this model is not on this server's list: {listed}")


def _packages() -> None:
    try:
        import transformers
    except ImportError as error:
        raise RefusedError(
            "packages", "transformers is not installed here: pip install -r requirements-hf.txt"
        ) from error
    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    if version < OLDEST:
        raise RefusedError(
            "packages",
            f"transformers {transformers.__version__} is too old: pip install -r requirements-hf.txt",
        )
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    register()


def _configuration(shelf: Shelf) -> Any:
    """What transformers makes of the configuration, where it knows this sort of model."""
    import transformers

    _check_depth(shelf.config, len(shelf.tensors))
    try:
        return transformers.AutoConfig.from_pretrained(shelf.folder, **HERE)
    except Exception as error:
        kind = str(shelf.config.get("model_type", ""))[:40]
        raise RefusedError(
            "architecture", f"a model of the sort {kind!r} is not known here; known are {FAMILIES}"
        ) from error


def _model(shelf: Shelf, config: Any, limit: int, attention: str) -> Any | None:
    """The model with its weights in float32, every one of them from the files.

    None where its family knows nothing of a register of attentions.
    """
    for family in _families(config):
        try:
            with torch.device("meta"):  # shapes without memory
                blank = family.from_config(config, trust_remote_code=False)
            sizes = [tensor.numel() for tensor in (*blank.parameters(), *blank.buffers())]
        except Exception as error:
            raise RefusedError(
                "architecture", f"this model cannot be built as text is read; known are {FAMILIES}"
            ) from error
        if 4 * sum(sizes) > limit:
            needed = 4 * sum(sizes) / 2**30
            raise RefusedError(
                "large", f"its configuration asks for {needed:.1f} GiB, the limit is {limit / 2**30:.1f} GiB"
            )
        del blank
        try:
            model, told = family.from_pretrained(
                shelf.folder,
                attn_implementation=attention,
                dtype=torch.float32,
                use_safetensors=True,
                output_loading_info=True,
                **HERE,
            )
        except KeyError as error:
            if error.args == (OURS,):
                return None
            raise RefusedError("broken", "its weights do not fit its configuration") from error
        except Exception as error:
            raise RefusedError("broken", "its weights do not fit its configuration") from error
        if all(".pooler." in f".{name}." for name in told["missing_keys"]):
            return model.eval().requires_grad_(False)
    raise RefusedError("broken", "some of its weights are in none of its files")


def _check_depth(config: dict[str, Any], tensors: int) -> None:
    """Refuse a configuration of more layers than there are tensors before so many are made."""
    for key, value in config.items():
        if key.endswith(LAYERS) and isinstance(value, int) and value > tensors:
            raise RefusedError("broken", f"{key} is {value}, but its files hold {tensors} tensors")
        if isinstance(value, dict):
            _check_depth(value, tensors)


def _families(config: Any) -> list[Any]:
    """The classes that may read these weights, those that predict something first."""
    import transformers as t

    made = (config.architectures or [""])[0]
    if made.endswith("EncoderModel"):
        return [t.AutoModelForTextEncoding]
    if config.is_encoder_decoder:
        return [t.AutoModelForSeq2SeqLM, t.AutoModel]
    if "MaskedLM" in made or "PreTraining" in made:
        return [t.AutoModelForMaskedLM, t.AutoModel]
    if "CausalLM" in made or "LMHead" in made:
        return [t.AutoModelForCausalLM, t.AutoModel]
    return [t.AutoModel]


def _tokenizer(folder: Path) -> Any:
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except ImportError as error:
        raise RefusedError(
            "packages", "its tokenizer needs a package: pip install -r requirements-hf.txt"
        ) from error
    except Exception as error:
        raise RefusedError("missing", "it has no tokenizer that can be read") from error
