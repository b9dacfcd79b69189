"""Plant faults one at a time in a copy of the project, and see that its tests catch every one.

    python -m tests.seeded                      all of them
    python -m tests.seeded --only mask-1e4      some
    python -m tests.seeded --list

First the guards run without any fault: a test that fails then has caught nothing afterwards. Ends with 1
where a fault was missed, broke off or no longer applies. The table is Markdown.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.seeded.faults import FAULTS
from tests.seeded.planting import Fault, Outcome, attempt, copy, failed, files, run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--jobs", type=int, default=2, help="copies of the project that work side by side")
    parser.add_argument("--list", action="store_true", help="name the faults and their guards")
    parser.add_argument("--faults-only", action="store_true", help="leave out the run without a fault")
    asked = parser.parse_args()
    faults = [fault for fault in FAULTS if not asked.only or fault.name in asked.only]
    if asked.list:
        for fault in faults:
            print(f"{fault.name}: {fault.path}, guarded by {' '.join(fault.guards)}")
        return 0
    began, names = time.monotonic(), files()
    with tempfile.TemporaryDirectory(prefix="seeded-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(asked.jobs):
            trees.put(copy(Path(folder, str(number)), names))

        def sound(guards: list[str]) -> list[tuple[str, str]]:
            tree = trees.get()
            status, said, seconds = run(tree, guards, first=False)
            trees.put(tree)
            found = failed(said)
            if status not in (0, 1) or (status and not found):
                found.append((" ".join(guards), said.strip()[-400:]))
            print(f"without a fault: {len(guards)} guards, {seconds:.0f} s", file=sys.stderr, flush=True)
            return found

        def one(fault: Fault) -> Outcome:
            tree = trees.get()
            outcome = attempt(fault, tree)
            trees.put(tree)
            print(f"{outcome.how:7} {outcome.seconds:4.0f} s  {fault.name}", file=sys.stderr, flush=True)
            return outcome

        bad = 0
        with ThreadPoolExecutor(asked.jobs) as pool:
            clean = [] if asked.faults_only else list(pool.map(sound, _shared(faults, asked.jobs)))
            unsound = dict(pair for part in clean for pair in part)
            print("| fault | in | | s | first test that fails | it says |\n|---|---|---|---:|---|---|")
            for fault, outcome in zip(faults, pool.map(one, faults), strict=True):
                how = "unsound" if outcome.test in unsound else outcome.how
                bad += how != "caught"
                row = (fault.name, fault.path, how, f"{outcome.seconds:.0f}", outcome.test, outcome.said[:90])
                print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |", flush=True)
    for test, said in unsound.items():
        print(f"\nfails without a fault: {test}: {said}")
    print(f"\n{len(faults) - bad} of {len(faults)} faults caught, {time.monotonic() - began:.0f} s")
    return 1 if bad or unsound else 0


def _shared(faults: list[Fault], jobs: int) -> list[list[str]]:
    """Every guard once, files kept together, shared out among the jobs."""
    guards = sorted({guard for fault in faults for guard in fault.guards})
    # A test that is named beside its whole file would run twice.
    guards = [guard for guard in guards if "::" not in guard or guard.partition("::")[0] not in guards]
    by_file: dict[str, list[str]] = {}
    for guard in guards:
        by_file.setdefault(guard.partition("::")[0], []).append(guard)
    parts: list[list[str]] = [[] for _job in range(min(jobs, len(by_file)))]
    for group in sorted(
        by_file.values(), key=lambda group: ("browser" in group[0], len(group)), reverse=True
    ):
        min(parts, key=len).extend(group)
    return parts


if __name__ == "__main__":
    sys.exit(main())
