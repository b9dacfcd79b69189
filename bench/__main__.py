"""Every performance figure of the README, measured here: `python -m bench`, or some parts of it by name.

Exits with 1 where a figure is not what it must be. `bench.classroom` is a command of its own.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import app, computing, stage
from bench.browser import found_browser
from bench.timing import Result, machine, markdown, plain, report

PARTS: dict[str, Callable[[bool], list[Result]]] = {
    "model": computing.measure,
    "stage": stage.measure,
    "app": app.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="model, stage, app; all by default")
    parser.add_argument("--quick", action="store_true", help="few repeats: a look, no figures to state")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write everything there, too")
    parser.add_argument("--readme", action="store_true", help="print the table as the README has it")
    chosen = parser.parse_args()
    facts, results, start = machine(), [], time.monotonic()
    for part in chosen.parts or PARTS:
        if part != "model" and found_browser() is None:
            print(f"{part}: no Chromium found, left out", file=sys.stderr)
            continue
        found = PARTS[part](chosen.quick)
        print(plain(found), file=sys.stderr if chosen.readme else sys.stdout, flush=True)
        results += found
    facts["minutes"] = round((time.monotonic() - start) / 60, 1)
    if chosen.json:
        chosen.json.write_text(json.dumps(report(results, facts), indent=1) + "\n", encoding="utf-8")
    if chosen.readme:
        print(markdown(results))
    print("; ".join(f"{name}: {value}" for name, value in facts.items()), file=sys.stderr)
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
