"""Who runs the cells: threads here, whose programs are processes of their own, or the workers of a Dask cluster.

Anything else with a `submit` like that of `concurrent.futures.Executor` does as well."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import vramscope
from vramscope.errors import MissingLibraryError, UsageError, VramscopeError
from vramscope.planning import pool
from vramscope.planning.versions import versions_here

_A_PROGRAM_BYTES = 1 << 30
"""What one cell may take of the host beside what they share; most take a third of it."""
_PATIENCE = "10s"
"""So long a scheduler may take to answer."""
_RETRIES = 2
"""A cell whose worker dies goes to another one so often."""


def default_jobs() -> int:
    """As many cells at a time as this process may use CPUs, and as the host has memory for."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = _free_bytes()
    return cpus if free is None else max(min(cpus, free // _A_PROGRAM_BYTES), 1)


def _free_bytes() -> int | None:
    """What the host can still give, as the kernel estimates it."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) << 10 if found else None


@contextmanager
def local(jobs: int) -> Iterator[Executor]:
    """Runs so many cells at a time here.

    If the block is left by an error or Ctrl-C, what still runs is ended; otherwise the processes that have
    imported the libraries stay for the next plan."""
    threads = ThreadPoolExecutor(jobs, thread_name_prefix="vramscope-cell")
    try:
        yield threads
    except VramscopeError:  # wrong words: nothing runs
        raise
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        pool.close_all()
        raise
    finally:
        threads.shutdown()


@contextmanager
def dask(address: str) -> Iterator[Executor]:
    """Runs cells on the workers of the Dask cluster whose scheduler has that address: ``tcp://host:8786``.

    MissingLibraryError without distributed; UsageError for an address that does not answer, and for workers
    whose libraries are not those that are installed here."""
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise MissingLibraryError("--dask", "distributed", "pip install 'vramscope[cluster]'") from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address!r} ({_first_line(error)}); write its address as "
            "`dask scheduler` prints it: tcp://host:8786"
        ) from None
    with client:
        _require_same(address, client.run(_told))
        yield client.get_executor(pure=False, retries=_RETRIES)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _told() -> dict[str, str]:
    """What a worker must have in common with us."""
    return {"vramscope": vramscope.__version__, **versions_here()}


def _require_same(address: str, workers: dict[str, Any]) -> None:
    """Their results must be those that would come out here."""
    ours = _told()
    for worker, theirs in workers.items():
        differing = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
        if differing:
            name = differing[0]
            raise UsageError(
                f"the Dask worker {worker} at {address} has {name} {theirs.get(name, 'not at all')}, "
                f"here it is {ours.get(name, 'not installed')}: install the same versions on all machines"
            )
