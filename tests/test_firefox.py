"""The app in Firefox, by puppeteer-core: pages open, the stage draws, steps, links and Back work, no error.

It asks for firefox-esr, node and `npm ci --prefix tests/firefox`, and is skipped where one is missing, unless
HEADLIGHT_FIREFOX=required.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import model
from viz.pages import pages

HERE = Path(__file__).parent / "firefox"


@pytest.fixture
def firefox() -> str:
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    lacking = [
        name
        for name, found in (
            ("firefox-esr", path),
            ("node", shutil.which("node")),
            ("npm ci --prefix tests/firefox", (HERE / "node_modules").is_dir()),
        )
        if not found
    ]
    if lacking:
        stop = pytest.fail if os.environ.get("HEADLIGHT_FIREFOX") == "required" else pytest.skip
        stop(f"not here: {', '.join(lacking)}")
    return str(path)


@pytest.mark.timeout(500)
def test_the_app_runs_in_firefox(firefox: str, address: str, tmp_path: Path) -> None:
    command = ["node", str(HERE / "smoke.mjs"), firefox, address]
    home = os.environ | {"HOME": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=480, env=home, check=True)
    seen = json.loads(run.stdout)
    assert seen["troubles"] == []

    translator = model.load("en-fr")
    trace = translator.trace("The dog sees a cat.")
    assert seen["pieces"] == [*trace.source]
    weights = trace.weights("encoder")
    np.testing.assert_allclose(seen["weights"], weights[1, 2].ravel(), atol=1e-6)
    assert seen["painted"] > 20  # colours

    def asked(step: str) -> dict[str, list[str]]:
        return parse_qs(urlsplit(seen[step]["url"]).query)

    np.testing.assert_allclose(seen["stepped"]["weights"], weights[2, 4].ravel(), atol=1e-6)
    assert (asked("stepped")["kind"], asked("stepped")["head"]) == (["encoder"], ["5"])
    assert seen["back"] == {name: seen["stepped"][name] for name in ("url", "said")}
    assert asked("typed")["text"] == ["Tom sings."]
    typed = translator.trace("Tom sings.").weights("encoder")
    np.testing.assert_allclose(seen["typed"]["weights"], typed[2, 4].ravel(), atol=1e-6)

    others = {"?model=gpt", "?model=bert", "?model=rnn-attention"}
    assert {*seen["pages"]} == {"", *pages(), *others} - {"explore"}
    for path, page in seen["pages"].items():
        assert page["exceptions"] == 0, path
        assert page["sideways"] <= 0, path
        assert page["figures"] > 0, path
