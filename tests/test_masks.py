"""Who may look where, and what each field of a `Change` alters and leaves alone."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from conftest import FORCED, TEXT, assert_same
from model.config import END, PAD, START, Config
from model.masks import Rules, look_ahead_mask, padding_mask, rules
from model.positions import sinusoids
from model.trace import KINDS, Cell, Change, Flags, Head, Kind, Stages, Switch, Trace
from model.translator import Translator

L, H, S, T = 3, 2, 7, 5
CONFIG = Config(vocabulary=31, n_layers=L, n_heads=H, d_model=22, d_ff=23)
SOURCE = torch.tensor([[9, 4, 17, 30, END, PAD, PAD], [9, 4, END, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[START, 8, 12, 5, PAD], [START, 8, 12, 5, 29]])
LAYERS = [(0,), (1,), (0, 2), "all"]


def allowed(changed: Rules) -> dict[Kind, Flags]:
    """[L, B, H, Q, K] of each kind, spelled out."""
    shapes = {"encoder": (2, H, S, S), "decoder": (2, H, T, T), "cross": (2, H, T, S)}
    return {
        kind: torch.stack([rule.allowed.expand(shapes[kind]) for rule in getattr(changed, kind)]).numpy()
        for kind in KINDS
    }


def papers_masks(**off: tuple[int, ...] | str) -> dict[Kind, Flags]:
    """The same, from the words of section 3.2.3, with the named switches off in the named layers."""

    def on(switch: str, layer: int) -> bool:
        return off.get(switch) != "all" and layer not in off.get(switch, ())

    masks: dict[Kind, Flags] = {}
    for kind, queries, ids, padding in (
        ("encoder", S, SOURCE, "source_padding"),
        ("decoder", T, TARGET, "target_padding"),
        ("cross", T, SOURCE, "cross_padding"),
    ):
        masks[kind] = np.ones((L, 2, H, queries, ids.size(1)), bool)
        for layer, sentence, head, query, key in np.ndindex(masks[kind].shape):
            pad = ids[sentence, key] == PAD and on(padding, layer)
            later = kind == "decoder" and key > query and on("look_ahead", layer)
            masks[kind][layer, sentence, head, query, key] = not pad and not later
    return masks


def assert_equal_masks(one: dict[Kind, Flags], other: dict[Kind, Flags]) -> None:
    for kind in KINDS:
        np.testing.assert_array_equal(one[kind], other[kind], err_msg=kind)


def alone(translator: Translator, **change: object) -> Trace:
    """The trace of the same two sentences under one change."""
    return translator.trace(TEXT, FORCED, Change(**change))  # type: ignore[arg-type]


def test_the_padding_mask_hides_pads_as_keys_from_every_query() -> None:
    assert padding_mask(SOURCE)[:, 0, 0].tolist() == [[True] * 5 + [False] * 2, [True] * 3 + [False] * 4]


def test_the_look_ahead_mask_lets_a_position_see_itself_and_the_past() -> None:
    mask = look_ahead_mask(T)[0, 0]
    assert all(mask[query, key] == (key <= query) for query in range(T) for key in range(T))


def test_without_a_change_the_masks_are_the_papers() -> None:
    assert_equal_masks(allowed(rules(SOURCE, TARGET, CONFIG)), papers_masks())


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("switch", ["source_padding", "target_padding", "look_ahead", "cross_padding"])
def test_a_switch_lifts_one_mask_of_one_kind_in_the_named_layers(
    switch: str, layers: tuple[int, ...] | str
) -> None:
    changed = rules(SOURCE, TARGET, CONFIG, Change(**{switch: Switch(layers)}))
    assert_equal_masks(allowed(changed), papers_masks(**{switch: layers}))


def test_switches_do_not_depend_on_each_other() -> None:
    off = {"source_padding": (1,), "target_padding": "all", "look_ahead": (0, 2), "cross_padding": (2,)}
    changed = rules(SOURCE, TARGET, CONFIG, Change(**{name: Switch(layers) for name, layers in off.items()}))
    assert_equal_masks(allowed(changed), papers_masks(**off))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", [None, 1])
@pytest.mark.parametrize("head", [None, 1])
def test_a_blocked_cell_is_shut_in_the_named_layer_and_head_and_nowhere_else(
    kind: Kind, layer: int | None, head: int | None
) -> None:
    shut = papers_masks()
    layers, heads = (slice(None) if place is None else place for place in (layer, head))
    shut[kind][layers, :, heads, 3, 2] = False
    change = Change(blocked=frozenset({Cell(kind, 3, 2, layer, head)}))
    assert_equal_masks(allowed(rules(SOURCE, TARGET, CONFIG, change)), shut)


def test_blocked_cells_add_up_and_cells_beyond_the_sentence_block_nothing() -> None:
    shut = papers_masks()
    shut["encoder"][0, :, 0, 1, 0] = shut["encoder"][:, :, :, 2, 3] = False
    cells = {Cell("encoder", 1, 0, 0, 0), Cell("encoder", 2, 3), Cell("cross", T, 0), Cell("decoder", 0, T)}
    assert_equal_masks(allowed(rules(SOURCE, TARGET, CONFIG, Change(blocked=frozenset(cells)))), shut)


def test_blocking_one_cell_spares_all_other_heads_and_layers(translator: Translator, trace: Trace) -> None:
    changed = alone(translator, blocked=frozenset({Cell("cross", 4, 2, layer=1, head=0)}))
    assert changed.weights("cross")[1, 0, 4, 2] == 0
    assert changed.weights("cross")[1, 0, 4].sum() == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(changed.weights("cross")[0], trace.weights("cross")[0])
    np.testing.assert_array_equal(changed.weights("cross")[1, 1], trace.weights("cross")[1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_is_removed_in_its_place_alone(translator: Translator, trace: Trace, kind: Kind) -> None:
    changed = alone(translator, removed=frozenset({Head(kind, 1, 0)}))
    assert (changed.stages(kind).output[1, 0] == 0).all()
    for stage in fields(Stages):
        before, after = getattr(trace.stages(kind), stage.name), getattr(changed.stages(kind), stage.name)
        np.testing.assert_array_equal(after[0], before[0], err_msg=stage.name)
        np.testing.assert_array_equal(after[1, 1], before[1, 1], err_msg=stage.name)
    np.testing.assert_array_equal(changed.weights(kind)[1], trace.weights(kind)[1])
    assert not np.array_equal(changed.weights(kind)[2], trace.weights(kind)[2])
    others = [name for name in KINDS if (changed.stages(name).output == 0).any()]
    assert others == [kind]


@pytest.mark.parametrize("kind", KINDS)
def test_removing_a_head_equals_zeroing_its_columns_of_w_o(translator: Translator, kind: Kind) -> None:
    model = deepcopy(translator.model)
    layer = model.encoder[1] if kind == "encoder" else model.decoder[1]
    attention = layer.cross_attention if kind == "cross" else layer.attention
    attention.w_o.weight[:, 11:] = 0
    zeroed = replace(translator, model=model).trace(TEXT, FORCED)
    removed = alone(translator, removed=frozenset({Head(kind, 1, 1)}))
    np.testing.assert_allclose(removed.log_probs, zeroed.log_probs, atol=1e-5)


def test_positions_off_adds_nothing_to_either_sentence(translator: Translator, trace: Trace) -> None:
    changed = alone(translator, positions="off")
    for after, before in (
        (changed.embedding("source"), trace.embedding("source")),
        (changed.embedding("target"), trace.embedding("target")),
    ):
        assert not after.positions.any()
        np.testing.assert_array_equal(after.sum, before.pieces)


def test_a_shuffle_deals_the_same_positions_out_anew_fixed_by_its_seed(translator: Translator) -> None:
    def shuffled(seed: int) -> list[np.ndarray]:
        trace = alone(translator, positions="shuffled", seed=seed, source_pads=3, target_pads=2)
        return [trace.embedding("source").positions, trace.embedding("target").positions]

    for first, again, other, pads in zip(shuffled(1), shuffled(1), shuffled(2), (3, 2), strict=True):
        in_order = sinusoids(torch.arange(len(first)), 22).numpy()
        dealt = [int(np.abs(in_order - row).sum(axis=1).argmin()) for row in first]
        np.testing.assert_array_equal(first, in_order[dealt])
        assert sorted(dealt) == list(range(len(first))) != dealt
        assert dealt[-pads:] == list(range(len(first)))[-pads:]
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


@pytest.mark.parametrize("shift", [5, -3])
def test_a_shift_encodes_the_shifted_positions(translator: Translator, trace: Trace, shift: int) -> None:
    changed = alone(translator, shift=shift)
    for embedding in (changed.embedding("source"), changed.embedding("target")):
        moved = sinusoids(torch.arange(len(embedding.sum)) + shift, 22).numpy()
        np.testing.assert_array_equal(embedding.positions, moved)
        np.testing.assert_array_equal(embedding.sum, embedding.pieces + moved)
    np.testing.assert_array_equal(changed.embedding("source").pieces, trace.embedding("source").pieces)


def test_scale_off_multiplies_the_scores_by_the_root_of_d_k(translator: Translator, trace: Trace) -> None:
    changed = alone(translator, scale=False)
    for kind in KINDS:
        for seen, scale in ((trace.stages(kind), 11**-0.5), (changed.stages(kind), 1)):
            np.testing.assert_allclose(seen.scores, seen.q @ seen.k.swapaxes(-2, -1) * scale, atol=1e-5)
    for kind in ("encoder", "decoder"):  # the first layer reads the same in both
        before, after = trace.stages(kind), changed.stages(kind)
        np.testing.assert_allclose(after.scores[0], before.scores[0] * 11**0.5, atol=1e-5)
        np.testing.assert_array_equal(after.q[0], before.q[0])


@pytest.mark.parametrize(("source_pads", "target_pads"), [(3, 0), (0, 2), (4, 1)])
def test_pads_get_no_weight_and_leave_the_real_rows_alone(
    translator: Translator, trace: Trace, source_pads: int, target_pads: int
) -> None:
    padded = alone(translator, source_pads=source_pads, target_pads=target_pads)
    s, t = len(trace.source), len(trace.target)
    assert padded.source == (*trace.source, *["<pad>"] * source_pads)
    assert padded.target == (*trace.target, *["<pad>"] * target_pads)
    for kind in KINDS:
        queries, keys = (len(axis) for axis in trace.axes(kind))
        before, after = trace.stages(kind), padded.stages(kind)
        for name in ("scores", "weights"):
            real = getattr(after, name)[..., :queries, :keys]
            np.testing.assert_allclose(real, getattr(before, name), atol=1e-5 if name == "scores" else 1e-6)
        for name, rows in (("q", queries), ("output", queries), ("k", keys), ("v", keys)):
            np.testing.assert_allclose(getattr(after, name)[..., :rows, :], getattr(before, name), atol=1e-5)
        assert (after.weights[..., keys:] == 0).all()
        assert not after.allowed[..., keys:].any()
    np.testing.assert_allclose(padded.embedding("source").sum[:s], trace.embedding("source").sum, atol=1e-6)
    np.testing.assert_allclose(padded.log_probs[:t], trace.log_probs, atol=1e-5)
    assert not padded.piece_log_probs[t:].any()
    assert padded.log_prob == pytest.approx(trace.log_prob, abs=1e-4)


NEUTRAL = [
    Change(),
    Change(source_padding=Switch(), target_padding=Switch(()), look_ahead=Switch(off=())),
    Change(blocked=frozenset(), removed=frozenset(), positions="on", shift=0, scale=True, source_pads=0),
    Change(seed=7),  # nothing is shuffled
    Change(source_padding=Switch("all"), target_padding=Switch((1,)), cross_padding=Switch("all")),  # no pads
    Change(blocked=frozenset({Cell("encoder", 99, 0)})),  # no such cell
]


@pytest.mark.parametrize("change", NEUTRAL)
@pytest.mark.parametrize("target", [FORCED, None], ids=["forced", "own"])
def test_a_neutral_change_changes_no_bit(translator: Translator, change: Change, target: str | None) -> None:
    assert_same(translator.trace(TEXT, target, change), translator.trace(TEXT, target))


def test_changes_are_values_equal_by_what_they_say_and_fit_for_a_cache_key() -> None:
    def make() -> Change:
        cells = frozenset({Cell("cross", 1, 2), Cell("encoder", 0, 0, 1, 1)})
        return Change(look_ahead=Switch((1,)), blocked=cells, removed=frozenset({Head("decoder", 0, 1)}))

    assert make() == make()
    assert {make(): 1}[make()] == 1
    assert make() != Change()
    assert hash(Change()) == hash(Change(scale=True))


def impossible() -> Iterator[tuple[Change, str]]:
    for switch in ("source_padding", "target_padding", "look_ahead", "cross_padding"):
        yield Change(**{switch: Switch((0, 3))}), "layer 3 of 3"
    yield Change(removed=frozenset({Head("cross", 5, 0)})), "layer 5 of 3"
    yield Change(removed=frozenset({Head("cross", 2, 2)})), "head 2 of 2"
    yield Change(removed=frozenset({Head("cross", -1, 0)})), "layer -1 of 3"
    yield Change(blocked=frozenset({Cell("encoder", 0, 0, layer=3)})), "layer 3 of 3"
    yield Change(blocked=frozenset({Cell("encoder", 0, 0, head=7)})), "head 7 of 2"
    yield Change(blocked=frozenset({Cell("encoder", -1, 0)})), "-1"
    yield Change(blocked=frozenset({Cell("encoder", 0, -1)})), "-1"
    yield Change(source_pads=-1), "-1"


@pytest.mark.parametrize(("change", "message"), list(impossible()))
def test_a_change_that_names_what_the_model_lacks_is_refused_with_both_numbers(
    translator: Translator, change: Change, message: str
) -> None:
    for target in (FORCED, None):
        with pytest.raises(ValueError, match=message):
            translator.trace(TEXT, target, change)
