"""What a run is resumed from: weights, Adam's moments, the random state, and the place in the data."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from model.build import Model


@dataclass
class Progress:
    """How far a run has come."""

    step: int = 0
    epoch: int = 0
    place: int = 0  # batches of the epoch that this process has made
    loss_sum: float = 0.0  # of the steps since the last that was logged


def save(path: Path, model: Model, adam: torch.optim.Adam, progress: Progress) -> None:
    """Write the state; a kill leaves the old one or the new one, whole."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in adam.state[parameter].items():
            tensors[f"adam.{name}.{key}"] = value
    tensors["random"] = torch.get_rng_state()
    fresh = path.with_name(f"{path.name}.new")
    metadata = {"progress": json.dumps(asdict(progress))}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, fresh, metadata)
    os.replace(fresh, path)


def load(path: Path, model: Model, adam: torch.optim.Adam) -> Progress:
    """Put the state into model, optimizer and random generator; where there is none, nothing happens."""
    if not path.exists():
        return Progress()
    with safe_open(path, framework="pt") as state:
        model.load_state_dict({name: state.get_tensor(f"model.{name}") for name in model.state_dict()})
        for name, parameter in model.named_parameters():
            adam.state[parameter] = {
                key: state.get_tensor(f"adam.{name}.{key}").to(parameter.device if key != "step" else "cpu")
                for key in ("step", "exp_avg", "exp_avg_sq")
            }
        torch.set_rng_state(state.get_tensor("random"))
        return Progress(**json.loads(state.metadata()["progress"]))
