"""The sizes of one model: chosen once, saved beside the weights, read everywhere."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

PAD, START, END, UNKNOWN = range(4)  # ids of the special pieces, the first four of every vocabulary
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")


@dataclass(frozen=True)
class Config:
    """Sizes in the paper's letters (Vaswani et al. 2017, table 3)."""

    vocabulary: int
    n_layers: int = 3  # N
    d_model: int = 256
    n_heads: int = 8  # h
    d_ff: int = 1024
    dropout: float = 0.1  # P_drop
    max_pieces: int = 64  # the longest source or target that is accepted, </s> or <s> counted

    def __post_init__(self) -> None:
        for name, size in asdict(self).items():
            if name != "dropout" and size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} does not divide into {self.n_heads} heads")
        if self.d_model % 2:
            raise ValueError(f"d_model must be even for sine and cosine pairs, got {self.d_model}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")

    @property
    def d_k(self) -> int:
        """Width of one head: d_k = d_v = d_model / h (section 3.2.2)."""
        return self.d_model // self.n_heads

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
