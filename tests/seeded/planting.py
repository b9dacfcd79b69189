"""Plants one fault in a copy of the project and lets the tests that guard against it run there."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from compileall import compile_dir
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Literal

ROOT = Path(__file__).parent.parent.parent
MODELS = "assets/models/"
HUNG = 400  # seconds after which guards that do not end are ended


class StaleError(ValueError):
    """A fault that no longer applies: the text that it alters is not there exactly once."""


@dataclass(frozen=True)
class Fault:
    """One mistake that somebody could make: `old` in the file `path` becomes `new`."""

    name: str
    path: str
    old: str
    new: str
    guards: tuple[str, ...]  # arguments of pytest: the fewest tests that must fail

    def planted(self, text: str) -> str:
        """The file with the fault in it. Raises StaleError."""
        count = text.count(self.old)
        if count != 1:
            raise StaleError(f"{self.name}: {self.path} holds what it alters {count} times: {self.old!r}")
        if self.old == self.new:
            raise StaleError(f"{self.name} alters nothing")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    """What the guards said. `how` is "caught" only where a test failed; one that broke off is "broken"."""

    how: Literal["caught", "missed", "broken", "stale"]
    test: str  # the first that failed
    said: str  # by it, or by pytest
    seconds: float


def files() -> list[str]:
    """What belongs to the project: tracked, or not yet and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def copy(to: Path, names: Iterable[str]) -> Path:
    """A copy of these files of the project; nothing in it leads back to the working tree.

    Its modules are compiled, each under the digest of its text: one that holds a fault is compiled anew.
    """
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
    for package in ("model", "viz"):
        compile_dir(to / package, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return to


@contextmanager
def planted(fault: Fault, tree: Path) -> Iterator[None]:
    """The fault stands in the copy `tree` until the block is left. Raises StaleError."""
    if tree.resolve() == ROOT.resolve():
        raise ValueError("a fault is never planted in the working tree")
    file = tree / fault.path
    whole = file.read_bytes()
    wrong = fault.planted(whole.decode("utf-8")).encode("utf-8")
    try:
        file.write_bytes(wrong)
        yield
    finally:
        file.write_bytes(whole)


def run(tree: Path, guards: Sequence[str], first: bool = True) -> tuple[int, str, float]:
    """Run tests in a copy: pytest's status, what it said, and seconds. `first` stops at a failure."""
    # No bytecode is written: that of a planted file could outlive it, since both may be as long and as old.
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))},
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "400",
        "HEADLIGHT_BROWSER": "required",
    }
    options = ["--tb=no", "-q", "-rfE", "-p", "no:cacheprovider", *(["-x"] if first else [])]
    command = [sys.executable, "-m", "pytest", *options, *guards]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=HUNG
        )
        status, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        status, said = -1, f"not done after {HUNG} s"
    return status, said, time.monotonic() - began


_FAILED = re.compile(r"^FAILED (\S+?::\S+.*?)(?: - (.*))?$", re.MULTILINE)
_BROKEN = re.compile(r"^(?:ERROR (.+)|E  +(.+)|(not done .*)|(.*no tests ran.*))$", re.MULTILINE)


def failed(said: str) -> list[tuple[str, str]]:
    """Every test that failed, and in how many words."""
    return [(test, words or "") for test, words in _FAILED.findall(said)]


def attempt(fault: Fault, tree: Path) -> Outcome:
    """Plant a fault in the copy `tree`, run its guards there, and take it out again."""
    try:
        with planted(fault, tree):
            status, said, seconds = run(tree, fault.guards)
    except StaleError as error:
        return Outcome("stale", "", str(error), 0)
    found = failed(said)
    if status == 1 and found:
        return Outcome("caught", *found[0], seconds)
    if status == 0:
        return Outcome("missed", "", "", seconds)
    broken = _BROKEN.search(said)
    return Outcome("broken", "", broken[0] if broken else said.strip()[-200:], seconds)
