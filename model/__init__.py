"""A small trained Transformer that shows its working: `model.load("en-fr").trace("I am a student.")`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.translator import Translator


def load(name_or_folder: "str | Path") -> "Translator":
    """A shipped model by its name, such as "en-fr", or any model folder. Raises CheckpointError."""
    from model.translator import load  # here, so that `import model.trace` needs no torch

    return load(name_or_folder)


def threads(count: int) -> None:
    """How many threads torch may use for one pass, in this whole process."""
    import torch

    torch.set_num_threads(count)
