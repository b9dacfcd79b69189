"""The door into a recurrent translator."""

from dataclasses import dataclass

from torch import Tensor

from model.reader import embedding, stages
from model.recurrent import Recurrent, joined
from model.trace import Change
from model.translating import Passed, Translating


@dataclass(frozen=True)
class RecurrentTranslator(Translating):
    """Row t of its cross-attention is the step that reads target[t]; what asks there is the state before it.

    `states` of the target are those after each step, those of the source the forward and then the backward
    half.
    """

    model: Recurrent

    def _pass(self, source: Tensor, target: Tensor, change: Change) -> Passed:
        memory = self.model.encode(source)
        told = self.model.decode(target, memory, self.model.rule(source, target, change))
        shown = {
            "attention": {"cross": stages([joined(told.seen)])} if told.seen else {},
            "embeddings": {
                "source": embedding(self.model.embed(source, None)),
                "target": embedding(self.model.embed(target, None)),
            },
            "states": {"source": memory.states[0].numpy(), "target": told.states[0].numpy()},
        }
        return Passed(self.model.logits(told.hidden), shown)
