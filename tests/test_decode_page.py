"""The Decode page: what it says is what the model did; its film steps in a browser."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from viz import cache
from viz.pages import decode
from viz.text import examples, references, teacher

ROOT = Path(__file__).parent.parent
FIRST = examples()[0]
TALL = "You are tall."  # tu or vous: greedy and a beam differ


def opened(**params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in params.items():
        at.query_params[name] = value
    at._page_hash = calc_hash("decode")  # AppTest finds only pages that are files by itself
    return at.run()


def said(at: AppTest) -> str:
    parts = [*at.markdown, *at.caption, *at.text, *at.info]
    return "\n".join(part.value.replace("\\", "") for part in parts)


def film(at: AppTest) -> dict[str, Any]:
    """What the film was sent."""
    for element in at.get("bidi_component"):
        if "film" in element.proto.component_name:
            return json.loads(element.proto.json)
    raise AssertionError("no film on the page")


@pytest.mark.parametrize("tab", decode.TABS)
def test_every_tab_opens_on_an_odd_sentence_too(tab: str) -> None:
    for text in (FIRST.text, "<b>$x$ 🙂", "?"):
        at = opened(dec_tab=tab, text=text)
        assert not at.exception
        assert not at.warning


@pytest.mark.parametrize("how", decode.way.HOWS)
def test_the_film_holds_the_chosen_head_of_what_was_written(how: str) -> None:
    at = opened(text=TALL, dec_how=how, dec_beam="4", dec_seed="5", layer="2", head="3", dec_step="2")
    ids = {
        "greedy": cache.trace(cache.MODEL, TALL).target_ids[1:],
        "beam": cache.search(cache.MODEL, TALL, 4).ids,
        "sampling": cache.sample(cache.MODEL, TALL, 1.0, 0, 1.0, (5,))[0],
    }[how]
    trace = cache.trace_of(cache.MODEL, TALL, tuple(ids))
    seen = film(at)
    assert seen["step"] == 2
    assert seen["comes"] == list(trace.comes_out)
    for part, kind in zip(seen["maps"], ("cross", "decoder"), strict=True):
        for step, row in enumerate(part["rows"]):
            np.testing.assert_allclose(row, trace.weights(kind)[1, 2, step, : len(row)], atol=1e-6)
            assert sum(row) == pytest.approx(1, abs=1e-4)
        assert len(part["rows"][0]) == (1 if kind == "decoder" else len(trace.source))
    assert [each["piece"] for each in seen["next"][-1] if each["end"]] == ["</s>"]
    assert all(each["drawn"] is None for each in seen["next"][0]) == (how != "sampling")


def test_the_mean_and_whole_words_reach_the_film() -> None:
    text = "I love the mathematics of astronomy."
    trace = cache.trace(cache.MODEL, text)
    rows = film(opened(text=text, mean="true", layer="3"))["maps"][0]["rows"]
    np.testing.assert_allclose(rows, trace.weights("cross")[2].mean(axis=0), atol=1e-6)
    merged = film(opened(text=text, dec_words="true", layer="3", head="1"))["maps"][0]
    np.testing.assert_allclose([sum(row) for row in merged["rows"]], 1, atol=1e-4)
    assert "astronomy" in merged["keys"]
    assert "astronomy" not in trace.source


def test_a_french_of_the_readers_own_is_training_and_says_so() -> None:
    seen = film(opened(target="Elle a un petit chien noir."))
    assert all("Training: all of the target is given, one pass" in line for line in seen["bar"])
    assert all("Given:" in line for line in seen["aloud"])
    usual = film(opened())
    assert all("Writing" in line for line in usual["bar"])
    assert "Chosen: to stop" in usual["aloud"][-1]


def test_a_step_beyond_the_sentence_is_the_last_one() -> None:
    seen = film(opened(dec_step="60"))
    assert seen["step"] == len(seen["goes"])


def test_a_step_of_the_film_runs_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened(text=TALL)
    monkeypatch.setattr(cache, "_asked", lambda _work: pytest.fail("the model was asked"))
    at.number_input(key="dec_step").set_value(3).run()
    assert not at.exception
    assert film(at)["step"] == 3


@pytest.mark.parametrize(
    "bad", ["dec_step=0", "dec_step=x", "dec_tab=no", "dec_how=magic", "dec_beam=9", "dec_p=2", "dec_k=7"]
)
def test_a_bad_link_is_told(bad: str) -> None:
    name, _equals, value = bad.partition("=")
    at = opened(**{name: value})
    assert not at.exception
    assert any(f"asked for {name}" in each.value.replace("\\", "") for each in at.warning)


def test_the_beam_beats_greedy_where_tu_and_vous_are_close() -> None:
    at = opened(dec_tab="beam", text=TALL, dec_beam="4")
    found = cache.trace_of(cache.MODEL, TALL, cache.search(cache.MODEL, TALL, 4).ids)
    free = cache.trace(cache.MODEL, TALL)
    assert found.log_prob > free.log_prob
    assert f"**{found.translation}** log P {found.log_prob:.3f}" in said(at)
    assert f"{free.translation} log P {free.log_prob:.3f}" in said(at)
    at.button[-1].click().run()
    assert film(at)["comes"] == list(found.comes_out)


def test_cold_draws_are_greedy_and_a_seed_is_kept_by_its_link() -> None:
    at = opened(dec_tab="sampling", text=TALL, dec_temperature="0.0")
    assert set(at.dataframe[0].value.iloc[:, 1]) == {cache.trace(cache.MODEL, TALL).translation}
    one, again = (opened(dec_tab="sampling", text=TALL, dec_seed="3").dataframe[0].value for _ in range(2))
    assert one.equals(again)
    assert one.iloc[0, 0] == 3
    other = opened(dec_tab="sampling", text=TALL, dec_seed="4").dataframe[0].value
    assert other.iloc[:-1, 1].tolist() == one.iloc[1:, 1].tolist()


def test_forcing_says_where_the_two_part() -> None:
    at = opened(dec_tab="forcing")
    assert f"**{teacher(FIRST.text)}**" in said(at)
    assert 'They part at step 4: the teacher says "chat", the model would say "petit"' in said(at)
    at = opened(dec_tab="forcing", dec_teacher=FIRST.french)
    assert "They never part" in said(at)
    assert "too long" in said(opened(dec_tab="forcing", dec_teacher="z" * 999))
    assert "Type a French sentence" in said(opened(dec_tab="forcing", text="The dog sees a cat."))


def test_every_teacher_is_a_right_answer_or_written_for_it() -> None:
    for text, answers in references().items():
        assert teacher(text) in answers or text == FIRST.text


# --- in a browser ---


def ready(page: Page, address: str, query: str) -> Page:
    page.goto(f"{address}decode{query}")
    page.locator(".film .came").wait_for()
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    return page


def came(page: Page, piece: str) -> None:
    page.locator(".film .came").filter(has_text=re.compile(f"^{re.escape(piece)}$")).wait_for()


def test_the_film_steps_by_keys_without_the_server_and_a_link_keeps_the_step(
    page: Page, address: str
) -> None:
    comes = cache.trace(cache.MODEL, TALL).comes_out
    ready(page, address, "?text=You+are+tall.")
    came(page, comes[0])
    before = page.evaluate("history.length")
    page.locator(".film").focus()
    for piece in comes[1:4]:
        page.keyboard.press("ArrowRight")
        came(page, piece)
    page.wait_for_url(re.compile("dec_step=4"))
    page.locator('[data-test-script-state="notRunning"]').wait_for()
    maps = page.locator(".film table.map")
    for index in range(2):
        assert maps.nth(index).locator("tbody tr:visible").count() == 4  # rows not yet decoded are not there
    assert page.evaluate("history.length") == before
    assert "head=" not in page.url  # the arrows were the film's, not the frame's
    page.keyboard.press("ArrowLeft")
    came(page, comes[2])
    page.wait_for_url(re.compile("dec_step=3"))
    page.reload()
    came(page, comes[2])


def test_the_film_plays_to_the_end_and_stops(page: Page, address: str) -> None:
    ready(page, address, "?text=You+are+tall.&dec_step=3")
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_role("button", name="Pause", exact=True).wait_for()
    came(page, "</s>")
    page.get_by_role("button", name="Play", exact=True).wait_for()
    page.wait_for_url(re.compile("dec_step=5"))


def test_text_from_outside_is_text_in_the_film(page: Page, address: str) -> None:
    ready(page, address, "?text=%3Cb%3Ex%3C%2Fb%3E+%3Cimg+src%3Dx+onerror%3Dalert(1)%3E")
    assert page.locator(".film b, .film img").count() == 0
