"""The recurrent translators: every state worked out again by hand, and what must hold for any weights."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

from model.build import build
from model.config import END, PAD, START, Config
from model.decoding import greedy, padded
from model.recurrent import Recurrent
from model.trace import Cell, Change, Head, Switch

V, D, N = 31, 22, 13
SOURCES = [[17, 4, 9, 4, 30, 11, END], [5, 23, 8, 16, END], [29, 6, END]]
TARGETS = [[START, 6, 7], [START, 12, 12, 25, 5], [START, 21, 14, 8]]
Numbers = NDArray[np.float64]


def made(material: str, seed: int = 0) -> Recurrent:
    """Fresh weights in eval mode, no bias 0."""
    torch.manual_seed(seed)
    sizes = {"n_layers": 1, "n_heads": 1, "d_model": D, "d_ff": N, "vocabulary": V}
    model = build(Config(**sizes, material=material)).eval().requires_grad_(False)
    assert isinstance(model, Recurrent)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter += 0.2 * torch.randn_like(parameter)
    return model


@pytest.fixture(scope="module", params=["recurrent attention", "recurrent"])
def model(request: pytest.FixtureRequest) -> Recurrent:
    return made(request.param)


@pytest.fixture(scope="module")
def attending() -> Recurrent:
    return made("recurrent attention")


def sigmoid(x: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-x))


def numbers(model: Recurrent) -> dict[str, Numbers]:
    return {name: value.double().numpy() for name, value in model.state_dict().items()}


def gru(x: Numbers, h: Numbers, w: Numbers, u: Numbers, b: Numbers, c: Numbers) -> Numbers:
    """One step: reset and update gates, a proposed state, and a mixture of old and proposed."""
    (w_r, w_z, w_n), (u_r, u_z, u_n) = np.split(w @ x + b, 3), np.split(u @ h + c, 3)
    reset, keep = sigmoid(w_r + u_r), sigmoid(w_z + u_z)
    return (1 - keep) * np.tanh(w_n + reset * u_n) + keep * h


def by_hand(
    model: Recurrent, source: list[int], target: list[int]
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Memory (S, 2N), states (T, N), weights (T, S) and logits (T, V) of one sentence, piece by piece."""
    p = numbers(model)
    x = p["embedding.weight"][source] * np.sqrt(D)
    way: dict[str, list[Numbers]] = {"": [], "_reverse": []}
    for suffix, states in way.items():
        h = np.zeros(N)
        parts = [p[f"encoder.{name}_l0{suffix}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        for piece in x[::-1] if suffix else x:
            h = gru(piece, h, *parts)
            states.append(h)
    forward, backward = way[""], way["_reverse"][::-1]
    memory = np.concatenate([forward, backward], axis=1)
    summary = np.concatenate([forward[-1], backward[0]])
    s = np.tanh(p["first.weight"] @ backward[0] + p["first.bias"])
    cell = [p[f"cell.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    all_states, all_weights, logits = [], [], []
    for id_ in target:
        y, c, weights = p["embedding.weight"][id_] * np.sqrt(D), summary, np.zeros(len(source))
        if model.attention is not None:
            asked = p["attention.w.weight"] @ s + p["attention.w.bias"]
            e = np.tanh(asked + memory @ p["attention.u.weight"].T) @ p["attention.v.weight"][0]
            weights = np.exp(e) / np.exp(e).sum()
            c = weights @ memory
        s = gru(np.concatenate([y, c]), s, *cell)
        hidden = np.tanh(p["last.weight"] @ np.concatenate([y, s, c]) + p["last.bias"])
        all_states.append(s)
        all_weights.append(weights)
        logits.append(p["embedding.weight"] @ hidden)
    return memory, np.array(all_states), np.array(all_weights), np.array(logits)


@pytest.mark.parametrize(("source", "target"), [*zip(SOURCES, TARGETS, strict=True)])
def test_states_weights_and_logits_are_what_the_equations_give(
    model: Recurrent, source: list[int], target: list[int]
) -> None:
    memory, states, weights, logits = by_hand(model, source, target)
    read, ids = torch.tensor([source]), torch.tensor([target])
    encoded = model.encode(read)
    told = model.decode(ids, encoded, model.rule(read, ids))
    near = {"atol": 1e-5, "rtol": 0}
    assert_close(encoded.states[0].double().numpy(), memory, **near)
    assert_close(told.states[0].double().numpy(), states, **near)
    assert_close(model(read, ids)[0].double().numpy(), logits, **near)
    if model.attention is not None:
        assert_close(torch.cat([each.weights[0, 0] for each in told.seen]).double().numpy(), weights, **near)
    else:
        assert told.seen == ()


def test_a_padded_batch_gives_every_sentence_what_it_gets_alone(model: Recurrent) -> None:
    logits = model(padded(SOURCES), padded(TARGETS))
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(torch.tensor([source]), torch.tensor([target]))
        assert_close(logits[row, : len(target)], alone[0], atol=1e-5, rtol=0)


def test_rows_sum_to_1_and_pads_weigh_nothing(attending: Recurrent) -> None:
    source, target = padded(SOURCES), padded(TARGETS)
    told = attending.decode(target, attending.encode(source), attending.rule(source, target))
    weights = torch.cat([each.weights for each in told.seen], dim=2)[:, 0]
    assert weights.shape == (3, 5, 7)
    assert_close(weights.sum(dim=-1), torch.ones(3, 5))
    assert (weights[(source == PAD)[:, None].expand_as(weights)] == 0).all()


def test_greedy_step_by_step_chooses_what_one_pass_chooses(model: Recurrent) -> None:
    source = padded(SOURCES)
    for row, ids in enumerate(greedy(model, source)):
        target = torch.tensor([[START, *ids]])
        logits = model(torch.tensor([SOURCES[row]]), target)[0]
        logits[:, [PAD, START, 3]] = -torch.inf
        best = logits.argmax(dim=-1).tolist()
        assert best[: len(ids)] == ids
        assert best[len(ids)] == END or len(ids) == 57 - 7 + len(SOURCES[row])


def test_without_attention_every_weight_but_the_attentions_has_the_same_size() -> None:
    with_, without = (dict(made(m).named_parameters()) for m in ("recurrent attention", "recurrent"))
    assert {name: value.shape for name, value in with_.items() if not name.startswith("attention.")} == {
        name: value.shape for name, value in without.items()
    }
    assert len(with_) == len(without) + 4


def weights(model: Recurrent, change: Change) -> torch.Tensor:
    source, target = torch.tensor([[*SOURCES[0], PAD, PAD]]), torch.tensor([TARGETS[1]])
    told = model.decode(target, model.encode(source), model.rule(source, target, change))
    return torch.cat([each.weights for each in told.seen], dim=2)[0, 0]


def test_changes_do_to_additive_attention_what_they_do_to_the_transformers(attending: Recurrent) -> None:
    plain = weights(attending, Change())
    assert (plain[:, 7:] == 0).all()
    assert (weights(attending, Change(cross_padding=Switch("all")))[:, 7:] > 0).all()
    even = weights(attending, Change(uniform=frozenset({Head("cross", 0, 0)})))
    assert_close(even[:, :7], torch.full((5, 7), 1 / 7))
    blocked = weights(attending, Change(blocked=frozenset({Cell("cross", 2, 3)})))
    assert blocked[2, 3] == 0
    assert_close(blocked[:2], plain[:2])
    assert_close(blocked[2], plain[2].index_fill(0, torch.tensor(3), 0) / (1 - plain[2, 3]))
    source, target = torch.tensor([SOURCES[0]]), torch.tensor([TARGETS[1]])
    rule = attending.rule(source, target, Change(removed=frozenset({Head("cross", 0, 0)})))
    told = attending.decode(target, attending.encode(source), rule)
    assert all((each.output == 0).all() for each in told.seen)
