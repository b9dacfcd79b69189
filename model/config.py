"""The sizes of one model: chosen once, saved beside the weights, read everywhere."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self, get_args

from model.trace import KINDS, Kind

PAD, START, END, UNKNOWN = range(4)  # ids of the special pieces, the first four of every vocabulary
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
MASK, GAP = len(SPECIAL), "[MASK]"  # what hides a piece; only an encoder alone has this fifth special piece

Shape = Literal["encoder-decoder", "decoder", "encoder"]
Material = Literal["attention", "recurrent attention", "recurrent"]
UNSAID = ("encoder-decoder", "attention")  # what a config.json need not say


@dataclass(frozen=True)
class Config:
    """Sizes in the paper's letters (Vaswani et al. 2017, table 3), and what the model is built of.

    A recurrent model has one layer and one head, and d_ff is the width of its hidden states.
    """

    vocabulary: int
    n_layers: int = 3  # N
    d_model: int = 256
    n_heads: int = 8  # h
    d_ff: int = 1024
    dropout: float = 0.1  # P_drop
    max_pieces: int = 64  # the longest source or target that is accepted, </s> or <s> counted
    shape: Shape = "encoder-decoder"
    material: Material = "attention"

    def __post_init__(self) -> None:
        for name, size in asdict(self).items():
            if isinstance(size, int) and size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        for name, word, known in (("shape", self.shape, Shape), ("material", self.material, Material)):
            if word not in get_args(known):
                raise ValueError(f"{name} is one of {', '.join(get_args(known))}, not {word}")
        if self.recurrent and self.shape != "encoder-decoder":
            raise ValueError(f"a recurrent model is an encoder-decoder, not {self.shape}")
        if self.recurrent and (self.n_layers, self.n_heads) != (1, 1):
            raise ValueError(f"a recurrent model has 1 layer, 1 head, not {self.n_layers}, {self.n_heads}")
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} does not divide into {self.n_heads} heads")
        if self.d_model % 2:
            raise ValueError(f"d_model must be even for sine and cosine pairs, got {self.d_model}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")

    @property
    def recurrent(self) -> bool:
        return self.material != "attention"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The attentions that the model has."""
        if self.recurrent:
            return ("cross",) if self.material == "recurrent attention" else ()
        return KINDS if self.shape == "encoder-decoder" else (self.shape,)

    @property
    def changes(self) -> frozenset[str]:
        """The fields of `Change` that this model has something for."""
        found = {"blocked", "removed", "uniform"} if self.kinds else set()
        found |= {"positions", "seed", "shift", "scale", "residual", "norm"} if not self.recurrent else set()
        found |= {"source_pads"} if self.shape != "decoder" else set()
        found |= {"target_pads"} if self.shape != "encoder" else set()
        own = {
            "encoder": {"source_padding"},
            "decoder": {"target_padding", "look_ahead"},
            "cross": {"cross_padding"},
        }
        return frozenset(found.union(*(own[kind] for kind in self.kinds)))

    @property
    def special(self) -> tuple[str, ...]:
        """The special pieces, by their ids."""
        return (*SPECIAL, GAP) if self.shape == "encoder" else SPECIAL

    @property
    def d_k(self) -> int:
        """Width of one head: d_k = d_v = d_model / h (section 3.2.2)."""
        return self.d_model // self.n_heads

    def save(self, path: Path) -> None:
        """Write the sizes; a shape or material of the first translator's goes without saying."""
        said = {name: size for name, size in asdict(self).items() if size not in UNSAID}
        path.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
