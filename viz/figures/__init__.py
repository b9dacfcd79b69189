"""Pictures of attention: a `Map` or a `Trace` in, a `go.Figure` out. No screen is known here."""

from viz.figures.grid import head_grid
from viz.figures.heatmap import Look, attention_map, signed_map
from viz.figures.lines import attention_lines
from viz.figures.masks import mask_editor, mask_map, number_map

__all__ = [
    "Look",
    "attention_lines",
    "attention_map",
    "head_grid",
    "mask_editor",
    "mask_map",
    "number_map",
    "signed_map",
]
