"""Where the reader of a head stands, and what its stages draw with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from model.trace import Floats, Side, asked, asks
from viz import steps
from viz.chart import chart
from viz.figures.stages import ROWS, Band, bands
from viz.reading import Map, language
from viz.text import _
from viz.theme import Palette
from viz.view import Scene, View

BESIDE = 16  # keys that a map can show in half the width


@dataclass(frozen=True)
class Walk:
    """What every stage draws from: one head of one trace, and the chosen cell."""

    scene: Scene
    palette: Palette
    query: int
    key: int

    @property
    def here(self) -> View:
        return self.scene.here

    @property
    def picture(self) -> Map:
        return self.here.picture(self.scene.trace)

    @property
    def queries(self) -> tuple[str, ...]:
        return self.scene.trace.axes(self.here.kind)[0]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.scene.trace.axes(self.here.kind)[1]

    def of(self, name: str) -> Floats:
        """One head's q, k, v, scores, weights or output."""
        numbers: Floats = getattr(self.scene.trace.stages(self.here.kind), name)
        return numbers[self.here.layer, self.here.head]

    def dots(self) -> Floats:
        return steps.dots(self.scene.trace, self.here.kind, self.here.layer, self.here.head)

    def language(self, side: Side) -> str:
        """What a sentence is called."""
        return language(self.scene.trace.languages, side)

    def asking(self, title: str, numbers: Floats, limit: float) -> Band:
        """A band whose rows are the queries."""
        colour = self.palette.token(asks(self.here.kind))
        return Band(title, numbers, self.queries, colour, limit, self.query)

    def asked(self, title: str, numbers: Floats, limit: float) -> Band:
        """A band whose rows are the keys."""
        return Band(title, numbers, self.keys, self.palette.token(asked(self.here.kind)), limit, self.key)

    def bands(self, *parts: Band) -> None:
        """Draw bands, and say what their colours mean and what was left out."""
        chart(bands(parts, self.palette), "head_bands", "; ".join(part.title for part in parts))
        if len({part.limit for part in parts}) == 1:
            scale_said(parts[0].limit)
        else:
            st.caption(_("Red is negative, blue positive; each band has its own scale, centred on 0."))
        rows_said(max(len(part.numbers) for part in parts))


def scale_said(limit: float) -> None:
    said = _("Colours from −{limit:.2f} (red) over 0 to {limit:.2f} (blue). Hover for four digits.")
    st.caption(said.format(limit=limit))


def rows_said(count: int) -> None:
    """That not all rows are shown, where it is so."""
    if count > ROWS:
        said = _("{shown} of {all} pieces are shown, around the chosen one; choose another to see others.")
        st.caption(said.format(shown=ROWS, all=count))


def beside(walk: Walk, widths: list[int]) -> Sequence[Any]:
    """Places side by side; one under the other where a map has too many columns for half the page."""
    return (
        [st.container() for _width in widths] if len(walk.keys) > BESIDE else st.columns(widths, gap="medium")
    )


def number_said(value: float) -> str:
    """A signed number to four decimals, with a real minus."""
    return f"{float(value):.4f}".replace("-", "−")
