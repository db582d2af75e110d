"""What the fuzzing scripts share: cases by number, bounded in time and memory, and what became of them."""

from __future__ import annotations

import argparse
import collections
import resource
import signal
import time
import traceback
from collections.abc import Callable

SECONDS = 10
MOST_BYTES = 8 << 30


def arguments(description: str | None) -> argparse.ArgumentParser:
    """--cases and --first."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    return parser


def too_long(_number: int, _frame: object) -> None:
    raise TimeoutError(f"it took longer than {SECONDS} s")


def fuzz(first: int, cases: int, make: Callable[[int], bytes], outcome: Callable[[int, bytes], str]) -> int:
    """Makes each case and asks what becomes of it, in a word; 1 if anything was raised, 0 if not."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, too_long)
    outcomes: collections.Counter[str] = collections.Counter()
    slowest, began = (0.0, 0), time.perf_counter()
    for seed in range(first, first + cases):
        data = make(seed)
        start = time.perf_counter()
        signal.alarm(SECONDS)
        try:
            outcomes[outcome(seed, data)] += 1
        except BaseException:
            outcomes["failed"] += 1
            print(f"case {seed}:\n{traceback.format_exc()}")
        signal.alarm(0)
        slowest = max(slowest, (time.perf_counter() - start, seed))
    told = ", ".join(f"{count} {word}" for word, count in outcomes.most_common())
    print(
        f"{cases} files in {time.perf_counter() - began:.0f} s: {told}; slowest {slowest[0]:.2f} s (case {slowest[1]})"
    )
    return 1 if outcomes["failed"] else 0
