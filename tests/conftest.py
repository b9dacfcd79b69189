"""Shared by the tests: invented sentences, a tokenizer, a random translator on prime sizes, one short run,
the app in a browser.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from playwright.sync_api import Browser, Page, sync_playwright
from torch import Tensor

from model import checkpoint
from model.attention import MultiHeadAttention
from model.config import Config
from model.tokenizer import Tokenizer
from model.trace import Trace
from model.training.loop import SHIP, Recipe, Run
from model.transformer import Transformer
from model.translator import Translator

ROOT = Path(__file__).parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Without these a browser without a network spends its first seconds on requests that nobody asked for.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

torch.set_num_threads(1)  # the sums of one thread come in one order, so that equal means bit for bit
settings.register_profile("headlight", max_examples=100, deadline=None, derandomize=True)
settings.load_profile("headlight")

# With L = 3, H = 2, d = 11, d_ff = 23 and V = 211, S = 7 and T = 13: no two axes of a trace are as long.
TEXT = "The cat looks at me."
FORCED = "Je suis à l'école. Avez-vous vu le chat ?"

PAIRS = """\
I am a student.	Je suis étudiant.
I am a student.	Je suis étudiante.
I am tired.	Je suis fatigué.
I am at school.	Je suis à l'école.
I love school.	J'aime l'école.
I love the cat.	J'aime le chat.
I love the dog.	J'aime le chien.
I don't know.	Je ne sais pas.
I don't love the dog.	Je n'aime pas le chien.
The cat is black.	Le chat est noir.
The dog is black.	Le chien est noir.
The cat looks at me.	Le chat me regarde.
The dog looks at me.	Le chien me regarde.
The dog looks at the cat.	Le chien regarde le chat.
The cat looks at the school.	Le chat regarde l'école.
He looks at me.	Il me regarde.
He looks at the cat.	Il regarde le chat.
He is tired.	Il est fatigué.
He is a student.	Il est étudiant.
She is tired.	Elle est fatiguée.
She is at school today.	Elle est à l'école aujourd'hui.
She doesn't know.	Elle ne sait pas.
Have you seen the cat?	Avez-vous vu le chat ?
Have you seen the dog?	Avez-vous vu le chien ?
Have you seen the school?	Avez-vous vu l'école ?
Have you seen Paris?	Avez-vous vu Paris ?
It's 8 o'clock.	Il est 8 heures.
It's 10 o'clock.	Il est 10 heures.
We are at school.	Nous sommes à l'école.
We are tired today.	Nous sommes fatigués aujourd'hui.
You're at home.	Vous êtes à la maison.
They're in Paris.	Ils sont à Paris.
What a cat!	Quel chat !
What a dog!	Quel chien !
What is it?	Qu'est-ce que c'est ?
Did you see the cat?	Vous avez vu le chat, avez-vous dit ?
Did you see the dog?	Vous avez vu le chien, avez-vous dit ?
Look at me.	Regardez-moi.
Look at the dog.	Regardez le chien.
"""


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.train((half for line in PAIRS.splitlines() for half in line.split("\t")), size=211)


@pytest.fixture(scope="session")
def translator(tokenizer: Tokenizer) -> Translator:
    return Translator("tiny", random_model(max_pieces=31, vocabulary=tokenizer.size), tokenizer)


@pytest.fixture(scope="session")
def trace(translator: Translator) -> Trace:
    return translator.trace(TEXT, FORCED)


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "pairs.txt"
    path.write_text(PAIRS, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def recipe(pairs_file: Path) -> Recipe:
    return Recipe(
        str(pairs_file),
        held_out=3,
        vocabulary=211,
        d_model=22,
        n_heads=2,
        steps=300,
        pieces=101,
        peak=0.01,
        warmup=30,
        precision="float32",
        validate_every=70,
        validate_on=2,
    )


@pytest.fixture(scope="session")
def run(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("run")
    Run(folder, recipe).train()
    return folder


@pytest.fixture(scope="session")
def trained(run: Path) -> Translator:
    return Translator("trained", *checkpoint.load(run / SHIP))


def random_model(seed: int = 0, sharp: float = 1.0, **sizes: int) -> Transformer:
    """Fresh weights in eval mode; no gain is 1 and no bias 0, so that none can be forgotten."""
    torch.manual_seed(seed)
    model = Transformer(Config(**{"n_layers": 3, "d_model": 22, "n_heads": 2, "d_ff": 23, **sizes}))
    model.eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter += 0.2 * torch.randn_like(parameter)
    model.embedding.weight *= sharp
    return model


def arrays(trace: Trace) -> dict[str, np.ndarray]:
    """Every array of a trace by its name."""
    parts = {kind: trace.stages(kind) for kind in trace.kinds}
    parts |= {"": trace, **trace.embeddings}
    parts |= {f"{kind} added": added for kind, added in trace.sublayers.items()}
    parts |= {f"{side} fed": fed for side, fed in trace.feeds.items()}
    found = {f"{name}.{f.name}": getattr(part, f.name) for name, part in parts.items() for f in fields(part)}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


def assert_same(one: Trace, other: Trace) -> None:
    """Equal word for word and bit for bit, whatever change they went through."""
    for field in fields(Trace):
        value = getattr(one, field.name)
        assert not isinstance(value, (str, bool, tuple)) or value == getattr(other, field.name), field.name
    for name, array in arrays(one).items():
        np.testing.assert_array_equal(array, arrays(other)[name], err_msg=name, strict=True)


def in_torchs_words(attention: MultiHeadAttention) -> Iterator[tuple[str, Tensor]]:
    """Our weights under the names of nn.MultiheadAttention."""
    projections = (attention.w_q, attention.w_k, attention.w_v)
    yield "in_proj_weight", torch.cat([each.weight for each in projections])
    yield "in_proj_bias", torch.cat([each.bias for each in projections])
    yield "out_proj.weight", attention.w_o.weight
    yield "out_proj.bias", attention.w_o.bias


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def served(port: int, script: str = "app.py") -> Iterator[subprocess.Popen[bytes]]:
    """The app, or another script, on a port of this machine, until the block is left."""
    command = [sys.executable, "-m", "streamlit", "run", script]
    options = [f"--server.port={port}", "--server.headless=true", "--server.address=127.0.0.1"]
    server = subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        for _attempt in range(120):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.5)
        yield server
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The app, served once for all tests."""
    port = free_port()
    with served(port):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser; `HEADLIGHT_BROWSER=required` makes a missing one a failure, else its tests are skipped."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        message = f"no browser found: looked for {', '.join(BROWSERS)}"
        (pytest.fail if os.environ.get("HEADLIGHT_BROWSER") == "required" else pytest.skip)(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A fresh page that must ask no other host, and meet no error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    page.on(
        "request", lambda request: troubles.append(request.url) if _elsewhere(request.url, address) else None
    )
    yield page
    context.close()
    assert troubles == []


def _elsewhere(url: str, address: str) -> bool:
    return url.startswith(("http:", "https:", "ws:", "wss:")) and address.split("/")[2] not in url
