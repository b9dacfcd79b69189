"""What masks do: switch one off, build one, draw one, prove one, and see it in numbers."""

from collections.abc import Callable

from viz import view
from viz.pages.masks import build, cheat, draw_own, numbers, pads, prove, switch
from viz.view import FLAG, Offers, Scene
from viz.view import numbers as numbers_between

TABS: dict[str, Callable[[Scene], None]] = {
    "switch": switch.draw,
    "build": build.draw,
    "draw": draw_own.draw,
    "prove": prove.draw,
    "cheat": cheat.draw,
    "numbers": numbers.draw,
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
    TABS[view.tab("masks_tab", TABS)](scene)
