"""Heads in words: their names in text and address, the rules of `model.heads` and its measures. Pure."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from model.heads import Measure, Role
from model.trace import KINDS, Head, Kind
from viz.reading import percent
from viz.text import _

_HEAD = re.compile(r"([edc])([0-9]{1,3})\.([0-9]{1,3})")
LETTERS: dict[str, Kind] = {kind[0]: kind for kind in KINDS}
Heads = frozenset[Head]


def short(head: Head) -> str:
    """Layer and head, from 1: "2.5"."""
    return f"{head.layer + 1}.{head.head + 1}"


def said(head: Head) -> str:
    return _("{kind}, layer {layer}, head {head}").format(
        kind=head.kind, layer=head.layer + 1, head=head.head + 1
    )


def write(heads: Iterable[Head]) -> str:
    """Heads as the address names them: "e1.2 c3.4"."""
    order = sorted(heads, key=lambda head: (KINDS.index(head.kind), head.layer, head.head))
    return " ".join(head.kind[0] + short(head) for head in order)


def parse(text: str, kinds: Mapping[Kind, tuple[int, int]]) -> tuple[Heads, list[str]]:
    """The heads that a text names, and its words that name none of this model."""
    found: set[Head] = set()
    wrong = []
    for word in text.split():
        part = _HEAD.fullmatch(word)
        kind = LETTERS[part[1]] if part else None
        layers, heads = kinds.get(kind, (0, 0)) if kind else (0, 0)
        if part and kind and 1 <= int(part[2]) <= layers and 1 <= int(part[3]) <= heads:
            found.add(Head(kind, int(part[2]) - 1, int(part[3]) - 1))
        else:
            wrong.append(word)
    return frozenset(found), wrong


def role_name(role: Role) -> str:
    return {
        "previous": _("previous"),
        "next": _("next"),
        "same": _("same"),
        "first": _("first"),
        "end": _("</s>"),
        "mark": _("mark"),
        "broad": _("broad"),
        "align out": _("aligns, out"),
        "align in": _("aligns, in"),
    }[role]


def role_rule(role: Role) -> str:
    return {
        "previous": _("The row's largest weight is on the piece just before its own."),
        "next": _("The largest weight is on the piece just after. (A decoder may not look there.)"),
        "same": _("The largest weight is on the row's own piece."),
        "first": _("The largest weight is on the first piece, which is not the row's own."),
        "end": _("The largest weight is on </s>. (None goes into a decoder.)"),
        "mark": _("The largest weight is on a full stop, a comma or another mark, not the row's own."),
        "broad": _(
            "The row is as wide as an even one over three quarters of its keys, of which there are four "
            "or more."
        ),
        "align out": _(
            "The English word most read is linked by hand to the French word that comes out of the row."
        ),
        "align in": _("The same for the French word that goes in."),
    }[role]


def measure_name(measure: str) -> str:
    return {
        "entropy": _("entropy"),
        "largest": _("largest weight"),
        "distance": _("distance"),
        "importance": _("importance"),
    }[measure]


def measure_rule(measure: str) -> str:
    return {
        "entropy": _("Entropy of a row over that of an even row: 1 reads all allowed keys alike."),
        "largest": _("Mean of each row's largest weight."),
        "distance": _(
            "Mean distance looked at, in pieces. In cross-attention, from where the row would stand if "
            "both sentences were as long."
        ),
        "importance": _("What the loss on the validation sentences gains when the head is removed."),
    }[measure]


MEASURES: tuple[Measure, ...] = ("entropy", "largest", "distance")


def figure_of(value: float, measure: str) -> str:
    """A measure in as many digits as mean something."""
    if measure == "importance":
        return f"{value:+.3f}"
    return f"{value:.1f}" if measure == "distance" else f"{value:.2f}"


def summary(rates: Mapping[Role, float]) -> str:
    """All rates of one head in a line, the highest first."""
    known = [(role, rate) for role, rate in rates.items() if not math.isnan(rate)]
    order = sorted(known, key=lambda pair: -pair[1])
    return ", ".join(f"{role_name(role)} {percent(rate)}" for role, rate in order)


def of(survey: Mapping[str, Any], head: Head) -> dict[str, Any]:
    """What a shipped survey says of one head."""
    for one in survey["heads"]:
        if (one["kind"], one["layer"], one["head"]) == (head.kind, head.layer, head.head):
            return dict(one)
    raise KeyError(head)
