"""The door into the paper's encoder-decoder. Torch stays on this side."""

from dataclasses import dataclass

from torch import Tensor

from model.decoding import greedy_changed
from model.masks import rules
from model.reader import added, embedding, fed, stages
from model.trace import Change
from model.transformer import Transformer
from model.translating import Passed, Translating


@dataclass(frozen=True)
class Translator(Translating):
    """One pass over the finished target shows everything: under the look-ahead mask, row t of it is what
    step t of decoding saw. A shuffle of positions is the exception, since it is drawn for the whole length.
    """

    model: Transformer

    def _greedy(self, source: Tensor, change: Change) -> list[int]:
        return greedy_changed(self.model, source, change)

    def _pass(self, source: Tensor, target: Tensor, change: Change) -> Passed:
        changed = rules(source, target, self.config, change)
        encoded = self.model.encode(source, changed, capture=True)
        memory = self.model.keys_values(encoded.memory)
        decoded = self.model.decode(target, memory, changed, capture=True)
        shown = {
            "attention": {
                "encoder": stages(encoded.seen),
                "decoder": stages([seen.decoder for seen in decoded.seen]),
                "cross": stages([seen.cross for seen in decoded.seen]),
            },
            "sublayers": {
                "encoder": added([done[0] for done in encoded.done]),
                "decoder": added([done[0] for done in decoded.done]),
                "cross": added([done[1] for done in decoded.done]),
            },
            "feeds": {
                "source": fed([done[-1] for done in encoded.done]),
                "target": fed([done[-1] for done in decoded.done]),
            },
            "embeddings": {"source": embedding(encoded.embedded), "target": embedding(decoded.embedded)},
        }
        return Passed(self.model.logits(decoded.hidden), shown)
