"""A trace from a file, behind the door that a model has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from model.trace import NEUTRAL, AbsentError, Change, Kind, Trace


@dataclass(frozen=True, eq=False)
class Recorded:
    """One trace under a name. It says what it holds; a file cannot be asked again."""

    name: str
    recorded: Trace

    @cached_property
    def kinds(self) -> Mapping[Kind, tuple[int, int]]:
        """The kinds of attention in it, with the number of layers and of heads of each."""
        sizes = {kind: self.recorded.weights(kind).shape for kind in self.recorded.kinds}
        return {kind: (shape[0], shape[1]) for kind, shape in sizes.items()}

    @property
    def max_pieces(self) -> int:
        """The pieces of its longer side."""
        return max(len(self.recorded.source), len(self.recorded.target))

    def trace(
        self, text: str = "", target: str | Sequence[int] | None = None, change: Change = NEUTRAL
    ) -> Trace:
        """Its trace. Raises AbsentError for another text, a target, or a change."""
        if text not in ("", self.recorded.text) or target not in (None, self.recorded.translation):
            raise AbsentError("a file holds one text, and cannot be asked about another")
        if change not in (NEUTRAL, self.recorded.change):
            raise AbsentError("a file cannot be asked what a change would do: that takes the model")
        return self.recorded
