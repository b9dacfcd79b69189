"""How the model learned: its maps on the way, its curves, and what training does and translating does not."""

from viz import cache, fit
from viz.fit import Tab
from viz.pages.training import bleu, curves, dropout, forcing, smoothing, watch
from viz.view import Offers, Scene, numbers

TABS = {
    "watch": Tab(watch.draw, (fit.watched,)),
    "curves": Tab(curves.draw, (fit.logged,)),
    "smoothing": Tab(smoothing.draw, (fit.translates, fit.logged)),
    "dropout": Tab(dropout.draw, (fit.transformer,)),
    "forcing": Tab(forcing.draw, (fit.translates,)),
    "BLEU": Tab(bleu.draw, (fit.translates, fit.logged)),
}


OFFERS: Offers = {
    "train_tab": tuple(TABS),
    "train_step": tuple(map(str, cache.snapshots())),
    "train_smoothing": tuple(map(str, smoothing.OFFERED)),
    "train_rate": tuple(map(str, dropout.RATES)),
    "train_seed": numbers(0, dropout.SEEDS),
    "train_order": bleu.ORDERS,
}


def draw(scene: Scene) -> None:
    fit.tabs(scene, "train_tab", TABS)
