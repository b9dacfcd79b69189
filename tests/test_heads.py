"""Heads measured, given roles, removed and flattened: each number against one worked out another way."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from model.attention import Rule, attend, attend_fused
from model.trace import KINDS, Change, Head, Kind
from model.translator import Translator
from tests.conftest import FORCED, TEXT

B, H, Q, K, D = 2, 3, 5, 7, 11
FLAT = torch.tensor([False, True, False])[:, None, None]


# --- the uniform test -------------------------------------------------------------------------------------


def test_a_uniform_head_weighs_its_allowed_keys_alike_and_the_others_do_not_notice() -> None:
    q, k, v = torch.randn(B, H, Q, D), torch.randn(B, H, K, D), torch.randn(B, H, K, D)
    mask = torch.rand(B, 1, Q, K) < 0.6
    mask[0, 0, 2] = False  # a row with nothing allowed
    mask[..., 0] |= ~mask.any(dim=-1) & (torch.arange(Q) != 2)
    flat, whole = attend(q, k, v, Rule(mask, uniform=FLAT)), attend(q, k, v, Rule(mask))
    counts = mask.sum(dim=-1, keepdim=True)
    assert_close(flat.weights[:, 1], (mask / counts.clamp(min=1))[:, 0], atol=1e-6, rtol=0)
    assert (flat.weights[0, 1, 2] == 0).all()
    assert torch.equal(flat.weights[:, ::2], whole.weights[:, ::2])
    assert torch.equal(flat.scores, whole.scores)  # what the head would have liked is still shown
    means = (mask.float() @ v / counts.clamp(min=1))[:, 1]  # a plain average of values
    assert_close(flat.output[:, 1], means, atol=1e-6, rtol=0)
    assert_close(attend_fused(q, k, v, Rule(mask, uniform=FLAT)), flat.output, atol=1e-5, rtol=0)
    theirs = scaled_dot_product_attention(q * ~FLAT, k, v, attn_mask=mask)
    assert_close(flat.output[1], theirs[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_flattened_head_of_a_trace_is_flat_and_only_later_layers_move(
    translator: Translator, kind: Kind
) -> None:
    before = translator.trace(TEXT, FORCED)
    after = translator.trace(TEXT, FORCED, Change(uniform=frozenset({Head(kind, 1, 0)})))
    allowed = after.allowed(kind)[1, 0]
    assert np.allclose(after.weights(kind)[1, 0], allowed / allowed.sum(axis=-1, keepdims=True), atol=1e-6)
    assert np.array_equal(after.weights(kind)[1, 1], before.weights(kind)[1, 1])
    assert np.array_equal(after.weights(kind)[0], before.weights(kind)[0])
    assert not np.allclose(after.weights(kind)[2], before.weights(kind)[2], atol=1e-4)
    assert not np.allclose(after.log_probs, before.log_probs, atol=1e-4)


def test_a_change_names_only_heads_that_are_there(translator: Translator) -> None:
    with pytest.raises(ValueError, match="head 2 of 2"):
        translator.trace(TEXT, FORCED, Change(uniform=frozenset({Head("cross", 0, 2)})))


def test_decoding_under_a_flat_head_agrees_with_a_pass_over_what_it_wrote(translator: Translator) -> None:
    """The cache of the decoder and the one pass afterwards follow the same rule."""
    change = Change(uniform=frozenset({Head("decoder", 0, 1), Head("cross", 2, 0)}))
    free = translator.trace(TEXT, change=change)
    plain = translator.trace(TEXT)
    never = {"<pad>", "<s>", "<unk>"}
    for trace in (free, plain):
        best = [next(one.piece for one in row if one.piece not in never) for row in trace.candidates]
        assert best[: len(best) - trace.cut] == list(trace.comes_out[: len(best) - trace.cut])
    assert free.comes_out != plain.comes_out
