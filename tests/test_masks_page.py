"""The laboratory of masks: what it draws and says is what the model computed under the change."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import model
from conftest import FORCED, TEXT
from model.experiments import masked_softmax
from model.trace import KINDS, Cell, Change, Kind, Switch, Trace
from model.translator import Translator
from viz import cells, tables
from viz.pages.masks.build import parts
from viz.pages.masks.numbers import BLOCKED, variants
from viz.reading import loss

ROOT = Path(__file__).parent.parent
ROWS, COLUMNS = 5, 7
PLACES = st.frozensets(st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)))


def opened(**params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in params.items():
        at.query_params[name] = value
    at._page_hash = calc_hash("masks")  # AppTest finds only pages that are files by itself
    return at.run()


def said(at: AppTest) -> str:
    parts_ = [*at.markdown, *at.caption, *at.text, *at.info]
    return "\n".join(part.value.replace("\\", "") for part in parts_)


# --- the reader's own mask, as text ---


@given(blocked=PLACES)
def test_a_mask_written_as_text_reads_back_as_itself(blocked: cells.Cells) -> None:
    assert cells.parse(cells.write(blocked, ROWS, COLUMNS), ROWS, COLUMNS) == (blocked, [])


@given(text=st.text(alphabet="0123456789:*- x", max_size=40))
def test_any_text_names_cells_inside_the_map_or_is_told_wrong(text: str) -> None:
    blocked, wrong = cells.parse(text, ROWS, COLUMNS)
    assert all(0 <= query < ROWS and 0 <= key < COLUMNS for query, key in blocked)
    assert set(wrong) <= set(text.split())


def test_the_text_is_short_for_whole_columns_and_runs() -> None:
    column = cells.where(ROWS, COLUMNS, lambda _query, key: key == 3)
    assert cells.write(column | {(2, 0), (2, 1)}, ROWS, COLUMNS) == "*:4 3:1-2"
    assert cells.write(frozenset(), ROWS, COLUMNS) == ""


@given(blocked=PLACES, place=st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)))
def test_two_clicks_on_a_cell_undo_each_other(blocked: cells.Cells, place: tuple[int, int]) -> None:
    once = cells.toggled(blocked, [place], ROWS, COLUMNS)
    assert once ^ blocked == {place}
    assert cells.toggled(once, [place], ROWS, COLUMNS) == blocked


def test_a_click_on_the_edge_closes_a_row_or_column_and_opens_it_when_closed() -> None:
    row = cells.toggled(frozenset({(2, 5)}), [(2, -1)], ROWS, COLUMNS)
    assert row == {(2, key) for key in range(COLUMNS)}
    assert cells.toggled(row, [(2, -1)], ROWS, COLUMNS) == frozenset()
    assert len(cells.toggled(frozenset(), [(-1, 6)], ROWS, COLUMNS)) == ROWS


@given(content=st.binary(max_size=60))
def test_only_a_file_that_was_kept_here_is_taken(content: bytes) -> None:
    assert cells.from_file(content) is None
    assert cells.from_file(cells.to_file("cross", "*:4 3:1-2").encode()) == ("cross", "*:4 3:1-2")


# --- the mask, built and proved ---


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_that_is_built_is_the_mask_that_the_model_used(translator: Translator, kind: Kind) -> None:
    trace = translator.trace(TEXT, FORCED, Change(source_pads=3, target_pads=2))
    made = parts(trace, kind)
    assert made.padding.shape == (1, len(made.keys))
    np.testing.assert_array_equal(made.both, trace.allowed(kind)[1, 1])
    assert [id_ == 0 for id_ in made.ids] == [not open_ for open_ in made.padding[0]]
    assert made.triangle.all() == (kind != "decoder")


def test_pads_that_are_masked_move_nothing_and_bare_ones_do(translator: Translator, trace: Trace) -> None:
    off = Switch("all")
    counts = (1, 5)
    masked = [translator.trace(TEXT, FORCED, Change(source_pads=count)) for count in counts]
    bare = [
        translator.trace(TEXT, FORCED, Change(source_pads=count, source_padding=off, cross_padding=off))
        for count in counts
    ]
    frame = tables.padding(trace, masked, bare, 2)
    assert frame.iloc[:, 0].tolist() == [1, 5]
    assert frame.iloc[:, 1].astype(float).max() < 1e-4
    assert frame.iloc[:, 2].astype(float).min() >= 0.01
    share = bare[1].weights("encoder")[2, :, : len(trace.source), len(trace.source) :].sum(axis=-1).mean()
    assert frame.iloc[1, 3].startswith(f"{100 * share:.0f}")


def test_the_future_leaks_without_the_look_ahead_mask_and_not_a_bit_with_it(translator: Translator) -> None:
    other = FORCED.replace("école", "chat")
    off = Change(look_ahead=Switch("all"))
    masked = (translator.trace(TEXT, FORCED), translator.trace(TEXT, other))
    bare = (translator.trace(TEXT, FORCED, off), translator.trace(TEXT, other, off))
    frame = tables.leak(masked, bare, 4)
    assert len(frame) == 4
    assert (frame.iloc[:, 1].astype(float) == 0).all()
    assert (frame.iloc[:, 2].astype(float) > 0).all()


def test_loss_is_the_mean_over_real_pieces_and_target_pads_change_nothing(translator: Translator) -> None:
    bare, padded = (translator.trace(TEXT, FORCED, Change(target_pads=pads)) for pads in (0, 3))
    assert loss(bare) == pytest.approx(-bare.piece_log_probs.mean(), rel=1e-6)
    assert loss(padded) == pytest.approx(loss(bare), abs=1e-5)
    off = translator.trace(TEXT, FORCED, Change(target_pads=3, target_padding=Switch("all")))
    real = len(bare.target)
    moved = off.weights("decoder")[:, :, :real, :real] - bare.weights("decoder")
    assert abs(moved).max() < 1e-6  # the look-ahead mask hid these pads already


def test_probabilities_before_and_after_are_those_of_the_traces(translator: Translator, trace: Trace) -> None:
    after = translator.trace(TEXT, FORCED, Change(look_ahead=Switch((1,))))
    frame = tables.piece_probabilities(trace, after)
    assert frame.iloc[:, 0].tolist() == list(trace.comes_out)
    np.testing.assert_allclose(frame.iloc[:, 1], np.exp(trace.piece_log_probs), rtol=1e-6)
    np.testing.assert_allclose(frame.iloc[:, 3], after.piece_log_probs - trace.piece_log_probs, atol=1e-6)


# --- stand-ins, in numbers ---


def test_stand_ins_fail_as_the_page_says() -> None:
    scores = np.linspace(-3, 3, 35, dtype=np.float32).reshape(ROWS, COLUMNS)
    allowed = np.ones((ROWS, COLUMNS), bool)
    allowed[:, 5:] = False
    empty = allowed.copy()
    empty[3] = False
    exact = masked_softmax(scores, allowed, -np.inf, np.float32)
    assert (exact[~allowed] == 0).all()
    np.testing.assert_allclose(exact.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(masked_softmax(scores, allowed, -1e9, np.float32), exact, atol=1e-7)
    assert np.isnan(masked_softmax(scores, empty, -np.inf, np.float32)[3]).all()
    assert np.isnan(masked_softmax(scores, empty, -1e9, np.float16)[3]).all()  # -1e9 is -inf in float16
    np.testing.assert_allclose(masked_softmax(scores, empty, -1e9, np.float32)[3], 1 / COLUMNS, atol=1e-6)
    bare = np.exp(scores[3]) / np.exp(scores[3]).sum()
    np.testing.assert_allclose(masked_softmax(scores, empty, -1e4, np.float32)[3], bare, atol=1e-3)


def test_the_twelve_variants_are_counted_from_what_falls_out() -> None:
    scores = np.zeros((ROWS, COLUMNS), np.float32)
    allowed = np.ones((ROWS, COLUMNS), bool)
    empty = allowed.copy()
    empty[1] = False
    frame = variants(scores, dict(zip(BLOCKED, (allowed, empty), strict=True)))
    assert len(frame) == 12
    lost = frame.iloc[:, 3].tolist()
    assert lost == [0] * 6 + [1, 1, 0, 1, 0, 0]  # -inf in both types, and -1e9 in float16
    assert frame.iloc[8, 5] == f"{1 / COLUMNS:.2f}"


# --- the page ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tab", ["switch", "build", "draw", "prove", "cheat", "numbers"])
def test_every_tab_works_from_its_link_alone(tab: str, kind: Kind) -> None:
    for text in ("Tom loves Mary.", "."):
        at = opened(masks_tab=tab, kind=kind, text=text, target_pads="2", layer="2", cheat_guess="rises")
        assert not at.exception, (tab, kind, text)


def test_switching_a_mask_off_shows_what_the_model_computes_without_it() -> None:
    at = opened(kind="decoder", look_ahead="false", text="I am a student.")
    assert "out of its depth" in said(at)
    assert "after: " in said(at)
    at = opened(kind="decoder", target_padding="false", target_pads="3", text="I am a student.")
    assert "already hides pads" in said(at)
    assert "there is nothing to hide yet" in said(opened(source_pads="0", text="I am a student."))
    one = opened(kind="decoder", look_ahead="false", switched="1", text="I am a student.")
    assert "One layer without the mask is enough to leak" in said(one)


@pytest.mark.parametrize("text", ["I am a student.", "Tom loves Mary.", "The flowers are beautiful."])
def test_the_peek_backfires_and_the_cheater_only_cheats(text: str) -> None:
    honest, cheater = model.load("en-fr"), model.load("cheater")
    peek = Change(look_ahead=Switch("all"))
    trace = honest.trace(text)
    french = trace.translation
    assert loss(honest.trace(text, french, peek)) > loss(trace)
    assert loss(cheater.trace(text, french, peek)) < 0.1
    assert cheater.trace(text, None, peek).translation != french


def test_the_answer_waits_for_the_guess() -> None:
    assert not opened(masks_tab="cheat").dataframe
    at = opened(masks_tab="cheat", cheat_guess="falls", text="I am a student.")
    assert len(at.dataframe) == 1
    assert len(at.dataframe[0].value) == 3


def test_the_build_steps_forward_and_back() -> None:
    at = opened(masks_tab="build", kind="decoder", text="Tom loves Mary.")
    assert "1. Ids, and the padding row" in said(at)
    for step, title in enumerate(("triangle", "AND", "Added", "every head"), start=2):
        at.button(key="masks_step+1").click().run()
        assert f"{step}. " in said(at)
        assert title in said(at)
    at.button(key="masks_step-1").click().run()
    assert "4. Added" in said(at)


def test_presets_draw_the_masks_that_they_name() -> None:
    at = opened(masks_tab="draw", kind="encoder", text="Tom loves Mary.", source_pads="1")
    count = 6  # Tom loves Mary . </s> <pad>
    buttons = {button.label: button for button in at.button}
    for name, blocked in {
        "look-ahead": lambda q, k: k > q,
        "strictly before": lambda q, k: k >= q,
        "padding": lambda _q, k: k == 5,
        "only itself": lambda q, k: k != q,
        "only the previous": lambda q, k: k != q - 1,
        "window": lambda q, k: abs(q - k) > 1,
    }.items():
        at.button(key=buttons[name].key).click().run()
        drawn = cells.parse(at.text_input(key="blocked").value, count, count)[0]
        assert drawn == cells.where(count, count, blocked), name
        assert not at.exception
    at.button(key=buttons["strictly before"].key).click().run()
    assert "nothing allowed: 1" in said(at)


def test_words_that_name_no_cell_are_told() -> None:
    at = opened(masks_tab="draw", blocked="99:1 1:2 nonsense")
    assert not at.exception
    assert "99:1 nonsense" in said(at)


def test_a_blocked_cell_is_blocked_in_the_model(translator: Translator) -> None:
    blocked = cells.parse("2:3 *:1", 7, 7)[0]
    change = Change(blocked=frozenset(Cell("encoder", query, key) for query, key in blocked))
    weights = translator.trace(TEXT, FORCED, change).weights("encoder")
    for query in range(7):
        for key in range(7):
            assert (weights[..., query, key] == 0).all() == ((query, key) in blocked)


@pytest.mark.parametrize(("name", "value"), [("leak_at", "0"), ("leak_at", "64"), ("leak_at", "x")])
def test_a_piece_that_no_sentence_has_is_told(name: str, value: str) -> None:
    at = opened(masks_tab="prove", text="Tom loves Mary.", **{name: value})
    (warning,) = at.warning
    assert f'asked for {name} "{value}"' in warning.value.replace("\\", "")
    assert at.number_input(key=name).value == 4


def test_a_piece_that_this_sentence_does_not_have_is_told() -> None:
    at = opened(masks_tab="prove", text="Tom loves Mary.", leak_at="40")
    assert not at.warning
    assert "The French has no piece 40: the last one, 4, is changed." in said(at)
    assert "changed to: Tom aime Mary maison" in said(at)


def test_layers_that_the_model_does_not_have_are_told() -> None:
    assert ["99" in each.value for each in opened(switched="99").warning] == [True]


def test_a_word_that_changes_earlier_pieces_is_no_proof_and_one_that_is_too_long_is_told() -> None:
    at = opened(masks_tab="prove", text="I am a student.", target="Je suis étudimaison", leak_at="4")
    assert len(at.dataframe) == 2
    joined = opened(
        masks_tab="prove", text="I am a student.", target="Je suis étudimaison", leak_at="4", leak_word="iant"
    )
    assert "cut together with the letters before it" in said(joined)
    assert len(joined.dataframe) == 1
    for word in ("la " * 70, "z" * 1200):
        at = opened(masks_tab="prove", text="Tom loves Mary.", leak_word=word)
        assert not at.exception
        assert "The changed sentence is too long" in said(at)
