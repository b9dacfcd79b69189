"""Every word on screen: short strings pass through `_`, explanations and examples stand in `assets/`."""

import gettext
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent.parent / "assets"

_ = gettext.translation("headlight", ASSETS / "locale", fallback=True).gettext


@cache
def prose(page: str) -> dict[str, str]:
    """The sections of `assets/text/<page>.md`, by heading."""
    text = (ASSETS / "text" / f"{page}.md").read_text(encoding="utf-8")
    sections = {}
    for section in text.split("\n## ")[1:]:
        heading, _newline, body = section.partition("\n")
        sections[heading.strip()] = body.strip()
    return sections


@cache
def model_card(name: str) -> str:
    """The card that stands beside a model's weights, or a sentence where there is none."""
    try:
        return (ASSETS / "models" / name / "README.md").read_text(encoding="utf-8")
    except OSError:
        return _("No card was written for this model.")


@dataclass(frozen=True)
class Expectation:
    """What the shipped weights must show in the example's view: a weight of one row on one column.

    The row is named by the piece that goes in, or as "-> piece" by the one that comes out.
    """

    row: str
    column: str
    at_least: float


@dataclass(frozen=True)
class Example:
    """A sentence worth looking at, why, and the view that shows it; layer and head count from 1."""

    text: str
    point: str
    kind: str
    layer: int = 1
    head: int = 1
    row: int = 1
    french: str = ""  # what the shipped translator answers
    gaps: str = ""  # pieces to be guessed, "3,5", counted from 1
    model: str = "en-fr"
    expect: Expectation | None = field(default=None, hash=False)

    def query_params(self) -> dict[str, str]:
        places = {name: str(getattr(self, name)) for name in ("kind", "layer", "head", "row", "gaps")}
        return {"text": self.text, **places}


@cache
def _examples() -> tuple[Example, ...]:
    with (ASSETS / "examples.toml").open("rb") as file:
        tables = tomllib.load(file)["example"]
    return tuple(
        Example(**{**table, "expect": Expectation(**table["expect"]) if "expect" in table else None})
        for table in tables
    )


@cache
def examples(model: str = "en-fr") -> tuple[Example, ...]:
    """The sentences of `assets/examples.toml` for a model, its opening one first."""
    return tuple(example for example in _examples() if example.model == model)


@cache
def _answers() -> list[dict[str, Any]]:
    with (ASSETS / "references.toml").open("rb") as file:
        return tomllib.load(file)["sentence"]


def references() -> dict[str, tuple[str, ...]]:
    """Right French answers, written by hand, by their English sentence."""
    return {table["text"]: tuple(table["french"]) for table in _answers()}


def teacher(text: str) -> str:
    """A right French sentence that a teacher could feed the decoder; "" where none was written."""
    found = (table for table in _answers() if table["text"] == text)
    return next((table.get("teacher") or table["french"][-1] for table in found), "")
