"""A mask of the reader's own, as a set of blocked cells and as one line of text. Pure.

`3:1-2` closes columns 1 and 2 of row 3, `*:4` column 4 of every row; they count from 1, as the page does.
"""

import re
from collections.abc import Callable, Iterable

Cells = frozenset[tuple[int, int]]  # (query, key), counted from 0

_PART = re.compile(r"(\*|[0-9]{1,3}):(\*|[0-9]{1,3})(?:-([0-9]{1,3}))?")
_FILE = re.compile(r"headlight mask (encoder|decoder|cross)\n([0-9:*\- ]{0,20000})\n?")


def parse(text: str, rows: int, columns: int) -> tuple[Cells, list[str]]:
    """The cells named in `text` inside (rows, columns), and the words that name none."""
    cells: set[tuple[int, int]] = set()
    wrong = []
    for word in text.split():
        part = _PART.fullmatch(word)
        if part is None:
            wrong.append(word)
            continue
        queries = range(rows) if part[1] == "*" else range(int(part[1]) - 1, int(part[1]))
        first, last = (1, columns) if part[2] == "*" else (int(part[2]), int(part[3] or part[2]))
        found = {
            (q, k) for q in queries for k in range(first - 1, last) if 0 <= q < rows and 0 <= k < columns
        }
        if not found:
            wrong.append(word)
        cells |= found
    return frozenset(cells), wrong


def write(cells: Cells, rows: int, columns: int) -> str:
    """The shortest line that `parse` reads back as these cells: whole columns first, then runs in a row."""
    whole = [key for key in range(columns) if all((query, key) in cells for query in range(rows))]
    words = [_run("*", run) for run in _runs(whole)]
    for query in range(rows):
        keys = [key for key in range(columns) if (query, key) in cells and key not in whole]
        words += [_run(str(query + 1), run) for run in _runs(keys)]
    return " ".join(words)


def toggled(cells: Cells, places: Iterable[tuple[int, int]], rows: int, columns: int) -> Cells:
    """The cells after a click on each place; -1 as a query or key stands for the whole column or row.

    One place is turned over. Several, or a whole row or column, are closed if any of them is open.
    """
    picked: set[tuple[int, int]] = set()
    for query, key in places:
        queries = range(rows) if query < 0 else (query,)
        keys = range(columns) if key < 0 else (key,)
        picked |= {(q, k) for q in queries for k in keys}
    return cells - picked if picked <= cells else cells | picked


def where(rows: int, columns: int, blocked: Callable[[int, int], bool]) -> Cells:
    """The cells for which a rule holds."""
    return frozenset((q, k) for q in range(rows) for k in range(columns) if blocked(q, k))


def to_file(kind: str, text: str) -> str:
    return f"headlight mask {kind}\n{text}\n"


def from_file(content: bytes) -> tuple[str, str] | None:
    """The kind and the line of a file that `to_file` wrote; None for any other."""
    try:
        found = _FILE.fullmatch(content.decode("ascii").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        return None
    return (found[1], found[2]) if found else None


def _runs(keys: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for key in keys:
        if runs and runs[-1][1] == key - 1:
            runs[-1] = (runs[-1][0], key)
        else:
            runs.append((key, key))
    return runs


def _run(row: str, run: tuple[int, int]) -> str:
    first, last = run[0] + 1, run[1] + 1
    return f"{row}:{first}" if first == last else f"{row}:{first}-{last}"
