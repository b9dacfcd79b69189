"""How the model writes: piece by piece, with a beam, by lot, and fed a teacher's sentence for its own."""

from collections.abc import Callable

from viz import view
from viz.pages.decode import beam, forcing, grow, sampling, way
from viz.view import FLAG, Offers, Scene

TABS: dict[str, Callable[[Scene], None]] = {
    "grow": grow.draw,
    "beam": beam.draw,
    "sampling": sampling.draw,
    "forcing": forcing.draw,
}


OFFERS: Offers = {
    "dec_tab": tuple(TABS),
    "dec_how": way.HOWS,
    "dec_beam": view.numbers(1, way.WIDEST),
    "dec_temperature": tuple(map(str, way.TEMPERATURES)),
    "dec_k": way.TOP_K,
    "dec_p": tuple(map(str, way.TOP_P)),
    "dec_seed": view.numbers(0, way.SEEDS),
    "dec_words": FLAG,
}


def draw(scene: Scene) -> None:
    TABS[view.tab("dec_tab", TABS)](scene)
