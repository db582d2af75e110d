"""plan/carry.py: many cells on an executor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiny_cells import tiny_cell
from vramscope.errors import RunError, TorchError
from vramscope.planning.carry import carry_out
from vramscope.planning.cell import Cell
from vramscope.planning.result import FAILED, FITS, Outcome, Result
from vramscope.planning.store import Store

CELLS = [tiny_cell(rows) for rows in (1, 2, 1, 3)]


class At:
    """An executor that does at once what it is told instead of running a cell."""

    def __init__(self, does: Callable[[Cell], Outcome]) -> None:
        self.does = does
        self.asked: list[Cell] = []

    def submit(self, function: object, cell: Cell, limit_s: float | None) -> Future[Outcome]:
        self.asked.append(cell)
        future: Future[Outcome] = Future()
        try:
            future.set_result(self.does(cell))
        except BaseException as error:
            future.set_exception(error)
        return future


def fitting(cell: Cell) -> Outcome:
    return Outcome(Result(FITS, cell.capacity_bytes, notes=(cell.key,)), b"run")


def carry(
    does: Callable[[Cell], Outcome], store: Store, cells: list[Cell] = CELLS
) -> tuple[list[Outcome], At]:
    executor = At(does)
    return carry_out(cells, executor, store), executor  # type: ignore[arg-type]


def test_each_cell_is_run_once_and_all_have_their_outcome():
    with Store() as store:
        told: list[tuple[int, str]] = []
        executor = At(fitting)
        found = carry_out(
            CELLS, executor, store, lambda index, each: told.append((index, each.result.notes[0]))
        )  # type: ignore[arg-type]

        assert [each.result.notes[0] for each in found] == [cell.key for cell in CELLS]
        assert executor.asked == [CELLS[0], CELLS[1], CELLS[3]]
        assert sorted(told) == [(index, cell.key) for index, cell in enumerate(CELLS)]
        assert len(store) == 3


def test_what_the_store_knows_is_not_run():
    with Store() as store:
        before, _ = carry(fitting, store)
        again, executor = carry(fitting, store)

        assert executor.asked == []
        assert again == before


@pytest.mark.parametrize(
    "error", [BrokenExecutor("a worker"), ConnectionResetError(), type("KilledWorker", (Exception,), {})()]
)
def test_a_cell_whose_worker_is_lost_is_tried_once_more(error: Exception):
    lost: list[str] = []

    def losing(cell: Cell) -> Outcome:
        if lost.count(cell.key) < (2 if cell == CELLS[1] else 1):
            lost.append(cell.key)
            raise error
        return fitting(cell)

    with Store() as store:
        found, executor = carry(losing, store)

        assert [each.result.verdict for each in found] == [FITS, FAILED, FITS, FITS]
        assert "lost, twice" in found[1].result.why
        assert len(executor.asked) == 6
        assert len(store) == 2


def test_a_cell_that_cannot_be_read_fails_and_the_rest_goes_on():
    def torn(cell: Cell) -> Outcome:
        if cell == CELLS[1]:
            raise RunError("its journal is torn\nand more")
        return fitting(cell)

    with Store() as store:
        found, _ = carry(torn, store)

        assert [each.result.verdict for each in found] == [FITS, FAILED, FITS, FITS]
        assert (
            found[1].result.why == "vramscope could not read what came of it (RunError: its journal is torn)"
        )
        assert not found[1].lasting


@pytest.mark.parametrize("error", [TorchError("no torch"), KeyboardInterrupt()])
def test_what_would_meet_every_cell_ends_it_and_what_is_done_is_kept(error: BaseException):
    def failing(cell: Cell) -> Outcome:
        if cell == CELLS[1]:
            raise error
        return fitting(cell)

    with Store() as store:
        with pytest.raises(type(error)):
            carry(failing, store)
        assert [store.knows(cell) for cell in CELLS] == [True, False, True, True]


def test_a_store_that_takes_nothing_more_ends_it(tmp_path: Path):
    with Store(tmp_path / "plan.db") as store:
        store._file.row("PRAGMA query_only = 1")
        with pytest.raises(RunError, match="readonly"):
            carry(fitting, store)


class Breaking(ThreadPoolExecutor):
    """It takes one cell and breaks."""

    def submit(self, *what: Any, **how: Any) -> Any:
        raise BrokenExecutor("out of order")


@pytest.mark.virtual
def test_cells_of_an_executor_that_takes_none_are_run_here():
    with Store() as store, Breaking(1) as executor:
        found = carry_out(CELLS[:2], executor, store)

    assert [each.result.verdict for each in found] == [FITS, FITS]


def _dying(cell: Cell) -> Outcome:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class Dying(ProcessPoolExecutor):
    """Its worker dies of the first cell."""

    def submit(self, function: Any, cell: Any, limit_s: Any) -> Any:  # type: ignore[override]
        return super().submit(_dying, cell)


@pytest.mark.virtual
def test_a_pool_whose_process_dies_is_survived():
    with Store() as store, Dying(1) as executor:
        found = carry_out(CELLS[:2], executor, store)

    assert [each.result.verdict for each in found] == [FITS, FITS]


_PLAN = """
import sys
from vramscope.planning import executors
from vramscope.planning.carry import carry_out
from vramscope.planning.store import Store
from tiny_cells import tiny_cell

def tell(index, outcome):
    print(index, flush=True)

with Store(sys.argv[1]) as store, executors.local(2) as executor:
    carry_out([tiny_cell(rows) for rows in range(1, 7)], executor, store, tell)
"""


def _plan(path: Path) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", _PLAN, str(path)],
        env={**os.environ, "PYTHONPATH": tests},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class _Counted:
    """An executor that notes which cells it was given."""

    def __init__(self, executor: Executor) -> None:
        self.executor, self.asked = executor, list[Cell]()

    def submit(self, function: Any, cell: Cell, limit_s: float | None) -> Future[Outcome]:
        self.asked.append(cell)
        return self.executor.submit(function, cell, limit_s)


@pytest.mark.virtual
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_plan_that_is_killed_goes_on_where_it_was(tmp_path: Path, number: signal.Signals):
    path = tmp_path / "plan.db"
    cells = [tiny_cell(rows) for rows in range(1, 7)]
    plan = _plan(path)
    assert plan.stdout is not None
    assert plan.stderr is not None
    told = [plan.stdout.readline() for _ in range(2)]
    children = _children(plan.pid)
    plan.send_signal(number)
    told += plan.stdout.readlines()
    complaint = plan.stderr.read()
    plan.wait(20)
    plan.stdout.close()
    plan.stderr.close()

    assert children
    assert any(
        time.sleep(0.02) or not any(Path(f"/proc/{pid}").exists() for pid in children) for _ in range(500)
    )
    with Store(path) as store, ThreadPoolExecutor(2) as executor:
        known = [store.knows(cell) for cell in cells]
        assert all(known[int(line)] for line in told)
        counted = _Counted(executor)
        found = carry_out(cells, counted, store)  # type: ignore[arg-type]

        assert plan.returncode == (-number), complaint
        assert sum(known) < 6
        assert counted.asked == [cell for cell, done in zip(cells, known, strict=True) if not done]
        assert [each.result.verdict for each in found] == [FITS] * 6
        assert len(store) == 6
    with Store() as fresh, ThreadPoolExecutor(2) as executor:
        assert _without_time(carry_out(cells[:1], executor, fresh)) == _without_time(found[:1])


def _children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


def _without_time(outcomes: list[Outcome]) -> list[Result]:
    return [replace(each.result, seconds=0.0) for each in outcomes]
