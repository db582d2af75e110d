"""timm's published brackets: of each model a batch that ran on an RTX 3090 and the next one that did not.

`fit` searches for the largest batch with the closest recipe; it is right if it lies between the two.  The cases are
not part of the project: they lie in a folder ``shared/truth`` beside it (--truth names another)."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope.cards import find_card, outside_of
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.work import Work
from vramscope.jobs.write import objection, settled
from vramscope.planning.facts import facts_of
from vramscope.planning.fit import fit
from vramscope.planning.limits import limits
from vramscope.planning.points import Request, cell_of
from vramscope.planning.result import Result
from vramscope.planning.running import run_cell
from vramscope.units import MIB

RECIPE = {
    "precision": "amp-fp16",
    "optimizer": "momentum",
    "zero-grad": "zero",
    "cudnn-benchmark": "on",
    "attention": "eager",
}
"""What the benchmark does, in the nearest knobs.  It has no GradScaler, but Nesterov's momentum: some more temporaries."""


@dataclass(frozen=True)
class Bracket:
    """A model, and two batches of which one ran."""

    model: str
    channels_last: bool
    image: int
    fits: int
    fails: int
    gpu: str
    limit_bytes: int
    """What was left beside the context."""

    @property
    def name(self) -> str:
        return f"{self.model}-{'nhwc' if self.channels_last else 'nchw'}"


def brackets(truth: Path) -> Iterator[Bracket]:
    """Joins the cases that ran with those that did not."""
    cases = [each for each in json.loads((truth / "cases.json").read_text())["cases"] if "limit_mib" in each]
    ran = {
        _job(case): case for case in cases if case["family"] == "timm-brackets" and case["expect"] == "fits"
    }
    for case in cases:
        if case["family"] == "timm-brackets" and case["expect"] == "oom":
            model, _, batch, _, size, *last = case["args"]
            lower = int(ran[_job(case)]["args"][2])
            limit = int(case["limit_mib"] * MIB)
            yield Bracket(model, bool(last), int(size), lower, int(batch), case["gpu"], limit)


def _job(case: dict[str, Any]) -> tuple[str, ...]:
    return tuple(word for index, word in enumerate(case["args"]) if index != 2)


def work_of(bracket: Bracket) -> Work:
    """Its program; attention is written out where the model has a choice."""
    source = parse_source(f"timm/{bracket.model}")
    facts = facts_of(source)
    layout = {"channels-last": "on"} if bracket.channels_last else {}
    recipe = recipe_of({**RECIPE, **layout, "image": str(bracket.image)})
    work = settled(source, recipe, facts)
    if objection(work) is not None:
        work = settled(source, recipe.having({"attention": "sdpa"}), facts)
    return work


def search(bracket: Bracket) -> dict[str, Any]:
    """The largest batch, how many runs that took and what was said about it."""
    began = time.monotonic()
    work = work_of(bracket)
    memory = bracket.limit_bytes + outside_of(find_card(bracket.gpu)).bytes
    request = Request(work.source, cards=(bracket.gpu,), memory_bytes=memory)

    def run(batch: int, followed: bool) -> Result:
        tried = Work(work.source, work.recipe.having({"batch": str(batch)}), work.facts)
        return run_cell(cell_of(tried, bracket.gpu, request, history=followed)).result

    start, least, most, _ = limits("batch", work)
    with ThreadPoolExecutor(2) as pool:
        found = fit(run, start=start, least=least, most=most, pool=pool, knob="batch", card=bracket.gpu)
    largest = found.largest or 0
    return {
        "name": bracket.name,
        "published": [bracket.fits, bracket.fails],
        "largest": largest,
        "inside": bracket.fits <= largest < bracket.fails,
        "off": _off(largest, bracket),
        "runs": len(found.tried),
        "seconds": round(time.monotonic() - began, 1),
        "note": found.note,
    }


def _off(largest: int, bracket: Bracket) -> float:
    """How far beyond the bracket's end the answer is, as a share of it; 0 inside."""
    if largest < bracket.fits:
        return round(largest / bracket.fits - 1, 4)
    return round(max(0.0, (largest + 1) / bracket.fails - 1), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", type=Path, default=Path(__file__).parents[2] / "shared" / "truth")
    parser.add_argument("--models", nargs="*", default=["*"], help="patterns of model-layout")
    parser.add_argument("--json", type=Path, help="write everything here")
    args = parser.parse_args()
    if not args.truth.is_dir():
        sys.exit(f"there are no cases in {args.truth}; name their folder with --truth")
    rows = []
    for bracket in brackets(args.truth):
        if any(fnmatch.fnmatch(bracket.name, pattern) for pattern in args.models):
            rows.append(row := search(bracket))
            low, high = row["published"]
            verdict = "inside" if row["inside"] else f"OUTSIDE by {row['off']:+.1%}"
            print(
                f"{row['name']:44s} published {low:4d} to {high:4d}  found {row['largest']:4d}  {verdict:20s}"
                f" {row['runs']:3d} values {row['seconds']:5.1f} s  {row['note']}",
                flush=True,
            )
    inside = sum(row["inside"] for row in rows)
    print(f"inside: {inside} of {len(rows)} ({inside / max(len(rows), 1):.0%})")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
