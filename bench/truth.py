"""Published measurements against predictions, case by case, beside what the bare prototype of the method gives.

The cases are not part of the project: they lie in a folder ``shared/truth`` beside it (--truth names another).
Each is a job, a card and the figures that somebody published for it; each is run by ``vramscope predict``."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from vramscope.cards import find_card, outside_of
from vramscope.units import MIB

Case = dict[str, Any]
# In these the limit is already what was left beside the context; ours is taken off again, so it is added.
WITHOUT_CONTEXT = {"timm-brackets"}


# Torch for CUDA 13 has no code for a V100, and says so; its nearest card that it has code for stands in.
STAND_INS = {"v100-16gb": "t4"}


def command(case: Case, truth: Path) -> list[str]:
    gpu = STAND_INS.get(case["gpu"], case["gpu"])
    words = [sys.executable, "-m", "vramscope", "predict", "--gpu", gpu, "--steps", "all"]
    if case.get("limit_mib") or gpu != case["gpu"]:
        limit = int(case["limit_mib"] * MIB) if case.get("limit_mib") else find_card(case["gpu"]).memory_bytes
        if case["family"] in WITHOUT_CONTEXT:
            limit += outside_of(find_card(gpu)).bytes
        words += ["--memory", str(limit)]
    return [*words, "--", str(truth / "jobs" / case["job"]), *case.get("args", [])]


def run(case: Case, truth: Path, timeout: float) -> dict[str, Any]:
    began = time.monotonic()
    child = subprocess.Popen(
        command(case, truth),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        return {"status": "timeout", "seconds": timeout}
    status = {0: "ok", 3: "oom"}.get(child.returncode, "error")
    figures = next((json.loads(line) for line in reversed(out.splitlines()) if line.startswith("{")), None)
    seconds = round(time.monotonic() - began, 1)
    message = "" if status != "error" else next(iter(re.findall(r"^\w*Error.*", err, re.M)[-1:]), err[-200:])
    return {"status": status, "seconds": seconds, "figures": figures, "message": message}


def predicted(metric: str, result: dict[str, Any], case: Case, results: dict[str, Any]) -> int | None:
    figures = result.get("figures")
    if not figures:
        return None
    if metric.startswith("stage:"):
        stages: dict[str, int] = figures.get("stages", {})
        return stages.get(metric[6:])
    if metric == "nvml_difference":
        other = results.get(case["minus"], {}).get("figures")
        return figures["max_memory_reserved"] - other["max_memory_reserved"] if other else None
    key = {"allocated_peak": "max_memory_allocated", "allocated_end": "memory_allocated"}.get(
        metric, "max_memory_reserved"
    )
    value: int = figures[key]
    return value


def compare(
    cases: list[Case], results: dict[str, Any], prototype: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    before = {(row["case"], row["metric"]): row["error"] for row in prototype["rows"]}
    before_outcomes = {row["case"]: row["got"] for row in prototype["outcomes"]}
    rows, outcomes = [], []
    for case in cases:
        result = results[case["id"]]
        if "expect" in case:
            got = {"ok": "fits"}.get(result["status"], result["status"])
            outcomes.append(
                {
                    "case": case["id"],
                    "expected": case["expect"],
                    "got": got,
                    "prototype": before_outcomes.get(case["id"]),
                }
            )
        for metric, measured in case.get("measured", {}).items():
            value = predicted(metric, result, case, results)
            row = {"case": case["id"], "family": case["family"], "grade": case["grade"], "metric": metric, "measured": measured,
                   "predicted": value, "error": None if value is None else 100 * (value - measured) / measured,
                   "prototype": before.get((case["id"], metric)), "status": result["status"]}  # fmt: skip
            rows.append(row)
    return rows, outcomes


def is_worse(row: dict[str, Any]) -> bool:
    """Worse than the prototype by more than a twentieth of a percent: one 512-byte block more or less is no verdict."""
    return row["prototype"] is not None and (
        row["error"] is None or abs(row["error"]) > abs(row["prototype"]) + 0.05
    )


def show(rows: list[dict[str, Any]], outcomes: list[dict[str, Any]], results: dict[str, Any]) -> None:
    print(
        f"{'case':38s} {'metric':24s} {'measured MiB':>12s} {'predicted':>12s} {'error %':>9s} {'prototype':>9s}"
    )
    for row in rows:
        mark = " WORSE" if is_worse(row) else ""
        value = "-" if row["predicted"] is None else f"{row['predicted'] / MIB:.1f}"
        error = row["status"] if row["error"] is None else f"{row['error']:+.2f}"
        before = "-" if row["prototype"] is None else f"{row['prototype']:+.2f}"
        print(
            f"{row['case']:38s} {row['metric']:24s} {row['measured'] / MIB:12.1f} {value:>12s} {error:>9s} {before:>9s}{mark}"
        )
    for row in outcomes:
        verdict = "right" if row["got"] == row["expected"] else "WRONG"
        print(
            f"{row['case']:52s} published {row['expected']:5s} predicted {row['got']:8s} {verdict}  prototype {row['prototype'] or '-'}"
        )
    for name, result in results.items():
        if result["status"] not in ("ok", "oom"):
            print(f"{name}: {result['status']} {result.get('message', '')}")
    summarize(rows, outcomes)


def summarize(rows: list[dict[str, Any]], outcomes: list[dict[str, Any]]) -> None:
    families = sorted({row["family"] for row in rows})
    for name in [*families, "all"]:
        errors = sorted(
            abs(r["error"]) for r in rows if name in (r["family"], "all") and r["error"] is not None
        )
        if errors:
            tail = errors[min(len(errors) - 1, round(0.9 * (len(errors) - 1)))]
            print(
                f"{name:20s} n {len(errors):3d}  median {statistics.median(errors):5.2f} %  p90 {tail:5.2f} %  max {errors[-1]:5.2f} %"
            )
    print(
        f"worse than the prototype: {sum(map(is_worse, rows))} of {sum(r['prototype'] is not None for r in rows)} rows"
    )
    if outcomes:
        print(f"outcomes right: {sum(r['got'] == r['expected'] for r in outcomes)} of {len(outcomes)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", type=Path, default=Path(__file__).parents[2] / "shared" / "truth")
    parser.add_argument("--cases", nargs="*", default=["*"], help="patterns of case ids, or family names")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--json", type=Path, help="write everything here")
    args = parser.parse_args()
    if not args.truth.is_dir():
        sys.exit(f"there are no cases in {args.truth}; name their folder with --truth")
    every = json.loads((args.truth / "cases.json").read_text())["cases"]
    chosen = [c for c in every if any(fnmatch.fnmatch(c["id"], p) or c["family"] == p for p in args.cases)]
    needed = {c["minus"] for c in chosen if "minus" in c} - {c["id"] for c in chosen}
    chosen = [c for c in every if c["id"] in needed] + chosen

    def one(case: Case) -> tuple[str, dict[str, Any]]:
        result = run(case, args.truth, args.timeout)
        print(f"{case['id']}: {result['status']} in {result['seconds']} s", file=sys.stderr, flush=True)
        return case["id"], result

    with ThreadPoolExecutor(args.jobs) as pool:
        results = dict(pool.map(one, chosen))
    prototype = json.loads((args.truth / "prototype-results.json").read_text())
    rows, outcomes = compare(chosen, results, prototype)
    show(rows, outcomes, results)
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "outcomes": outcomes, "results": results}, indent=1))
    sys.exit(any(map(is_worse, rows)))


if __name__ == "__main__":
    main()
