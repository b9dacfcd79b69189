"""The table of contents: every page by its address."""

from collections.abc import Callable
from dataclasses import dataclass

from viz.pages import about, explore, head, masks, positions
from viz.text import _
from viz.view import Scene


@dataclass(frozen=True)
class Page:
    title: str
    draw: Callable[[Scene], None]


def pages() -> dict[str, Page]:
    """The first is where a reader arrives."""
    return {
        "explore": Page(_("Explore"), explore.draw),
        "head": Page(_("One head"), head.draw),
        "masks": Page(_("Masks"), masks.draw),
        "positions": Page(_("Positions"), positions.draw),
        "about": Page(_("About"), about.draw),
    }
