"""The table of contents: every page by its address."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from viz import view
from viz.pages import about, decode, explore, head, heads, masks, models, positions, training, why
from viz.sizes import Offer, Sizes
from viz.text import _
from viz.view import Offers, Scene


@dataclass(frozen=True)
class Page:
    title: str
    draw: Callable[[Scene], None]
    offers: Offers = field(default_factory=dict)  # the values that its own query parameters may have
    alone: Callable[[], None] | None = None  # draws the page where no model can be asked


def pages() -> dict[str, Page]:
    """The first is where a reader arrives."""
    return {
        "explore": Page(_("Explore"), explore.draw),
        "head": Page(_("One head"), head.draw, head.OFFERS),
        "masks": Page(_("Masks"), masks.draw, masks.OFFERS),
        "positions": Page(_("Positions"), positions.draw, positions.OFFERS),
        "decode": Page(_("Decode"), decode.draw, decode.OFFERS),
        "heads": Page(_("Heads"), heads.draw, heads.OFFERS),
        "training": Page(_("Training"), training.draw, training.OFFERS),
        "why": Page(_("Why"), why.draw, why.OFFERS, why.alone),
        "models": Page(_("Models"), models.draw, models.OFFERS, models.alone),
        "about": Page(_("About"), about.draw, alone=about.alone),
    }


def offers(sizes: Sizes, models: Sequence[Offer], elsewhere: Sequence[str] = ()) -> Offers:
    """The values of every query parameter, the frame's and those of all pages."""
    own = view.offers(sizes) | {"model": (*(offer.name for offer in models), *elsewhere)}
    return reduce(or_, (page.offers for page in pages().values()), own)
