"""What the stage is sent: the payload is taken apart anew, as the browser does it, and holds the trace."""

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from model.trace import KINDS, Cell, Change, Trace
from model.translator import Translator
from tests.conftest import FORCED, TEXT
from viz import cache
from viz.reading import REASONS, Map, reasons
from viz.stage import DENSE, LONGEST, Maps, Payload, maps, pack
from viz.view import at_first, controls, offers


@dataclass
class Read:
    header: dict[str, Any]
    parts: dict[str, np.ndarray]


def taken_apart(payload: Payload) -> Read:
    data = payload.bytes
    start = 4 + int.from_bytes(data[:4], "little")
    header = json.loads(data[4:start])
    body = zlib.decompress(data[start:]) if header.get("deflated") else data[start:]
    parts = {}
    for name, kind, shape, at in header["parts"]:
        count = int(np.prod(shape))
        if kind == "u2":
            low = np.frombuffer(body, np.uint8, count, at).astype(np.uint16)
            high = np.frombuffer(body, np.uint8, count, at + count).astype(np.uint16)
            parts[name] = (low + 256 * high).reshape(shape)
        else:
            parts[name] = np.frombuffer(body, "<" + kind, count, at).reshape(shape)
        assert at % 4 == 0
    return Read(header, parts)


def random_maps(layers: int, heads: int, queries: int, keys: int) -> Maps:
    random = np.random.default_rng(5)
    weights = np.exp(random.normal(size=(layers, heads, queries, keys)))
    weights /= weights.sum(axis=-1, keepdims=True)
    pieces = tuple(f"k{index}" for index in range(keys))
    codes = np.zeros(weights.shape, np.uint8)
    return Maps(weights.astype(np.float32), codes, tuple(f"q{index}" for index in range(queries)), pieces)


def test_a_short_sentence_is_sent_to_the_last_bit(trace: Trace) -> None:
    read = taken_apart(pack([maps(trace)]))
    for kind in KINDS:
        told = read.header["kinds"][kind]
        assert (tuple(told["queries"]), tuple(told["keys"])) == trace.axes(kind)
        for layer, weights in enumerate(trace.weights(kind)):
            np.testing.assert_array_equal(read.parts[f"0.{kind}.{layer}"], weights)
    assert tuple(read.header["kinds"]["cross"]["out"]) == trace.comes_out
    assert read.header["kinds"]["encoder"]["out"] is None


def test_every_cell_says_why_it_is_blocked(translator: Translator) -> None:
    own = frozenset({Cell("decoder", 5, 2, layer=1, head=0), Cell("cross", 3, 1)})
    trace = translator.trace(TEXT, FORCED, Change(source_pads=2, target_pads=3, blocked=own))
    read = taken_apart(pack([maps(trace)]))
    found = set()
    for kind in KINDS:
        allowed = trace.allowed(kind)
        for layer, head in np.ndindex(*allowed.shape[:2]):
            which = read.parts[f"0.{kind}.mask"][layer, head]
            codes = read.parts[f"0.{kind}.masks"][which]
            said = [[REASONS[code] for code in row] for row in codes.tolist()]
            assert said == reasons(trace, kind, allowed[layer, head])
            np.testing.assert_array_equal(codes == 0, allowed[layer, head])
            found |= {reason for row in said for reason in row}
        mean = read.parts[f"0.{kind}.masks"][read.parts[f"0.{kind}.mask"][:, -1]]
        np.testing.assert_array_equal(mean == 0, allowed.any(axis=1))
    assert found == set(REASONS)


def test_what_is_said_of_row_sums_and_range_is_measured_before_bits_are_dropped(trace: Trace) -> None:
    for bits in (8, 32):
        read = taken_apart(pack([maps(trace)], bits=bits))  # type: ignore[arg-type]
        for kind in KINDS:
            heads = trace.weights(kind).shape[1]
            for layer, head in np.ndindex(trace.weights(kind).shape[0], heads + 1):
                picture = Map(trace, kind, layer, head if head < heads else None)
                shown = picture.weights[picture.allowed]
                off = abs(picture.weights.sum(axis=-1) - 1)[~picture.empty].max()
                expected = [off, shown.min(), shown.max()]
                np.testing.assert_allclose(
                    read.parts[f"0.{kind}.stats"][layer, head], expected, atol=2e-7, rtol=0
                )


@pytest.mark.parametrize(("bits", "step"), [(8, 1 / 255), (16, 1 / 65535)])
def test_fewer_bits_are_off_by_half_a_step_at_most(bits: Any, step: float) -> None:
    each = random_maps(2, 3, 31, 37)
    read = taken_apart(pack([{"encoder": each}], bits=bits))
    for layer in range(2):
        off = abs(read.parts[f"0.encoder.{layer}"] * step - each.weights[layer])
        assert off.max() <= 0.5001 * step


def test_large_payloads_are_deflated_and_come_out_whole() -> None:
    each = random_maps(3, 5, 61, 67)
    assert each.weights.size > DENSE
    payload = pack([{"encoder": each}], bits=16)
    assert len(payload.bytes) < 0.9 * each.weights.size * 2
    read = taken_apart(payload)
    assert read.header["deflated"]
    np.testing.assert_allclose(read.parts["0.encoder.2"] / 65535, each.weights[2], atol=1e-5)


def test_a_long_input_is_sent_layer_by_layer_under_one_name() -> None:
    each = random_maps(4, 3, 509, 503)
    first, second = (pack([{"encoder": each}], ("encoder", layer), bits=32) for layer in (1, 3))
    assert first.name == second.name
    assert [name for name in taken_apart(first).parts if name[-1].isdigit()] == ["0.encoder.1"]
    assert [name for name in taken_apart(second).parts if name[-1].isdigit()] == ["0.encoder.3"]


def test_other_numbers_have_another_name(translator: Translator, trace: Trace) -> None:
    other = translator.trace(TEXT, FORCED, Change(scale=False))
    again = translator.trace(TEXT, FORCED)
    names = [pack([maps(each)]).name for each in (trace, other, again)]
    assert names[0] == names[2] != names[1]
    assert pack([maps(trace), maps(other)]).name != pack([maps(other), maps(trace)]).name


def test_before_and_after_are_both_sent(translator: Translator, trace: Trace) -> None:
    after = translator.trace(TEXT, FORCED, Change(positions="off"))
    read = taken_apart(pack([maps(trace), maps(after)]))
    assert read.header["sets"] == 2
    np.testing.assert_array_equal(read.parts["1.decoder.2"], after.weights("decoder")[2])


def test_what_the_stage_cannot_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 512"):
        pack([{"encoder": random_maps(1, 1, 3, LONGEST + 1)}])
    with pytest.raises(ValueError, match="beside"):
        pack([{"encoder": random_maps(1, 1, 3, 5)}, {"encoder": random_maps(1, 1, 3, 7)}])


def test_a_place_is_said_in_the_terms_of_the_address() -> None:
    sizes = cache.sizes()
    place = controls(at_first(sizes))
    assert place.keys() == offers(sizes).keys() - {"values", "still"} | {"also"}
    for name, value in place.items():
        written = str(value).lower() if isinstance(value, bool) else str(value)
        assert name == "also" or written in offers(sizes)[name]
