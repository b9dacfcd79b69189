"""Sinusoidal positions against the formula of section 3.5 and what follows from it."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from model.positions import sinusoids

T, D = 61, 22


def turn(k: int) -> Tensor:
    """The block-diagonal rotation [D, D] that should turn PE(p) into PE(p + k)."""
    angles = [k / 10_000 ** (pair / D) for pair in range(0, D, 2)]
    turns = [[[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]] for a in angles]
    return torch.block_diag(*torch.tensor(turns, dtype=torch.float64))


def test_every_entry_is_the_papers_formula() -> None:
    encoding = sinusoids(torch.arange(T), D)
    assert encoding.shape == (T, D)
    for position in range(T):
        for i in range(D // 2):
            angle = position / 10_000 ** (2 * i / D)
            assert encoding[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-7)
            assert encoding[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_the_first_positions_of_width_4_are_those_worked_out_by_hand() -> None:
    hand = torch.tensor([[0, 1, 0, 1], [0.841471, 0.540302, 0.0099998, 0.99995]])
    assert_close(sinusoids(torch.arange(2), 4), hand, atol=1e-6, rtol=0)


@pytest.mark.parametrize("k", [1, 7, 31, -5])
def test_moving_by_k_turns_the_encoding_by_a_rotation_that_depends_on_k_alone(k: int) -> None:
    positions = torch.arange(5, T)
    turned = sinusoids(positions, D).double() @ turn(k).T
    assert_close(sinusoids(positions + k, D).double(), turned, atol=1e-6, rtol=0)
    assert_close(turn(k) @ turn(k).T, torch.eye(D, dtype=torch.float64))


@pytest.mark.parametrize("k", [0, 1, 13])
def test_the_product_of_two_encodings_depends_on_their_distance_alone(k: int) -> None:
    positions = torch.arange(T)
    products = (sinusoids(positions, D) * sinusoids(positions + k, D)).sum(dim=-1)
    by_hand = sum(math.cos(k / 10_000 ** (pair / D)) for pair in range(0, D, 2))
    assert_close(products, torch.full((T,), by_hand), atol=1e-5, rtol=0)


def test_the_squared_norm_is_half_the_width() -> None:
    assert_close(sinusoids(torch.arange(T), D).square().sum(dim=-1), torch.full((T,), D / 2))


def test_no_two_positions_share_an_encoding() -> None:
    distances = torch.cdist(sinusoids(torch.arange(T), D), sinusoids(torch.arange(T), D))
    assert (distances + torch.eye(T) > 0.1).all()


def test_positions_may_be_any_real_number() -> None:
    half = sinusoids(torch.tensor([-2.5, 0.5]), D)
    assert_close(half[:, 0], torch.tensor([-2.5, 0.5]).sin())
    assert_close(half[:, 1], torch.tensor([-2.5, 0.5]).cos())
