"""The whole encoder-decoder against torch's own layers, and what must hold for any weights."""

import math
from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from conftest import in_torchs_words, random_model
from model.config import END, PAD, START, Config
from model.decoding import padded
from model.layers import DecoderLayer, EncoderLayer
from model.masks import rules
from model.trace import KINDS, Change, Kind
from model.transformer import Decoded, Encoded, Transformer

V = 31
SOURCES = [[17, 4, 9, 4, 30, 11, END], [5, 23, 8, 16, END], [29, 6, END]]
TARGETS = [[START, 6, 7], [START, 12, 12, 25, 5], [START, 21, 14, 8]]


@pytest.fixture(scope="module")
def model() -> Transformer:
    return random_model(vocabulary=V)


def passed(model: Transformer, source: Tensor, target: Tensor, change: Change) -> tuple[Encoded, Decoded]:
    """One captured pass."""
    changed = rules(source, target, model.config, change)
    encoded = model.encode(source, changed, capture=True)
    return encoded, model.decode(target, model.keys_values(encoded.memory), changed, capture=True)


def weights(encoded: Encoded, decoded: Decoded) -> dict[Kind, Tensor]:
    """[L, B, H, Q, K] of each kind."""
    return {
        "encoder": torch.stack([layer.weights for layer in encoded.seen]),
        "decoder": torch.stack([layer.decoder.weights for layer in decoded.seen]),
        "cross": torch.stack([layer.cross.weights for layer in decoded.seen]),
    }


def torchs_weights(ours: EncoderLayer | DecoderLayer) -> Iterator[tuple[str, Tensor]]:
    attentions = {"self_attn": ours.attention}
    norms = [ours.add_1, ours.add_2]
    if isinstance(ours, DecoderLayer):
        attentions["multihead_attn"] = ours.cross_attention
        norms.append(ours.add_3)
    for name, attention in attentions.items():
        yield from ((f"{name}.{part}", weights) for part, weights in in_torchs_words(attention))
    parts = {"linear1": ours.feed_forward.w_1, "linear2": ours.feed_forward.w_2}
    parts |= {f"norm{number}": add.norm for number, add in enumerate(norms, start=1)}
    for name, part in parts.items():
        yield from ((f"{name}.{which}", weights) for which, weights in part.named_parameters())


def torchs_own(model: Transformer) -> tuple[nn.TransformerEncoder, nn.TransformerDecoder]:
    """torch's encoder and decoder with our weights, post-norm and with no norm after the last layer."""
    c = model.config
    layers = [
        make(c.d_model, c.n_heads, c.d_ff, dropout=0.0, activation="relu", batch_first=True, norm_first=False)
        for make in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    ]
    encoder = nn.TransformerEncoder(layers[0], c.n_layers, enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(layers[1], c.n_layers)
    for theirs, ours in ((encoder, model.encoder), (decoder, model.decoder)):
        for their_layer, our_layer in zip(theirs.layers, ours, strict=True):
            their_layer.load_state_dict(dict(torchs_weights(our_layer)))
    return encoder, decoder


def test_logits_equal_torchs_own_transformer_on_a_padded_batch(model: Transformer) -> None:
    source, target = padded(SOURCES), padded(TARGETS)
    encoder, decoder = torchs_own(model)
    positions = [torch.arange(ids.size(1)) for ids in (source, target)]
    x, y = (model.embed(ids, at).sum for ids, at in zip((source, target), positions, strict=True))
    later = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
    memory = encoder(x, src_key_padding_mask=source == PAD)
    hidden = decoder(
        y,
        memory,
        tgt_mask=later,
        tgt_key_padding_mask=target == PAD,
        memory_key_padding_mask=source == PAD,
    )
    assert_close(model(source, target), hidden @ model.embedding.weight.T, atol=1e-5, rtol=0)


def test_the_captured_pass_equals_the_fused_one(model: Transformer) -> None:
    source, target = padded(SOURCES), padded(TARGETS)
    _, decoded = passed(model, source, target, Change())
    assert_close(model.logits(decoded.hidden), model(source, target), atol=1e-5, rtol=0)


def test_laid_out_for_reading_the_weights_and_the_logits_are_what_they_were(model: Transformer) -> None:
    laid_out = deepcopy(model)
    laid_out.lay_out()
    source, target = padded(SOURCES), padded(TARGETS)
    for (name, before), after in zip(model.named_parameters(), laid_out.parameters(), strict=True):
        assert after.equal(before), name
    assert model.state_dict().keys() == laid_out.state_dict().keys()
    assert_close(laid_out(source, target), model(source, target), atol=1e-6, rtol=1e-6)


def test_what_is_written_into_a_laid_out_model_is_what_it_uses(model: Transformer) -> None:
    changed, laid_out = deepcopy(model), deepcopy(model)
    laid_out.lay_out()
    for each in (changed, laid_out):
        for parameter in each.parameters():
            parameter[0] += 0.3
    source, target = padded(SOURCES), padded(TARGETS)
    assert_close(laid_out(source, target), changed(source, target), atol=1e-5, rtol=1e-6)
    assert not torch.allclose(changed(source, target), model(source, target), atol=1e-2)
    one, two = deepcopy(laid_out), random_model(vocabulary=V)
    two.load_state_dict(laid_out.state_dict())
    for each in (one, two):
        assert_close(each(source, target), changed(source, target), atol=1e-5, rtol=1e-6)


def test_what_enters_the_first_layer_is_the_embedding_times_the_root_of_d_model_plus_positions(
    model: Transformer,
) -> None:
    encoded, _ = passed(model, padded(SOURCES), padded(TARGETS), Change())
    table, embedded = model.embedding.weight, encoded.embedded
    assert_close(embedded.pieces[0, 0], table[17] * math.sqrt(22))
    assert_close(embedded.sum, embedded.pieces + embedded.positions)


def test_a_batch_of_sentences_of_different_length_equals_them_one_by_one(model: Transformer) -> None:
    together = model(padded(SOURCES), padded(TARGETS))
    for logits, source, target in zip(together, SOURCES, TARGETS, strict=True):
        alone = model(torch.tensor([source]), torch.tensor([target]))[0]
        assert_close(logits[: len(target)], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("j", [1, 2, 4])
def test_a_later_target_piece_changes_no_earlier_row_by_one_bit(model: Transformer, j: int) -> None:
    source, target = torch.tensor([SOURCES[0]]), torch.tensor([TARGETS[1]])
    other = target.clone()
    other[0, j] = 19
    before, after = (passed(model, source, ids, Change()) for ids in (target, other))
    for kind in ("decoder", "cross"):
        one, two = weights(*before)[kind], weights(*after)[kind]
        assert one[..., :j, :].equal(two[..., :j, :])
        assert not one[..., j:, :].equal(two[..., j:, :])
    logits, changed = (model.logits(decoded.hidden) for _, decoded in (before, after))
    assert logits[:, :j].equal(changed[:, :j])
    assert not logits[:, j:].equal(changed[:, j:])


def test_without_positions_the_encoder_follows_any_permutation(model: Transformer) -> None:
    source, target = torch.tensor([[17, 4, 9, 22, 30, 11, END]]), torch.tensor([[START]])
    order = torch.tensor([4, 0, 6, 2, 1, 5, 3])

    for change, follows in ((Change(positions="off"), True), (Change(), False)):
        one, two = (passed(model, ids, target, change) for ids in (source, source[:, order]))
        maps, permuted = weights(*one)["encoder"], weights(*two)["encoder"]
        gaps = [maps[..., order, :][..., order] - permuted, one[0].memory[:, order] - two[0].memory]
        assert [gap.abs().max() < 1e-5 for gap in gaps] == [follows, follows]
        assert [gap.abs().max() < 1e-3 for gap in gaps] == [follows, follows]


def test_without_positions_two_equal_words_are_twins(model: Transformer) -> None:
    source, target = torch.tensor([SOURCES[0]]), torch.tensor([[START]])
    for change, twins in ((Change(positions="off"), True), (Change(), False)):
        encoded, decoded = passed(model, source, target, change)
        for rows in (weights(encoded, decoded)["encoder"], encoded.memory):
            assert torch.allclose(rows[..., 1, :], rows[..., 3, :], atol=1e-5) == twins


@pytest.mark.parametrize("layer", range(3))
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_layer_0_runs_first_and_a_layer_is_changed_only_by_those_before_it(side: str, layer: int) -> None:
    model, other = random_model(vocabulary=V), random_model(vocabulary=V)
    getattr(other, side)[layer].feed_forward.w_2.weight *= -1
    one, two = (weights(*passed(each, padded(SOURCES), padded(TARGETS), Change())) for each in (model, other))
    same = {kind: [one[kind][i].equal(two[kind][i]) for i in range(3)] for kind in KINDS}
    so_far = [i <= layer for i in range(3)]
    if side == "encoder":  # the decoder's first self-attention has not met the source yet
        assert same == {"encoder": so_far, "decoder": [True, False, False], "cross": [False] * 3}
    else:
        assert same == {"encoder": [True] * 3, "decoder": so_far, "cross": so_far}


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_papers_base_model_has_the_weights_that_its_section_3_adds_up_to() -> None:
    d_model, d_ff, n_layers, vocabulary = 512, 2048, 6, 37_000
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    with torch.device("meta"):
        model = Transformer(Config(vocabulary, n_layers, d_model, n_heads=8, d_ff=d_ff))
    for layer in model.encoder:
        assert count(layer.attention) == attention
        assert count(layer.feed_forward) == feed_forward
        assert count(layer) == encoder_layer
    assert all(count(layer) == decoder_layer for layer in model.decoder)
    core = count(model) - count(model.embedding)
    assert core == n_layers * (encoder_layer + decoder_layer) == 44_138_496
    assert core == 44_140_544 - 2 * norm  # with a norm after each stack, which figure 1 does not draw
    assert count(model.embedding) == vocabulary * d_model
    assert model.config.d_k == 64


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 22, "n_heads": 3}, "22 .* 3"),
        ({"d_model": 33, "n_heads": 3}, "33"),
        ({"n_layers": 0}, "n_layers .* 0"),
        ({"dropout": 1.0}, "1.0"),
    ],
)
def test_sizes_that_cannot_be_are_refused_by_their_numbers(sizes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config(V, **sizes)  # type: ignore[arg-type]
