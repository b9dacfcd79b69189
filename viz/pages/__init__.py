"""The table of contents: every page by its address."""

from collections.abc import Callable
from dataclasses import dataclass

from model.trace import Trace
from viz.pages import about, explore
from viz.text import _
from viz.view import View

Draw = Callable[[Trace, View], None]


@dataclass(frozen=True)
class Page:
    title: str
    draw: Draw


def pages() -> dict[str, Page]:
    """The first is where a reader arrives."""
    return {"explore": Page(_("Explore"), explore.draw), "about": Page(_("About"), about.draw)}
