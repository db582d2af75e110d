"""A run of a million events: how large its file is, and how long saving, loading, each analysis and each view take.

`--irregular` makes every step another one, as with inputs of changing lengths: nothing repeats for the file to be small."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from everything import FILES, OF_A_RUN, OF_A_TRACE  # noqa: E402
from million import million_run  # noqa: E402
from vramscope.run.curves import allocated_curve, category_curves, reserved_curve  # noqa: E402
from vramscope.run.run import Run  # noqa: E402
from vramscope.run.store import load_run, save_run  # noqa: E402

ALLOWED = {"save": 3.0, "load": 1.0}
"""Seconds; an analysis or a view may take 2, a file that is exported as long as it needs."""
ALLOWED_BYTES = 30_000_000


def irregular(run: Run) -> Run:
    """The same run with other sizes, stacks and modules in each step."""
    trace, chance = run.traces[0], np.random.default_rng(1)
    blocks, rows = trace.blocks, len(trace.blocks)
    slack = chance.integers(0, 512, rows)
    return replace(
        run,
        traces=(
            replace(
                trace,
                blocks=replace(
                    blocks,
                    requested_bytes=np.maximum(blocks.size_bytes - slack, 0),
                    address=blocks.address + chance.integers(0, 1 << 20, rows).astype(np.uint64) * 512,
                    stack=chance.integers(0, len(trace.tables.stacks), rows).astype(np.int32),
                    module=chance.integers(0, len(trace.tables.modules), rows).astype(np.int32),
                    name=chance.integers(0, len(trace.tables.names), rows).astype(np.int32),
                ),
            ),
        ),
    )


def measured(name: str, work: Callable[[], object], allowed: float | None) -> bool:
    """Prints how long it takes; whether that is longer than it may."""
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    over = allowed is not None and seconds > allowed
    print(f"  {name:<24}{seconds:8.3f} s{f'   allowed {allowed:.0f} s' if over else ''}")
    return over


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--irregular", action="store_true")
    args = parser.parse_args()
    run = million_run(args.events)
    run = irregular(run) if args.irregular else run
    trace = run.traces[0]
    print(f"{trace.moments:,} events, {len(trace.blocks):,} blocks, {len(trace.spans):,} spans")
    over = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.vram"
        over += measured("save", lambda: save_run(path, run), ALLOWED["save"])
        size = path.stat().st_size
        over += size > ALLOWED_BYTES
        print(f"  {'file':<24}{size / 1e6:8.3f} MB")
        over += measured("load", lambda: load_run(path), ALLOWED["load"])
    for name, work in {"check": run.check, **_curves(run)}.items():
        over += measured(name, work, 2)
    for name, show in OF_A_TRACE.items():
        over += measured(name, lambda show=show: show(run, trace), 2)  # type: ignore[misc]
    for name, tell in OF_A_RUN.items():
        over += measured(f"{name} of the run", lambda tell=tell: tell(run), 2)  # type: ignore[misc]
    for name, write in FILES.items():
        over += measured(f"to {name}", lambda write=write: write(run), None)  # type: ignore[misc]
    return 1 if over else 0


def _curves(run: Run) -> dict[str, Callable[[], object]]:
    trace = run.traces[0]
    return {
        "allocated": lambda: allocated_curve(trace),
        "reserved": lambda: reserved_curve(trace),
        "categories": lambda: category_curves(trace),
    }


if __name__ == "__main__":
    sys.exit(main())
