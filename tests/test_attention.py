"""Scaled dot-product and multi-head attention against torch's own and against numbers known by hand."""

import math
from collections.abc import Callable
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from conftest import in_torchs_words
from model.attention import MultiHeadAttention, Rule, attend, attend_fused

B, H, Q, K, d = 2, 3, 5, 7, 11
D = H * d
close = partial(assert_close, atol=1e-6, rtol=0)


@pytest.fixture
def attention() -> MultiHeadAttention:
    return MultiHeadAttention(D, H).requires_grad_(False)


def random_qkv() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(B, H, Q, d), torch.randn(B, H, K, d), torch.randn(B, H, K, d)


def random_mask() -> Tensor:
    """No two heads alike, no row empty."""
    mask = torch.rand(B, H, Q, K) > 0.4
    mask[..., 0] |= ~mask.any(dim=-1)
    return mask


def with_empty_rows() -> Tensor:
    mask = random_mask()
    mask[0, 1, 2] = mask[1, :, 4] = False
    return mask


EMPTY = torch.zeros(B, H, Q, dtype=torch.bool)
EMPTY[0, 1, 2] = EMPTY[1, :, 4] = True
ALL = torch.ones(1, 1, 1, K, dtype=torch.bool)
KEEP = torch.tensor([1.0, 0.0, 1.0])[:, None, None]  # head 1 is removed


def test_every_stage_is_equation_1_in_double_precision() -> None:
    q, k, v = random_qkv()
    mask = random_mask()
    seen = attend(q, k, v, Rule(mask))
    scores = np.einsum("bhqd,bhkd->bhqk", q.double(), k.double()) / math.sqrt(d)
    powers = np.exp(scores) * mask.numpy()
    weights = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(seen.scores, scores, atol=2e-6, rtol=0)
    np.testing.assert_allclose(seen.weights, weights, atol=1e-6, rtol=0)
    output = np.einsum("bhqk,bhkd->bhqd", weights, v.double())
    np.testing.assert_allclose(seen.output, output, atol=2e-6, rtol=0)


def test_scores_112_and_96_of_width_64_become_weights_088_and_012() -> None:
    """The worked example of "The Illustrated Transformer"."""
    q, k = torch.full((1, 1, 1, 64), 1.0), torch.tensor([112 / 64, 96 / 64])[:, None].expand(1, 1, 2, 64)
    seen = attend(q, k, k, Rule(ALL[..., :2]))
    assert seen.scores.flatten().tolist() == [14, 12]
    assert_close(seen.weights.flatten(), torch.tensor([0.8807970779, 0.1192029220]), atol=5e-7, rtol=0)


def test_a_query_of_zeros_looks_at_all_allowed_keys_alike() -> None:
    q, k, v = random_qkv()
    mask = random_mask()
    weights = attend(q * 0, k, v, Rule(mask)).weights
    close(weights, mask / mask.sum(dim=-1, keepdim=True))


def test_rows_sum_to_1_and_a_blocked_cell_is_exactly_0() -> None:
    mask = random_mask()
    weights = attend(*random_qkv(), Rule(mask)).weights
    assert_close(weights.sum(dim=-1), torch.ones(B, H, Q), atol=1e-5, rtol=0)
    assert (weights[~mask] == 0).all()
    assert (weights[mask] > 0).all()


def test_a_blocked_cell_is_0_even_beside_scores_far_below_any_stand_in_for_minus_infinity() -> None:
    q, k = torch.ones(1, 1, 1, d), -1e9 * torch.tensor([1.0, 1.0, 0.0])[:, None].expand(1, 1, 3, d)
    seen = attend(q, k, k, Rule(torch.tensor([True, True, False])))
    assert seen.weights.flatten().tolist() == [0.5, 0.5, 0]


def test_a_row_with_nothing_allowed_has_weights_0_and_output_0() -> None:
    seen = attend(*random_qkv(), Rule(with_empty_rows()))
    sums = seen.weights.sum(dim=-1)
    assert_close(sums, (~EMPTY).float(), atol=1e-5, rtol=0)
    assert (seen.weights[EMPTY] == 0).all()
    assert (seen.output[EMPTY] == 0).all()
    assert not any(stage.isnan().any() for stage in seen)


def test_the_blocked_cells_leave_the_scores_alone() -> None:
    q, k, v = random_qkv()
    assert torch.equal(attend(q, k, v, Rule(random_mask())).scores, attend(q, k, v, Rule(ALL)).scores)


def test_each_head_and_the_output_equal_torchs_multihead_attention(attention: MultiHeadAttention) -> None:
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    theirs.load_state_dict(dict(in_torchs_words(attention)))
    x, memory, mask = torch.randn(B, Q, D), torch.randn(B, K, D), random_mask()
    output, seen = attention(attention.queries(x), attention.keys_values(memory), Rule(mask), capture=True)
    want, weights = theirs(x, memory, memory, attn_mask=~mask.flatten(0, 1), average_attn_weights=False)
    close(seen.weights, weights)
    close(output, want)


def test_the_weights_are_those_that_torchs_fused_attention_hides() -> None:
    """With the unit matrix for values, its output is its weights."""
    q, k, v = random_qkv()
    mask, unit = random_mask(), torch.eye(K).expand(B, H, K, K)
    hidden = scaled_dot_product_attention(q, k, unit, attn_mask=mask)
    close(attend(q, k, v, Rule(mask)).weights, hidden)


@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "unscaled"])
@pytest.mark.parametrize("keep", [None, KEEP], ids=["all-heads", "head-removed"])
@pytest.mark.parametrize("mask", [random_mask, with_empty_rows])
def test_the_fused_path_equals_the_captured_one(
    attention: MultiHeadAttention, mask: Callable[[], Tensor], keep: Tensor | None, scaled: bool
) -> None:
    q, memory = attention.queries(torch.randn(B, Q, D)), attention.keys_values(torch.randn(B, K, D))
    rule = Rule(mask(), keep, scaled)
    fused, nothing = attention(q, memory, rule)
    captured, seen = attention(q, memory, rule, capture=True)
    assert nothing is None
    close(fused, captured)
    close(attend_fused(seen.q, seen.k, seen.v, rule), seen.output)


def test_a_removed_head_has_output_0_and_the_others_do_not_notice() -> None:
    q, k, v = random_qkv()
    mask = random_mask()
    removed, whole = attend(q, k, v, Rule(mask, KEEP)), attend(q, k, v, Rule(mask))
    assert (removed.output[:, 1] == 0).all()
    assert torch.equal(removed.output[:, ::2], whole.output[:, ::2])
    assert torch.equal(removed.weights, whole.weights)


def test_removing_a_head_equals_zeroing_its_columns_of_w_o(attention: MultiHeadAttention) -> None:
    q, memory = attention.queries(torch.randn(B, Q, D)), attention.keys_values(torch.randn(B, K, D))
    removed, _ = attention(q, memory, Rule(ALL, KEEP), capture=True)
    attention.w_o.weight[:, d : 2 * d] = 0
    zeroed, _ = attention(q, memory, Rule(ALL), capture=True)
    close(removed, zeroed)


def test_without_the_scale_scores_are_larger_by_the_root_of_the_width() -> None:
    q, k, v = random_qkv()
    scaled, unscaled = (attend(q, k, v, Rule(ALL, scaled=on)) for on in (True, False))
    assert_close(unscaled.scores, scaled.scores * math.sqrt(d))
    assert_close(unscaled.weights, (scaled.scores * math.sqrt(d)).softmax(dim=-1), atol=1e-5, rtol=0)


def test_stacked_projections_are_the_three_one_by_one(attention: MultiHeadAttention) -> None:
    x = torch.randn(B, Q, D)
    want = attention.queries(x), *attention.keys_values(x)
    weights = {name: weights.clone() for name, weights in attention.named_parameters()}
    attention.lay_out()
    assert all(each.equal(weights[name]) for name, each in attention.named_parameters())
    q, (k, v) = attention.project(x)
    for got, one in zip((q, k, v), want, strict=True):
        assert got.shape == (B, H, Q, d)
        close(got, one)


@pytest.mark.parametrize("name", ["w_q", "w_k", "w_v"])
def test_a_change_of_a_projection_is_a_change_of_the_stack_also_in_a_copy(
    attention: MultiHeadAttention, name: str
) -> None:
    x = torch.randn(B, Q, D)
    attention.lay_out()
    for each in (attention, deepcopy(attention), deepcopy(attention).double().float()):
        getattr(each, name).weight[3] += 1
        getattr(each, name).bias[5] -= 1
        q, (k, v) = each.project(x)
        for got, want in zip((q, k, v), (each.queries(x), *each.keys_values(x)), strict=True):
            close(got, want)
