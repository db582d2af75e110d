"""The searches on the virtual card."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tiny_cells import tiny_cell
from virtual_runs import run_virtual
from vramscope.cards import find_card
from vramscope.jobs.facts import Facts
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.work import Work
from vramscope.jobs.write import settled
from vramscope.planning.budget import budget
from vramscope.planning.cheapest import cheapest
from vramscope.planning.fit import fit
from vramscope.planning.plan import Fit
from vramscope.planning.points import Request, cell_of
from vramscope.planning.result import DOES_NOT_FIT, FAILED, FITS, Result
from vramscope.planning.running import run_cell
from vramscope.planning.ways import changes_for
from vramscope.units import GIB, MIB

pytestmark = [pytest.mark.virtual, pytest.mark.models]

CARD = "rtx-3060"
MEMORY = 700 * MIB
FACTS = Facts(
    tasks=("image-classification",),
    kind="ResNet",
    image=224,
    classes=1000,
    layers={"Conv2d": 20, "BatchNorm2d": 20, "Linear": 1},
    blocks=tuple(f"layer{stage}.{block}" for stage in range(1, 5) for block in range(2)),
    abilities=("set_grad_checkpointing",),
)


def resnet(batch: int, **positions: str) -> Work:
    recipe = recipe_of({"image": "64", "optimizer": "sgd", "batch": str(batch), **positions})
    return settled(parse_source("timm/resnet18"), recipe, FACTS)


def largest_batch() -> Fit:
    request = Request(parse_source("timm/resnet18"), memory_bytes=MEMORY)

    def run(batch: int, followed: bool) -> Result:
        return run_cell(cell_of(resnet(batch), CARD, request, history=followed)).result

    with ThreadPoolExecutor(2) as pool:
        return fit(run, start=8, least=1, most=1 << 20, pool=pool)


def status_of(batch: int) -> str:
    """How the program ends that `--emit` would write, in a process of its own."""
    program = cell_of(resnet(batch), CARD, Request(parse_source("timm/resnet18"))).program
    ran = run_virtual(program, CARD, memory_bytes=MEMORY)
    return "ends" if ran.returncode == 0 else "no memory" if "OutOfMemoryError" in ran.stderr else ran.stderr


def test_the_proof_holds_for_the_programs_themselves():
    found = largest_batch()

    assert found.largest is not None
    assert found.fails is not None
    assert found.fails.failure is not None
    assert found.fails.failure.module
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(status_of, (found.largest, found.largest + 1)))
    assert ended == ["ends", "no memory"]


def test_a_margin_stays_free_at_the_answer_and_would_not_at_the_next():
    margin = 100 * MIB

    def run(thousands: int, followed: bool) -> Result:
        cell = tiny_cell(1000 * thousands, memory_bytes=MEMORY, used_bytes=margin, history=followed)
        return run_cell(cell).result

    found = fit(run, start=100, least=1, most=1 << 20, margin_bytes=margin)

    assert found.ends is not None
    assert found.ends.process_total_bytes is not None
    assert found.ends.process_total_bytes <= MEMORY - margin
    assert found.fails is not None
    assert found.fails.verdict == DOES_NOT_FIT
    assert found.fails.process_total_bytes is not None
    assert found.fails.process_total_bytes > MEMORY - margin


def test_the_smallest_card_is_told_from_the_next_smaller_one_and_old_ones_are_passed_over():
    names = ("v100-16gb", "a10g", "l40", "rtx-3080", "rtx-3060", "rtx-3070")

    def run(card: str) -> Result:
        return run_cell(tiny_cell(28_000_000, card=card)).result

    found = cheapest(run, [find_card(name) for name in names])

    assert found.card == "a10g"
    assert {each.card: each.result.verdict for each in found.tried} == {
        "rtx-3060": DOES_NOT_FIT,
        "v100-16gb": FAILED,
        "a10g": FITS,
    }


def test_the_ways_into_a_budget_really_fit_it(monkeypatch: pytest.MonkeyPatch):
    few = ("checkpoint", "precision", "micro-batch")
    monkeypatch.setattr(
        "vramscope.planning.budget.changes_for",
        lambda work: tuple(change for change in changes_for(work) if change.knob in few),
    )
    asked, room = resnet(512), int(0.7 * GIB)
    request = Request(asked.source, memory_bytes=room)

    with ThreadPoolExecutor(2) as pool:
        found = budget(
            asked,
            lambda work: run_cell(cell_of(work, CARD, request, history=False).unlimited()).result,
            lambda work, followed: run_cell(cell_of(work, CARD, request, history=followed)).result,
            budget_bytes=room,
            card=CARD,
            pool=pool,
        )

    assert found.asked.verdict == DOES_NOT_FIT
    assert found.ways
    assert all(way.result.fits and way.result.categories for way in found.ways)
    assert all((way.result.process_total_bytes or 0) <= room for way in found.ways)
