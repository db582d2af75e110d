"""Short scripts end cleanly, every time: one training step on a virtual card, a hundred times over.

    python bench/teardown.py [TIMES] [AT_ONCE]

A program that has used autograd's threads and cuDNN ends while these are still there; a crash on that
way out would be seen in a few of a hundred runs only.  Ends with status 1 if a single run went wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vramscope.cards import find_card, outside_of
from vramscope.virtual.launch import virtual_machine

SCRIPT = Path(__file__).parent.parent / "tests" / "programs" / "scripts" / "short.py"


def end_of(_: int) -> str:
    """How one run ended: "clean", or its status and the last line of its stderr."""
    card = find_card("rtx-3090")
    with virtual_machine(card, outside=outside_of(card), steps=None, environment=os.environ) as (machine, variables):
        ran = subprocess.run([sys.executable, SCRIPT], env=variables, capture_output=True, text=True, timeout=120, check=False)
        ends = [entry["how"] for entry in machine.journal().of("end")]
    if ran.returncode == 0 and ran.stdout == "done\n" and not ran.stderr and ends == ["finished"]:
        return "clean"
    return f"status {ran.returncode}, end {ends}, stdout {ran.stdout!r}, stderr {ran.stderr.strip()[-200:]!r}"


def main(times: int = 100, at_once: int = 2) -> int:
    began, clean = time.monotonic(), 0
    with ThreadPoolExecutor(at_once) as pool:
        for n, how in enumerate(pool.map(end_of, range(times)), start=1):
            clean += how == "clean"
            if how != "clean":
                print(f"run {n}: {how}", flush=True)
    print(f"{clean} of {times} ended cleanly, in {time.monotonic() - began:.0f} s")
    return int(clean != times)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
