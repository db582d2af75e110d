"""Ten thousand run files that are wrong: each ends in a refusal or in a run of which everything can be asked.

A case that takes longer than 10 seconds, or more than 8 GiB, counts as a failure like any other exception."""

from __future__ import annotations

import argparse
import collections
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from everything import ask_everything  # noqa: E402
from mutants import mutant  # noqa: E402
from vramscope.errors import RunError  # noqa: E402
from vramscope.run.store import load_run  # noqa: E402

SECONDS = 10


def too_long(_number: int, _frame: object) -> None:
    raise TimeoutError(f"it took longer than {SECONDS} s")


def outcome(path: Path) -> str:
    """What became of a file, in a word; what goes wrong is raised."""
    try:
        run = load_run(path)
    except RunError:
        return "refused"
    ask_everything(run)
    return "sound" if not run.check() else "does not add up"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument(
        "runs", nargs="*", type=Path, help="files to change, instead of small ones made for it"
    )
    args = parser.parse_args()
    right = [path.read_bytes() for path in args.runs]
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    signal.signal(signal.SIGALRM, too_long)
    outcomes: collections.Counter[str] = collections.Counter()
    slowest, began = (0.0, 0), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.vram"
        for seed in range(args.first, args.first + args.cases):
            path.write_bytes(mutant(seed, right))
            start = time.perf_counter()
            signal.alarm(SECONDS)
            try:
                outcomes[outcome(path)] += 1
            except BaseException:
                outcomes["failed"] += 1
                print(f"case {seed}:\n{traceback.format_exc()}")
            signal.alarm(0)
            slowest = max(slowest, (time.perf_counter() - start, seed))
    told = ", ".join(f"{count} {word}" for word, count in outcomes.most_common())
    print(
        f"{args.cases} files in {time.perf_counter() - began:.0f} s: {told}; slowest {slowest[0]:.2f} s (case {slowest[1]})"
    )
    return 1 if outcomes["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
