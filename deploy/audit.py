"""Ask the advisory database about every pinned package: `python -m deploy.audit`, or `make audit`.

Exit 0: each was looked up and none is known to be vulnerable. 1: some are, and which. 2: not audited, because
the database could not be asked, or did not know of a fault that it must know of. Silence is never "clean".
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.lock import LOCK, ROOT, blocks

PIP_AUDIT = "pip-audit==2.10.1"
CANARY = "jinja2==2.10"  # known to be vulnerable (CVE-2019-10906): who does not say so knows nothing
Ask = Callable[[Sequence[str]], str]


class UnauditedError(RuntimeError):
    """Nobody was asked; says why."""


def asked(pins: Sequence[str]) -> str:
    """What pip-audit says of `pins` in JSON. Raises UnauditedError."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
        command = [sys.executable, "-m", "uv", "tool", "run", "--from", PIP_AUDIT, "pip-audit", "--strict"]
        command += ["--no-deps", "--disable-pip", "--progress-spinner=off", "-f", "json", "-r", str(file)]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnauditedError(str(error)) from error
    if not ran.stdout.strip().startswith("{"):
        raise UnauditedError((ran.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1])
    return ran.stdout


def faults(pins: Sequence[str], ask: Ask = asked) -> dict[str, list[str]]:
    """The known faults of each pin that has some. Raises UnauditedError where one pin was not looked up."""
    try:
        said = json.loads(ask(pins))["dependencies"]
        found = {f"{each['name']}=={each['version']}": [one["id"] for one in each["vulns"]] for each in said}
    except (ValueError, KeyError, TypeError) as error:
        raise UnauditedError(f"what pip-audit said cannot be read: {error!r}") from error
    if missing := {*map(_key, pins)} - {*map(_key, found)}:
        raise UnauditedError(f"not looked up: {', '.join(sorted(missing))}")
    return {pin: ids for pin, ids in found.items() if ids}


def _key(pin: str) -> str:
    return re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() + "==" + pin.partition("==")[2]


def audit(pins: Sequence[str], ask: Ask = asked) -> int:
    """Print what was found; the exit status."""
    try:
        if not faults([CANARY], ask):
            raise UnauditedError(f"the database knows nothing of {CANARY}, which is known to be vulnerable")
        found = faults(pins, ask)
    except UnauditedError as error:
        print(f"NOT AUDITED: {error}")
        return 2
    for pin, ids in sorted(found.items()):
        print(f"{pin}: {', '.join(ids)}")
    print(f"{len(pins)} packages looked up, {len(found)} with known faults")
    return 1 if found else 0


def pins() -> list[str]:
    """All that is locked, and torch, which is not."""
    found = [re.sub(r"[\s;\\].*", "", block.splitlines()[0]) for block in blocks(LOCK.read_text("utf-8"))]
    torch = re.search(r"^torch==\S+", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    return sorted({*found} | ({torch[0]} if torch else set()))


if __name__ == "__main__":
    sys.exit(audit(pins()))
