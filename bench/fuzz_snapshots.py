"""Ten thousand snapshot files that are wrong: each ends in a refusal or in a run of which everything can be asked.

A case that takes longer than 10 seconds, or more than 8 GiB, counts as a failure like any other exception,
and so does one that calls anything: the interpreter's audit hook sees imports, files and processes."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fuzzing import arguments, fuzz  # noqa: E402

from everything import ask_everything  # noqa: E402
from snapshot_mutants import mutant  # noqa: E402
from vramscope.errors import RunError  # noqa: E402
from vramscope.run.snapshot import run_of  # noqa: E402
from vramscope.run.soundness import require_sound  # noqa: E402
from vramscope.run.unpickle import unpickled  # noqa: E402

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
    args = arguments(__doc__).parse_args()
    sys.addaudithook(watch)
    return fuzz(args.first, args.cases, mutant, lambda seed, data: outcome(data, seed % EVERY == 0))


if __name__ == "__main__":
    sys.exit(main())
