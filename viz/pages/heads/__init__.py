"""All heads: beside one another, by rule, removed, flattened, as aligners, and rolled into one."""

from model.words import READS
from viz import fit
from viz.fit import Tab
from viz.pages.heads import aligning, flat, grid, remove, rolled, rules
from viz.view import FLAG, Offers, Scene, numbers

TABS = {
    "grid": Tab(grid.draw, (fit.attention,)),
    "rules": Tab(rules.draw, (fit.attention,)),
    "remove": Tab(remove.draw, (fit.attention, fit.predicts, fit.changes)),
    "uniform": Tab(flat.draw, (fit.attention, fit.predicts, fit.changes)),
    "align": Tab(aligning.draw, (fit.cross, fit.translates)),
    "rollout": Tab(rolled.draw, (fit.attention, fit.itself)),
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
    fit.tabs(scene, "heads_tab", TABS)
