"""The example notebook runs, shows what it says it shows, and is kept without its outputs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
RUN = """
import ast, json, sys

space = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] != "code":
        continue
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, sys.argv[1], "exec"), space)
    shown = eval(compile(ast.Expression(last.value), sys.argv[1], "eval"), space) if last else None
    print("SHOWN", type(shown).__name__, shown if isinstance(shown, (tuple, bool)) else "", bool(shown))
assert "streamlit" not in sys.modules
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_the_notebook_runs_from_its_folder_without_streamlit() -> None:
    """Cell by cell in one space of names, as a kernel runs them."""
    path = ROOT / "examples" / "attention.ipynb"
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], cwd=path.parent, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    shown = [line.split() for line in run.stdout.splitlines() if line.startswith("SHOWN")]
    assert [each[1] for each in shown] == ["tuple", "Figure", "Figure", "Figure", "Drawn", "bool", "Drawn"]
    assert shown[5][2] == "True"
    assert "headlight-decoder-layer-2-head-1-before-after-i-am-a-student.svg" in run.stdout
    assert "Head 1 of layer 3, working on" in run.stdout
