"""Cells on a Dask cluster of several processes, one of which is killed half-way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiny_cells import cell_of
from vramscope.planning import executors
from vramscope.planning.carry import carry_out
from vramscope.planning.result import Outcome, Result
from vramscope.planning.store import Store

pytestmark = pytest.mark.virtual

_PROGRAM = """
import os, time, torch
kept = torch.empty({mib} << 20, dtype=torch.uint8, device="cuda")
open(os.path.join({folder!r}, f"{mib}-{{os.getpid()}}-{{os.getppid()}}"), "w")
time.sleep(0.3)
"""


@contextmanager
def _cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def test_a_cluster_whose_worker_is_killed_comes_to_the_same_results(tmp_path: Path):
    cells = [cell_of(_PROGRAM.format(mib=mib, folder=str(tmp_path))) for mib in range(20, 140, 20)]
    servers: list[int] = []

    def kill_one(index: int, outcome: Outcome) -> None:
        if servers:
            return
        server = _a_running_server(tmp_path)
        servers.append(server)
        os.kill(_parent(server), signal.SIGKILL)

    with _cluster() as cluster, executors.dask(cluster.scheduler_address) as executor, Store() as store:
        far = carry_out(cells, executor, store, kill_one)
        assert len(store) == 6
        assert any(time.sleep(0.02) or not Path(f"/proc/{servers[0]}").exists() for _ in range(500))
    with executors.local(2) as executor, Store() as store:
        near = carry_out(cells, executor, store)

    assert _without_time(far) == _without_time(near)
    assert [each.verdict for each in _without_time(far)] == ["fits"] * 6
    assert len({path.name.split("-")[2] for path in tmp_path.iterdir()}) >= 3  # two workers, and this process


def _a_running_server(folder: Path) -> int:
    """The warm server of a program that runs right now."""
    while True:
        for path in folder.iterdir():
            _, program, server = path.name.split("-")
            if Path(f"/proc/{program}").exists():
                return int(server)
        time.sleep(0.01)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _without_time(outcomes: list[Outcome]) -> list[Result]:
    return [replace(each.result, seconds=0.0) for each in outcomes]
