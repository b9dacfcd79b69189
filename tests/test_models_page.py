"""Every model on every page: what suits it is drawn, else why not is said; the model is part of the link."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from model import files
from model.trace import KINDS, Trace
from tests.conftest import assert_same
from viz import cache, fit, race, sentence, view
from viz.pages import decode, head, heads, masks, pages, positions, training
from viz.reading import find, language, outgoing, roles, row_names
from viz.text import examples
from viz.view import offered_places, opening

ROOT = Path(__file__).parent.parent
OTHERS = [offer.name for offer in cache.models() if offer.name != cache.MODEL]
TABS = {"head": head, "masks": masks, "decode": decode, "heads": heads, "training": training}
KEYS = {
    "head": "head_tab",
    "masks": "masks_tab",
    "decode": "dec_tab",
    "heads": "heads_tab",
    "training": "train_tab",
}


def opened(address: str, **params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at._page_hash = calc_hash(address)
    for name, value in params.items():
        at.query_params[name] = value
    return at.run()


def said(at: AppTest) -> str:
    parts = [*at.markdown, *at.caption, *at.text, *at.info, *at.warning]
    return "\n".join(part.value for part in parts).replace("\\", "")


def traced(name: str) -> Trace:
    first = opening(cache.sizes(name))
    gaps = view.parse_gaps(first.gaps)
    return cache.trace(name, first.text, gaps or None)


def scene(name: str) -> view.Scene:
    sizes = cache.sizes(name)
    return view.Scene(traced(name), view.at_first(sizes), lambda *asked: cache.trace(name, *asked))


def every_tab() -> Iterator[tuple[str, dict[str, str]]]:
    for address, page in TABS.items():
        yield from ((address, {KEYS[address]: tab}) for tab in page.TABS)
    for tab in positions.TABS:
        yield "positions", {"pos_tab": tab}
    for tab in positions.TRIES:
        yield "positions", {"pos_try": tab}
    for address in pages():
        if address not in TABS and address != "positions":
            yield address, {}


# What is chosen inside a tab. Some of it is not for every model: then the page says so, and shows the rest.
CHOSEN: list[tuple[str, dict[str, str]]] = [
    *(("head", {"head_stage": str(stage), "layer": layer}) for stage in range(1, 13) for layer in ("1", "3")),
    ("head", {"head_tab": "root", "head_why": "trained"}),
    ("masks", {"look_ahead": "false", "source_pads": "5", "target_pads": "2"}),
    ("masks", {"source_padding": "false", "cross_padding": "false", "target_padding": "false"}),
    *(("masks", {"masks_tab": "build", "masks_step": str(step)}) for step in range(2, 6)),
    ("masks", {"masks_tab": "draw", "blocked": "2:1 *:3"}),
    ("masks", {"masks_tab": "draw", "blocked": "1:*", "own_masks": "false", "this_layer": "true"}),
    *(("positions", {"pos_way": way}) for way in ("on", "shuffled", "shifted", "beyond")),
    ("positions", {"pos_try": "swap", "pos_swap": "on", "pos_second": "4"}),
    ("positions", {"pos_try": "twins", "text": "The big dog saw a big cat."}),
    *(("decode", {"dec_how": way, "dec_step": "3", "dec_words": "true"}) for way in ("beam", "sampling")),
    ("decode", {"dec_tab": "states", "dec_way": "translating", "dec_rival": "rnn", "dec_tick": "7"}),
    ("heads", {"heads_tab": "remove", "heads_removed": "e1.1 d1.1 c1.1"}),
    ("heads", {"heads_tab": "align", "heads_pair": "3"}),
    ("heads", {"mean": "true"}),
    ("explore", {"still": "true", "drawing": "lines", "values": "true", "mean": "true"}),
]


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_that_is_chosen_inside_a_tab_breaks_a_page_for_another_model(name: str) -> None:
    for address, params in CHOSEN:
        at = opened(address, model=name, **params)
        assert not at.exception, (address, params)


def tab_of(address: str, params: dict[str, str]) -> fit.Tab | None:
    if address == "positions":
        (key, tab) = next(iter(params.items()))
        return (positions.TABS if key == "pos_tab" else positions.TRIES)[tab]
    return TABS[address].TABS[params[KEYS[address]]] if address in TABS else None


def test_five_models_are_offered_in_three_shapes_and_three_materials() -> None:
    assert {offer.name for offer in cache.models()} == {*cache.SHIPPED}
    shapes = {(offer.shape, offer.material) for offer in cache.models()}
    assert len(shapes) == 5
    assert cache.models()[0].name == cache.MODEL


@pytest.mark.parametrize("name", OTHERS)
def test_a_models_sizes_are_those_of_its_trace(name: str) -> None:
    sizes, trace = cache.sizes(name), traced(name)
    assert tuple(sizes.kinds) == trace.kinds
    for kind, (layers, count) in sizes.kinds.items():
        assert trace.weights(kind).shape[:2] == (layers, count)
    assert dict(sizes.languages) == dict(trace.languages)


@pytest.mark.parametrize("name", OTHERS)
def test_every_page_draws_what_suits_the_model_and_says_why_not(name: str) -> None:
    here = scene(name)
    for address, params in every_tab():
        at = opened(address, model=name, **params)
        assert not at.exception, (address, params)
        assert not at.warning, (address, params)
        tab = tab_of(address, params)
        if tab is not None:
            lacking = fit.lacking(here, tab.needs)
            assert (lacking in said(at)) if lacking else True, (address, params)


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("rnn", {"grow", "beam", "sampling", "forcing", "states"}),
        ("rnn-attention", {"grow", "beam", "sampling", "forcing", "states"}),
        ("gpt", {"grow", "sampling", "states"}),
        ("bert", {"states"}),
    ],
)
def test_what_a_model_does_by_itself_decides_what_decode_shows(name: str, fitting: set[str]) -> None:
    here = scene(name)
    assert {tab for tab, of in decode.TABS.items() if not fit.lacking(here, of.needs)} == fitting


def test_without_attention_no_map_is_drawn_and_the_reader_is_sent_on() -> None:
    at = opened("explore", model="rnn")
    assert "one vector" in said(at)
    assert not at.segmented_control or "kind" not in {one.key for one in at.segmented_control}


def test_rows_are_named_by_what_comes_out_wherever_rows_predict() -> None:
    bert, gpt = traced("bert"), traced("gpt")
    (gap,) = bert.gaps
    assert row_names(bert, "encoder")[gap] == f"[MASK] → {bert.comes_out[gap]}"
    assert row_names(gpt, "decoder")[0] == f"<s> → {gpt.target[1]}"
    assert outgoing(traced(cache.MODEL), "encoder") is None
    assert language(bert.languages, "source") == "English" == language(gpt.languages, "target")
    assert language({}, "target") == "target"


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "rnn"])
def test_heads_are_looked_for_among_the_kinds_that_there_are(name: str) -> None:
    trace = traced(name)
    found = [find(trace, role) for role in roles(trace.kinds)]
    assert found
    assert {one.kind for one in found} <= {*trace.kinds}
    assert len(roles(KINDS)) == len(roles())


def test_a_press_hides_a_piece_and_a_second_one_shows_it() -> None:
    at = opened("explore", model="bert")
    first = opening(cache.sizes("bert"))
    assert at.text_input(key="gaps").value == first.gaps
    bare = cache.trace("bert", first.text)
    assert not bare.gaps
    assert bare.comes_out[-1] == bare.source[-1] == "</s>"
    more = cache.trace("bert", first.text, (1, *view.parse_gaps(first.gaps)))
    assert more.source[1] == "[MASK]"
    assert more.hidden[0] == bare.source[1]


def test_gaps_that_the_sentence_has_no_piece_for_are_told() -> None:
    at = opened("explore", model="bert", gaps="2,60")
    assert not at.exception
    assert "There is no piece 60 to hide" in said(at)


@pytest.mark.parametrize("gaps", ["x", "0", "1,,2", "-3", "9" * 500])
def test_bad_gaps_hide_nothing_and_crash_nothing(gaps: str) -> None:
    at = opened("explore", model="bert", gaps=gaps)
    assert not at.exception


def test_a_model_that_is_not_offered_is_told_and_the_usual_one_shown() -> None:
    at = opened("explore", model="../secret")
    assert not at.exception
    assert 'asked for model "../secret"' in at.warning[0].value.replace("\\", "")
    assert at.segmented_control(key="kind").options == [*KINDS]


def test_the_table_leads_to_each_models_own_first_view_and_keeps_a_readers_sentence() -> None:
    typed = offered_places(cache.models(), cache.MODEL, "My own words.")
    usual = offered_places(cache.models(), cache.MODEL, examples()[0].text)
    assert sum(map(len, typed.values())) == len(cache.models())
    for places, kept in ((typed, "My own words."), (usual, None)):
        for place in (place for cell in places.values() for place in cell):
            assert place.address is not None
            assert place.address["text"] == kept
            assert place.address["kind"] is place.address["layer"] is place.address["head"] is None
            assert place.address["model"] == (None if place.label == cache.MODEL else place.label)
            assert place.current == (place.label == cache.MODEL)


def test_what_is_said_of_a_sentence_is_what_the_trace_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, object]] = []
    monkeypatch.setattr(sentence.component, "sentence", lambda data, _turn: told.append(data))
    for name in (*OTHERS, cache.MODEL):
        sentence.show(traced(name), view.PALETTES["light"], lambda _place: None)
    by_name = dict(zip((*OTHERS, cache.MODEL), told, strict=True))
    gpt, bert = traced("gpt"), traced("bert")
    pieces = by_name["gpt"]["pieces"]
    assert [piece["text"] for piece in pieces] == [*gpt.target[1:]]  # type: ignore[attr-defined]
    assert sum(piece["quiet"] for piece in pieces) == gpt.given  # type: ignore[attr-defined]
    (gap,) = bert.gaps
    (hole,) = [piece for piece in by_name["bert"]["pieces"] if piece["gap"]]  # type: ignore[attr-defined]
    assert hole["place"] == gap
    assert hole["text"] == bert.comes_out[gap]
    assert bert.hidden[0] in hole["said"]


def test_a_recurrent_state_waits_for_the_one_before_it_and_a_transformers_rows_do_not() -> None:
    other, own = traced("rnn-attention"), cache.trace(cache.MODEL, traced("rnn-attention").text)
    runner = race.recurrent(other, "r")
    count, half = len(other.source), race.SHOWN // 2
    for at, state in enumerate(runner.states[:count]):
        assert state.ticks == [at + 1] * half + [count - at] * half
    assert [state.ticks[0] for state in runner.states[count:]] == [*range(count + 1, runner.last + 1)]
    assert runner.last == count + len(other.comes_out)
    for state, row in zip(runner.states[count:], other.weights("cross")[0, 0], strict=True):
        np.testing.assert_allclose(state.reads, row, atol=1e-6)
    assert race.transformer(own, "t", forced=True).last == 2
    free = race.transformer(own, "t", forced=False)
    assert free.last == 1 + len(own.comes_out)
    shown = np.array([state.numbers for state in runner.states[count:]])
    columns = np.unique(np.linspace(0, other.states["target"].shape[1] - 1, race.SHOWN).astype(int))
    kept = other.states["target"][:, columns]
    np.testing.assert_allclose(shown * abs(kept).max(), kept, atol=2e-3 * abs(kept).max())


# --- files ------------------------------------------------------------------------------------------------


def held(tmp_path: Path) -> tuple[str, np.ndarray]:
    """A file of one's own, of prime sizes, kept as the server keeps it."""
    layers, count, size = 5, 3, 7
    weights = np.random.default_rng(0).random((layers, count, size, size)).astype(np.float32)
    weights /= weights.sum(axis=-1, keepdims=True)
    path = tmp_path / "mine.npz"
    files.save(path, weights=weights, source=[f"t{place}" for place in range(size)])
    return cache.keep_file(path.name, path.read_bytes()), weights


def test_a_file_is_drawn_and_what_needs_the_model_says_so(tmp_path: Path) -> None:
    name, weights = held(tmp_path)
    sizes = cache.sizes(name)
    assert dict(sizes.kinds) == {"encoder": weights.shape[:2]}
    np.testing.assert_array_equal(cache.trace(name, "").weights("encoder"), weights)
    at = opened("explore", model=name, still="true", layer="4", head="2")
    assert not at.exception
    assert any("head 2 of layer 4" in caption.value for caption in at.caption)
    assert not [one for one in at.text_input if one.key == "text"]
    for address, params in every_tab():
        at = opened(address, model=name, **params)
        assert not at.exception, (address, params)
    assert "cannot be asked again" in said(opened("masks", model=name))


def test_a_whole_trace_from_a_file_is_walked_through_like_its_model(tmp_path: Path) -> None:
    trace = cache.trace(cache.MODEL, "I am a student.")
    name = cache.keep_file("whole.npz", files.write(trace, ".npz"))
    assert_same(cache.trace(name, ""), trace)
    at = opened("head", model=name, head_stage="2")
    assert not at.exception
    assert not [one for one in at.toggle if one.key == "head_w"]  # the matrices are not in the file


def test_who_has_the_link_sees_the_file_and_a_made_up_link_shows_nothing(tmp_path: Path) -> None:
    name, _weights = held(tmp_path)
    assert re.fullmatch(r"file-[0-9a-f]{30}", name)
    at = opened("explore", model="file-" + "0" * 30)
    assert not at.exception
    assert "no longer held" in said(at)
    assert not opened("models", model="file-" + "0" * 30).exception


def test_models_from_elsewhere_are_off_until_a_keeper_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADLIGHT_MODELS", raising=False)
    assert cache.allowed() == ()
    at = opened("models", models_tab="elsewhere")
    assert "opens no models from elsewhere" in said(at)
    assert 'asked for model "gpt2"' in said(opened("explore", model="gpt2"))
