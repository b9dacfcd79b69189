"""Controls to URL to `View`: the frame that all pages share, and all URL work.

The frame's controls are bound to query parameters and drawn before the page, so that they survive a
page change. Bound widgets drop bad values in silence: `judge` reads the address first and says what
was wrong with it.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, cast, get_args

import streamlit as st

from model.trace import KINDS, Change, Kind, TextError, Trace
from viz import component, sentence
from viz.component import Place
from viz.reading import Map, favourite, find, language, percent, roles
from viz.sizes import Offer, Sizes
from viz.text import Example, _, examples
from viz.theme import PALETTES, Palette

T = TypeVar("T")
Drawing = Literal["map", "heads", "all", "lines"]
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)
FAINT = 3  # per cent: lines with less weight are not drawn
MANY = 16  # more than these are chosen on a slider
HELD = re.compile(r"file-[0-9a-f]{30}")  # a file that the server holds, as `cache.keep_file` names it
FAINTEST, SEVERAL = 50, re.compile(r"[0-9]{1,3}(,[0-9]{1,3}){0,31}")


@dataclass(frozen=True)
class View:
    """Where the reader stands. Layer, head, row and column count from 0."""

    kind: Kind
    layer: int
    head: int
    row: int
    column: int | None  # None is the row's favourite
    sizes: Sizes
    mean: bool = False
    drawing: Drawing = "map"
    values: bool = False
    faint: int = FAINT  # per cent
    also: str = ""  # heads whose lines are laid over the chosen head's, from 1: "2,5"
    hall: bool = False  # nothing but the picture
    still: bool = False  # drawn with plotly, without the stage

    @property
    def model(self) -> str:
        return self.sizes.model

    def picture(self, trace: Trace) -> Map:
        return Map(trace, self.kind, self.layer, None if self.mean else self.head)

    def cell(self, trace: Trace) -> tuple[int, int]:
        """The chosen (query, key), held inside this sentence."""
        queries, keys = trace.axes(self.kind)
        query = min(self.row, len(queries) - 1)
        if self.column is None or self.column >= len(keys):
            return query, favourite(self.picture(trace), query)
        return query, self.column


@dataclass(frozen=True)
class Scene:
    """What a page is given: the trace, where the reader stands, and a way to trace again.

    `of(text, target, change)` traces any sentence: over the French `target`, or over what the model
    itself writes where there is none.
    """

    trace: Trace
    here: View
    of: Callable[[str, str | tuple[int, ...] | None, Change], Trace]
    changes: bool = True  # whether `of` can follow a change at all

    @property
    def target(self) -> str | tuple[int, ...] | None:
        """The target of `trace`, to be forced: as ids where the model wrote it.

        Read again from its text it may be cut into other pieces than the model chose. A model that writes
        nothing is told instead which pieces are hidden from it.
        """
        trace = self.trace
        if not trace.target:
            return trace.gaps if self.here.sizes.hides else None
        real = slice(1, len(trace.target_ids) - trace.change.target_pads)
        return trace.translation if trace.forced else trace.target_ids[real]

    def again(self, change: Change, forced: bool) -> Trace:
        """The same sentence under a `Change`.

        With `forced` over the target of `trace`, so that rows can be compared; else over what the
        changed model writes by itself.
        """
        keep = forced or self.trace.forced or not self.trace.target
        return self.of(self.trace.text, self.target if keep else None, change)


def palette() -> Palette:
    """The colours of the reader's theme."""
    return PALETTES["dark" if st.context.theme.type == "dark" else "light"]


Offers = dict[str, tuple[str, ...]]  # the values that a query parameter may have
FLAG = ("true", "false")


def numbers(least: int, most: int) -> tuple[str, ...]:
    """What a whole number from `least` to `most` looks like in an address."""
    return tuple(map(str, range(least, most + 1)))


def offers(sizes: Sizes) -> Offers:
    """The values of the frame's own controls."""
    return {
        "kind": tuple(sizes.kinds) or KINDS,
        "layer": numbers(1, sizes.layers),
        "head": numbers(1, sizes.heads),
        "row": numbers(1, sizes.pieces),
        "column": numbers(0, sizes.pieces),
        "drawing": DRAWINGS,
        "mean": FLAG,
        "values": FLAG,
        "faint": numbers(0, FAINTEST),
        "hall": FLAG,
        "still": FLAG,
    }


def judge(params: Mapping[str, str], offered: Offers) -> list[str]:
    """One plain sentence for each query parameter that cannot be followed. Call before any widget."""
    found = []
    said = _('The link asked for {name} "{value}", but there is only: {what}. The usual one is shown.')
    for name, values in offered.items():
        value = params.get(name)
        if value is not None and value not in values and not (name == "model" and HELD.fullmatch(value)):
            many = len(values) > 9
            what = (
                _("{first} to {last}").format(first=values[0], last=values[-1]) if many else ", ".join(values)
            )
            found.append(said.format(name=name, value=_short(value), what=what))
    for name, what in (
        ("also", _("heads with commas between, as 2,5")),
        ("gaps", _("pieces with commas between, as 3,5")),
    ):
        value = params.get(name, "")
        if value and not SEVERAL.fullmatch(value):
            found.append(said.format(name=name, value=_short(value), what=what))
    if any("\ufffd" in params.get(name, "") for name in ("text", "target")):
        found.append(_("The link holds characters that are not text (UTF-8); they are shown as \ufffd."))
    return found


def judged(offered: Offers) -> list[str]:
    """`judge` on the address, out of which numbers without end are taken: Streamlit's controls break on them.

    They read it as it was before the run, so a new run begins then, in which it is said what was wrong.
    """
    found: list[str] = [*st.session_state.pop("told", []), *judge(st.query_params, offered)]
    if endless := [name for name in offered if _endless(name, offered)]:
        for name in endless:
            del st.query_params[name]
        st.session_state["told"] = found
        st.rerun()
    return found


def _endless(name: str, offered: Offers) -> bool:
    """Whether the address holds a number without end where none is offered: a temperature may be "inf"."""

    def number(value: str) -> float:
        try:
            return float(value)
        except ValueError:
            return 0.0

    values = st.query_params.get_all(name)
    return any(math.isinf(number(value)) and value not in offered[name] for value in values)


def check(name: str, values: Iterable[object]) -> None:
    """Judge one parameter where its values hang on the model: call in front of the control it is bound to."""
    offered = {name: tuple(map(str, values))}
    for value in filter(None, st.query_params.get_all(name)):
        for complaint in judge({name: value}, offered):
            st.warning(plain(complaint))
    if _endless(name, offered):
        judged(offered)


def _short(value: str) -> str:
    return value if len(value) <= 20 else value[:20] + "…"


@dataclass(frozen=True)
class Frame:
    """What all pages share: what the reader chose, and the places that are filled once the trace is known."""

    text: str
    target: (
        str | tuple[int, ...] | None
    )  # what is forced on the model: a target's text, or which pieces to hide
    finder: Any
    outcome: Any
    page: Any
    here: View

    def forced(self, trace: Trace) -> str | tuple[int, ...] | None:
        """`target`, without gaps that this sentence has no piece for; `trace` is the sentence without it."""
        if not isinstance(self.target, tuple):
            return self.target
        return tuple(gap for gap in self.target if gap < len(trace.source) - 1)


def chosen_model(names: Sequence[str]) -> str:
    """The model that the address names; the first where it names none, or one that is not offered.

    No widget holds it: links write it, and `keep_pages` carries it from page to page.
    """
    asked = st.query_params.get("model", names[0])
    return asked if asked in names or HELD.fullmatch(asked) else names[0]


def frame(sizes: Sizes, models: Sequence[Offer]) -> Frame:
    """Draw the controls: sentence above, translation, what is looked at, and the place of the page.

    The text boxes have no `max_chars`: a browser then drops a longer paste in silence, and the reader
    would not learn the limit.
    """
    first = opening(sizes)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = _text(sizes, first)
        held = HELD.fullmatch(sizes.model)
        with st.popover(_("Model: {name}").format(name=_("a file") if held else plain(sizes.model))):
            component.models(offered_places(models, sizes.model, text or ""))
        if examples(sizes.model):
            with st.popover(_("Examples")):
                component.links("examples", _example_places(sizes, text or ""))
    with st.container(horizontal=True, vertical_alignment="center"):
        outcome = st.container()
        with st.container(horizontal=True, vertical_alignment="center", width=350):
            finder = st.popover(_("Find a head"), disabled=not sizes.kinds)
            component.links("again", [Place(_("Start again"), "", None)])
            component.copy_link()
            component.keep_pages([*offers(sizes), "text", "target", "also", "model", "gaps"])
    looked_at = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    # The map of the model stands behind the page, so that on a phone the picture comes first.
    page, beside = st.columns([4, 1], gap="medium")
    with beside:
        map_of_the_model = st.container()
        # Not a popover: what stands in one that was never opened is missing from the next page's address.
        with st.expander(_("More")):
            more, target = _more(sizes, first)
    kind, layer, head = cast(Kind, first.kind), 1, 1
    if sizes.kinds:
        with looked_at:
            offered = tuple(sizes.kinds)
            chosen = st.segmented_control(
                _("Attention"), offered, default=kind, required=True, key="kind", bind="query-params"
            )
            kind = chosen or kind
            layers, heads = sizes.kinds[kind]
            layer = stepped(_("Layer"), "layer", layers, min(first.layer, layers), ("Down", "Up"))
            head = stepped(
                _("Head"), "head", heads, min(first.head, heads), ("Left", "Right"), disabled=more["mean"]
            )
    here = View(kind, layer - 1, head - 1, sizes=sizes, **more)
    with map_of_the_model:
        component.model_map((here.kind, here.layer), sizes, palette(), choose_kind)
    return Frame(text or "", target, finder, outcome, page, here)


def _text(sizes: Sizes, first: Example) -> str | None:
    """Where a sentence is typed; a file holds its own."""
    if not sizes.asked:
        st.markdown(
            _("**From a file.** It holds one text, and cannot be asked about another."), width="stretch"
        )
        return None
    known = sizes.languages.get("source", sizes.languages.get("target"))
    labels = {
        "decoder": _("English, a beginning") if known else _("Text, a beginning"),
        "encoder": _("English, any piece can be hidden") if sizes.hides else _("Text"),
    }
    return st.text_input(
        labels.get(sizes.shape, _("English") if known else _("Text")),
        first.text,
        key="text",
        bind="query-params",
        placeholder=_("Type a sentence and press Enter"),
    )


def way_back() -> None:
    """Where the chosen model cannot even be asked how large it is."""
    component.links("back", [Place(_("Back to the usual model"), "", None)])


def fill(frame: Frame, trace: Trace) -> None:
    """Put what the trace says into the places kept for it."""
    with frame.outcome:
        sentence.show(trace, palette(), partial(turn_gap, trace) if frame.here.sizes.hides else None)
        for note in notes(frame, trace):
            st.caption(plain(note))
    with frame.finder:
        st.markdown(_("**Find me a head that …** on this sentence:"))
        component.links("found", _role_places(frame.here.sizes, trace))


def notes(frame: Frame, trace: Trace) -> list[str]:
    """What was made of the typed text, where it is not what was typed."""
    said = []
    if frame.here.sizes.asked and trace.text != frame.text.strip():
        name = language(trace.languages, trace.typed)
        said.append(_("The {language} is read as: {text}").format(language=name, text=trace.text))
    if trace.forced and isinstance(frame.target, str) and trace.translation != frame.target.strip():
        name = language(trace.languages, "target")
        said.append(_("The {language} is read as: {text}").format(language=name, text=trace.translation))
    if isinstance(frame.target, tuple) and (lost := {*frame.target} - {*trace.gaps}):
        places = ", ".join(str(gap + 1) for gap in sorted(lost))
        said.append(_("There is no piece {places} to hide in this sentence.").format(places=places))
    if trace.unknown:
        pieces = " ".join(dict.fromkeys(trace.unknown))
        said.append(_("Not in the model's vocabulary, each read as <unk>: {pieces}").format(pieces=pieces))
    return said


def _more(sizes: Sizes, first: Example) -> tuple[dict[str, Any], str | tuple[int, ...] | None]:
    """What few readers need at first sight: the rest of the `View`, and what is forced on the model."""
    drawing = st.segmented_control(
        _("Drawn as"), DRAWINGS, default="map", required=True, key="drawing", bind="query-params"
    )
    switches = {
        "mean": (_("Mean of all heads"), _("A summary for the eye. The model itself never uses it.")),
        "values": (_("Numbers in the cells"), None),
        "hall": (_("Hall: nothing but the picture"), _("Escape or f leaves it.")),
        "still": (_("Drawn by Plotly"), _("For browsers in which the stage does not run: steps are slower.")),
    }
    on = {
        key: st.toggle(name, key=key, bind="query-params", help=said)
        for key, (name, said) in switches.items()
    }
    row = st.number_input(_("Row that asks"), 1, sizes.pieces, first.row, key="row", bind="query-params")
    column = st.number_input(
        _("Column that is asked (0: the row's favourite)"),
        0,
        sizes.pieces,
        0,
        key="column",
        bind="query-params",
    )
    faint = st.number_input(_("Lines from (per cent)"), 0, FAINTEST, FAINT, key="faint", bind="query-params")
    also = st.text_input(_("Heads laid over it, as lines (2,5)"), key="also", bind="query-params")
    target: str | tuple[int, ...] | None = None
    if sizes.hides:
        gaps = st.text_input(
            _("Hidden pieces (3,5)"),
            first.gaps,
            key="gaps",
            bind="query-params",
            help=_("Or click a piece above: a second click shows it again."),
        )
        target = parse_gaps(gaps)
    elif sizes.shape == "encoder-decoder" and sizes.asked:
        given = st.text_input(
            _("A French sentence of your own") if sizes.languages else _("A target of your own"),
            key="target",
            bind="query-params",
            help=_(
                "The decoder is fed this sentence instead of its own choice (teacher forcing). "
                "Empty: its own."
            ),
        )
        target = given or None
    view = {
        "drawing": drawing or "map",
        "row": row - 1,
        "column": column - 1 if column else None,
        "faint": faint,
        "also": also if also and SEVERAL.fullmatch(also) else "",
        **on,
    }
    return view, target


def parse_gaps(text: str) -> tuple[int, ...]:
    """ "3,5" counts from 1; the places, from 0. What is not of this form hides nothing."""
    found = [int(place) for place in text.split(",")] if SEVERAL.fullmatch(text) else []
    return tuple(sorted({place - 1 for place in found if place > 0}))


def turn_gap(trace: Trace, place_: int) -> None:
    """Follow a click on a piece: hide it, or show it again."""
    gaps = sorted({*trace.gaps} ^ {place_})
    place(gaps=",".join(str(gap + 1) for gap in gaps))


def complain(error: TextError, what: str) -> str:
    """One sentence for a text that cannot be read."""
    if error.code == "empty":
        return _("There is nothing to read in the {what} sentence yet: type a few words.").format(what=what)
    unit = _("characters") if error.code == "huge" else _("pieces (words, word parts and marks)")
    return _("The {what} sentence is too long: {got} {unit}, and this model reads at most {limit}.").format(
        what=what, got=error.got, unit=unit, limit=error.limit
    )


_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&])")


def plain(text: str) -> str:
    """Text for an element that reads markdown, so that what is shown is the text."""
    return _MARKUP.sub(r"\\\1", text)


def controls(here: View) -> dict[str, Any]:
    """Where the reader stands, as the address says it: for the stage."""
    return {
        "kind": here.kind,
        "layer": here.layer + 1,
        "head": here.head + 1,
        "row": here.row + 1,
        "column": 0 if here.column is None else here.column + 1,
        "mean": here.mean,
        "drawing": here.drawing,
        "faint": here.faint,
        "also": here.also,
        "hall": here.hall,
    }


def opening(sizes: Sizes) -> Example:
    """Where a reader first stands in a model."""
    kind = next(iter(sizes.kinds), "cross")
    return next(iter(examples(sizes.model)), Example(examples()[0].text, "", kind, model=sizes.model))


def at_first(sizes: Sizes) -> View:
    """Where a reader arrives; an address leaves out what stands there."""
    first = opening(sizes)
    return View(cast(Kind, first.kind), first.layer - 1, first.head - 1, first.row - 1, None, sizes)


def choose_kind(kind: str) -> None:
    """Follow a click on the map of the model."""
    place(kind=kind)


def place(**values: Any) -> None:
    """Move the reader: set bound controls by name. For callbacks, which run before the next draw."""
    st.session_state.update(values)


def choice(label: str, key: str, options: Sequence[T], bare: bool = False) -> T:
    """One of `options`, the first where the address names none; a `bare` one does not show its label."""
    chosen = st.segmented_control(
        label,
        options,
        default=options[0],
        required=True,
        key=key,
        bind="query-params",
        label_visibility="collapsed" if bare else "visible",
        wrap=True,
    )
    return options[0] if chosen is None else chosen


def tab(key: str, tabs: Iterable[str]) -> str:
    """The chosen tab of a page. Only that one is drawn, and so only its passes are run."""
    return choice(_("Show"), key, tuple(tabs), bare=True)


def stepped(
    label: str, key: str, last: int, first: int, shortcuts: tuple[str, str], disabled: bool = False
) -> int:
    """A choice of 1..last, and two buttons that step through it, also by arrow keys."""

    def move(by: int) -> None:
        place(**{key: min(max(1, st.session_state[key] + by), last)})

    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", width="content"):
        if last > MANY:
            places = range(1, last + 1)
            chosen = st.select_slider(
                label, places, first, key=key, bind="query-params", disabled=disabled, width=320
            )
        else:
            chosen = st.segmented_control(
                label,
                range(1, last + 1),
                default=first,
                required=True,
                key=key,
                bind="query-params",
                disabled=disabled,
                wrap=True,  # on a phone
            )
        at = chosen or first
        back, forward = shortcuts
        for sign, by, shortcut, end in (("‹", -1, back, 1), ("›", 1, forward, last)):
            said = _("Previous {label}") if by < 0 else _("Next {label}")
            st.button(
                sign,
                key=f"{key}{by:+d}",
                help=said.format(label=label.lower()),
                on_click=move,
                args=(by,),
                shortcut=shortcut,
                disabled=disabled or at == end,
            )
    return at


REST = {"column": "0", "target": "", "mean": "false", "also": "", "hall": "false"}  # of what a link moves


def _place(sizes: Sizes, label: str, note: str, params: dict[str, str], current: bool = False) -> Place:
    """A place to go to. The address leaves out what stands at its default, as Streamlit's does."""
    usual = opening(sizes).query_params() | REST
    rest = {name: value for name, value in REST.items() if name != "target"}
    address = {name: None if value == usual[name] else value for name, value in (rest | params).items()}
    return Place(label, note, address, current)


def _example_places(sizes: Sizes, text: str) -> list[Place]:
    return [
        _place(
            sizes,
            example.text,
            example.point,
            example.query_params() | {"target": ""},
            example.text == text,
        )
        for example in examples(sizes.model)
    ]


# What another model starts anew: a place in the old one is no place in it.
MOVED = ("kind", "layer", "head", "row", "gaps", "text", *REST)


def offered_places(models: Sequence[Offer], model: str, text: str) -> dict[tuple[str, str], list[Place]]:
    """Where each model is chosen, by shape and material. A sentence of the reader's own goes along."""
    usual = {example.text for example in examples(model)} | {""}
    typed = {} if text in usual else {"text": text}
    found: dict[tuple[str, str], list[Place]] = {}
    for offer in models:
        address: dict[str, str | None] = dict.fromkeys(MOVED)
        address |= typed | {"model": None if offer is models[0] else offer.name}
        spot = Place(offer.name, offer.note, address, offer.name == model)
        found.setdefault((offer.shape, offer.material), []).append(spot)
    return found


def _role_places(sizes: Sizes, trace: Trace) -> list[Place]:
    found = []
    for role in roles(trace.kinds):
        best = find(trace, role)
        label = _("{name}: {kind}, layer {layer}, head {head} ({score})").format(
            name=role.name,
            kind=best.kind,
            layer=best.layer + 1,
            head=best.head + 1,
            score=percent(best.score),
        )
        params = {"kind": best.kind, "layer": str(best.layer + 1), "head": str(best.head + 1)}
        found.append(_place(sizes, label, role.rule, params))
    return found
