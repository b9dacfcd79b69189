"""What a masked language model learns from: pieces hidden at random (Devlin et al. 2019, section 3.1).

Shapes: B batch, T positions.
"""

import torch
from torch import Tensor

from model.config import END, MASK, PAD

CHOSEN = 0.15  # of all pieces: these are asked about
SHOWN_MASK, SHOWN_OTHER = (
    0.8,
    0.1,
)  # of the chosen: hidden behind [MASK], shown as any other piece; the rest stay


def choose(ids: Tensor, chance: torch.Generator | None = None) -> Tensor:
    """[B, T] -> [B, T], True for about 15 % of the pieces; </s> and pads are never asked about."""
    real = (ids != PAD) & (ids != END)
    chosen = real & (torch.rand(ids.shape, generator=chance, device=ids.device) < CHOSEN)
    return chosen if chosen.any() else real  # too few pieces to choose from


def hide(ids: Tensor, vocabulary: int, chance: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """What is shown in place of ids [B, T], and which of them are asked about."""
    chosen = choose(ids, chance)
    luck = torch.rand(ids.shape, generator=chance, device=ids.device)
    others = torch.randint(MASK + 1, vocabulary, ids.shape, generator=chance, device=ids.device)
    shown = ids.masked_fill(chosen & (luck < SHOWN_MASK), MASK)
    swapped = chosen & (luck >= SHOWN_MASK) & (luck < SHOWN_MASK + SHOWN_OTHER)
    return torch.where(swapped, others, shown), chosen
