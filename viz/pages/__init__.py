"""The table of contents: every page by its address."""

from collections.abc import Callable
from dataclasses import dataclass

from viz.pages import about, explore, masks
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
        "masks": Page(_("Masks"), masks.draw),
        "about": Page(_("About"), about.draw),
    }
