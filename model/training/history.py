"""history.csv: how a run went, for the pages that show it."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class History:
    """Step, loss, learning rate, and BLEU where it was measured. Only the first process writes."""

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
    validated: NDArray[np.int64]  # (M,)  the steps at which BLEU was measured
    bleu: NDArray[np.float64]  # (M,)


def read(path: Path) -> Curves:
    """The history at `path`. Rows without a loss are those that measured BLEU."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    logged, validated = ([row for row in rows if row[name]] for name in ("loss", "bleu"))
    return Curves(
        steps=np.array([int(row["step"]) for row in logged]),
        loss=np.array([float(row["loss"]) for row in logged]),
        learning_rate=np.array([float(row["learning_rate"]) for row in logged]),
        validated=np.array([int(row["step"]) for row in validated]),
        bleu=np.array([float(row["bleu"]) for row in validated]),
    )
