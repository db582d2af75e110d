"""Ten thousand snapshot files that are wrong: each ends in a refusal or in a run of which everything can be asked.

A case that takes longer than 10 seconds, or more than 8 GiB, counts as a failure like any other exception,
and so does one that calls anything: the interpreter's audit hook sees imports, files and processes."""

from __future__ import annotations

import argparse
import collections
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from everything import ask_everything  # noqa: E402
from snapshot_mutants import mutant  # noqa: E402
from vramscope.errors import RunError  # noqa: E402
from vramscope.run.snapshot import run_of  # noqa: E402
from vramscope.run.soundness import require_sound  # noqa: E402
from vramscope.run.unpickle import unpickled  # noqa: E402

SECONDS = 10
EVERY = 20
"""Of so many runs, one is asked everything: that takes far longer than the import."""
_loading = False


def watch(what: str, _details: object) -> None:
    """Loading a pickle looks up nothing and starts nothing."""
    if _loading and what.partition(".")[0] in (
        "import",
        "open",
        "subprocess",
        "os",
        "socket",
        "exec",
        "pickle",
    ):
        raise PermissionError(f"loading a snapshot did: {what}")


def too_long(_number: int, _frame: object) -> None:
    raise TimeoutError(f"it took longer than {SECONDS} s")


def outcome(data: bytes, thorough: bool) -> str:
    """What became of a file, in a word; what goes wrong is raised."""
    global _loading
    _loading = True
    try:
        value = unpickled(data, "a.pickle")
    except RunError:
        return "no plain data"
    finally:
        _loading = False
    try:
        run = run_of(value, len(data), "a.pickle")
    except RunError:
        return "refused"
    for trace in run.traces:
        require_sound(trace, "trace")
    if run.check():
        raise AssertionError(f"it does not add up: {run.check()}")
    if thorough:
        ask_everything(run)
    return "imported"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    signal.signal(signal.SIGALRM, too_long)
    sys.addaudithook(watch)
    outcomes: collections.Counter[str] = collections.Counter()
    slowest, began = (0.0, 0), time.perf_counter()
    for seed in range(args.first, args.first + args.cases):
        data = mutant(seed)
        start = time.perf_counter()
        signal.alarm(SECONDS)
        try:
            outcomes[outcome(data, seed % EVERY == 0)] += 1
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
