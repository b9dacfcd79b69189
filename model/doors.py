"""Every shipped model by its name, behind the door that its config calls for."""

from pathlib import Path

import torch

from model import checkpoint
from model.continuer import Continuer
from model.filler import Filler
from model.reader import MODELS
from model.recurrent import Recurrent
from model.recurrent_translator import RecurrentTranslator
from model.stack import Stack
from model.translator import Translator

Door = Translator | RecurrentTranslator | Continuer | Filler


def load(name_or_folder: str | Path) -> Door:
    """A shipped model by its name, such as "en-fr", or any model folder. Raises CheckpointError."""
    folder = MODELS / name_or_folder
    if not folder.is_dir():
        folder = Path(name_or_folder)
    _keep_memory()
    model, tokenizer = checkpoint.load(folder)
    if isinstance(model, Recurrent):
        return RecurrentTranslator(folder.name, model, tokenizer)
    if isinstance(model, Stack):
        door = Continuer if model.config.shape == "decoder" else Filler
        return door(folder.name, model, tokenizer)
    return Translator(folder.name, model, tokenizer)


def _keep_memory() -> None:
    """Let the process keep the memory of a trace for the next one, instead of having it from the system anew.

    glibc gives freed memory back beyond twice the largest block ever freed; elsewhere this does nothing.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8)
