"""Plotly's figures as SVG: lines, points, bars and heatmaps, as this app draws them, without a browser.

Read from the figure's own description. What is not known here is refused, never left out: `can` says so
without drawing. Colours of one theme become those of the other, since both name the same meanings.
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viz.svg.axes import Axis, Numbers
from viz.svg.described import (
    DASHES,
    Spec,
    UntranslatableError,
    anchored,
    array,
    can,
    counted,
    formed,
    measured,
    plain,
    recoloured,
    rich,
    rows,
    solid,
    spread,
    unknown,
)  # fmt: skip
from viz.svg.sheet import LEADING, Sheet, hex_colour, shades, wrap
from viz.theme import Palette

__all__ = ["UntranslatableError", "can", "draw", "rows"]

WIDE, TALL, EDGE = 760, 400, 16  # px


def draw(figure: Any, palette: Palette, lines: Sequence[str] = (), wide: float = WIDE) -> str:
    """A `go.Figure` as SVG in the colours of `palette`, the lines of its caption under it.

    Raises UntranslatableError.
    """
    spec = recoloured(figure.to_plotly_json(), palette)
    if why := unknown(spec):
        raise UntranslatableError(why)
    return _Picture(spec, palette, wide).svg(lines)


class _Picture:
    """One figure on its way to a page."""

    def __init__(self, spec: Spec, palette: Palette, wide: float) -> None:
        self.data: list[Spec] = [trace for trace in spec["data"] if trace.get("visible", True) is True]
        self.layout: Spec = spec["layout"]
        self.palette, self.sheet = palette, Sheet(palette)
        self.wide = float(self.layout.get("width") or wide)
        self.tall = float(self.layout.get("height") or TALL)
        self.size = float(self.layout.get("font", {}).get("size") or 14)
        self.axes = {name: self._axis(name) for name in self._names()}
        self._place()

    def _names(self) -> list[str]:
        """x, x2, y, ... that are used."""
        found = {
            name: None for trace in self.data for name in (trace.get("xaxis", "x"), trace.get("yaxis", "y"))
        }
        return [*found] or ["x", "y"]

    def of(self, name: str) -> Spec:
        found: Spec = self.layout.get(f"{name[0]}axis{name[1:]}", {})
        return found

    def _on(self, name: str) -> list[Spec]:
        return [trace for trace in self.data if trace.get(name[0] + "axis", name[0]) == name]

    def _axis(self, name: str) -> Axis:
        spec, letter = self.of(name), name[0]
        words: dict[str, None] = {}
        for trace in self._on(name):
            values = array(trace.get(letter))
            if len(values) and isinstance(values[0], str):
                words |= dict.fromkeys(map(str, values))
        axis = Axis(letter, spec, spec.get("type") == "log", [*words])
        given = spec.get("range")
        axis.low, axis.high = self._range(name, axis) if given is None else (float(given[0]), float(given[1]))
        if given is None and spec.get("autorange") == "reversed":
            axis.low, axis.high = axis.high, axis.low
        if axis.low == axis.high:
            axis.low, axis.high = axis.low - 0.5, axis.high + 0.5
        return axis

    def _range(self, name: str, axis: Axis) -> tuple[float, float]:
        """All that is drawn, and a little air."""
        low, high, air = np.inf, -np.inf, 0.0
        for trace in self._on(name):
            places = self._extent(trace, axis)
            places = places[np.isfinite(places)]
            if places.size:
                low, high = min(low, float(places.min())), max(high, float(places.max()))
            kind = trace.get("type", "scatter")
            marked = axis.letter == "y" or "markers" in trace.get("mode", "lines+markers")
            if (kind == "scatter" and marked) or (kind == "bar" and not self._along(trace, axis)):
                air = 0.06
        if low > high:
            return (0.0, 1.0)
        zero = axis.spec.get("rangemode") == "tozero" and not axis.log
        low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
        pad = air * (high - low or 1)
        return (
            low - (0 if low == 0 and not axis.log else pad),
            high + (0 if high == 0 and not axis.log else pad),
        )

    def _along(self, trace: Spec, axis: Axis) -> bool:
        """Whether bars stand beside each other along an axis; else they grow along it."""
        return (trace.get("orientation", "v") == "h") == (axis.letter == "y")

    def _extent(self, trace: Spec, axis: Axis) -> Numbers:
        letter = axis.letter
        if trace.get("type") == "heatmap":
            z = np.asarray(array(trace["z"]))
            places = axis.numbers(counted(array(trace.get(letter)), z.shape[1 if letter == "x" else 0]))
            half = (places[1] - places[0]) / 2 if len(places) > 1 else 0.5
            return np.array([places[0] - half, places[-1] + half])
        if trace.get("type") == "bar":
            if self._along(trace, axis):
                places = axis.numbers(array(trace.get(letter)))
                return np.concatenate([places - 0.5, places + 0.5])
            starts, ends = self._spans(trace, axis)
            return np.concatenate([starts, ends])
        return axis.numbers(
            counted(array(trace.get(letter)), len(array(trace.get("y" if letter == "x" else "x"))))
        )

    def _spans(self, trace: Spec, axis: Axis) -> tuple[Numbers, Numbers]:
        """Where each bar begins and ends, on top of those before it where they are stacked."""
        values = axis.numbers(array(trace.get(axis.letter)))
        base = np.zeros(len(values)) if not axis.log else np.full(len(values), min(axis.low, axis.high))
        if trace.get("base") is not None:
            base = base + np.asarray(array(trace["base"]), float)
        if self.layout.get("barmode") in ("stack", "relative"):
            for other in self.data:
                if other is trace:
                    break
                if other.get("type") == "bar" and len(array(other.get(axis.letter))) == len(values):
                    base = base + np.nan_to_num(np.asarray(array(other.get(axis.letter)), float))
            return base, base + values
        return (base, values) if axis.log else (base, base + values)

    # --- where everything lies ------------------------------------------------------------------------------

    def _place(self) -> None:
        """Room for what stands beside the axes, and the axes in what is left."""
        margin = {"l": 16.0, "r": 16.0, "t": 12.0, "b": 12.0}
        margin |= {
            side: max(margin[side], float(self.layout.get("margin", {}).get(side) or 0)) for side in margin
        }
        self._span(margin)  # once to know how many ticks there are, once with room for them
        for name, axis in self.axes.items():
            if not axis.visible:
                continue
            side = axis.spec.get("side") or ("left" if axis.letter == "y" else "bottom")
            other = self.of(("x" if axis.letter == "y" else "y") + name[1:])
            lo, hi = other.get("domain") or (0.0, 1.0)
            outer = hi >= 0.999 if side in ("right", "top") else lo <= 0.001
            if outer:
                margin[side[0]] = max(margin[side[0]], self._room(axis) + 6)
        for letter, one, two in (("x", "l", "r"), ("y", "b", "t")):
            for note in self.layout.get("annotations") or ():
                if note.get(f"{letter}ref", letter) in ("paper", f"{letter} domain"):
                    size = float(note.get("font", {}).get("size") or self.size)
                    lines = rich(str(note.get("text", "")))
                    upright = bool(note.get("textangle"))
                    across = (
                        measured(lines, size) if (letter == "x") != upright else len(lines) * size * LEADING
                    )
                    at, anchor = float(note.get(letter, 0)), note.get(f"{letter}anchor", "auto")
                    if at > 1 and anchor in ("left", "bottom", "auto"):
                        margin[two] = max(margin[two], across + 10)
                    if at < 0 and anchor in ("right", "top", "auto"):
                        margin[one] = max(margin[one], across + 10)
        self.scales = self._scales()
        if self.layout.get("showlegend"):
            margin["t"] += 30
        self._span(margin)

    def _span(self, margin: Mapping[str, float]) -> None:
        left, right = EDGE + margin["l"], self.wide - EDGE - margin["r"]
        top, bottom = EDGE / 2 + margin["t"], self.tall - margin["b"]
        bottom = max(bottom, top + 60)
        self.tall = max(self.tall, bottom + margin["b"])
        self.box = left, top, right, bottom
        for axis in self.axes.values():
            lo, hi = axis.spec.get("domain") or (0.0, 1.0)
            if axis.letter == "x":
                axis.start, axis.end = left + lo * (right - left), left + hi * (right - left)
            else:
                axis.start, axis.end = bottom - lo * (bottom - top), bottom - hi * (bottom - top)
        for axis in self.axes.values():
            other = self.axes.get(str(axis.spec.get("scaleanchor")))
            if other:
                self._equal(axis, other)

    def _equal(self, one: Axis, other: Axis) -> None:
        """A unit as long on one axis as on the other: the longer one shrinks around its middle."""
        unit = [abs((axis.end - axis.start) / (axis.high - axis.low)) for axis in (one, other)]
        for axis, own in zip((one, other), unit, strict=True):
            keep = min(unit) / own
            middle = (axis.start + axis.end) / 2
            axis.start, axis.end = middle + (axis.start - middle) * keep, middle + (axis.end - middle) * keep

    def _font(self, axis: Axis) -> float:
        return float(axis.spec.get("tickfont", {}).get("size") or self.size)

    def _angle(self, axis: Axis) -> float:
        """Of the labels under an x axis: as asked, else so that they do not meet."""
        if axis.letter == "y":
            return 0.0
        asked, size, ticks = axis.spec.get("tickangle"), self._font(axis), axis.ticks()
        if asked not in (None, "auto"):
            return float(asked)
        if len(ticks) < 2:
            return 0.0
        gap = min(abs(axis.px(b) - axis.px(a)) for (a, _), (b, _) in pairwise(ticks))
        return -50.0 if max(measured(rich(text), size) for _place, text in ticks) + 4 > max(gap, 1) else 0.0

    def _room(self, axis: Axis) -> float:
        """How far labels and title reach from an axis."""
        size, room = self._font(axis), 0.0
        texts = [rich(text) for _place, text in axis.ticks()] if axis.spec.get("showticklabels", True) else []
        if texts and axis.letter == "y":
            room = max(measured(text, size) for text in texts) + 8
        elif texts:
            slope = math.radians(abs(self._angle(axis)))
            tall = max(len(text) for text in texts) * size * LEADING
            room = max(
                max(measured(text, size) for text in texts) * math.sin(slope) + size * math.cos(slope) + 8,
                tall + 6,
            )
        axis_title = axis.spec.get("title") or {}
        if axis_title.get("text"):
            room += float(axis_title.get("font", {}).get("size") or self.size) * 1.5 + 2
        return room

    # --- drawing --------------------------------------------------------------------------------------------

    def svg(self, lines: Sequence[str]) -> str:
        for axis in self.axes.values():
            self._grid(axis)
        for trace in self.data:
            x, y = self.axes[trace.get("xaxis", "x")], self.axes[trace.get("yaxis", "y")]
            left, right, top, bottom = *sorted((x.start, x.end)), *sorted((y.start, y.end))
            draw_ = {"scatter": self._scatter, "bar": self._bars, "heatmap": self._heatmap}
            if trace.get("cliponaxis") is False or not self._beyond(trace, x, y):
                draw_[trace.get("type", "scatter")](trace, x, y)
            else:
                with self.sheet.clipped(left, top, right - left, bottom - top):
                    draw_[trace.get("type", "scatter")](trace, x, y)
        for shape in self.layout.get("shapes") or ():
            self._shape(shape)
        for axis in self.axes.values():
            self._labels(axis)
        for note in self.layout.get("annotations") or ():
            self._note(note)
        if self.layout.get("showlegend"):
            self._legend()
        low = self.tall + 4
        for scale in self.scales:
            low = self._bar_of_colours(scale, low)
        low += 10
        for index, said in enumerate(lines):
            size, colour = (15, self.palette.text) if index == 0 else (13, self.palette.quiet)
            for line in wrap(said, size, self.wide - 2 * EDGE):
                self.sheet.text(line, EDGE, low, size, colour)
                low += size * 1.4
            low += 3
        return self.sheet.svg(self.wide, low + 6, lines[0] if lines else "", " ".join(lines[1:]))

    def _beyond(self, trace: Spec, x: Axis, y: Axis) -> bool:
        for axis in (x, y):
            places = self._extent(trace, axis)
            places = places[np.isfinite(places)]
            low, high = sorted((axis.low, axis.high))
            slack = 0.002 * (high - low)
            if places.size and (places.min() < low - slack or places.max() > high + slack):
                return True
        return False

    def _grid(self, axis: Axis) -> None:
        across = self._across(axis)
        lines = []
        if axis.visible and axis.spec.get("showgrid", True) and "gridcolor" in axis.spec:
            lines += [(place, axis.spec["gridcolor"]) for place, _text in axis.ticks()]
        if (
            axis.visible
            and axis.spec.get("zeroline")
            and not axis.log
            and min(axis.low, axis.high) <= 0 <= max(axis.low, axis.high)
        ):
            lines.append((0.0, axis.spec.get("zerolinecolor", self.palette.hatch)))
        for place, colour in lines:
            at = float(axis.px(place))
            ends = (
                [(at, across[0]), (at, across[1])]
                if axis.letter == "x"
                else [(across[0], at), (across[1], at)]
            )
            self.sheet.line(ends, colour)

    def _across(self, axis: Axis) -> tuple[float, float]:
        """The px between which an axis's own lines run: those of the axis it is anchored to."""
        name = next(name for name, each in self.axes.items() if each is axis)
        other = ("y" if axis.letter == "x" else "x") + name[1:]
        partner = self.axes.get(str(axis.spec.get("anchor") or other)) or self.axes.get(
            "y" if axis.letter == "x" else "x"
        )
        if partner is None:
            return (self.box[1], self.box[3]) if axis.letter == "x" else (self.box[0], self.box[2])
        return partner.start, partner.end

    def _labels(self, axis: Axis) -> None:
        if not axis.visible:
            return
        size, angle = self._font(axis), self._angle(axis)
        colour = axis.spec.get("tickfont", {}).get("color") or self.palette.text
        side = axis.spec.get("side") or ("left" if axis.letter == "y" else "bottom")
        start, end = self._across(axis)
        edge = {"left": min, "right": max, "top": min, "bottom": max}[side](start, end)
        if axis.spec.get("showticklabels", True):
            last = -np.inf
            for place, text in sorted(axis.ticks(), key=lambda tick: axis.px(tick[0])):
                lines, at = rich(text), float(axis.px(place))
                if axis.letter == "y":
                    where = edge - 6 if side == "left" else edge + 6
                    middle = at - (len(lines) - 1) * size * LEADING / 2
                    self.sheet.rich(lines, where, middle, size, colour, "end" if side == "left" else "start")
                    continue
                if not angle and at - measured(lines, size) / 2 < last:
                    continue  # no room beside the one before
                last = at + measured(lines, size) / 2 + 2 if not angle else last
                if side == "top":
                    above = 6 + size * 0.5 + (len(lines) - 1) * size * LEADING
                    anchor = "middle" if not angle else "start" if angle < 0 else "end"
                    self.sheet.rich(
                        lines, at, edge - (above if not angle else 8), size, colour, anchor, angle
                    )
                else:
                    anchor = "middle" if not angle else "end" if angle < 0 else "start"
                    self.sheet.rich(
                        lines, at, edge + (6 + size * 0.5 if not angle else 10), size, colour, anchor, angle
                    )
        title = axis.spec.get("title") or {}
        if title.get("text"):
            lines = rich(str(title["text"]))
            size = float(title.get("font", {}).get("size") or self.size)
            colour = title.get("font", {}).get("color") or self.palette.text
            middle = (axis.start + axis.end) / 2
            far = self._room(axis) - size * 0.7
            if axis.letter == "y":
                self.sheet.rich(
                    lines, edge - far if side == "left" else edge + far, middle, size, colour, "middle", -90
                )
            else:
                self.sheet.rich(
                    lines, middle, edge - far if side == "top" else edge + far, size, colour, "middle"
                )

    # --- traces ---------------------------------------------------------------------------------------------

    def _scatter(self, trace: Spec, x: Axis, y: Axis) -> None:
        xs, ys = array(trace.get("x")), array(trace.get("y"))
        count = max(len(xs), len(ys))
        across, down = x.px(x.numbers(counted(xs, count))), y.px(y.numbers(counted(ys, count)))
        mode = trace.get("mode") or ("lines+markers" if count < 20 else "lines")
        opacity = float(trace.get("opacity", 1))
        seen = np.isfinite(across) & np.isfinite(down)
        if "lines" in mode:
            line = trace.get("line", {})
            self._stroke(across, down, seen, line, opacity)
        marker = trace.get("marker", {})
        if "markers" in mode and float(np.max(marker.get("opacity", 1))) > 0:
            sizes, colours = spread(marker.get("size", 6), count), spread(marker.get("color"), count)
            faint = spread(marker.get("opacity", 1), count)
            edge = marker.get("line", {})
            usual = trace.get("line", {}).get("color") or self.palette.accent
            for at in np.flatnonzero(seen).tolist():
                self._dot(
                    float(across[at]), float(down[at]), float(sizes[at]), colours[at] or usual, edge,
                    marker.get("symbol", "circle"), opacity * float(faint[at]),
                )  # fmt: skip
        if "text" in mode:
            texts, font = spread(trace.get("text"), count), trace.get("textfont", {})
            size, places = float(font.get("size") or self.size), spread(trace.get("textposition"), count)
            colours = spread(font.get("color"), count)
            for at in np.flatnonzero(seen).tolist():
                if texts[at]:
                    place = str(places[at] or "middle center")
                    dx = 6 if "right" in place else -6 if "left" in place else 0
                    dy = -size * 0.9 if "top" in place else size * 0.9 if "bottom" in place else 0
                    anchor = "start" if "right" in place else "end" if "left" in place else "middle"
                    lines = rich(str(texts[at]))
                    top = float(down[at]) + dy - (len(lines) - 1) * size * LEADING / 2
                    self.sheet.rich(lines, float(across[at]) + dx, top, size, colours[at] or "", anchor)

    def _stroke(self, across: Numbers, down: Numbers, seen: Any, line: Spec, opacity: float) -> None:
        parts, open_ = [], False
        for px_, py_, here in zip(across.tolist(), down.tolist(), seen.tolist(), strict=True):
            if here:
                parts.append(f"{'L' if open_ else 'M'}{px_:.2f} {py_:.2f}")
            open_ = here
        if parts:
            colour = solid(line.get("color") or self.palette.accent)
            dash = DASHES.get(line.get("dash", "solid"), "7 4")
            self.sheet.path(
                "".join(parts), stroke=colour, thick=float(line.get("width", 2)), dash=dash, opacity=opacity
            )

    def _dot(
        self, x: float, y: float, size: float, colour: Any, edge: Spec, symbol: str, opacity: float
    ) -> None:
        r, fill, line = size / 2, solid(colour), solid(edge.get("color")) if edge.get("width") else ""
        thick = float(edge.get("width") or 0)
        if symbol == "square":
            d = f"M{x - r:.2f} {y - r:.2f}h{size:.2f}v{size:.2f}h{-size:.2f}z"
        elif symbol == "triangle-up":
            d = f"M{x:.2f} {y - r:.2f}L{x + r * 0.87:.2f} {y + r / 2:.2f}H{x - r * 0.87:.2f}z"
        else:
            arc = f"a{r:.2f} {r:.2f} 0 1 0 "
            d = f"M{x - r:.2f} {y:.2f}{arc}{size:.2f} 0{arc}{-size:.2f} 0z"
        if opacity > 0:
            self.sheet.path(d, fill=fill, stroke=line, thick=thick, opacity=opacity)

    def _bars(self, trace: Spec, x: Axis, y: Axis) -> None:
        lying = trace.get("orientation", "v") == "h"
        along, grows = (y, x) if lying else (x, y)
        places = along.numbers(array(trace.get(along.letter)))
        starts, ends = self._spans(trace, grows)
        step = float(np.diff(np.unique(places)).min()) if len(np.unique(places)) > 1 else 1.0
        bars = [each for each in self.data if each.get("type") == "bar"]
        beside = len(bars) if self.layout.get("barmode", "group") == "group" else 1
        room = step * (1 - float(self.layout.get("bargap", 0.2)))
        given = spread(trace.get("width"), len(places))
        marker, count = trace.get("marker", {}), len(places)
        colours, edge = spread(marker.get("color"), count), marker.get("line", {})
        strokes, thick = spread(edge.get("color"), count), spread(edge.get("width"), count)
        texts, font = spread(trace.get("text"), count), trace.get("textfont", {})
        size, inks = float(font.get("size") or self.size), spread(font.get("color"), count)
        inside = trace.get("textposition") == "inside"
        for at in range(count):
            thickness = float(given[at]) if given[at] is not None else room / beside
            shift = (bars.index(trace) - (beside - 1) / 2) * thickness if beside > 1 else 0.0
            middle = float(places[at]) + shift
            near, far = sorted(
                (float(along.px(middle - thickness / 2)), float(along.px(middle + thickness / 2)))
            )
            begin, end = float(grows.px(starts[at])), float(grows.px(ends[at]))
            if not math.isfinite(begin + end + near + far):
                continue
            low, high = sorted((begin, end))
            box = (low, near, high - low, far - near) if lying else (near, low, far - near, high - low)
            stroke = solid(strokes[at]) if thick[at] else ""
            fill = solid(colours[at] or self.palette.weights[3][1])
            if fill != "none" or stroke:
                self.sheet.rect(*box, fill=fill, stroke=stroke, thick=float(thick[at] or 0))
            if texts[at] not in (None, ""):
                lines = rich(str(texts[at]))
                if inside:
                    if measured(lines, size) <= box[2]:
                        self.sheet.rich(
                            lines, box[0] + box[2] / 2, box[1] + box[3] / 2, size, inks[at] or "", "middle"
                        )
                elif lying:
                    way = "start" if end >= begin else "end"
                    self.sheet.rich(
                        lines,
                        end + (5 if way == "start" else -5),
                        (near + far) / 2,
                        size,
                        inks[at] or "",
                        way,
                    )
                else:
                    beyond = end - size * 0.7 if end <= begin else end + size * 0.7
                    self.sheet.rich(lines, (near + far) / 2, beyond, size, inks[at] or "", "middle")

    def _heatmap(self, trace: Spec, x: Axis, y: Axis) -> None:
        z = np.asarray(array(trace["z"]), float)
        down, across = z.shape
        xs = x.px(x.numbers(counted(array(trace.get("x")), across)))
        ys = y.px(y.numbers(counted(array(trace.get("y")), down)))
        unit = x.px(1.0) - x.px(0.0), y.px(1.0) - y.px(0.0)
        wide = float(xs[1] - xs[0]) if across > 1 else float(unit[0])
        tall = float(ys[1] - ys[0]) if down > 1 else float(unit[1])
        flipped = z[:: 1 if tall > 0 else -1, :: 1 if wide > 0 else -1]
        left, top = min(xs[0], xs[-1]) - abs(wide) / 2, min(ys[0], ys[-1]) - abs(tall) / 2
        colours, _stops, _ends = self._coloured(trace, flipped)
        seen = np.isfinite(flipped)
        gap_x, gap_y = float(trace.get("xgap") or 0), float(trace.get("ygap") or 0)
        if (gap_x or gap_y) and z.size <= 4096:
            for row, column in np.argwhere(seen).tolist():
                value = formed(float(flipped[row, column]), "")
                self.sheet.rect(
                    left + column * abs(wide) + gap_x / 2, top + row * abs(tall) + gap_y / 2,
                    abs(wide) - gap_x, abs(tall) - gap_y, hex_colour(int(colours[row, column])), said=value,
                )  # fmt: skip
        else:
            self.sheet.cells(colours, seen, left, top, abs(wide), abs(tall))
        template = trace.get("texttemplate")
        if template:
            size = float(trace.get("textfont", {}).get("size") or 12)
            ink = trace.get("textfont", {}).get("color")
            texts = trace.get("text")
            words = np.asarray(array(texts), object) if texts is not None else None
            for row, column in np.argwhere(np.isfinite(z)).tolist():
                said = self._templated(
                    template, float(z[row, column]), words[row][column] if words is not None else ""
                )
                colour = ink or self._ink(int(self._coloured(trace, z)[0][row, column]))
                self.sheet.rich(rich(said), float(xs[column]), float(ys[row]), size, colour, "middle")

    def _templated(self, template: str, z: float, text: Any) -> str:
        said = re.sub(r"%\{z(?::([^}]*))?\}", lambda found: formed(z, found[1] or ""), template)
        return said.replace("%{text}", str(text))

    def _ink(self, colour: int) -> str:
        """Letters that can be read on a colour, as plotly chooses them."""
        light = (299 * (colour >> 16 & 255) + 587 * (colour >> 8 & 255) + 114 * (colour & 255)) / 1000 > 128
        return "#15181c" if light else "#ffffff"

    def _coloured(
        self, trace: Spec, z: Numbers
    ) -> tuple[NDArray[np.uint32], list[tuple[float, str]], tuple[float, float]]:
        axis = self.layout.get(trace["coloraxis"], {}) if trace.get("coloraxis") else trace
        names = ("cmin", "cmax") if trace.get("coloraxis") else ("zmin", "zmax")
        seen = z[np.isfinite(z)]
        low, high = (float(axis[name]) if axis.get(name) is not None else None for name in names)
        low = float(seen.min(initial=0)) if low is None else low
        high = float(seen.max(initial=1)) if high is None else high
        stops = [(float(at), str(colour)) for at, colour in axis.get("colorscale") or self.palette.weights]
        share = np.clip(np.nan_to_num((z - low) / (high - low or 1)), 0, 1)
        return shades(share, stops), stops, (low, high)

    def _scales(self) -> list[tuple[Spec, Spec]]:
        """The colour scales that are shown: a trace that has it, and what it says of its bar."""
        found: dict[str, tuple[Spec, Spec]] = {}
        for trace in self.data:
            axis = self.layout.get(trace.get("coloraxis") or "", {})
            if trace.get("coloraxis") and axis.get("showscale", True):
                found[trace["coloraxis"]] = trace, axis.get("colorbar", {})
            elif (
                trace.get("type") == "heatmap" and not trace.get("coloraxis") and trace.get("showscale", True)
            ):
                found[str(id(trace))] = trace, trace.get("colorbar", {})
        return [*found.values()]

    def _bar_of_colours(self, scale: tuple[Spec, Spec], y: float) -> float:
        trace, bar = scale
        _, stops, (low, high) = self._coloured(trace, np.asarray(array(trace["z"]), float))
        left, room = self.box[0], 180.0
        self.sheet.ramp(stops, left, y, room, 10)
        given = bar.get("tickvals")
        values = (
            [float(value) for value in array(given)] if given is not None else [low, (low + high) / 2, high]
        )
        for index, value in enumerate(values):
            at = left + room * (value - low) / (high - low or 1)
            self.sheet.line([(at, y + 10), (at, y + 14)], self.palette.quiet)
            said = bar["ticktext"][index] if bar.get("ticktext") else formed(value, bar.get("tickformat", ""))
            self.sheet.text(plain(str(said)), at, y + 22, 12, self.palette.quiet, "middle")
        title = (bar.get("title") or {}).get("text")
        if title:
            self.sheet.text(plain(str(title)), left + room + 24, y + 5, 13, self.palette.quiet)
        return y + 34

    # --- shapes and words -----------------------------------------------------------------------------------

    def _at(self, ref: str, value: Any, letter: str, shape: bool) -> float:
        """Px of a place that is counted in an axis, in the axis's part of the page, or in the page."""
        left, top, right, bottom = self.box
        if ref == "paper":
            return (
                left + float(value) * (right - left)
                if letter == "x"
                else bottom - float(value) * (bottom - top)
            )
        axis = self.axes.get(ref.split()[0]) or next(
            each for each in self.axes.values() if each.letter == letter
        )
        if ref.endswith(" domain"):
            return axis.start + float(value) * (axis.end - axis.start)
        if isinstance(value, str) and axis.words:
            return float(axis.px(axis.words.index(value)))
        place = math.log10(float(value)) if axis.log and shape else float(value)
        return float(axis.px(place))

    def _shape(self, shape: Spec) -> None:
        xref, yref = shape.get("xref", "x"), shape.get("yref", "y")
        x0, x1 = (self._at(xref, shape[name], "x", True) for name in ("x0", "x1"))
        y0, y1 = (self._at(yref, shape[name], "y", True) for name in ("y0", "y1"))
        line = shape.get("line", {})
        thick, dash = float(line.get("width", 2)), DASHES.get(line.get("dash", "solid"), "7 4")
        colour = solid(line.get("color") or self.palette.text) if thick else ""
        opacity = float(shape.get("opacity", 1))
        if shape.get("type") == "line":
            self.sheet.line([(x0, y0), (x1, y1)], colour, thick, dash, opacity)
        elif shape.get("type", "rect") == "rect":
            box = min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0)
            self.sheet.rect(
                *box,
                fill=solid(shape.get("fillcolor")),
                stroke=colour,
                thick=thick,
                opacity=opacity,
                dash=dash,
            )
        else:
            raise UntranslatableError(f"a shape of type {shape.get('type')}")

    def _note(self, note: Spec) -> None:
        xref, yref = note.get("xref", "x"), note.get("yref", "y")
        x = self._at(xref, note.get("x", 0), "x", False) + float(note.get("xshift") or 0)
        y = self._at(yref, note.get("y", 0), "y", False) - float(note.get("yshift") or 0)
        font = note.get("font", {})
        size, colour = float(font.get("size") or self.size), font.get("color") or self.palette.text
        lines = rich(str(note.get("text", "")))
        if note.get("showarrow", True):
            self._arrow(note, x, y, colour)
            if not note.get("text"):
                return
        wide, tall = measured(lines, size), size * LEADING * len(lines)
        xanchor = anchored(note.get("xanchor", "auto"), xref, note.get("x"), ("left", "right"))
        yanchor = anchored(note.get("yanchor", "auto"), yref, note.get("y"), ("bottom", "top"))
        angle = float(note.get("textangle") or 0)
        if angle:  # turned around its middle
            left = {"left": 0.0, "right": -tall, "center": -tall / 2}[xanchor]
            top = {"top": 0.0, "bottom": -wide, "center": -wide / 2}[yanchor]
            self.sheet.rich(lines, x + left + tall / 2, y + top + wide / 2, size, colour, "middle", angle)
            return
        left = {"left": x, "right": x - wide, "center": x - wide / 2}[xanchor]
        top = {"top": y, "bottom": y - tall, "center": y - tall / 2}[yanchor]
        if note.get("bgcolor"):
            self.sheet.rect(left - 3, top, wide + 6, tall, solid(note["bgcolor"]))
        anchor = {"left": "start", "right": "end", "center": "middle"}[xanchor]
        place = {"left": left, "right": left + wide, "center": left + wide / 2}[xanchor]
        self.sheet.rich(lines, place, top + size * LEADING / 2, size, colour, anchor)

    def _arrow(self, note: Spec, x: float, y: float, colour: str) -> None:
        ax, ay = note.get("ax", 0), note.get("ay", -30)
        tail = (
            self._at(note["axref"], ax, "x", False)
            if note.get("axref", "pixel") != "pixel"
            else x + float(ax),
            self._at(note["ayref"], ay, "y", False)
            if note.get("ayref", "pixel") != "pixel"
            else y + float(ay),
        )
        colour, thick = note.get("arrowcolor") or colour, float(note.get("arrowwidth") or 1)
        self.sheet.line([tail, (x, y)], colour, thick)
        if int(note.get("arrowhead", 1)):
            turn, long = math.atan2(y - tail[1], x - tail[0]), 4 + 3 * thick
            wings = [(x - long * math.cos(turn + by), y - long * math.sin(turn + by)) for by in (-0.4, 0.4)]
            self.sheet.path(
                f"M{wings[0][0]:.2f} {wings[0][1]:.2f}L{x:.2f} {y:.2f}L{wings[1][0]:.2f} {wings[1][1]:.2f}z",
                fill=colour,
            )

    def _legend(self) -> None:
        x, y = self.box[0], EDGE + 6.0
        for trace in self.data:
            if trace.get("showlegend") is False or not trace.get("name"):
                continue
            name = rich(str(trace["name"]))
            room = 44 + measured(name, 14)
            if x + room > self.wide and x > self.box[0]:
                x, y = self.box[0], y + 20
            line, marker = trace.get("line", {}), trace.get("marker", {})
            colour = solid(line.get("color") or marker.get("color") or self.palette.text)
            if trace.get("type") == "bar":
                self.sheet.rect(x, y - 6, 24, 12, colour)
            else:
                self.sheet.line(
                    [(x, y), (x + 24, y)],
                    colour,
                    float(line.get("width", 2)),
                    DASHES.get(line.get("dash", "solid"), ""),
                )
            self.sheet.rich(name, x + 30, y, 14)
            x += room
