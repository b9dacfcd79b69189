"""One stack of layers over one sequence: GPT with the look-ahead mask, BERT without it.

Both are the encoder half of figure 1 (Vaswani et al. 2017) with another rule. GPT-1 (Radford et al. 2018)
and BERT (Devlin et al. 2019) norm after each sub-layer as well; they learn their positions and use GELU,
where these keep sinusoids and ReLU, so that the rule is all that differs from the translator's encoder.
Shapes: B batch, T positions, D d_model, V vocabulary.
"""

from torch import Tensor, nn

from model.attention import Rule
from model.config import Config
from model.embedding import Tied
from model.layers import EncoderLayer
from model.masks import rules
from model.trace import NEUTRAL, Change, Kind
from model.transformer import Encoded, run_layers


class Stack(Tied):
    """A decoder alone says what comes next; an encoder alone says what is hidden."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.dropout = nn.Dropout(config.dropout)
        self.reset()

    @property
    def kind(self) -> Kind:
        """The kind of its one attention."""
        return "decoder" if self.config.shape == "decoder" else "encoder"

    def rules(self, ids: Tensor, change: Change = NEUTRAL) -> tuple[tuple[Rule, ...], Tensor | None]:
        """What governs each layer over ids [B, T], and the positions [T]."""
        both = rules(ids, ids, self.config, change)
        if self.kind == "decoder":
            return both.decoder, both.target_positions
        return both.encoder, both.source_positions

    def run(self, ids: Tensor, change: Change = NEUTRAL, capture: bool = False) -> Encoded:
        """One pass over ids [B, T]."""
        governed, positions = self.rules(ids, change)
        embedded = self.embed(ids, positions)
        return run_layers(self.layers, self.dropout(embedded.sum), governed, embedded, capture)

    def forward(self, ids: Tensor, change: Change = NEUTRAL, at: Tensor | None = None) -> Tensor:
        """Logits [B, T, V]: in a decoder of what follows each of ids [B, T], in an encoder of what is there.

        `at`, True at N places of [B, T], asks about these alone: [N, V].
        """
        hidden = self.run(ids, change).memory
        return self.logits(hidden if at is None else hidden[at])
