"""How fast many cells are: warm ones against cold ones in one run, cells per second, and what it takes of the host."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path

from vramscope.jobs.facts import CLASSIFICATION, Facts
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.write import settled, write_program
from vramscope.planning import executors
from vramscope.planning.carry import carry_out
from vramscope.planning.cell import Cell
from vramscope.planning.running import run_cell
from vramscope.planning.store import Store

FACTS = Facts((CLASSIFICATION,), "ResNet", image=224, classes=1000, layers={"Conv2d": 53, "Linear": 1})
MATRIX = {
    "precision": ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16"),
    "tune": ("full", "freeze:0.9"),
    "batch": ("16", "32", "64", "128", "256", "512"),
}
CARD = "rtx-3090"


def cell(turned: dict[str, str]) -> Cell:
    work = settled(parse_source("timm/resnet50"), recipe_of(turned), FACTS)
    return Cell(write_program(work).render(), "resnet50", CARD, ("torch", "torchvision", "timm"))


def matrix() -> list[Cell]:
    return [cell(dict(zip(MATRIX, chosen, strict=True))) for chosen in product(*MATRIX.values())]


def warm_against_cold(rounds: int) -> dict[str, float]:
    """The same program in turn: as `vramscope predict` runs it, and as a cell with its server up."""
    one = cell({"precision": "amp-fp16", "batch": "64"})
    run_cell(one)
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "resnet50.py"
        script.write_text(one.program)
        for _ in range(rounds):
            cold.append(
                seconds_of(
                    [
                        sys.executable,
                        "-m",
                        "vramscope",
                        "predict",
                        "--gpu",
                        CARD,
                        "--steps",
                        "all",
                        str(script),
                    ]
                )
            )
            warm.append(run_cell(one).result.seconds)
    ratio = statistics.median(cold) / statistics.median(warm)
    return {"cold_s": statistics.median(cold), "warm_s": statistics.median(warm), "cold_per_warm": ratio}


def seconds_of(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def whole_matrix(jobs: int) -> dict[str, float]:
    """All cells into a file, and then again from it; the libraries' import is in it if nothing has run before."""
    cells = matrix()
    with tempfile.TemporaryDirectory() as folder, Watch() as watch:
        path, began = Path(folder) / "plan.db", time.perf_counter()
        with Store(path) as store, executors.local(jobs) as executor:
            found = carry_out(cells, executor, store)
        first, began = time.perf_counter() - began, time.perf_counter()
        with Store(path) as store, executors.local(jobs) as executor:
            assert carry_out(cells, executor, store) == found
        again, size = time.perf_counter() - began, path.stat().st_size
    assert all(each.result.verdict in ("fits", "does not fit") for each in found)
    return {
        "cells": len(cells),
        "seconds": first,
        "cells_per_s": len(cells) / first,
        "again_s": again,
        "file_mb": size / 1e6,
        "peak_pss_mb": watch.peak_bytes / 1e6,
    }


class Watch:
    """The largest sum of what this process and all below it hold of the host's memory (PSS), looked at while it goes."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.25):
            self.peak_bytes = max(self.peak_bytes, sum(map(pss_bytes, family(os.getpid()))))


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [
                each for child in (task / "children").read_text().split() for each in family(int(child))
            ]
    except OSError:  # it has just ended
        pass
    return found


def pss_bytes(pid: int) -> int:
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    results = {
        f"ResNet-50, {args.jobs} jobs, with the libraries' import": whole_matrix(args.jobs),
        "a cell of ResNet-50, AMP, batch 64": warm_against_cold(args.rounds),
    }
    for name, figures in results.items():
        print(f"{name}: " + ", ".join(f"{key} {value:.2f}" for key, value in figures.items()))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
