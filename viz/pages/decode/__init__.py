"""How the model writes: piece by piece, with a beam, by lot, and fed a teacher's sentence for its own."""

from viz import fit, view
from viz.fit import Tab
from viz.pages.decode import beam, forcing, grow, sampling, states, way
from viz.view import FLAG, Offers, Scene

TABS = {
    "grow": Tab(grow.draw, (fit.writes,)),
    "beam": Tab(beam.draw, (fit.translates, fit.searches)),
    "sampling": Tab(sampling.draw, (fit.writes, fit.samples)),
    "forcing": Tab(forcing.draw, (fit.translates,)),
    "states": Tab(states.draw),
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
    "dec_way": states.WAYS,
    "dec_rival": states.RECURRENT,
}


def draw(scene: Scene) -> None:
    fit.tabs(scene, "dec_tab", TABS)
