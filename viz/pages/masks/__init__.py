"""What masks do: switch one off, build one, draw one, prove one, and see it in numbers."""

from viz import fit
from viz.fit import Tab
from viz.pages.masks import build, cheat, draw_own, numbers, pads, prove, switch
from viz.view import FLAG, Offers, Scene
from viz.view import numbers as numbers_between

TABS = {
    "switch": Tab(switch.draw, (fit.attention, fit.changes)),
    "build": Tab(build.draw, (fit.attention, fit.scores, fit.changes)),
    "draw": Tab(draw_own.draw, (fit.attention, fit.changes)),
    "prove": Tab(prove.draw, (fit.attention, fit.predicts, fit.changes)),
    "cheat": Tab(cheat.draw, (fit.transformer,)),
    "numbers": Tab(numbers.draw, (fit.attention, fit.scores, fit.changes)),
}


OFFERS: Offers = {
    "masks_tab": tuple(TABS),
    "cheat_guess": cheat.GUESSES,
    "masks_step": numbers_between(1, build.STEPS),
    "masks_of": numbers.BLOCKED,
    "masks_value": tuple(numbers.VALUES),
    "masks_type": tuple(numbers.TYPES),
    "source_pads": numbers_between(0, pads.MOST),
    "target_pads": numbers_between(0, pads.MOST),
    "window": numbers_between(0, draw_own.WIDEST),
    **dict.fromkeys((*switch.MASKS, "own_masks", "this_layer", "drag"), FLAG),
}


def draw(scene: Scene) -> None:
    fit.tabs(scene, "masks_tab", TABS)
