"""What positions do: take them away, swap words, see what is added to a sentence and how it turns."""

from viz import fit
from viz.fit import Tab
from viz.pages.positions import added, encoding, rotation, swapped, switched, twins
from viz.pages.positions.controls import MOST, row
from viz.text import _
from viz.view import Offers, Scene, choice, numbers, tab

NEEDS = (fit.attention, fit.layers)
TRIES = {
    "positions": Tab(switched.draw, (*NEEDS, fit.changes)),
    "swap": Tab(swapped.draw, (*NEEDS, fit.encoder, fit.changes)),
    "twins": Tab(twins.draw, (*NEEDS, fit.changes)),
}
TABS = {
    "sum": Tab(added.draw, NEEDS),
    "encoding": Tab(encoding.draw, NEEDS),
    "rotation": Tab(rotation.draw, NEEDS),
}
EXPERIMENT = "experiment"
OFFERS: Offers = {
    "pos_tab": (EXPERIMENT, *TABS),
    "pos_try": tuple(TRIES),
    "pos_way": switched.WAYS,
    "pos_swap": ("off", "on"),
    "pos_picture": encoding.PICTURES,
    "pos_count": tuple(map(str, encoding.LENGTHS)),
    "pos_at": numbers(0, encoding.MOST - 1),
    "pos_seed": numbers(0, 999),
    "pos_k": numbers(0, rotation.FARTHEST),
    "pos_from": numbers(0, rotation.LAST),
    **dict.fromkeys(("pos_first", "pos_second", "pos_twin"), numbers(1, MOST)),
}


def draw(scene: Scene) -> None:
    """Only the chosen tab is drawn, and so only its passes are run."""
    with row():
        chosen = tab("pos_tab", (EXPERIMENT, *TABS))
        if chosen == EXPERIMENT:
            shown = TRIES[choice(_("Try"), "pos_try", tuple(TRIES), bare=True)]
        else:
            shown = TABS[chosen]
    fit.show(scene, shown)
