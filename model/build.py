"""The module that a config describes."""

from model.config import Config
from model.recurrent import Recurrent
from model.stack import Stack
from model.transformer import Transformer

Model = Transformer | Stack | Recurrent


def build(config: Config) -> Model:
    """A model of these sizes with fresh weights."""
    if config.recurrent:
        return Recurrent(config)
    return Transformer(config) if config.shape == "encoder-decoder" else Stack(config)
