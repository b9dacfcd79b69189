"""history.csv: how a run went, for the pages that show it."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class History:
    """Step, loss, learning rate, and what was measured on the way. Only the first process writes."""

    COLUMNS = ("step", "loss", "learning_rate")  # and the name of what was measured: "bleu"

    def __init__(self, path: Path, step: int, writes: bool, metric: str = "bleu") -> None:
        """Open `path`, forgetting what a killed run wrote after the `step` it resumes from."""
        self.path, self.writes = path, writes
        if not writes:
            return
        rows: list[list[str]] = []
        if step and path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                rows = [row for row in list(csv.reader(file))[1:] if int(row[0]) <= step]
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([(*self.COLUMNS, metric), *rows])

    def add(self, step: int, loss: float | None, lr: float, score: float | None = None) -> None:
        if not self.writes:
            return
        shown = [
            "" if number is None else f"{number:.{digits}f}" for number, digits in ((loss, 4), (score, 2))
        ]
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([step, shown[0], f"{lr:.3e}", shown[1]])


@dataclass(frozen=True, eq=False)
class Curves:
    """What a finished run logged, for the pages that show it."""

    steps: NDArray[np.int64]  # (N,)
    loss: NDArray[np.float64]  # (N,)  with label smoothing and dropout, mean over the steps since the last
    learning_rate: NDArray[np.float64]  # (N,)
    metric: str  # "bleu", "perplexity" a piece, or "accuracy" in per cent of the masked pieces
    validated: NDArray[np.int64]  # (M,)  the steps at which it was measured
    scores: NDArray[np.float64]  # (M,)


def read(path: Path) -> Curves:
    """The history at `path`. Rows without a loss are those that measured something."""
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        metric = list(table.fieldnames or ("",))[-1]
        rows = list(table)
    logged, validated = ([row for row in rows if row[name]] for name in ("loss", metric))
    return Curves(
        steps=np.array([int(row["step"]) for row in logged]),
        loss=np.array([float(row["loss"]) for row in logged]),
        learning_rate=np.array([float(row["learning_rate"]) for row in logged]),
        metric=metric,
        validated=np.array([int(row["step"]) for row in validated]),
        scores=np.array([float(row[metric]) for row in validated]),
    )
