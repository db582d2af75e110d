"""Carries out many cells: each once, kept at once, on whatever runs them and whoever of these dies."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from vramscope.errors import RunError, VramscopeError
from vramscope.planning.cell import Cell
from vramscope.planning.result import FAILED, Outcome, Result
from vramscope.planning.running import run_cell
from vramscope.planning.store import Store

OnDone = Callable[[int, Outcome], None]
"""Called with a cell's place in the sequence and what came of it, in the caller's thread."""
_TRIES = 2
_LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "FutureLostError")
"""The names of Dask's errors for a worker that is gone; the library is not imported for them."""


def carry_out(
    cells: Sequence[Cell],
    executor: Executor,
    store: Store,
    on_done: OnDone = lambda index, outcome: None,
    limit_s: float | None = None,
) -> list[Outcome]:
    """What comes of each cell, in their order.

    Those that the store knows are not run, equal ones are run once, and each is stored as soon as it has
    ended.  A cell whose worker dies is tried once more; then it has failed.  Raises VramscopeErrors that
    would meet every cell (no torch, a full disk); whatever is raised, what has ended by then is stored."""
    work = _Work(executor, store, on_done, limit_s)
    for index, cell in enumerate(cells):
        work.places.setdefault(cell.key, []).append(index)
        work.cells[cell.key] = cell
    with work.here:
        work.carry_out()
    return [work.outcomes[cell.key] for cell in cells]


@dataclass(slots=True)
class _Work:
    """The cells by their keys, and how far each is."""

    executor: Executor
    store: Store
    on_done: OnDone
    limit_s: float | None
    cells: dict[str, Cell] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    running: dict[Future[Outcome], str] = field(default_factory=dict)
    ended: queue.SimpleQueue[Future[Outcome]] = field(default_factory=queue.SimpleQueue)
    here: ExitStack = field(default_factory=ExitStack)
    """What must be closed of an executor of our own."""

    def carry_out(self) -> None:
        """All of them."""
        unknown = [key for key, cell in self.cells.items() if not self._known(key, cell)]
        try:
            for key in unknown:
                self._submit(key)
            while self.running:
                self._take(self.ended.get())
        except BaseException:
            self._stop()
            raise

    def _known(self, key: str, cell: Cell) -> bool:
        outcome = self.store.get(cell)
        if outcome is not None:
            self._done(key, outcome)
        return outcome is not None

    def _submit(self, key: str) -> None:
        self.tries[key] = self.tries.get(key, 0) + 1
        try:
            future = self.executor.submit(run_cell, self.cells[key], self.limit_s)
        except (BrokenExecutor, RuntimeError):  # it takes no more: one after the other, in this process
            self.executor = self.here.enter_context(ThreadPoolExecutor(1))
            future = self.executor.submit(run_cell, self.cells[key], self.limit_s)
        self.running[future] = key
        future.add_done_callback(self.ended.put)

    def _take(self, future: Future[Outcome]) -> None:
        """What has come of a cell, or another try."""
        key = self.running[future]
        try:
            outcome = future.result()
        except (Exception, CancelledError) as error:
            del self.running[future]
            self._missed(key, error)
            return
        self.store.put(self.cells[key], outcome)
        del self.running[future]  # not before: Ctrl-C may come at any time
        self._done(key, outcome)

    def _missed(self, key: str, error: BaseException) -> None:
        if isinstance(error, VramscopeError) and not isinstance(error, RunError):
            raise error
        if _is_loss(error) and self.tries[key] < _TRIES:
            self._submit(key)
            return
        self._done(key, _failed(self.cells[key], error))

    def _done(self, key: str, outcome: Outcome) -> None:
        self.outcomes[key] = outcome
        for index in self.places[key]:
            self.on_done(index, outcome)

    def _stop(self) -> None:
        """Starts nothing more, and keeps what has ended meanwhile."""
        for future in self.running:
            future.cancel()
        for future, key in self.running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                self.store.put(self.cells[key], future.result())


def _is_loss(error: BaseException) -> bool:
    """Who ran the cell is gone; the cell may be innocent."""
    names: Iterable[str] = (each.__name__ for each in type(error).__mro__)
    lost = isinstance(error, (BrokenExecutor, CancelledError, ConnectionError, EOFError))
    return lost or not set(_LOST).isdisjoint(names)


def _failed(cell: Cell, error: BaseException) -> Outcome:
    said = f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
    why = (
        f"who ran it was lost, twice ({said}); is the memory there short?"
        if _is_loss(error)
        else f"vramscope could not read what came of it ({said})"
    )
    return Outcome(Result(FAILED, cell.capacity_bytes, why), lasting=False)
