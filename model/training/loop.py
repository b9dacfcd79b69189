"""The run itself: batches, steps, checkpoints to resume from, and what is kept for later pages.

A run lives in one folder:
    recipe.json         how it is made, so that `--resume` needs nothing else
    state.safetensors   weights, Adam's moments and the random state, with the place in the data
    model/              what ships, renewed at each validation (see `model.checkpoint`)
"""

import csv
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from model import checkpoint
from model.config import PAD, Config
from model.decoding import padded
from model.quality import bleu
from model.tokenizer import Tokenizer
from model.training import corpus, schedule
from model.training.corpus import Encoded
from model.transformer import Transformer

SAVE_SECONDS = 45  # the most that a kill can lose
LOG_STEPS = 50
SHIP, STATE, RECIPE, HISTORY = "model", "state.safetensors", "recipe.json", "history.csv"


@dataclass(frozen=True)
class Recipe:
    """All that decides a run, apart from the number of processes."""

    pairs: str
    seed: int = 1
    held_out: int = 1500  # English sentences kept for validation
    vocabulary: int = 8000
    n_layers: int = 3
    d_model: int = 256
    n_heads: int = 8
    dropout: float = 0.1
    steps: int = 15_000
    pieces: int = 1000  # target pieces a batch and process
    peak: float = 1e-3
    warmup: int = 1500
    cooldown: float = 0.5
    smoothing: float = 0.1  # label smoothing (section 5.4)
    clip: float = 1.0  # largest gradient norm
    precision: str = "bf16"  # of matrix products while training, or "float32"
    validate_every: int = 1000
    validate_on: int = 300  # English sentences; the whole split is for `model.evaluate`

    def config(self, vocabulary: int) -> Config:
        return Config(
            vocabulary=vocabulary,
            n_layers=self.n_layers,
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=4 * self.d_model,
            dropout=self.dropout,
        )

    def snapshots(self) -> list[int]:
        """Five steps: 0, and four even on a log scale up to a third of the run. The end is the sixth."""
        first, last = self.steps / 120, self.steps / 3
        return [0, *(round(first * (last / first) ** (i / 3)) for i in range(4))]


@dataclass
class Run:
    """One process of a run: `rank` of `world`."""

    folder: Path
    recipe: Recipe
    rank: int = 0
    world: int = 1

    def train(self) -> None:
        """Train from the last state kept, or from the start, to the recipe's last step."""
        torch.manual_seed(self.recipe.seed)
        device = torch.device("cuda", self.rank) if torch.cuda.is_available() else torch.device("cpu")
        training, validation = corpus.split(
            corpus.read_pairs(Path(self.recipe.pairs)), self.recipe.held_out, self.recipe.seed
        )
        tokenizer = self._tokenizer(training)
        config = self.recipe.config(tokenizer.size)
        model = Transformer(config).to(device)
        adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
        step, epoch, place = self._resume(model, adam)
        if step == 0:
            torch.manual_seed(self.recipe.seed + self.rank)
        parallel: nn.Module = DistributedDataParallel(model) if self.world > 1 else model
        encoded = corpus.encode(training, tokenizer, config.max_pieces)
        references = corpus.references(validation)
        history = History(self.folder / SHIP / HISTORY, step, self.rank == 0)
        bar = tqdm(total=self.recipe.steps, initial=step, disable=self.rank > 0, unit="step", mininterval=2)
        if self.rank == 0 and step == 0:
            checkpoint.save_snapshot(self.folder / SHIP, model, 0)

        saved, loss_sum, pieces_sum, clock = time.monotonic(), 0.0, 0, time.monotonic()
        while step < self.recipe.steps:
            batches = corpus.batches(encoded, self.recipe.pieces, 1000 * self.recipe.seed + epoch)
            batches = batches[: len(batches) // self.world * self.world][self.rank :: self.world]
            for batch in batches[place:]:
                step, place = step + 1, place + 1
                lr = schedule.rate(
                    step, self.recipe.steps, self.recipe.peak, self.recipe.warmup, self.recipe.cooldown
                )
                loss_sum += self._step(parallel, adam, batch, lr, device)
                pieces_sum += sum(len(source) + len(target) - 1 for source, target in batch)
                bar.update()
                if step % LOG_STEPS == 0:
                    now = time.monotonic()
                    mean, speed = loss_sum / LOG_STEPS, pieces_sum * self.world / (now - clock)
                    bar.set_postfix(loss=f"{mean:.3f}", pieces_s=f"{speed:.0f}", refresh=False)
                    loss_sum, pieces_sum, clock = 0.0, 0, now
                    history.add(step, mean, lr)
                if self.rank == 0 and step in self.recipe.snapshots():
                    checkpoint.save_snapshot(self.folder / SHIP, model, step)
                last = step == self.recipe.steps
                if self.rank == 0 and (last or step % self.recipe.validate_every == 0):
                    few = dict(list(references.items())[: self.recipe.validate_on])
                    score = bleu(model.eval(), tokenizer, few).score
                    model.train()
                    history.add(step, None, lr, score)
                    bar.write(f"step {step}: BLEU {score:.1f} on {len(few)} validation sentences")
                    checkpoint.save(self.folder / SHIP, model, tokenizer)
                if self.rank == 0 and (last or time.monotonic() - saved > SAVE_SECONDS):
                    self._save(model, adam, step, epoch, place)
                    saved = time.monotonic()
                if last:
                    break
            else:
                epoch, place = epoch + 1, 0
        bar.close()

    def _step(
        self, model: nn.Module, adam: torch.optim.Adam, batch: list[Encoded], lr: float, device: torch.device
    ) -> float:
        source = padded([source for source, _ in batch], device)
        target = padded([target for _, target in batch], device)
        with torch.autocast(device.type, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            logits: Tensor = model(source, target[:, :-1])
            loss = cross_entropy(
                logits.flatten(0, 1),
                target[:, 1:].flatten(),
                ignore_index=PAD,
                label_smoothing=self.recipe.smoothing,
            )
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), self.recipe.clip)
        for group in adam.param_groups:
            group["lr"] = lr
        adam.step()
        return loss.item()

    def _tokenizer(self, training: list[corpus.Pair]) -> Tokenizer:
        """The one beside the weights, or a new one learned from the training pairs by the first process."""
        path = self.folder / SHIP / checkpoint.TOKENIZER
        if self.rank == 0 and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            texts = (text for pair in training for text in (pair.source, pair.target))
            Tokenizer.train(texts, self.recipe.vocabulary).save(path)
        if self.world > 1:
            dist.barrier()
        return Tokenizer.load(path)

    def _save(self, model: Transformer, adam: torch.optim.Adam, step: int, epoch: int, place: int) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
        for name, parameter in model.named_parameters():
            for key, value in adam.state[parameter].items():
                tensors[f"adam.{name}.{key}"] = value
        tensors["random"] = torch.get_rng_state()
        progress = json.dumps({"step": step, "epoch": epoch, "place": place})
        fresh = self.folder / f"{STATE}.new"
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, fresh, {"progress": progress}
        )
        os.replace(fresh, self.folder / STATE)  # a kill leaves the old state or the new one, whole

    def _resume(self, model: Transformer, adam: torch.optim.Adam) -> tuple[int, int, int]:
        """Load the kept state into model and optimizer: the step, the epoch and the place in it."""
        path = self.folder / STATE
        if not path.exists():
            return 0, 0, 0
        with safe_open(path, framework="pt") as state:
            progress = json.loads(state.metadata()["progress"])
            model.load_state_dict({name: state.get_tensor(f"model.{name}") for name in model.state_dict()})
            for name, parameter in model.named_parameters():
                adam.state[parameter] = {
                    key: state.get_tensor(f"adam.{name}.{key}").to(
                        parameter.device if key != "step" else "cpu"
                    )
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
            torch.set_rng_state(state.get_tensor("random"))
        return progress["step"], progress["epoch"], progress["place"]


class History:
    """history.csv: step, loss, learning rate, BLEU where it was measured. Only the first process writes."""

    COLUMNS = ("step", "loss", "learning_rate", "bleu")

    def __init__(self, path: Path, step: int, writes: bool) -> None:
        """Open `path`, forgetting what a killed run wrote after the `step` it resumes from."""
        self.path, self.writes = path, writes
        if not writes:
            return
        rows: list[list[str]] = []
        if step and path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                rows = [row for row in list(csv.reader(file))[1:] if int(row[0]) <= step]
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.COLUMNS, *rows])

    def add(self, step: int, loss: float | None, lr: float, score: float | None = None) -> None:
        if not self.writes:
            return
        row = [
            step,
            "" if loss is None else f"{loss:.4f}",
            f"{lr:.3e}",
            "" if score is None else f"{score:.2f}",
        ]
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(row)
