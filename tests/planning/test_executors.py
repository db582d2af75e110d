"""plan/executors.py: who runs the cells."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError

import pytest

from tiny_cells import cell_of
from vramscope.errors import MissingLibraryError, UsageError
from vramscope.planning import executors
from vramscope.planning.running import run_cell


def test_so_many_cells_are_run_at_a_time_as_asked_for():
    meeting = threading.Barrier(2, timeout=20)
    with executors.local(2) as executor:
        found = [executor.submit(meeting.wait) for _ in range(2)]
        assert sorted(each.result() for each in found) == [0, 1]


@pytest.mark.parametrize(("free", "jobs"), [(None, 4), (100 << 30, 4), (2 << 30, 2), (1 << 20, 1)])
def test_by_default_cpus_and_memory_say_how_many(
    monkeypatch: pytest.MonkeyPatch, free: int | None, jobs: int
):
    monkeypatch.setattr(executors.os, "sched_getaffinity", lambda pid: set(range(4)))
    monkeypatch.setattr(executors, "_free_bytes", lambda: free)

    assert executors.default_jobs() == jobs


def test_the_hosts_free_memory_is_read():
    found = executors._free_bytes()
    assert found is not None
    assert found > 1 << 20


@pytest.mark.virtual
def test_an_error_ends_what_runs_and_what_waits():
    cell = cell_of("import time\ntime.sleep(60)", modules=())
    with pytest.raises(KeyError), executors.local(1) as executor:  # noqa: PT012
        futures = [executor.submit(run_cell, cell) for _ in range(2)]
        while not futures[0].running():
            time.sleep(0.01)
        raise KeyError
    assert futures[1].cancelled()
    with pytest.raises(CancelledError):
        futures[0].result()


def test_without_distributed_the_command_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with (
        pytest.raises(
            MissingLibraryError, match=r"--dask needs distributed, .*pip install 'vramscope\[cluster\]'"
        ),
        executors.dask("tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "what://x", "127.0.0.1"])
def test_an_address_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, address: str):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "_PATIENCE", "300ms")
    with (
        pytest.raises(UsageError, match=f"no Dask scheduler answers at '{address}'"),
        executors.dask(address),
    ):
        pass


def test_workers_with_other_libraries_are_refused():
    ours = executors._told()
    executors._require_same("tcp://x", {"a": ours, "b": dict(ours)})

    with pytest.raises(UsageError, match=r"worker b at tcp://x has torch 1.0, here it is .*same versions"):
        executors._require_same("tcp://x", {"a": ours, "b": {**ours, "torch": "1.0"}})
    with pytest.raises(UsageError, match="has torch not at all"):
        executors._require_same(
            "tcp://x", {"b": {name: each for name, each in ours.items() if name != "torch"}}
        )
