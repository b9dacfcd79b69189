"""Why attention: what layers cost, what a model learns, what Add & Norm does, what came before and after."""

from collections.abc import Callable

from viz import cache, fit
from viz.pages.why import adding, cost, history, parameters
from viz.pages.why.controls import come_back
from viz.view import FLAG, Offers, Scene, tab

TABS: dict[str, Callable[[Scene | None], None]] = {
    "cost": cost.draw,
    "parameters": parameters.draw,
    "add & norm": adding.draw,
    "history": history.draw,
}

OFFERS: Offers = {
    "why_tab": tuple(TABS),
    "why_cost": cost.PARTS,
    "why_n": tuple(map(str, cost.LENGTHS)),
    "why_d": tuple(map(str, cost.WIDTHS)),
    "why_k": tuple(map(str, cost.KERNELS)),
    "why_r": tuple(map(str, cost.WINDOWS)),
    "why_cell": tuple(cache.table1.CELLS),
    "why_drawn": tuple(map(str, cost.DRAWN)),
    "why_add": adding.PARTS,
    "why_weights": adding.WEIGHTS,
    "why_pads": tuple(map(str, adding.PADS)),
    "why_history": history.PARTS,
    "why_image": tuple(map(str, history.IMAGES)),
    "why_patch": tuple(map(str, history.PATCHES)),
    "why_kernel": tuple(map(str, history.KERNELS)),
    **dict.fromkeys(
        (
            "why_run",
            "why_shared",
            "why_biases",
            "why_norms",
            "why_residual",
            "why_norm",
            "why_other",
            "why_masked",
        ),
        FLAG,
    ),
}


def draw(scene: Scene | None) -> None:
    """Where a sentence is run, it is run by the translator."""
    TABS[tab("why_tab", TABS)](scene if scene and fit.transformer(scene) else None)


def alone() -> None:
    """While the model is loaded, or where the sentence cannot be read: most of the page needs neither."""
    draw(None)
    come_back()
