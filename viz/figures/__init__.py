"""Pictures of attention: a `Map` or a `Trace` in, a `go.Figure` out. No screen is known here."""

from viz.figures.grid import head_grid
from viz.figures.heatmap import attention_map
from viz.figures.lines import attention_lines

__all__ = ["attention_lines", "attention_map", "head_grid"]
