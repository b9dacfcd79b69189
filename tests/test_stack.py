"""A decoder alone and an encoder alone against torch's own encoder, and the hiding of pieces."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from conftest import in_torchs_words
from model import checkpoint
from model.build import Model, build
from model.config import END, MASK, PAD, START, Config, Material, Shape
from model.decoding import padded
from model.hiding import choose, hide
from model.recurrent import Recurrent
from model.stack import Stack
from model.tokenizer import Tokenizer
from model.trace import Change, Switch
from model.transformer import Transformer

V = 31
IDS = [[START, 17, 4, 9, 4, 30, 11], [START, 23, 8, 16], [START, 29]]
SIZES = {"vocabulary": V, "n_layers": 3, "d_model": 22, "n_heads": 2, "d_ff": 23}


def made(shape: Shape) -> Stack:
    """Fresh weights in eval mode; no gain is 1 and no bias 0."""
    torch.manual_seed(0)
    model = build(Config(**SIZES, shape=shape)).eval().requires_grad_(False)
    assert isinstance(model, Stack)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter += 0.2 * torch.randn_like(parameter)
    return model


@pytest.fixture(scope="module", params=["decoder", "encoder"])
def model(request: pytest.FixtureRequest) -> Stack:
    return made(request.param)


def torchs_logits(model: Stack, ids: Tensor) -> Tensor:
    """What torch's own encoder makes of our weights, post-norm and with no norm after the last layer."""
    c = model.config
    layer = nn.TransformerEncoderLayer(
        c.d_model, c.n_heads, c.d_ff, dropout=0.0, activation="relu", batch_first=True, norm_first=False
    )
    theirs = nn.TransformerEncoder(layer, c.n_layers, enable_nested_tensor=False).eval()
    for their_layer, ours in zip(theirs.layers, model.layers, strict=True):
        parts = {"linear1": ours.feed_forward.w_1, "linear2": ours.feed_forward.w_2}
        parts |= {"norm1": ours.add_1.norm, "norm2": ours.add_2.norm}
        weights = {f"self_attn.{name}": value for name, value in in_torchs_words(ours.attention)}
        for name, part in parts.items():
            weights |= {f"{name}.{which}": value for which, value in part.named_parameters()}
        their_layer.load_state_dict(weights)
    angle = torch.arange(ids.size(1), dtype=torch.float64)[:, None] / 10_000 ** (
        torch.arange(0, c.d_model, 2, dtype=torch.float64) / c.d_model
    )
    positions = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()
    x = model.embedding.weight[ids] * c.d_model**0.5 + positions
    later = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
    causal = later if c.shape == "decoder" else None
    with torch.no_grad():
        return theirs(x, mask=causal, src_key_padding_mask=ids == PAD) @ model.embedding.weight.T


def test_logits_equal_torchs_own_encoder_with_and_without_a_causal_mask(model: Stack) -> None:
    ids = padded(IDS)
    real = ids != PAD
    assert_close(model(ids)[real], torchs_logits(model, ids)[real], atol=1e-5, rtol=0)


def test_the_captured_pass_equals_the_fused_one_and_has_one_kind_of_stages(model: Stack) -> None:
    ids = padded(IDS)
    done = model.run(ids, capture=True)
    assert_close(model.logits(done.memory), model(ids), atol=1e-5, rtol=0)
    weights = torch.stack([seen.weights for seen in done.seen if seen is not None])
    assert weights.shape == (3, 3, 2, 7, 7)
    assert_close(weights.sum(dim=-1), torch.ones(3, 3, 2, 7))
    assert (
        weights[:, :, :, :, :].masked_select((ids == PAD)[None, :, None, None, :].expand_as(weights)) == 0
    ).all()


def test_a_row_of_the_decoder_does_not_depend_on_later_pieces_and_one_of_the_encoder_does() -> None:
    ids, other = torch.tensor([IDS[0]]), torch.tensor([[*IDS[0][:4], 19, 7, 5]])
    for shape in ("decoder", "encoder"):
        model = made(shape)
        assert model(ids)[:, :4].equal(model(other)[:, :4]) == (shape == "decoder")


def test_step_by_step_the_decoder_says_what_it_says_in_one_pass() -> None:
    model, ids = made("decoder"), torch.tensor([IDS[0]])
    steps = torch.stack([model(ids[:, : t + 1])[:, -1] for t in range(ids.size(1))], dim=1)
    assert_close(steps, model(ids), atol=1e-5, rtol=0)


def test_a_decoder_without_its_mask_is_an_encoder() -> None:
    decoder, encoder, ids = made("decoder"), made("encoder"), torch.tensor([IDS[0]])
    assert_close(decoder(ids, Change(look_ahead=Switch("all"))), encoder(ids))


def test_asked_about_some_places_it_says_of_these_what_it_says_of_all(model: Stack) -> None:
    ids = padded(IDS)
    at = ids == 4
    assert_close(model(ids, at=at), model(ids)[at])


# --- hiding ---


def test_a_seventh_is_chosen_and_of_these_eight_in_ten_are_hidden_and_one_swapped() -> None:
    vocabulary, n = 1009, 200_000
    ids = torch.randint(MASK + 1, vocabulary, (n // 100, 100))
    ids[:, 97] = END
    ids[:, 98:] = PAD
    shown, chosen = hide(ids, vocabulary, torch.Generator().manual_seed(3))
    real = ids.numel() * 0.97
    assert chosen.sum() / real == pytest.approx(0.15, abs=0.003)  # four standard deviations
    assert not chosen[:, 97:].any()
    assert shown[~chosen].equal(ids[~chosen])
    was, now = ids[chosen], shown[chosen]
    assert (now == MASK).float().mean() == pytest.approx(0.8, abs=0.01)
    assert (now == was).float().mean() == pytest.approx(0.1, abs=0.008)
    swapped = now[(now != MASK) & (now != was)]
    assert len(swapped) / len(now) == pytest.approx(0.1, abs=0.008)
    assert swapped.min() > MASK
    assert len(swapped.unique()) > vocabulary * 0.8


def test_the_same_seed_chooses_the_same_pieces_and_something_is_always_chosen() -> None:
    ids = torch.full((13, 17), 7)
    one, again, other = (choose(ids, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert one.equal(again)
    assert not one.equal(other)
    for seed in range(50):
        assert choose(torch.tensor([[5, END, PAD]]), torch.Generator().manual_seed(seed)).tolist() == [
            [True, False, False]
        ]


# --- every shape on disk ---

SHAPES: list[tuple[Shape, Material, type[Model]]] = [
    ("encoder-decoder", "attention", Transformer),
    ("decoder", "attention", Stack),
    ("encoder", "attention", Stack),
    ("encoder-decoder", "recurrent attention", Recurrent),
    ("encoder-decoder", "recurrent", Recurrent),
]


@pytest.mark.parametrize(("shape", "material", "kind"), SHAPES)
def test_every_shape_comes_back_from_disk(
    shape: Shape, material: Material, kind: type[Model], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    one = {"n_layers": 1, "n_heads": 1} if material != "attention" else {}
    config = Config(**{**SIZES, **one, "vocabulary": tokenizer.size}, shape=shape, material=material)
    model = build(config).eval()
    checkpoint.save(tmp_path, model, tokenizer)
    checkpoint.save_snapshot(tmp_path, model, 7)
    checkpoint.seal(tmp_path)
    for loaded in (checkpoint.load(tmp_path)[0], checkpoint.load_snapshot(tmp_path, 7)):
        assert type(loaded) is kind
        assert loaded.config == config
    loaded, _ = checkpoint.load(tmp_path)
    for name, value in model.state_dict().items():
        assert_close(loaded.state_dict()[name], value.half().float())


def test_a_first_translators_config_says_no_more_than_it_did(tmp_path: Path) -> None:
    Config(V).save(tmp_path / "config.json")
    assert "shape" not in (tmp_path / "config.json").read_text()
    for config in (Config(V), Config(V, shape="decoder"), Config(V, 1, 22, 1, material="recurrent")):
        config.save(tmp_path / "config.json")
        assert Config.load(tmp_path / "config.json") == config


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"shape": "circle"}, "shape is one of"),
        ({"material": "wood"}, "material is one of"),
        ({"material": "recurrent"}, "1 layer"),
        ({"material": "recurrent", "n_layers": 1, "n_heads": 1, "shape": "decoder"}, "encoder-decoder"),
    ],
)
def test_what_cannot_be_built_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Config(V, **wrong)


def test_a_config_knows_its_kinds_and_what_can_be_changed_in_it() -> None:
    full, gpt, bert = Config(V), Config(V, shape="decoder"), Config(V, shape="encoder")
    attending, plain = (Config(V, 1, 22, 1, material=m) for m in ("recurrent attention", "recurrent"))
    assert full.kinds == ("encoder", "decoder", "cross")
    assert (gpt.kinds, bert.kinds, attending.kinds, plain.kinds) == (
        ("decoder",),
        ("encoder",),
        ("cross",),
        (),
    )
    assert full.changes == {*Change.__dataclass_fields__}
    assert plain.changes == {"source_pads", "target_pads"}
    assert attending.changes == plain.changes | {"blocked", "removed", "uniform", "cross_padding"}
    assert gpt.changes | bert.changes | {"cross_padding"} == full.changes
    assert "look_ahead" not in bert.changes
