"""Out of the app: a picture as SVG, PNG or a page of its own, its numbers as CSV or JSON.

    python -m viz.export "I am a student." --view "kind=cross&layer=3&head=1" --out student.svg

needs no browser. `--view` takes what stands in an address of the app after the question mark, or the whole
address. The end of the file's name says what is written: svg, png, html, csv, json; npz and safetensors hold
the whole trace.
"""

import argparse
import errno
import io
import json
import logging
import os
import re
import struct
import sys
import tempfile
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from model import files
from model.trace import Kind, Trace
from viz import standalone
from viz.reading import outgoing
from viz.svg import DRAWINGS, Drawing, Shot, TooLargeError, altered, curves, draw
from viz.text import _
from viz.theme import PALETTES, Mode

Format = Literal["svg", "png", "html", "csv", "json", "npz", "safetensors"]
FORMATS: tuple[Format, ...] = get_args(Format)
MIME: Mapping[Format, str] = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "npz": "application/octet-stream",
    "safetensors": "application/octet-stream",
}
DPI = 300
PIXELS = 2**25  # of a PNG at most: larger pictures are drawn more coarsely
SLUG = 40  # letters of the sentence in a file's name

Cell = str | int | bool | np.float32 | float | None


class ExportError(RuntimeError):
    """A file that cannot be made or written; says why, in a sentence."""


# --- pictures -----------------------------------------------------------------------------------------------


def svg(shot: Shot, theme: Mode = "light") -> str:
    """Raises ExportError where a vector picture cannot hold it."""
    try:
        return draw(shot, PALETTES[theme])
    except TooLargeError as error:
        raise ExportError(str(error)) from error


def png(picture: str, dpi: float = DPI) -> bytes:
    """An SVG of this app as pixels, in its own letters, `dpi` of them an inch."""
    import resvg_py  # where a picture is asked for, not where the app starts

    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
    if not found:
        raise ValueError("not a picture of this app: no viewBox")
    zoom = dpi / 96
    pixels = float(found[1]) * float(found[2]) * zoom**2
    zoom *= min(1.0, (PIXELS / pixels) ** 0.5)
    files = resources.files("font_source_sans_pro") / "files"
    fonts = [str(files / f"SourceSansPro-{weight}.ttf") for weight in ("Regular", "Bold")]
    drawn = resvg_py.svg_to_bytes(
        svg_string=picture,
        zoom=zoom,
        dpi=96,
        font_files=fonts,
        font_family="Source Sans Pro",
        sans_serif_family="Source Sans Pro",
    )
    return _with_density(bytes(drawn), 96 * zoom)


def _with_density(drawn: bytes, dpi: float) -> bytes:
    """The PNG with its pixels per metre, so that a document takes it in at its size in print."""
    start = 8 + 25  # after the signature and the header
    each = round(dpi / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", each, each, 1)
    return drawn[:start] + struct.pack(">I", 9) + chunk + struct.pack(">I", zlib.crc32(chunk)) + drawn[start:]


# --- numbers ------------------------------------------------------------------------------------------------


def table(shot: Shot) -> tuple[list[str], Iterator[list[Cell]]]:
    """Head and rows: a line a cell of what is drawn, all counted from 1 as on screen."""
    head = ["kind", "layer", "head", "row", "query", "comes out", "column", "key", "allowed", "weight"]
    return head + (["weight after", "difference"] if shot.after else []), _lines(shot)


def _lines(shot: Shot) -> Iterator[list[Cell]]:
    queries, keys = shot.trace.axes(shot.kind)
    out = outgoing(shot.trace, shot.kind) or ("",) * len(queries)
    for layer, head in _drawn(shot):
        before, allowed = _numbers(shot, shot.trace, layer, head)
        after = _numbers(shot, shot.after, layer, head)[0] if shot.after else None
        for row, column in np.ndindex(*before.shape):
            line: list[Cell] = [
                shot.kind,
                layer + 1,
                "mean" if head is None else head + 1,
                row + 1,
                queries[row],
            ]
            line += [out[row], column + 1, keys[column], bool(allowed[row, column]), before[row, column]]
            if after is not None:
                line += [after[row, column], after[row, column] - before[row, column]]
            yield line


def _drawn(shot: Shot) -> list[tuple[int, int | None]]:
    """Layer and head of every map in the picture."""
    layers, heads = shot.trace.weights(shot.kind).shape[:2]
    if shot.drawing in ("heads", "all"):
        drawn = range(layers) if shot.drawing == "all" else [shot.layer]
        return [(layer, head) for layer in drawn for head in range(heads)]
    if shot.drawing == "lines" and shot.head is not None:
        return [(shot.layer, head) for head in sorted({shot.head, *(h for h in shot.also if h < heads)})]
    return [(shot.layer, shot.head)]


def _numbers(shot: Shot, trace: Trace, layer: int, head: int | None) -> tuple[Any, Any]:
    weights, allowed = trace.weights(shot.kind)[layer], trace.allowed(shot.kind)[layer]
    if head is None:
        return weights.mean(axis=0), allowed.any(axis=0)
    return weights[head], allowed[head]


def csv(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """UTF-8 with a byte order mark: without one, Excel reads accents as other letters."""
    written = io.StringIO()
    for row in chain([head], rows):
        written.write(",".join(map(_cell, row)) + "\r\n")
    return written.getvalue().encode("utf-8-sig", "replace")


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + defused(value).replace('"', '""').replace("\0", "\ufffd") + '"'
    return str(value) if np.isfinite(value) else ""  # of a float32 as many digits as tell it from the next


def defused(text: str) -> str:
    """Text that a spreadsheet shows and does not run: behind an apostrophe where it looks like a formula."""
    return "'" + text if text.lstrip(" ")[:1] in (*"=+-@\t\r\n", *"＝＋－＠") and text.strip(" ") else text


def document(shot: Shot) -> dict[str, Any]:
    """What is drawn, for JSON, by the names that `model.files` reads, and more of it in "about".

    Numbers are (Q, K), (heads, Q, K) or (layers, heads, Q, K).
    """
    queries, keys = shot.trace.axes(shot.kind)
    layers, heads = shot.trace.weights(shot.kind).shape[:2]
    places = _drawn(shot)
    shape = {"heads": (heads,), "all": (layers, heads)}.get(
        shot.drawing, (len(places),) if len(places) > 1 else ()
    )

    def arranged(trace: Trace, part: int) -> Any:
        found = np.stack([_numbers(shot, trace, *place)[part] for place in places])
        return found.reshape(*shape, *found.shape[1:])

    about = {
        "text": shot.trace.text,
        "translation": shot.trace.translation,
        "layer": None if shot.drawing == "all" else shot.layer + 1,
        "heads": ["mean" if head is None else head + 1 for _layer, head in places if _layer == places[0][0]],
        "comes_out": outgoing(shot.trace, shot.kind),
        "changed": [*altered(shot), *filter(None, [shot.note])] or None,
    }
    found: dict[str, Any] = {
        "about": {name: value for name, value in about.items() if value is not None},
        "kind": shot.kind,
        "queries": queries,
        "keys": keys,
        "weights": arranged(shot.trace, 0),
        "mask": arranged(shot.trace, 1),
    }
    if shot.after:
        found["after"] = {"weights": arranged(shot.after, 0), "mask": arranged(shot.after, 1)}
    return found


def written(value: Any) -> bytes:
    """JSON in UTF-8; numbers with as many digits as tell a float32 from the next, never NaN: null instead."""
    return (json.dumps(_plain(value), ensure_ascii=True, allow_nan=False, indent=1) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(
            [*value] if value.ndim > 1 else value.tolist() if value.dtype.kind in "biuOU" else [*value]
        )
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (np.floating, float)):
        return float(str(value)) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


# --- one file -----------------------------------------------------------------------------------------------


def name(what: str, sentence: str, form: str) -> str:
    """A file's name in plain ASCII: the app, what is drawn, the beginning of the sentence."""
    return "-".join(filter(None, ("headlight", slug(what, 60), slug(sentence, SLUG)))) + f".{form}"


def name_of(shot: Shot, form: Format) -> str:
    """The name of a picture's file, or of its whole trace's."""
    if form in ("npz", "safetensors"):
        return name("trace", shot.trace.text, form)
    parts: list[str] = [shot.kind]
    parts += [] if shot.drawing == "all" else [f"layer-{shot.layer + 1}"]
    if shot.drawing in ("map", "lines"):
        parts.append("mean" if shot.head is None else f"head-{shot.head + 1}")
    parts += [] if shot.drawing == "map" else [shot.drawing]
    parts += ["before-after"] if shot.after else []
    return name("-".join(parts), shot.trace.text, form)


def slug(text: str, most: int) -> str:
    """Text as small letters, digits and hyphens; "" where nothing of it can be written so."""
    plain = unicodedata.normalize("NFKD", text[: 8 * most]).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:most].strip("-")


def content(shot: Shot, form: Format, theme: Mode | None = None) -> bytes:
    """The bytes of a file. Raises ExportError.

    Without a theme pictures are light, and a page is as its reader's browser wants it.
    """
    if form == "svg":
        return svg(shot, theme or "light").encode()
    if form == "png":
        return png(svg(shot, theme or "light"))
    if form == "html":
        from viz.component import stage_words

        try:
            return standalone.html(shot, stage_words(), theme).encode()
        except ValueError as error:
            raise ExportError(str(error)) from error
    if form == "csv":
        return csv(*table(shot))
    if form == "json":
        return written(document(shot))
    return _whole(shot.trace, form)


def content_of(figure: Any, said: Sequence[str], form: Format, theme: Mode | None = None) -> bytes:
    """The bytes of a `go.Figure` as svg, png, csv or json, its caption under the picture.

    Raises ExportError where `curves.can` says no, and for other forms.
    """
    try:
        if form in ("svg", "png"):
            drawn = curves.draw(figure, PALETTES[theme or "light"], said)
            return drawn.encode() if form == "svg" else png(drawn)
    except curves.UntranslatableError as error:
        raise ExportError(
            _("This figure cannot be written as a picture: {why}.").format(why=error)
        ) from error
    head, lines = curves.rows(figure)
    if form == "csv":
        return csv(head, lines)
    if form == "json":
        return written({"said": said, "columns": head, "rows": lines})
    raise ExportError(_("A figure cannot be written as {form}.").format(form=form))


def _whole(trace: Trace, form: Literal["npz", "safetensors"]) -> bytes:
    try:
        return files.write(trace, form)
    except files.FileError as error:
        raise ExportError(str(error)) from error


def save(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: beside its place first. Raises ExportError."""
    beside = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:40]}.", delete=False) as file:
            beside = Path(file.name)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o666 & ~umask)  # as an ordinary file, not for its owner alone
        os.replace(beside, path)
    except OSError as error:
        if beside:
            beside.unlink(missing_ok=True)
        raise ExportError(_refused(error, path)) from error


def _refused(error: OSError, path: Path) -> str:
    folder = path.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return _("There is no room left for {path}. Nothing was written.").format(path=path)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return _("Nothing may be written into the folder {folder}.").format(folder=folder)
    if error.errno == errno.ENOENT:
        return _("There is no folder {folder}.").format(folder=folder)
    return _("{path} cannot be written: {why}.").format(path=path, why=error.strerror or error)


# --- the command --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What an address asks for: layer and head as it counts them, from 1."""

    params: Mapping[str, str]

    def number(self, name: str, usual: int, least: int, most: int) -> int:
        text = self.params.get(name, str(usual))
        if not re.fullmatch(r"[0-9]{1,6}", text) or not least <= int(text) <= most:
            said = _('The view asks for {name} "{value}", but there is only: {least} to {most}.')
            raise ExportError(said.format(name=name, value=text[:20], least=least, most=most))
        return int(text)

    def choice(self, name: str, usual: str, offered: Sequence[str]) -> str:
        text = self.params.get(name, usual)
        if text not in offered:
            said = _('The view asks for {name} "{value}", but there is only: {what}.')
            raise ExportError(said.format(name=name, value=text[:20], what=", ".join(offered)))
        return text


def shot_of(trace: Trace, params: Mapping[str, str]) -> Shot:
    """The picture that an address asks for. Raises ExportError for what the trace has not."""
    asked = Asked(params)
    if not trace.kinds:
        raise ExportError(_("This model has no attention that could be drawn."))
    usual = "cross" if "cross" in trace.kinds else trace.kinds[0]
    kind = cast(Kind, asked.choice("kind", usual, trace.kinds))
    layers, heads, queries, keys = trace.weights(kind).shape
    flag = ("true", "false")
    also = [word for word in params.get("also", "").split(",") if word]
    column = asked.number("column", 0, 0, keys)
    head = asked.number("head", 1, 1, heads) - 1
    return Shot(
        trace,
        kind,
        asked.number("layer", 1, 1, layers) - 1,
        None if asked.choice("mean", "false", flag) == "true" else head,
        asked.number("row", 1, 1, queries) - 1,
        column - 1 if column else None,
        cast(Drawing, asked.choice("drawing", "map", DRAWINGS)),
        asked.choice("values", "false", flag) == "true",
        asked.number("faint", 3, 0, 100) / 100,
        tuple(Asked({"also": word}).number("also", 1, 1, heads) - 1 for word in also),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where nothing was written."""
    parser = argparse.ArgumentParser(prog="python -m viz.export", description=__doc__.partition("\n")[0])
    parser.add_argument("sentence", nargs="?", help="without one, the text of --view")
    parser.add_argument("--view", default="", help='what to draw: "kind=cross&layer=3&head=1", or an address')
    parser.add_argument("--out", required=True, type=Path, help="the file; its end says what is written")
    parser.add_argument("--dark", action="store_true", help="light letters on a dark ground")
    parser.add_argument("--model", help="its folder's name in assets/models")
    parser.add_argument("--target", help="a target sentence to be forced on the model")
    asked = parser.parse_args(arguments)
    try:
        where = _export(asked)
    except ExportError as error:
        print(error, file=sys.stderr)
        return 1
    print(where)
    return 0


def _export(asked: argparse.Namespace) -> Path:
    out: Path = asked.out
    form = out.suffix.lower().lstrip(".")
    if form not in FORMATS:
        said = _('Nothing is known of files that end in "{end}", only of: {known}.')
        raise ExportError(said.format(end=out.suffix, known=", ".join(FORMATS)))
    query = urlsplit(asked.view).query if "?" in asked.view else asked.view
    params = dict(parse_qsl(query, keep_blank_values=True))
    logging.disable(logging.WARNING)  # Streamlit warns that no page is being drawn
    from model.trace import TextError
    from viz import cache, view

    models = [offer.name for offer in cache.models()]
    name = asked.model or params.get("model") or cache.MODEL
    if name not in models:
        said = _("There is no model {name}, only: {models}.")
        raise ExportError(said.format(name=name[:40], models=", ".join(models)))
    text = params.get("text", "") if asked.sentence is None else asked.sentence
    target = asked.target or params.get("target") or None
    try:
        cache.ready()
        trace = cache.trace(name, text, target)
    except TextError as error:
        which = _("French") if target else _("English")
        raise ExportError(view.complain(error, which)) from error
    except cache.UnreadyError as error:
        raise ExportError(str(error)) from error
    if form in ("npz", "safetensors"):
        save(out, _whole(trace, form))  # of a model without attention too
    else:
        save(out, content(shot_of(trace, params), form, "dark" if asked.dark else None))
    return out


if __name__ == "__main__":
    sys.exit(main())
