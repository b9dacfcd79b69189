"""An axis of a figure on paper: from numbers, their logarithms or words to px, and its ticks."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viz.svg.described import Spec, array, formed, scalar

Numbers = NDArray[np.float64]


@dataclass
class Axis:
    """One axis: from numbers, their logarithms or words to px."""

    letter: str
    spec: Spec
    log: bool
    words: list[str]
    low: float = 0.0  # the ends of its range, of logarithms where it is logarithmic
    high: float = 1.0
    start: float = 0.0  # px of these ends
    end: float = 1.0

    def numbers(self, values: Any) -> Numbers:
        """Places on the axis: logarithms on a logarithmic one, indices of words; NaN is a gap."""
        if len(values) and any(isinstance(value, str) for value in values):
            return np.array([self.words.index(str(value)) for value in values], float)
        found = np.array([np.nan if value is None else value for value in values], float)
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.where(found > 0, np.log10(np.maximum(found, 1e-300)), np.nan)
        return found

    def px(self, place: Any) -> Any:
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def visible(self) -> bool:
        return self.spec.get("visible", True) is not False

    def ticks(self) -> list[tuple[float, str]]:
        """Place and words of each tick inside the range."""
        if not self.visible:
            return []
        given = self.spec.get("tickvals")
        form, exponent = self.spec.get("tickformat", ""), self.spec.get("exponentformat", "")
        if given is not None:
            values = [scalar(value) for value in array(given)]
            words = self.spec.get("ticktext")
            said = [str(word) for word in array(words)] if words is not None else None
            found = [
                (float(place), said[index] if said else formed(float(values[index]), form, exponent))
                for index, place in enumerate(self.numbers(values).tolist())
                if said is None or index < len(said)
            ]
        elif self.words:
            found = [(float(index), word) for index, word in enumerate(self.words)]
        elif self.log:
            low, high = sorted((self.low, self.high))
            steps = (1, 2, 5) if high - low < 1.5 else (1,)
            places = [
                power + math.log10(step)
                for power in range(math.floor(low), math.ceil(high) + 1)
                for step in steps
            ]
            found = [(place, formed(10**place, form, exponent)) for place in places]
        else:
            found = [(value, formed(value, form, exponent)) for value in self._even()]
        low, high = sorted((self.low, self.high))
        slack = 1e-6 * (high - low)
        return [(place, text) for place, text in found if low - slack <= place <= high + slack]

    def _even(self) -> list[float]:
        low, high = sorted((self.low, self.high))
        rough = (high - low) / max(2.0, abs(self.end - self.start) / (90 if self.letter == "x" else 45))
        if self.spec.get("dtick"):
            step = float(self.spec["dtick"])
        else:
            power = 10.0 ** math.floor(math.log10(rough))
            step = power * next(by for by in (1, 2, 5, 10) if by * power >= rough * 0.999)
        first = math.ceil(low / step - 1e-9)
        return [round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]
