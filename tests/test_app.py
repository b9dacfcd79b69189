"""The app as Streamlit runs it, without a browser: the default view, links to views, bad input."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from model.trace import NEUTRAL, Change, Trace
from model.translator import Translator
from viz import cache
from viz.pages import offers, pages
from viz.text import examples
from viz.view import judge, plain

ROOT = Path(__file__).parent.parent
FIRST = examples()[0]


def opened(**params: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in params.items():
        at.query_params[name] = value
    return at.run()


@pytest.mark.parametrize("address", pages())
def test_every_page_opens_on_its_own_good_view(address: str) -> None:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    at._page_hash = calc_hash(address)  # AppTest finds only pages that are files by itself
    at.run()
    assert not at.exception
    assert not at.warning
    assert len(at.get("bidi_component")) >= 5  # translation, links, and the map of the model on every page


# What the stage draws lives in the browser and is tested there; here the same is drawn by plotly.
STILL = {"still": "true"}


def said(at: AppTest) -> list[str]:
    """Everything that the page says in text, without the escapes."""
    parts = [*at.markdown, *at.caption, *at.text, *at.info, *at.warning]
    return [part.value.replace("\\", "") for part in parts]


def chart(at: AppTest, index: int) -> dict[str, object]:
    return json.loads(at.get("plotly_chart")[index].proto.spec)


def test_the_first_visit_opens_on_the_picture_that_reads_by_itself() -> None:
    at = opened(**STILL)
    assert not at.exception
    assert at.text_input(key="text").value == FIRST.text
    assert at.segmented_control(key="kind").value == FIRST.kind
    assert any(f"Head {FIRST.head} of layer {FIRST.layer}, working on" in line for line in said(at))
    assert len(at.get("plotly_chart")) == 2


def test_a_link_restores_the_view() -> None:
    at = opened(text="I am a student.", kind="encoder", layer="2", head="5", row="4", column="2", **STILL)
    assert not at.exception
    assert any('Head 5 of layer 2, working on "student"' in line and 'from "am"' in line for line in said(at))
    assert any("Encoder self-attention, head 5 of layer 2." in line for line in said(at))


def test_stepping_moves_by_one_and_stops_at_the_ends() -> None:
    at = opened(head="7", layer="1")
    last = at.segmented_control(key="head").options[-1]
    at.button(key="head+1").click().run()
    assert str(at.segmented_control(key="head").value) == last
    assert at.button(key="head+1").disabled
    assert at.button(key="layer-1").disabled
    at.button(key="layer+1").click().run()
    assert at.segmented_control(key="layer").value == 2


def test_the_drawing_follows_the_controls() -> None:
    assert {trace["name"] for trace in chart(opened(**STILL), 0)["data"]} >= {
        "weights",
        "hatch",
        "row sums",
        "cells",
    }
    lines = {trace["name"] for trace in chart(opened(drawing="lines", **STILL), 0)["data"]}
    assert "cells" in lines
    assert "weights" not in lines
    assert any("mean of all" in line for line in said(opened(mean="true", **STILL)))


def test_a_sentence_of_ones_own_is_traced_and_a_french_one_is_forced() -> None:
    at = opened(**STILL)
    at.text_input(key="text").set_value("Tom loves Mary.").run()
    assert any(">Tom</span>" in label for label in chart(at, 0)["layout"]["xaxis"]["ticktext"])
    at.text_input(key="target").set_value("Tom aime le chat").run()
    assert any("→ chat</span>" in label for label in chart(at, 0)["layout"]["yaxis"]["ticktext"])


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "nothing to read in the English sentence"),
        (" \t ", "nothing to read in the English sentence"),
        ("\u200b\u202e", "nothing to read in the English sentence"),
        ("long " * 120, "too long: 120 pieces"),
        ("z" * 999, "too long"),
        ("z" * 100_000, "100000 characters, and this model reads at most 1000"),
    ],
)
def test_what_cannot_be_read_gets_one_plain_sentence_and_loses_nothing(typed: str, sentence: str) -> None:
    at = opened(head="3", layer="2", kind="encoder", **STILL)
    at.text_input(key="text").set_value(typed).run()
    assert not at.exception
    assert len(at.info) == 1
    assert sentence in at.info[0].value.replace("\\", "")
    assert not at.get("plotly_chart")  # no picture is better than the last one
    at.text_input(key="text").set_value("I am a student.").run()
    assert any("Head 3 of layer 2" in line for line in said(at))


ODD = ["I love 🙂.", "שלום עולם", "<script>alert(1)</script>", "it costs $x$ and $y$", "_a_ *b* :smile: </s>"]


@pytest.mark.parametrize("typed", [*ODD, "e\u0301\u0301", "1e999"])
def test_odd_text_is_text(typed: str) -> None:
    at = opened(**STILL)
    at.text_input(key="text").set_value(typed).run()
    assert not at.exception
    assert not at.info
    assert len(at.get("plotly_chart")) == 2


def test_what_is_read_is_shown_where_it_is_not_what_was_typed() -> None:
    assert any("read as: I'm a student." in line for line in said(opened(text="I’m  a\u00a0student.")))
    assert any("each read as <unk>: 🙂" in line for line in said(opened(text="I love 🙂.")))


BAD = """head=99 head=0 head=-1 head=٣ head=1e3 layer=nan kind=foo row=65 column=-2
mean=perhaps drawing=<b> faint=51 hall=1 also=2;5
masks_tab=foo head_stage=13 pos_way=up source_pads=21 look_ahead=maybe"""


@pytest.mark.parametrize("bad", BAD.split())
def test_a_bad_link_is_told_and_the_usual_view_shown(bad: str) -> None:
    name, _equals, value = bad.partition("=")
    at = opened(**{name: value})
    assert not at.exception
    (warning,) = at.warning
    assert f"asked for {name}" in warning.value.replace("\\", "")
    assert at.segmented_control(key="kind").value == FIRST.kind
    assert at.segmented_control(key="head").value == FIRST.head


def test_good_links_are_not_complained_of() -> None:
    offered = offers(cache.sizes(), cache.models())
    for example in examples():
        assert judge(example.query_params(), offered) == []
    assert judge({"unknown": "x", "column": "0", "mean": "true", "values": "false"}, offered) == []
    assert len(judge({"text": "a\ufffd"}, offered)) == 1


def test_plain_text_survives_markdown() -> None:
    assert plain("*a* $b$ :c: [d](e) <f>") == r"\*a\* \$b\$ \:c\: \[d\]\(e\) \<f\>"


def test_a_step_runs_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened(text="We are counting.")
    runs: list[str] = []
    kept = Translator.trace

    def counted(self: Translator, text: str, target: str | None = None, change: Change = NEUTRAL) -> Trace:
        runs.append(text)
        return kept(self, text, target, change)

    monkeypatch.setattr(Translator, "trace", counted)
    at.button(key="head+1").click().run()
    at.segmented_control(key="kind").set_value("decoder").run()
    assert runs == []
    at.text_input(key="text").set_value("We are counting again.").run()
    assert runs == ["We are counting again."]
