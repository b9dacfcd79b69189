"""Table 1, the counts and Add & Norm are what torch computes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from conftest import FORCED, TEXT, random_model
from model import costs, counts, norms
from model.attention import MultiHeadAttention, Rule
from model.config import Config
from model.costs import Sizes
from model.decoding import greedy, greedy_changed, greedy_without_cache
from model.masks import rules
from model.reader import MODELS
from model.trace import NEUTRAL, Change, Trace
from model.transformer import Transformer
from model.translator import Translator

PRIMES = Sizes(n=17, d=26, k=5, r=7)


# --- table 1 ---


def test_the_terms_are_table_1s() -> None:
    found = {layer: costs.term(layer, PRIMES) for layer in costs.LAYERS}
    assert found == {
        "attention": 17**2 * 26,
        "recurrent": 17 * 26**2,
        "convolution": 5 * 17 * 26**2,
        "restricted": 7 * 17 * 26,
    }
    assert costs.term("restricted", replace(PRIMES, r=99)) == costs.term("attention", PRIMES)
    assert [costs.sequential(layer, PRIMES) for layer in costs.LAYERS] == [1, 17, 1, 1]


@pytest.mark.parametrize("run", ["attention", "recurrent", "convolution"])
@pytest.mark.parametrize("cell", costs.CELLS)
def test_a_real_layer_multiplies_what_is_said(run: costs.Layer, cell: costs.Cell) -> None:
    of = replace(PRIMES, cell=cell)
    module, layer = costs.build(run, of)
    assert module is not None
    matrices = sum(each.numel() for each in module.parameters() if each.dim() > 1)
    inside = 2 * of.n**2 * of.d if run == "attention" else 0  # QKᵀ and the weighted sum
    assert costs.multiplications(run, of) == of.n * matrices + inside  # each position meets each weight once
    assert layer(torch.randn(1, of.n, of.d)).shape == (1, of.n, of.d)


@pytest.mark.parametrize("cell", costs.CELLS)
def test_the_crossover_is_where_the_products_are_equal(cell: costs.Cell) -> None:
    at = costs.crossover(replace(PRIMES, cell=cell))
    if at is None:
        assert all(
            costs.multiplications("attention", replace(PRIMES, n=n))
            > costs.multiplications("recurrent", replace(PRIMES, n=n))
            for n in (1, 2, 3, 101)
        )
    else:
        of = replace(PRIMES, n=at, cell=cell)
        assert costs.multiplications("attention", of) == costs.multiplications("recurrent", of)


@pytest.mark.parametrize(("n", "window"), [(17, 7), (17, 1), (17, 17), (17, 23), (21, 7), (1, 3)])
def test_the_restricted_layer_is_masked_attention(n: int, window: int) -> None:
    restricted, whole = costs.Windowed(22, 2, window), MultiHeadAttention(22, 2)
    whole.load_state_dict(restricted.state_dict())
    x = torch.randn(1, n, 22)
    back = torch.arange(n)[:, None] - torch.arange(n)
    everything = Rule(torch.ones(1, 1, 1, 1, dtype=torch.bool))
    ours, _none = restricted(*restricted.project(x), everything)
    theirs, _none = whole(*whole.project(x), Rule(((back >= 0) & (back < window))[None, None]))
    torch.testing.assert_close(ours, theirs)


def reached(n: int, k: int, dilations: list[int]) -> int:
    """How many layers of one-sided kernels it takes until the last position hears of the first."""
    heard = torch.zeros(1, 1, n)
    heard[..., 0] = 1
    for count, dilation in enumerate(dilations, 1):
        wide = nn.functional.pad(heard, ((k - 1) * dilation, 0))
        heard = nn.functional.conv1d(wide, torch.ones(1, 1, k), dilation=dilation)
        if heard[0, 0, -1] > 0:
            return count
    raise AssertionError("never")


@pytest.mark.parametrize(("n", "k"), [(17, 3), (16, 2), (27, 3), (28, 3), (5, 7), (41, 5), (2, 2)])
def test_the_longest_path_is_the_number_of_layers_until_the_end_hears_of_the_start(n: int, k: int) -> None:
    of = Sizes(n, 8, k=k, r=k)
    assert costs.path("convolution", of, dilated=False) == reached(n, k, [1] * n)
    assert costs.path("convolution", of) == reached(n, k, [k**layer for layer in range(n)])
    assert costs.path("restricted", of) == reached(n, k, [1] * n)
    assert costs.path("attention", of) == 1
    assert costs.path("recurrent", of) == n - 1
    for kind, steps in (
        ("attention", 1),
        ("recurrent", n - 1),
        ("plain", costs.path("convolution", of, dilated=False)),
        ("dilated", costs.path("convolution", of)),
    ):
        way = costs.stops(kind, n, k)  # type: ignore[arg-type]
        assert (way[0], way[-1], len(way)) == (0, n - 1, steps + 1)
        moves = np.diff(way)
        reach = {"attention": n, "recurrent": 1, "plain": k - 1}.get(kind)
        for layer, move in enumerate(moves):
            assert 0 <= move <= (reach or (k - 1) * k**layer)
            assert reach or move % k**layer == 0  # a dilated kernel hits only every so many positions


def test_a_path_of_one_position_has_no_step() -> None:
    assert [costs.path(layer, Sizes(1, 8)) for layer in costs.LAYERS] == [0, 0, 0, 0]
    assert costs.stops("dilated", 1, 3) == [0]
    assert costs.path("convolution", Sizes(7, 8, k=1)) == costs.path("recurrent", Sizes(7, 8))


def test_what_is_run_is_timed_and_what_it_keeps_grows_as_said() -> None:
    kept = {run: [] for run in ("attention", "fused", "recurrent", "restricted")}
    for n in (128, 256):
        for run, bytes_ in kept.items():
            seen = costs.measure(run, Sizes(n, 16, r=8))  # type: ignore[arg-type]
            assert seen.seconds > 0
            assert 3 <= seen.repeats <= 9
            bytes_.append(seen.bytes)
    # The weights of the one head, in float32, are what attention keeps and the fused kernel does not.
    grown = {run: after / before for run, (before, after) in kept.items()}
    assert grown["attention"] > 3
    assert max(grown["fused"], grown["recurrent"], grown["restricted"]) < 2.2
    assert kept["attention"][1] - kept["fused"][1] >= 256 * 256 * 4 * 0.9


def test_what_a_layer_keeps_is_counted_once_and_without_its_weights() -> None:
    n, d = 13, 16
    kernel = costs.measure("convolution", Sizes(n, d, k=3))
    padded = (n + 2) * d * 4  # all that a convolution needs again is what it read
    assert kernel.bytes == padded


def test_what_would_take_too_long_is_not_run() -> None:
    of = Sizes(4096, 256)
    assert not costs.fits("attention", of)
    assert costs.fits("recurrent", Sizes(1024, 256))
    with pytest.raises(ValueError, match="more than is tried"):
        costs.measure("attention", of)


# --- counts ---


def test_the_parts_are_what_the_models_of_this_project_hold() -> None:
    config = Config(211, n_layers=3, d_model=22, n_heads=2, d_ff=23)
    model = Transformer(config)
    assert counts.total(counts.shape(config)) == sum(each.numel() for each in model.parameters())
    found = {(part.side, part.name): part for part in counts.parts(counts.shape(config))}
    w_q = model.decoder_layers[0].cross_attention.w_q
    assert found["decoder", "cross W_Q"].each == sum(each.numel() for each in w_q.parameters())
    assert found["decoder", "LayerNorm"].copies == 9
    assert found["encoder", "W_1"].each == sum(
        each.numel() for each in model.encoder[0].feed_forward.w_1.parameters()
    )


def test_the_shipped_model_is_counted_right() -> None:
    config = Config.load(MODELS / "en-fr" / "config.json")
    with torch.device("meta"):
        model = Transformer(config)
    assert counts.total(counts.shape(config)) == sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("name", counts.PAPER)
def test_the_papers_models_are_counted_as_torch_counts(name: str) -> None:
    of = counts.PAPER[name]  # type: ignore[index]
    with torch.device("meta"):
        theirs = nn.Transformer(of.d_model, 8, of.encoder, of.decoder, of.d_ff, batch_first=True)
        table = nn.Embedding(of.vocabulary, of.d_model)
    extra = 2 * 2 * of.d_model  # nn.Transformer normalises once more at the end of either side
    assert counts.total(of) == sum(
        each.numel() for module in (theirs, table) for each in module.parameters()
    ) - (extra)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("norms_", [True, False])
@pytest.mark.parametrize(("encoder", "decoder"), [(2, 3), (5, 0), (0, 3)])
def test_every_configuration_is_counted_as_torch_counts(
    biases: bool, norms_: bool, encoder: int, decoder: int
) -> None:
    d, f, v, longest = 26, 31, 101, 37
    found = 0
    with torch.device("meta"):
        modules: list[nn.Module] = []
        for layers, attentions in ((encoder, 1), (decoder, 2 if encoder else 1)):
            for _layer in range(layers):
                modules += [nn.MultiheadAttention(d, 2, bias=biases) for _each in range(attentions)]
                modules += [nn.Linear(d, f, bias=biases), nn.Linear(f, d, bias=biases)]
                modules += [nn.LayerNorm(d) for _each in range(attentions + 1) if norms_]
            modules += [nn.Embedding(longest, d)] if layers else []
            modules += [nn.Embedding(v, d)] if layers else []
        modules.append(nn.Linear(d, v, bias=False))
        found = sum(each.numel() for module in modules for each in module.parameters())
    of = counts.Shape(v, encoder, decoder, d, f, False, biases, norms_, longest)
    assert counts.total(of) == found
    assert sum(counts.by_group(of).values()) == found
    tied = replace(of, shared=True, positions=0)
    sides = (encoder > 0) + (decoder > 0)
    assert counts.total(of) - counts.total(tied) == sides * (v * d + longest * d)


def test_four_attention_layers_of_the_base_model_hold_4194304_numbers() -> None:
    with torch.device("meta"):
        four = [nn.MultiheadAttention(512, 8, bias=False) for _layer in range(4)]
    found = sum(each.numel() for layer in four for each in layer.parameters())
    assert counts.attention_matrices(512, 4) == found == 4_194_304
    bare = replace(counts.PAPER["base"], encoder=4, decoder=0, biases=False, norms=False)
    assert counts.by_group(bare)["attention"] == found


def test_attention_is_a_third_of_an_encoder_layer_and_half_of_a_decoder_layer() -> None:
    bare = replace(counts.PAPER["base"], biases=False, norms=False)
    for side, share in (("encoder", 1 / 3), ("decoder", 1 / 2)):
        layer = counts.in_layer(bare, side)  # type: ignore[arg-type]
        assert layer["attention"] / (layer["attention"] + layer["feed-forward"]) == share


def test_what_cannot_be_a_model_is_refused() -> None:
    with pytest.raises(ValueError, match="d_model"):
        counts.Shape(7, 1, 1, 0, 5)
    with pytest.raises(ValueError, match="fewer than 0"):
        counts.Shape(7, -1, 1, 5, 5)


# --- Add & Norm ---

CHANGES = (Change(residual=False), Change(norm=False), Change(residual=False, norm=False))


@pytest.mark.parametrize("change", [NEUTRAL, *CHANGES])
def test_add_and_norm_do_what_the_change_says(translator: Translator, change: Change) -> None:
    trace = translator.trace(TEXT, FORCED, change)
    model = translator.model
    for layer in range(3):
        one, other = model.encoder[layer], model.decoder_layers[layer]
        steps = [
            (one.add_1, trace.entering("encoder", layer), trace.added("encoder")),
            (one.add_2, trace.added("encoder").out[layer], trace.fed("encoder")),
            (other.add_1, trace.entering("decoder", layer), trace.added("decoder")),
            (other.add_2, trace.entering("cross", layer), trace.added("cross")),
            (other.add_3, trace.added("cross").out[layer], trace.fed("decoder")),
        ]
        for step, x, done in steps:
            total = done.update[layer] + (x if change.residual else 0)
            right = total
            if change.norm:
                part = step.norm
                right = nn.functional.layer_norm(
                    torch.from_numpy(np.array(total)), (22,), part.weight, part.bias, part.eps
                ).numpy()
            np.testing.assert_allclose(done.out[layer], right, atol=2e-6 * max(1, abs(right).max()))


@pytest.mark.parametrize("change", CHANGES)
def test_without_add_or_norm_the_model_writes_what_its_own_passes_say(
    translator: Translator, change: Change
) -> None:
    source = translator._source(TEXT)
    written = greedy_changed(translator.model, source, change)
    assert written == greedy_without_cache(translator.model, source, change)
    trace = translator.trace(TEXT, written, change)
    likeliest = np.array(trace.log_probs)
    likeliest[:, [0, 1, 3]] = -np.inf
    chosen = likeliest.argmax(axis=-1).tolist()
    assert chosen[: len(written)] == written
    assert greedy_changed(translator.model, source, NEUTRAL) == greedy(translator.model, source)[0]


@pytest.mark.parametrize("change", [NEUTRAL, *CHANGES])
def test_the_flow_is_what_a_trace_and_torchs_own_backward_say(translator: Translator, change: Change) -> None:
    trace = translator.trace(TEXT, FORCED, change)
    seen = norms.flow(translator.model, trace.source_ids, trace.target_ids, change)
    read = [trace.embedding("source").sum, *trace.fed("encoder").out]
    written = [trace.embedding("target").sum, *trace.fed("decoder").out]
    for ours, rows in ((seen.encoder, read), (seen.decoder, written)):
        np.testing.assert_allclose(ours, [np.linalg.norm(x, axis=-1).mean() for x in rows], rtol=1e-4)
    assert math.isclose(seen.loss, -trace.log_prob / len(trace.comes_out), rel_tol=1e-4)
    # What goes back to the embedded source, by a hook on the first layer of a copy.
    model = random_model(max_pieces=31, vocabulary=translator.tokenizer.size)
    model.load_state_dict(translator.model.state_dict())
    model.requires_grad_(True)
    ids = torch.tensor([trace.source_ids]), torch.tensor([trace.target_ids])
    governed = rules(*ids, model.config, change)
    caught: dict[str, torch.Tensor] = {}
    for name, layer in (("encoder", model.encoder[1]), ("decoder", model.decoder[2])):
        layer.register_forward_pre_hook(
            lambda _module, args, name=name: (
                (caught.update({name: args[0]}), args[0].retain_grad())[2:] or None
            )
        )
    hidden = model.decode(ids[1], model.keys_values(model.encode(ids[0], governed).memory), governed).hidden
    right = torch.tensor([*trace.target_ids[1:], 2])
    nn.functional.cross_entropy(model.logits(hidden)[0], right).backward()
    assert math.isclose(seen.encoder_gradient[1], caught["encoder"].grad.norm(), rel_tol=1e-3)  # type: ignore[union-attr]
    assert math.isclose(seen.decoder_gradient[2], caught["decoder"].grad.norm(), rel_tol=1e-3)  # type: ignore[union-attr]


def test_the_flow_leaves_the_model_as_it_was(translator: Translator, trace: Trace) -> None:
    norms.flow(translator.model, trace.source_ids, trace.target_ids, NEUTRAL)
    assert not any(each.requires_grad or each.grad is not None for each in translator.model.parameters())
    with pytest.raises(ValueError, match="begin with <s>"):
        norms.flow(translator.model, trace.source_ids, trace.source_ids, NEUTRAL)


def test_the_two_norms_are_torchs() -> None:
    x = np.random.default_rng(0).normal(3, 5, (17, 11)).astype(np.float32)
    counted = np.arange(17) % 3 > 0
    as_torch = torch.from_numpy(x)
    np.testing.assert_allclose(
        norms.layer_norm(x), nn.LayerNorm(11, elementwise_affine=False)(as_torch), atol=1e-5
    )
    batch = nn.BatchNorm1d(11, affine=False).train()
    np.testing.assert_allclose(norms.batch_norm(x), batch(as_torch), atol=1e-5)
    np.testing.assert_allclose(
        norms.batch_norm(x, counted)[counted], batch(as_torch[torch.from_numpy(counted)]), atol=1e-5
    )
