"""Save: the one control that takes a picture out of the app, the same under every figure.

Closed it is a word. What it offers is drawn when it is opened, apart from the page (a fragment), and a file
is made when it is asked for, beside the page: a step pays for nothing of it.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import streamlit as st

from model.trace import Trace
from viz import export, view
from viz.export import MIME, Format
from viz.svg import MOST, Shot, curves
from viz.text import _
from viz.theme import Mode
from viz.view import View

PICTURES: tuple[Format, ...] = ("png", "svg", "html")  # which are light or dark
Make = Callable[[Format, Mode | None], bytes]


def picture(here: View, trace: Trace, after: Trace | None = None, note: str = "") -> None:
    """Save the maps where the reader stands; with `after`, those before, after, and what differs.

    `note` is printed under them: what was changed.
    """
    shot = shot_of(here, trace, after, note)
    _save("picture", lambda: _forms_of(shot), lambda form: export.name_of(shot, form), _make(shot))


def figure(drawn: Any, key: str, said: str) -> None:
    """Save a figure of plotly, told in words by `said`."""

    def make(form: Format, theme: Mode | None) -> bytes:
        return export.content_of(drawn, [said], form, theme)

    def named(form: Format) -> str:
        return export.name(key, st.query_params.get("text", ""), form)

    def forms() -> tuple[Format, ...]:
        return ("png", "svg", "csv", "json") if curves.can(drawn) else ("csv", "json")

    _save(key, forms, named, make)


def shot_of(here: View, trace: Trace, after: Trace | None = None, note: str = "") -> Shot:
    """The picture that a reader sees, for `viz.export`."""
    also = tuple(int(head) - 1 for head in here.also.split(",") if head and int(head) > 0)
    head = None if here.mean else here.head
    return Shot(
        trace, here.kind, here.layer, head, here.row, here.column, here.drawing, here.values,
        here.faint / 100, also, after, note,
    )  # fmt: skip


def _forms_of(shot: Shot) -> tuple[Format, ...]:
    """What the picture is not too large for."""
    pieces = max(map(len, shot.trace.axes(shot.kind)))
    drawn: tuple[Format, ...] = ("png", "svg") if pieces <= MOST[shot.drawing] else ()
    page: tuple[Format, ...] = ("html",) if pieces <= MOST["map"] else ()
    whole: tuple[Format, ...] = ("npz", "safetensors")
    return (*drawn, *page, "csv", "json", *whole)


def _make(shot: Shot) -> Make:
    return lambda form, theme: export.content(shot, form, theme)


def _said(form: Format) -> str:
    return {
        "png": _("Pixels for slides, 300 to an inch."),
        "svg": _("Shapes and letters, for print at any size."),
        "html": _("A page of its own: every kind, layer and head to step through, without a network."),
        "csv": _(
            "The numbers, for a spreadsheet. A piece that looks like a formula stands behind an apostrophe."
        ),
        "json": _("The numbers, for a program."),
        "npz": _("Everything this pass showed, for numpy; it can be opened here again."),
        "safetensors": _("Everything this pass showed, as safetensors; it can be opened here again."),
    }[form]


@st.fragment
def _save(
    key: str, forms: Callable[[], Sequence[Format]], named: Callable[[Format], str], make: Make
) -> None:
    drawer = st.popover(
        _("Save"), type="tertiary", icon=":material/download:", key=f"save_{key}", on_change="rerun"
    )
    if not drawer.open:
        return
    with drawer:
        offered = forms()
        chosen = st.segmented_control(
            _("As"), offered, default=offered[0], required=True, key=f"save_{key}_form", wrap=True
        )
        form = chosen or offered[0]
        theme: Mode | None = None
        if form in PICTURES:
            own = "dark" if st.context.theme.type == "dark" else "light"
            names = {"light": _("Light"), "dark": _("Dark")}
            colours = st.segmented_control(
                _("Colours"), tuple(names), default=own, required=True, key=f"save_{key}_theme",
                format_func=names.__getitem__,
            )  # fmt: skip
            theme = cast(Mode, colours or own)
        # The name says which map this is: the stage may be a step ahead of the page.
        st.caption(f"{view.plain(_said(form))}  \n{view.plain(named(form))}")
        st.download_button(
            _("Save {form}").format(form=form.upper() if len(form) < 5 else form),
            data=lambda: make(form, theme),
            file_name=named(form),
            mime=MIME[form],
            key=f"save_{key}_go",
            on_click="ignore",
            type="primary",
        )
