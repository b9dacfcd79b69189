"""All heads: beside one another, by rule, removed, flattened, as aligners, and rolled into one."""

from collections.abc import Callable

from model.words import READS
from viz import view
from viz.pages.heads import aligning, flat, grid, remove, rolled, rules
from viz.view import FLAG, Offers, Scene, numbers

TABS: dict[str, Callable[[Scene], None]] = {
    "grid": grid.draw,
    "rules": rules.draw,
    "remove": remove.draw,
    "uniform": flat.draw,
    "align": aligning.draw,
    "rollout": rolled.draw,
}

OFFERS: Offers = {
    "heads_tab": tuple(TABS),
    "heads_by": grid.ORDERS,
    "heads_on": remove.WHERE,
    "heads_read": READS,
    "heads_pair": numbers(0, aligning.PAIRS),
    "heads_mean": FLAG,
}


def draw(scene: Scene) -> None:
    TABS[view.tab("heads_tab", TABS)](scene)
