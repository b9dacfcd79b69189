"""What plotly says of a figure, read: its arrays, its colours, its little markup, its numbers in words."""

import base64
import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from viz.svg.sheet import Run, width
from viz.theme import PALETTES, Palette

SILENT = {  # of a trace: what a printed page cannot show, or what only names it
    "type", "name", "customdata", "hoverinfo", "hovertext", "hovertemplate", "hoverlabel", "selected",
    "unselected", "uid", "legendgroup", "showlegend", "xaxis", "yaxis", "ids", "meta", "hoverongaps",
}  # fmt: skip
DRAWN = {
    "scatter": {
        "x", "y", "mode", "line", "marker", "text", "textfont", "textposition", "opacity", "cliponaxis",
    },
    "bar": {
        "x", "y", "orientation", "width", "base", "marker", "text", "textfont", "textangle",
        "textposition", "insidetextanchor", "constraintext", "cliponaxis", "opacity",
    },
    "heatmap": {
        "x", "y", "z", "zmin", "zmax", "zmid", "colorscale", "coloraxis", "showscale", "xgap", "ygap", "text",
        "texttemplate", "textfont",
    },
}  # fmt: skip
DASHES = {"solid": "", "dot": "2 3", "dash": "7 4", "longdash": "11 4", "dashdot": "7 3 2 3"}
Spec = Mapping[str, Any]


class UntranslatableError(ValueError):
    """A figure with something in it that this writer does not know."""


def can(figure: Any) -> bool:
    """Whether a figure can be drawn here."""
    return not unknown(figure.to_plotly_json())


def unknown(spec: Spec) -> str:
    """What of a figure cannot be drawn; "" where all can."""
    for trace in spec["data"]:
        kind = trace.get("type", "scatter")
        if kind not in DRAWN:
            return f"a trace of type {kind}"
        odd = {name for name, value in trace.items() if value is not None} - DRAWN[kind] - SILENT
        if odd:
            return f"{kind}.{min(odd)}"
        if trace.get("line", {}).get("shape", "linear") != "linear":
            return "a line that is not straight"
    return ""


def rows(figure: Any) -> tuple[list[str], list[list[Any]]]:
    """The numbers of a figure, a line each: the series, x, y, and z of a heatmap."""
    spec = figure.to_plotly_json()
    found: list[list[Any]] = []
    deep = any(trace.get("type") == "heatmap" for trace in spec["data"])
    for index, trace in enumerate(spec["data"]):
        name = str(trace.get("name") or index + 1)
        if trace.get("type") == "heatmap":
            z = np.asarray(array(trace.get("z")), float)
            across = _labels(spec, trace, "x", array(trace.get("x")), z.shape[1])
            down = _labels(spec, trace, "y", array(trace.get("y")), z.shape[0])
            found += [
                [name, across[column], down[row], float(z[row, column])]
                for row, column in np.ndindex(*z.shape)
                if np.isfinite(z[row, column])
            ]
        else:
            x, y = array(trace.get("x")), array(trace.get("y"))
            count = max(len(x), len(y))
            pairs = zip(counted(x, count), counted(y, count), strict=True)
            found += [[name, scalar(a), scalar(b), None][: 4 if deep else 3] for a, b in pairs]
    return ["series", "x", "y", "z"][: 4 if deep else 3], found


def _labels(spec: Spec, trace: Spec, letter: str, values: Sequence[Any], count: int) -> list[Any]:
    """What stands along an axis of a heatmap: its words where it has any, else its numbers."""
    axis = spec["layout"].get(letter + "axis" + trace.get(letter + "axis", letter)[1:], {})
    words = dict(zip(axis.get("tickvals") or (), axis.get("ticktext") or (), strict=False))
    places = [scalar(value) for value in counted(values, count)]
    return [plain(str(words[place])).strip() if place in words else place for place in places]


def counted(values: Sequence[Any], count: int) -> Sequence[Any]:
    return values if len(values) else range(count)


def scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def array(value: Any) -> Any:
    """A value of a trace as an array: plotly packs numbers into base64."""
    if value is None:
        return []
    if isinstance(value, Mapping) and "bdata" in value:
        flat = np.frombuffer(base64.b64decode(value["bdata"]), np.dtype(value["dtype"]))
        shape = value.get("shape")
        return flat.reshape([int(size) for size in str(shape).split(",")]) if shape else flat
    return value


def spread(value: Any, count: int) -> Sequence[Any]:
    """One value for each of `count`, or the same for all."""
    value = array(value) if isinstance(value, Mapping) else value
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value] * count


def recoloured(value: Any, palette: Palette) -> Any:
    """The same description, each colour of a theme as `palette` has it."""
    swap: dict[str, str] = {}
    for other in PALETTES.values():
        for name, colour in _colours(other).items():
            swap.setdefault(colour.lower(), _colours(palette)[name])

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return _HEX.sub(lambda found: swap.get(found[0].lower(), found[0]), value)
        if isinstance(value, Mapping):
            return value if "bdata" in value else {name: walk(each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [walk(each) for each in value]
        if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
            return [walk(each) for each in value.tolist()]
        return value

    return walk(value)


_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")


def _colours(palette: Palette) -> dict[str, str]:
    """Every colour of a palette by its meaning."""
    found: dict[str, str] = {}
    for field in fields(palette):
        value = getattr(palette, field.name)
        if isinstance(value, str):
            found[field.name] = value
        else:
            found |= {
                f"{field.name}{index}": each if isinstance(each, str) else each[1]
                for index, each in enumerate(value)
            }
    return found


def rich(text: str, colour: str = "") -> list[list[Run]]:
    """Plotly's little markup: <b>, <br>, the colour of a <span>, entities. Other tags are left out."""
    lines: list[list[Run]] = [[]]
    bold, colours = 0, [colour]
    for part in re.split(r"(<[^<>]*>)", text):
        tag = re.fullmatch(r"<(/?)(\w+)([^<>]*)>", part)
        if not tag:
            if part:
                lines[-1].append(Run(html.unescape(part), bold > 0, colours[-1]))
        elif tag[2] == "br":
            lines.append([])
        elif tag[2] in ("b", "strong"):
            bold += -1 if tag[1] else 1
        elif tag[2] == "span":
            if tag[1]:
                colours = colours[:-1] or [colour]
            else:
                found = re.search(r"color:\s*(#[0-9a-fA-F]{3,8})", tag[3])
                colours.append(found[1] if found else colours[-1])
    return lines


def plain(text: str) -> str:
    """The same without its markup."""
    return " ".join("".join(run.text for run in line) for line in rich(text))


def measured(lines: Sequence[Sequence[Run]], size: float) -> float:
    return max((sum(width(run.text, size, run.bold) for run in line) for line in lines), default=0.0)


def formed(value: float, form: str, exponent: str = "") -> str:
    """A number as an axis writes it; `form` is one of d3's that this app uses."""
    if found := re.fullmatch(r"(\+?)(,?)\.?(\d*)([fd%e]?)", form) if form else None:
        kind = found[4] or "f"
        if kind == "e" and value == 0:
            return "0"
        digits = "" if kind == "d" else f".{found[3] or 0}"
        said = f"{value:{found[1]}{found[2]}{digits}{'.0f' if kind == 'd' else kind}}"
        return re.sub(r"e([+-])0*(\d)", r"e\1\2", said).replace("e+", "e").replace("-", "−")
    if exponent == "SI" or abs(value) >= 1e4:
        for power, letter in ((9, "G"), (6, "M"), (3, "k")):
            if abs(value) >= 10**power:
                return f"{value / 10**power:g}{letter}".replace("-", "−")
    return f"{value:.6g}".replace("-", "−")


def anchored(asked: str, ref: str, value: Any, ends: tuple[str, str]) -> str:
    """Which part of the words stands at their place."""
    if asked in ("middle", "center"):
        return "center"
    if asked != "auto":
        return asked
    if ref == "paper" or ref.endswith("domain"):
        return ends[0] if float(value) < 1 / 3 else ends[1] if float(value) > 2 / 3 else "center"
    return "center"


def solid(colour: Any) -> str:
    """A colour as SVG's attributes know it everywhere; none where it cannot be seen."""
    if not colour or str(colour).replace(" ", "") in ("rgba(0,0,0,0)", "transparent"):
        return "none"
    return str(colour)
