"""How the model learned: its maps on the way, its curves, and what training does and translating does not."""

from collections.abc import Callable

from viz import cache, view
from viz.pages.training import bleu, curves, dropout, forcing, smoothing, watch
from viz.view import Offers, Scene, numbers

TABS: dict[str, Callable[[Scene], None]] = {
    "watch": watch.draw,
    "curves": curves.draw,
    "smoothing": smoothing.draw,
    "dropout": dropout.draw,
    "forcing": forcing.draw,
    "BLEU": bleu.draw,
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
    TABS[view.tab("train_tab", TABS)](scene)
