"""Faults planted on purpose: all still apply, a few are planted. `python -m tests.seeded` plants each."""

import ast
from pathlib import Path

import pytest

from tests.seeded.faults import FAULTS
from tests.seeded.planting import MODELS, ROOT, Fault, StaleError, attempt, copy, files, planted

BY_NAME = {fault.name: fault for fault in FAULTS}


def test_the_faults_have_names_of_their_own_and_there_are_enough() -> None:
    assert len(BY_NAME) == len(FAULTS) >= 30


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_still_applies_and_its_guards_are_there(fault: Fault) -> None:
    """What it alters stands there exactly once, is Python afterwards too, and every named test exists."""
    wrong = fault.planted((ROOT / fault.path).read_text(encoding="utf-8"))
    if fault.path.endswith(".py"):
        ast.parse(wrong)
    assert fault.guards
    for guard in fault.guards:
        file, _colons, test = guard.partition("::")
        assert (
            f"def {test}(" in (ROOT / file).read_text(encoding="utf-8") if test else (ROOT / file).is_file()
        )


def test_a_fault_that_no_longer_applies_fails_loudly(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    fault = Fault("one", "one.py", "a = 1", "a = 2", ("one.py",))
    for text in ("a = 3\n", "a = 1\na = 1\n"):
        file.write_text(text)
        with pytest.raises(StaleError, match="one"), planted(fault, tmp_path):
            pass
        assert attempt(fault, tmp_path).how == "stale"
        assert file.read_text() == text
    with pytest.raises(ValueError, match="working tree"), planted(FAULTS[0], ROOT):
        pass


def test_a_fault_is_taken_out_again_whatever_happens(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("a = 1\n")
    planting = planted(Fault("one", "one.py", "a = 1", "a = 2", ("one.py",)), tmp_path)
    planting.__enter__()
    assert file.read_text() == "a = 2\n"
    assert not planting.__exit__(KeyError, KeyError(), None)
    assert file.read_text() == "a = 1\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project without trained models, which the guards of the quick faults do not need."""
    return copy(tmp_path_factory.mktemp("seeded"), (name for name in files() if not name.startswith(MODELS)))


@pytest.mark.parametrize("name", ["mask-1e4", "sin-and-cos-swapped"])
def test_a_planted_fault_is_caught(name: str, tree: Path) -> None:
    fault = BY_NAME[name]
    assert attempt(fault, tree).how == "caught"


def test_what_is_no_fault_is_missed_and_what_does_not_run_is_not_called_caught(tree: Path) -> None:
    guards, path = ("tests/test_positions.py",), "model/positions.py"
    assert (
        attempt(Fault("a remark", path, "import math\n", "import math  # so\n", guards), tree).how == "missed"
    )
    assert (
        attempt(Fault("no Python", path, "import math\n", "import math as\n", guards), tree).how == "broken"
    )
