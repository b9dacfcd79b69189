"""history.csv: how a run went, for the pages that show it."""

import csv
from pathlib import Path


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
