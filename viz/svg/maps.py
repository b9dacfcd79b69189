"""Attention as it is printed: a head's map, a layer's heads, all layers, lines; alone, or before and after.

Q queries, K keys, H heads. What stands beside the cells is what the pages say of them, so that a picture that
was taken out of the app still says what it shows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from model.trace import Floats, Kind, Trace, asked, asks
from viz.reading import (
    REASONS,
    Map,
    aloud,
    facts,
    favourite,
    kind_name,
    language,
    number,
    outgoing,
    percent,
    phrases,
    reason_codes,
    reason_name,
)
from viz.svg.changed import changed
from viz.svg.sheet import Sheet, hex_colour, shades, width, wrap
from viz.text import _
from viz.theme import Palette

Drawing = Literal["map", "heads", "all", "lines"]
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)
EDGE = 20  # px around everything
SINGLE = 64 * 64  # cells that are drawn one by one, each with its number; of more, equal neighbours are one
MOST = {"map": 512, "lines": 160, "heads": 256, "all": 128}  # pieces along an axis
ABREAST = 1900  # px; wider, before and after stand one under the other
QUIET, LABEL = 13, 15  # px of type


class TooLargeError(ValueError):
    """More pieces than a vector picture of this sort can hold; says so in a sentence."""


@dataclass(frozen=True)
class Shot:
    """One picture, as a reader sees it. Layer, head, query and key count from 0."""

    trace: Trace
    kind: Kind
    layer: int
    head: int | None = None  # None is the mean over the heads
    query: int = 0
    key: int | None = None  # None is the row's favourite
    drawing: Drawing = "map"
    values: bool = False  # numbers in the cells
    faint: float = 0.03  # lines with less weight are left out
    also: tuple[int, ...] = ()  # heads whose lines are laid over the chosen one's
    after: Trace | None = None  # the same sentence under a change
    note: str = ""  # what was changed, in words

    def picture(self, trace: Trace | None = None) -> Map:
        return Map(trace or self.trace, self.kind, self.layer, self.head)

    def cell(self) -> tuple[int, int]:
        """The chosen (query, key), held inside the sentence."""
        queries, keys = self.trace.axes(self.kind)
        query = min(max(self.query, 0), len(queries) - 1)
        if self.key is None or not 0 <= self.key < len(keys):
            return query, favourite(self.picture(), query)
        return query, self.key


def draw(shot: Shot, palette: Palette) -> str:
    """The picture as SVG, its caption under it. Raises TooLargeError."""
    most, pieces = MOST[shot.drawing], max(map(len, shot.trace.axes(shot.kind)))
    if pieces > most:
        said = _(
            "A vector picture of this sort holds at most {most} pieces along an axis; here are {pieces}."
        )
        raise TooLargeError(said.format(most=most, pieces=pieces))
    sheet = Sheet(palette)
    wide, bottom = _panels(sheet, shot) if shot.after else _panel(sheet, shot, EDGE, EDGE, 0)
    lines = caption(shot)
    room, y = max(wide - EDGE, 460.0), bottom + 14
    for index, said in enumerate(lines):
        size, colour = (LABEL, palette.text) if index == 0 else (QUIET, palette.quiet)
        for line in wrap(said, size, room):
            sheet.text(line, EDGE, y, size, colour)
            y += size * 1.4
        y += 3
    return sheet.svg(max(wide, room + EDGE) + EDGE, y + EDGE - 10, lines[0], " ".join(lines[1:]))


# --- what is said under it ----------------------------------------------------------------------------------


def caption(shot: Shot) -> list[str]:
    """The lines under a picture: what it says, then kind, layer, head, axes, row sums and scale."""
    picture, say = shot.picture(), phrases()
    kind = kind_name(shot.kind)
    heads = shot.trace.weights(shot.kind).shape[1]
    if shot.drawing == "all":
        what = _("{kind}, all {layers} layers (down) and {heads} heads (across).")
    elif shot.drawing == "heads":
        what = _("{kind}, all {heads} heads of layer {layer}.")
    else:
        what = say["what"]
    said = what.format(
        kind=kind.capitalize(), layers=len(shot.trace.weights(shot.kind)), heads=heads, layer=shot.layer + 1,
        name=picture.name(),
    )  # fmt: skip
    rows, columns = (
        language(shot.trace.languages, asks(shot.kind)),
        language(shot.trace.languages, asked(shot.kind)),
    )
    if outgoing(shot.trace, shot.kind) is not None:
        rows = say["in_out"].format(language=rows)
    axes = say["axes"].format(rows=rows, columns=columns)
    if shot.after:
        largest = float(abs(_differences(shot)).max(initial=0))
        differs = _(
            "Difference: after less before; blue is more, red is less. "
            "Largest change of a weight here: {most}."
        )
        lines = [said, axes, differs.format(most=number(largest))]
    elif shot.drawing in ("heads", "all"):
        lines = [said, axes + " " + _("Colours from 0 to 1, the same in every head.")]
    else:
        lines = [aloud(picture, *shot.cell()), facts(picture)]
        if shot.drawing == "lines":
            weights = picture.weights
            share = float(weights[weights < shot.faint].sum() / max(weights.sum(), 1e-9))
            hidden = _("Lines under {faint} are not drawn; together they hold {share} of all weight.")
            lines.append(hidden.format(faint=percent(shot.faint), share=percent(share)))
        if shot.head is None:
            lines.append(_("The mean over heads is a summary for the eye; the model never uses it."))
    return [*lines, *altered(shot), shot.note] if shot.note else [*lines, *altered(shot)]


def altered(shot: Shot) -> list[str]:
    """What of the picture is not the model as it is: in all of it, and in what stands after."""
    lines = []
    if base := changed(shot.trace.change):
        lines.append(_("Changed: {what}.").format(what="; ".join(base)))
    if shot.after and (what := changed(shot.after.change, shot.trace.change)):
        lines.append(_("After: {what}.").format(what="; ".join(what)))
    return lines


def _differences(shot: Shot) -> Floats:
    """After less before of all that is drawn."""
    assert shot.after
    one, other = shot.trace.weights(shot.kind), shot.after.weights(shot.kind)
    if shot.drawing == "all":
        return other - one
    if shot.drawing == "heads":
        return other[shot.layer] - one[shot.layer]
    return shot.picture(shot.after).weights - shot.picture().weights


# --- one panel, or three ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Face:
    """One map: its numbers and what stands along its axes."""

    numbers: Floats  # (Q, K)
    codes: NDArray[np.uint8]  # (Q, K)  why a cell is blocked, 0 where it is not
    signed: bool = False


def _panel(sheet: Sheet, shot: Shot, x: float, y: float, which: int) -> tuple[float, float]:
    """Draw one picture, `which` of before, after and difference; give its right and lower edge."""
    if shot.drawing == "lines" and which < 2:
        return _lines(sheet, shot, x, y, which)
    if shot.drawing in ("heads", "all"):
        return _tiles(sheet, shot, x, y, which)
    return _map(sheet, shot, x, y, _face(shot, which, shot.layer, shot.head), first=which == 0)


def _panels(sheet: Sheet, shot: Shot) -> tuple[float, float]:
    """Before, after and difference."""
    right, bottom, x, y = 0.0, 0.0, float(EDGE), float(EDGE)
    abreast = True
    for which, title in enumerate((_("Before"), _("After"), _("Difference"))):
        sheet.text(title, x, y + 8, 17, bold=True)
        edge, low = _panel(sheet, shot, x, y + 26, which)
        right, bottom = max(right, edge), max(bottom, low)
        if which == 0:
            abreast = 3 * (edge - x) < ABREAST
        x, y = (edge + 26, y) if abreast else (x, low + 22)
    return right, bottom


def _face(shot: Shot, which: int, layer: int, head: int | None) -> _Face:
    """The numbers of one map before, after, or what differs."""
    before = Map(shot.trace, shot.kind, layer, head)
    if which == 2:
        assert shot.after
        after = Map(shot.after, shot.kind, layer, head)
        return _Face(after.weights - before.weights, np.zeros(before.weights.shape, np.uint8), True)
    one = before if which == 0 else replace(before, trace=shot.after or shot.trace)
    return _Face(one.weights, reason_codes(shot.kind, one.trace.axes(shot.kind)[1], one.allowed))


def _colours(face: _Face, palette: Palette) -> NDArray[np.uint32]:
    if face.signed:
        return shades(np.clip(face.numbers / 2 + 0.5, 0, 1), palette.signed)
    return shades(np.clip(face.numbers, 0, 1), palette.weights)


# --- a map --------------------------------------------------------------------------------------------------


def _map(sheet: Sheet, shot: Shot, x: float, y: float, face: _Face, first: bool) -> tuple[float, float]:
    palette, trace = sheet.palette, shot.trace
    queries, keys = trace.axes(shot.kind)
    out = outgoing(trace, shot.kind) if first else None
    query, key = shot.cell()
    rows, columns = face.numbers.shape
    row_size, column_size = _type(rows), _type(columns)
    row_room = min(170.0, max(width(piece, row_size, True) for piece in queries))
    out_room = min(170.0, max(width(piece, row_size) for piece in out)) + 24 if out else 0.0
    tall = max(row_size * 1.5, min(34.0, 420 / rows)) if rows <= 64 else max(1.5, 860 / rows)
    widest = min(170.0, max(width(piece, column_size, True) for piece in keys))
    flat = widest + 10 <= 72 and columns * (widest + 10) <= 800
    across = (
        max(tall, widest + 10)
        if flat
        else max(tall, column_size * 1.35)
        if columns <= 64
        else max(1.5, 860 / columns)
    )
    across = min(across, 72.0)
    angle = 0 if flat else -50 if columns <= 64 else -90
    slope = math.radians(-angle)
    above = column_size + 8 if flat else widest * math.sin(slope) + column_size * math.cos(slope) + 6
    beyond = 0.0 if flat else widest * math.cos(slope) - across / 2
    title = 20 if first else 0
    left, top = x + title + row_room + out_room + 8, y + 22 + above
    wide, low = columns * across, top + rows * tall
    row_colour, key_colour = palette.token(asks(shot.kind)), palette.token(asked(shot.kind))

    answers = _("is asked (key): {side}").format(side=language(trace.languages, asked(shot.kind)))
    sheet.text(answers, left, y + 8, 14, palette.quiet)
    if first:
        asking = _("asks (query): {side}").format(side=language(trace.languages, asks(shot.kind)))
        asking += _(", goes in → comes out") if out else ""
        long = width(asking, 14) > low - top  # then from the upper edge down, past the cells
        middle, anchor = (y, "end") if long else ((top + low) / 2, "middle")
        sheet.text(asking, x + 7, middle, 14, palette.quiet, anchor, angle=-90, room=max(low - y, 300))
    for row in range(rows):
        if row % _sparse(row_size, tall) and row != query:
            continue
        middle, chosen = top + (row + 0.5) * tall, row == query
        sheet.text(
            queries[row], left - 8 - out_room, middle, row_size, row_colour, "end", chosen, room=row_room + 1
        )
        if out:
            sheet.text("→", left - out_room + 4, middle, row_size, palette.quiet, "middle")
            sheet.text(out[row], left - out_room + 16, middle, row_size, palette.quiet, room=out_room - 22)
    for column in range(columns):
        if column % _sparse(column_size, across * (1 if angle == -90 else 1.2)) and column != key:
            continue
        middle = left + (column + 0.5) * across
        sheet.text(
            keys[column], middle + (0 if flat else 2), top - (column_size / 2 + 4 if flat else 6),
            column_size, key_colour, "middle" if flat else "start", column == key, angle, widest + 1,
        )  # fmt: skip
    _cells(sheet, shot, face, left, top, across, tall)
    right = left + wide
    if not face.signed:
        right = _sums(sheet, face, right, top, tall)
    if rows <= 64:
        sheet.rect(left, top + query * tall, wide, tall, stroke=palette.accent, thick=1.5)
    sheet.rect(left + key * across, top + query * tall, across, tall, stroke=palette.accent, thick=3)
    edge, low = _legend(sheet, face, left, low + 12, max(wide, 190))
    return max(right, edge, left + wide + beyond), low


def _type(count: int) -> int:
    return 15 if count <= 16 else 13 if count <= 28 else 11


def _sparse(size: float, room: float) -> int:
    """Every how many labels fit."""
    return max(1, math.ceil((size + 1) / room))


def _cells(
    sheet: Sheet, shot: Shot, face: _Face, left: float, top: float, across: float, tall: float
) -> None:
    """The cells with a gap between them, and what each says of itself; many of them without."""
    colours, open_ = _colours(face, sheet.palette), face.codes == 0
    gap = 1.0 if min(across, tall) >= 7 else 0.0
    if face.numbers.size > SINGLE:
        sheet.cells(colours, open_, left, top, across, tall)
    else:
        queries, keys = shot.trace.axes(shot.kind)
        for row, column in np.argwhere(open_).tolist():
            value = float(face.numbers[row, column])
            shown = f"{value:+.4f}" if face.signed else number(value)
            sheet.rect(
                left + column * across, top + row * tall, across - gap, tall - gap,
                hex_colour(int(colours[row, column])), said=f"{queries[row]}, {keys[column]}: {shown}",
            )  # fmt: skip
    sheet.hatched(~open_, left, top, across, tall, gap=gap)
    size = min(15.0, across / 2.6, tall * 0.8)
    if shot.values and size >= 6:
        for row, column in np.argwhere(open_).tolist():
            value = float(face.numbers[row, column])
            colour = sheet.palette.ground if abs(value) > 0.55 else sheet.palette.text
            x, y = left + (column + 0.5) * across - gap / 2, top + (row + 0.5) * tall - gap / 2
            sheet.text(f"{value:.2f}".replace("-", "−"), x, y, size, colour, "middle")
    for row in np.flatnonzero(~open_.any(axis=1)).tolist():
        said, middle = _("nothing allowed"), left + across * open_.shape[1] / 2
        room = width(said, 12) + 10
        sheet.rect(middle - room / 2, top + (row + 0.5) * tall - 8, room, 16, sheet.palette.ground)
        sheet.text(said, middle, top + (row + 0.5) * tall, 12, anchor="middle")


def _sums(sheet: Sheet, face: _Face, x: float, top: float, tall: float) -> float:
    """A bar at each row's end, as long as the row's sum."""
    thick = min(10.0, tall * 0.4)
    for row, total in enumerate(face.numbers.sum(axis=-1).tolist()):
        y = top + (row + 0.5) * tall - thick / 2
        sheet.rect(x + 5, y, 16, thick, sheet.palette.blocked)
        if total > 0:
            said = _("row sum") + f" {total:.6f}"
            sheet.rect(x + 5, y, 16 * min(1.0, total), thick, sheet.palette.hatch, said=said)
    return x + 21


def _legend(sheet: Sheet, face: _Face, x: float, y: float, room: float) -> tuple[float, float]:
    """The scale with its numbers, and what the hatched cells are."""
    palette = sheet.palette
    edge, low = _scale(sheet, x, y, face.signed)
    found = sorted(set(np.unique(face.codes).tolist()) - {0})
    for code in found:
        said = reason_name(REASONS[code])
        sheet.hatched(np.ones((1, 1), bool), x, low + 4, 22, 12)
        sheet.text(said, x + 28, low + 10, QUIET, palette.quiet)
        edge, low = max(edge, x + 28 + width(said, QUIET)), low + 19
    return edge, low


def _scale(sheet: Sheet, x: float, y: float, signed: bool) -> tuple[float, float]:
    palette = sheet.palette
    sheet.ramp(palette.signed if signed else palette.weights, x, y, 180, 10)
    ticks = ("−1", "−0.5", "0", "0.5", "1") if signed else ("0", "0.25", "0.5", "0.75", "1")
    for index, tick in enumerate(ticks):
        at = x + 45 * index
        sheet.line([(at, y + 10), (at, y + 14)], palette.quiet)
        anchor = "start" if index == 0 else "middle"
        sheet.text(tick, at, y + 22, 12, palette.quiet, anchor)
    name = _("change of weight") if signed else _("weight")
    sheet.text(name, x + 196, y + 5, QUIET, palette.quiet)
    return x + 196 + width(name, QUIET), y + 30


# --- many small maps ----------------------------------------------------------------------------------------


def _tiles(sheet: Sheet, shot: Shot, x: float, y: float, which: int) -> tuple[float, float]:
    palette = sheet.palette
    layers, heads, rows, columns = shot.trace.weights(shot.kind).shape
    many = shot.drawing == "all"
    drawn = range(layers) if many else (shot.layer,)
    across = heads if many else min(heads, 4)
    room = (96.0 if heads <= 8 else 720 / heads) if many else 190.0
    size = room / max(rows, columns)
    wide, tall = columns * size, rows * size
    left, top, lift = x + (26 if many else 0), y + (24 if many else 0), 0 if many else 22
    right = bottom = 0.0
    for down, layer in enumerate(drawn):
        for head in range(heads):
            row, column = (down, head) if many else divmod(head, across)
            gap = 6 if many else 16
            at_x, at_y = left + column * (wide + gap), top + row * (tall + gap + lift) + lift
            face = _face(shot, which, layer, head)
            sheet.cells(_colours(face, palette), face.codes == 0, at_x, at_y, size, size)
            sheet.hatched(face.codes > 0, at_x, at_y, size, size, every=5)
            chosen = layer == shot.layer and head == shot.head
            colour = palette.accent if chosen else palette.hatch
            sheet.rect(at_x, at_y, wide, tall, stroke=colour, thick=2.5 if chosen else 0.75)
            if not many:
                quiet = palette.accent if chosen else palette.quiet
                sheet.text(str(head + 1), at_x, at_y - 11, LABEL, quiet, bold=chosen)
            elif down == 0:
                ours = head == shot.head
                colour = palette.accent if ours else palette.quiet
                sheet.text(str(head + 1), at_x + wide / 2, y + 10, LABEL, colour, "middle", ours)
            right, bottom = max(right, at_x + wide), max(bottom, at_y + tall)
        if many:
            ours = layer == shot.layer
            colour = palette.accent if ours else palette.quiet
            sheet.text(str(layer + 1), left - 8, bottom - tall / 2, LABEL, colour, "end", ours)
    edge, low = _scale(sheet, left, bottom + 14, which == 2)
    return max(right, edge), low


# --- lines --------------------------------------------------------------------------------------------------


def _lines(sheet: Sheet, shot: Shot, x: float, y: float, which: int) -> tuple[float, float]:
    palette, kind = sheet.palette, shot.kind
    trace = shot.after if which == 1 and shot.after else shot.trace
    queries, keys = trace.axes(kind)
    chosen, _key = shot.cell()
    longest = max(len(queries), len(keys))
    size = _type(longest)
    tall = longest * max(size * 1.5, min(34.0, 420 / longest))
    left_room = min(170.0, max(width(piece, size, True) for piece in queries))
    right_room = min(170.0, max(width(piece, size) for piece in keys))
    headings = (
        _("asks (query)") if outgoing(trace, kind) is None else _("goes in (query)"), _("is asked (key)")
    )  # fmt: skip
    left_room, right_room = (
        max(left_room, width(headings[0], 13) - 40),
        max(right_room, width(headings[1], 13) - 40),
    )
    left, top = x + left_room + 8, y + 26
    right = left + 300

    def places(count: int) -> list[float]:
        return [top + (index + 0.5) / count * tall for index in range(count)]

    starts, ends = places(len(queries)), places(len(keys))
    heads: Sequence[int | None] = [shot.head]
    if shot.head is not None:
        heads = sorted({shot.head, *(head for head in shot.also if head < trace.weights(kind).shape[1])})
    for index, head in enumerate(heads):
        weights = Map(trace, kind, shot.layer, head).weights
        aside = 3 * (
            index - (len(heads) - 1) / 2
        )  # of several heads, lines between the same pieces lie side by side
        drawn = np.argwhere(weights >= max(shot.faint, 1e-9)).tolist()
        for a, b in sorted(
            drawn, key=lambda cell: cell[0] == chosen and len(heads) == 1
        ):  # the chosen row last
            weight = float(weights[a, b])
            colour = palette.accent if a == chosen else palette.weights[3][1]
            dash = ""
            if len(heads) > 1 and head is not None:
                colour = palette.overlay[head % len(palette.overlay)]
                dash = ("", "7 4", "2 3", "11 3 2 3")[head % 4] if len(heads) <= 4 else ""
            sheet.line(
                [(left + 4, starts[a] + aside), (right - 4, ends[b] + aside)], colour, 1 + 3 * weight, dash,
                max(0.08, min(1.0, weight)), f"{queries[a]}, {keys[b]}: {number(weight)}",
            )  # fmt: skip
    for side, pieces, at, edge, anchor in (
        (asks(kind), queries, starts, left - 6, "end"),
        (asked(kind), keys, ends, right + 6, "start"),
    ):
        for index, (piece, middle) in enumerate(zip(pieces, at, strict=True)):
            bold = anchor == "end" and index == chosen
            sheet.text(piece, edge, middle, size, palette.token(side), anchor, bold, room=171)
    sheet.text(headings[0], left + 32, y + 8, 13, palette.quiet, "end")
    sheet.text(headings[1], right - 32, y + 8, 13, palette.quiet)
    low = top + tall
    if len(heads) > 1:
        place = left
        for head in heads:
            assert head is not None
            said, colour = (
                _("head {head}").format(head=head + 1),
                palette.overlay[head % len(palette.overlay)],
            )
            dash = ("", "7 4", "2 3", "11 3 2 3")[head % 4] if len(heads) <= 4 else ""
            sheet.line([(place, low + 14), (place + 24, low + 14)], colour, 3, dash)
            sheet.text(said, place + 30, low + 14, QUIET, colour, bold=True)
            place += 44 + width(said, QUIET, True)
        low += 28
    return right + right_room + 8, low
