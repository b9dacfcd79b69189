"""Train a model: `python -m model.train --pairs FILE`, or by `torchrun` on several processors."""

import argparse
import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path

import torch
import torch.distributed as dist

from model.training.loop import RECIPE, Recipe, Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/en-fr"), help="folder of the run")
    parser.add_argument("--resume", action="store_true", help="go on from the last state kept in --out")
    for field in fields(Recipe):
        if field.name != "pairs":
            kind = _flag if isinstance(field.default, bool) else type(field.default)
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind)
    parser.add_argument("--pairs", help="tab-separated English and French, as text or zip")
    arguments = vars(parser.parse_args())
    out, resume = arguments.pop("out"), arguments.pop("resume")
    given = {name: value for name, value in arguments.items() if value is not None}

    kept = out / RECIPE
    if resume and kept.exists():
        recipe = replace(Recipe(**json.loads(kept.read_text(encoding="utf-8"))), **given)
    elif "pairs" not in given:
        parser.error("--pairs FILE is needed to start a run")
    elif kept.exists():
        parser.error(f"{out} holds a run already: add --resume, or choose another --out")
    else:
        recipe = Recipe(**given)

    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if rank == 0:
        out.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(recipe), indent=2) + "\n", encoding="utf-8")
    Run(out, recipe, rank, world).train()
    if world > 1:
        dist.destroy_process_group()


def _flag(word: str) -> bool:
    if word.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"true or false, not {word}")
    return word.lower() == "true"


if __name__ == "__main__":
    main()
