"""Imports point one way, and nothing unsafe is reached for: the shape of the house is a test."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted([ROOT / "app.py", *ROOT.glob("model/**/*.py"), *ROOT.glob("viz/**/*.py")])
SCREEN = {"viz", "streamlit", "plotly", "pandas"}
BANNED = {
    "model/**/*.py": SCREEN,
    "model/trace.py": {"torch", "safetensors", "tokenizers"},
    "model/heads.py": {"torch", "safetensors", "tokenizers"},
    "model/words.py": {"torch", "safetensors", "tokenizers"},
    "viz/**/*.py": {"torch", "tokenizers", "safetensors"},
    "viz/figures/*.py": {"streamlit"},
    "viz/svg/*.py": {"streamlit", "plotly"},
    "viz/standalone.py": {"streamlit", "plotly"},
    "viz/tables.py": {"streamlit"},
    "viz/reading.py": {"streamlit", "plotly"},
    "viz/theme.py": {"streamlit", "plotly", "model"},
    "viz/text.py": {"streamlit", "plotly", "model"},
    "viz/pages/**/*.py": {"plotly"},
    "viz/cells.py": {"streamlit", "plotly", "model"},
}

READ_OFF = {"model.trace", "model.heads", "model.words", "model.files"}  # a trace, what is read off it


def imported(path: Path) -> Iterator[str]:
    """The full names of what a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "model":
            yield from (f"model.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize(("where", "banned"), BANNED.items())
def test_imports_point_one_way(where: str, banned: set[str]) -> None:
    paths = list(ROOT.glob(where))
    assert paths
    for path in paths:
        assert banned.isdisjoint(name.partition(".")[0] for name in imported(path)), path


def test_of_viz_only_the_cache_knows_more_of_the_model_than_its_trace_and_what_is_read_off_it() -> None:
    for path in ROOT.glob("viz/**/*.py"):
        names = {name for name in imported(path) if name.partition(".")[0] == "model"}
        assert names <= READ_OFF or path.name == "cache.py", (path, names)


def test_pages_do_not_import_pages() -> None:
    for path in ROOT.glob("viz/pages/*.py"):
        assert path.name == "__init__.py" or "viz.pages" not in set(imported(path)), path


@pytest.mark.parametrize("path", FILES, ids=str)
def test_nothing_unsafe_is_reached_for(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert {"pickle", "marshal", "shelve", "dill"}.isdisjoint(imported(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"eval", "exec", "torch.load", "st.html", "st.iframe"}, called
            assert "unsafe_allow_html" not in {keyword.arg for keyword in node.keywords}


def test_scripts_put_text_on_the_page_as_text_and_load_nothing() -> None:
    scripts = list((ROOT / "assets" / "component").glob("**/*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        for risky in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "import(",
            "fetch(",
        ):
            assert risky not in text, (script, risky)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("plain http", ""), script


def test_a_trace_can_be_read_without_torch() -> None:
    code = "import sys, viz.figures, viz.tables; assert not {'torch', 'streamlit'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
