"""Small trained models that show their working: `model.load("en-fr").trace("I am a student.")`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.doors import Door
    from model.translator import Translator


def load(name_or_folder: "str | Path") -> "Door":
    """A shipped model by its name, such as "en-fr", or any model folder. Raises CheckpointError."""
    from model.doors import load  # here, so that `import model.trace` needs no torch

    return load(name_or_folder)


def translator_of(name_or_folder: "str | Path") -> "Translator":
    """The same where it must be the paper's encoder-decoder. Raises ValueError for another."""
    from model.translator import Translator

    door = load(name_or_folder)
    if not isinstance(door, Translator):
        raise ValueError(f"{door.name} is no Transformer that translates")
    return door


def threads(count: int) -> None:
    """How many threads torch may use for one pass, in this whole process."""
    import torch

    torch.set_num_threads(count)
