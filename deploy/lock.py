"""Pin every package that the project installs, each with its hashes: `python -m deploy.lock`, or `make lock`.

What it writes, `requirements.lock`, holds for every system and for Python 3.11 to 3.13, and is installed by

    pip install --no-deps --require-hashes -r requirements.lock
    pip install --no-deps torch==VERSION      # see below

torch is left out, with the GPU libraries that only its builds ask for: they differ from machine to machine.
The lock names no index: where packages come from is for the machine to say, what they are is for the hash.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
# What differs by machine: torch, and what it alone asks for.
APART = re.compile(r"torch|triton|nvidia-.*|cuda-.*")


def compiled(*options: str) -> str:
    """What uv makes of requirement files. Raises CalledProcessError."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url", "--quiet"]
    ran = subprocess.run([*command, *options], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout


def blocks(text: str) -> list[str]:
    """The entries of a lock, each a line with its hashes."""
    return re.findall(r"^[^\s#].*(?:\n +.*)*\n", text, re.MULTILINE)


def name(block: str) -> str:
    """Whose entry this is, as registries write it."""
    found = re.match(r"[\w.-]+", block)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def pinned() -> str:
    """The whole lock."""
    entries = blocks(compiled("requirements-dev.txt")) + blocks(
        compiled("--no-deps", "requirements-models.txt")
    )
    kept = sorted({block for block in entries if not APART.fullmatch(name(block))})
    head = (
        "# Made by `make lock` from requirements*.txt: everything but torch. "
        "deploy/lock.py says how to use it.\n"
    )
    return head + "".join(kept)


if __name__ == "__main__":
    LOCK.write_text(pinned(), encoding="utf-8")
    print(f"{LOCK.name}: {len(blocks(LOCK.read_text(encoding='utf-8')))} packages")
