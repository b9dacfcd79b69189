"""The run itself: batches, steps, checkpoints to resume from, and what is kept for later pages.

A run lives in one folder:
    recipe.json         how it is made, so that `--resume` needs nothing else
    state.safetensors   weights, Adam's moments and the random state, with the place in the data
    model/              what ships, renewed at each validation (see `model.checkpoint`)
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from model import checkpoint
from model.build import Model, build
from model.config import Config, Material, Shape
from model.tokenizer import Tokenizer
from model.trace import NEUTRAL, Change, Switch
from model.training import corpus, schedule, state
from model.training.corpus import Encoded
from model.training.history import History
from model.training.state import Progress
from model.training.task import Task, task, texts

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
    shape: Shape = "encoder-decoder"  # a decoder or an encoder alone learns English
    material: Material = "attention"
    tokenizer: str = ""  # a tokenizer.json to take over; else one is learned from what is read
    n_layers: int = 3
    d_model: int = 256
    n_heads: int = 8
    d_ff: int = 0  # 0 is four times d_model
    dropout: float = 0.1
    steps: int = 15_000
    pieces: int = 1000  # target pieces a batch and process
    peak: float = 1e-3
    warmup: int = 1500
    cooldown: float = 0.5
    smoothing: float = 0.1  # label smoothing (section 5.4)
    clip: float = 1.0  # largest gradient norm
    look_ahead: bool = True  # without this mask a model learns to copy the next piece: the cheater
    precision: str = "bf16"  # of matrix products while training, or "float32"
    validate_every: int = 1000
    validate_on: int = 300  # English sentences; the whole split is for `model.evaluate`
    keep_snapshots: bool = True  # of the weights on the way

    def __post_init__(self) -> None:
        if self.precision not in ("bf16", "float32"):
            raise ValueError(f'precision is "bf16" or "float32", not "{self.precision}"')

    def config(self, vocabulary: int) -> Config:
        return Config(
            vocabulary=vocabulary,
            n_layers=self.n_layers,
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff or 4 * self.d_model,
            dropout=self.dropout,
            shape=self.shape,
            material=self.material,
        )

    def change(self) -> Change:
        """What the training differs in from the paper's."""
        return NEUTRAL if self.look_ahead else Change(look_ahead=Switch("all"))

    def snapshots(self) -> list[int]:
        """Five steps: 0, and four even on a log scale up to a third of the run. The end is the sixth.

        None where none are to be kept.
        """
        if not self.keep_snapshots:
            return []
        first, last = self.steps / 120, self.steps / 3
        return [0, *(round(first * (last / first) ** (i / 3)) for i in range(4))]


@dataclass
class Run:
    """One process of a run: `rank` of `world`."""

    folder: Path
    recipe: Recipe
    rank: int = 0
    world: int = 1
    _task: Task = field(init=False)

    def train(self) -> None:
        """Train from the last state kept, or from the start, to the recipe's last step.

        Raises ValueError where there are fewer batches than processes.
        """
        recipe = self.recipe
        torch.manual_seed(recipe.seed)
        device = torch.device("cuda", self.rank) if torch.cuda.is_available() else torch.device("cpu")
        pairs = corpus.read_pairs(Path(recipe.pairs))
        training, validation = corpus.split(pairs, recipe.held_out, recipe.seed)
        tokenizer = self._tokenizer(training)
        self._task = learning = task(recipe.shape, tokenizer.size, recipe.change())
        model = build(recipe.config(tokenizer.size)).to(device)
        adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
        progress = state.load(self.folder / STATE, model, adam)
        if self.rank or not progress.step:
            torch.manual_seed(recipe.seed + self.rank + self.world * progress.step)  # dropout of its own
        parallel: nn.Module = DistributedDataParallel(model) if self.world > 1 else model
        encoded = learning.encode(training, tokenizer, model.config.max_pieces)
        history = History(self.folder / SHIP / HISTORY, progress.step, self.rank == 0, learning.metric)
        if self.rank == 0 and 0 in recipe.snapshots() and not progress.step:
            checkpoint.save_snapshot(self.folder / SHIP, model, 0)

        saved = time.monotonic()
        with tqdm(
            total=recipe.steps, initial=progress.step, disable=self.rank > 0, unit="step", mininterval=2
        ) as bar:
            for batch in self._batches(encoded, progress):
                step = progress.step
                lr = schedule.rate(step, recipe.steps, recipe.peak, recipe.warmup, recipe.cooldown)
                progress.loss_sum += self._step(parallel, adam, batch, lr, device)
                bar.update()
                if step % LOG_STEPS == 0:
                    mean, progress.loss_sum = progress.loss_sum / LOG_STEPS, 0.0
                    history.add(step, mean, lr)
                    rate = (bar.format_dict["rate"] or 0) * self.world * recipe.pieces
                    bar.set_postfix(loss=f"{mean:.3f}", tokens_s=f"{rate:.0f}", refresh=False)
                if self.rank:
                    continue
                if step in recipe.snapshots():
                    checkpoint.save_snapshot(self.folder / SHIP, model, step)
                last = step == recipe.steps
                if last or step % recipe.validate_every == 0:
                    history.add(step, None, lr, self._ship(model, tokenizer, validation, bar))
                if last or time.monotonic() - saved > SAVE_SECONDS:
                    state.save(self.folder / STATE, model, adam, progress)
                    saved = time.monotonic()

    def _batches(self, encoded: Sequence[Encoded], progress: Progress) -> Iterator[list[Encoded]]:
        """This process's share of the batches, from the place reached to the last step, epoch by epoch.

        `progress` is moved before a batch is handed out: it then tells of the step being made.
        """
        while progress.step < self.recipe.steps:
            batches = corpus.batches(encoded, self.recipe.pieces, 1000 * self.recipe.seed + progress.epoch)
            if len(batches) < self.world:
                raise ValueError(f"{len(batches)} batches for {self.world} processes")
            share = batches[: len(batches) // self.world * self.world][self.rank :: self.world]
            for batch in share[progress.place : progress.place + self.recipe.steps - progress.step]:
                progress.step, progress.place = progress.step + 1, progress.place + 1
                yield batch
            if progress.place >= len(share):
                progress.epoch, progress.place = progress.epoch + 1, 0

    def _ship(
        self, model: Model, tokenizer: Tokenizer, validation: Sequence[corpus.Pair], bar: tqdm
    ) -> float:
        """Renew what ships; returns how well it does on some of the validation sentences."""
        learning, most = self._task, self.recipe.validate_on
        score = learning.score(model.eval(), tokenizer, validation, most)
        model.train()
        bar.write(f"step {bar.n}: {learning.metric} {score:.2f} on up to {most} validation sentences")
        checkpoint.save(self.folder / SHIP, model, tokenizer)
        return score

    def _step(
        self, model: nn.Module, adam: torch.optim.Adam, batch: list[Encoded], lr: float, device: torch.device
    ) -> float:
        with torch.autocast(device.type, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            loss = self._task.loss(model, batch, device, self.recipe.smoothing)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), self.recipe.clip)
        for group in adam.param_groups:
            group["lr"] = lr
        adam.step()
        return loss.item()

    def _tokenizer(self, training: list[corpus.Pair]) -> Tokenizer:
        """The one beside the weights; else the recipe's, or a new one, put there by the first process."""
        path = self.folder / SHIP / checkpoint.TOKENIZER
        if self.rank == 0 and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.recipe.tokenizer:
                made = Tokenizer.load(Path(self.recipe.tokenizer))
            else:
                special = self.recipe.config(self.recipe.vocabulary).special
                made = Tokenizer.train(texts(self.recipe.shape, training), self.recipe.vocabulary, special)
            made.save(path)
        if self.world > 1:
            dist.barrier()
        return Tokenizer.load(path)
