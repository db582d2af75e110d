"""plan/running.py and plan/pool.py: cells in forks of warm processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import OrderedDict
from pathlib import Path

import pytest

from tiny_cells import cell_of, tiny_cell
from vramscope.planning import pool
from vramscope.planning.result import DOES_NOT_FIT, FAILED, FITS
from vramscope.planning.running import run_cell
from vramscope.run.store import run_from_bytes

TOO_LARGE = """
import torch
class Doubling(torch.nn.Module):
    def forward(self, rows):
        return rows.repeat(2)
model = Doubling()
rows = torch.ones(4 << 30, dtype=torch.uint8, device="cuda")
for _ in range(2):
    rows = model(rows)
"""


@pytest.mark.virtual
def test_a_cell_that_fits_has_its_figures_and_its_run():
    outcome = run_cell(tiny_cell())
    result = outcome.result

    assert (result.verdict, result.phase, result.why) == (FITS, "backward", "")
    assert result.check() == ()
    assert (result.parameters, result.trained) == (64 * 65, 64 * 65)
    assert result.categories["parameter"] == 64 * 64 * 4 + 512
    assert outcome.run is not None
    assert run_from_bytes(outcome.run).name == "tiny"
    assert outcome.unlimited is None
    assert outcome.lasting


@pytest.mark.virtual
def test_a_cell_that_does_not_fit_says_where_and_what_it_needs():
    outcome = run_cell(cell_of(TOO_LARGE))
    result = outcome.result

    assert result.verdict == DOES_NOT_FIT
    assert result.failure is not None
    assert result.failure.requested_bytes == 8 << 30
    assert result.failure.where == "tiny.py:5 in forward"
    assert result.peak_allocated_bytes == 24 << 30
    assert result.capacity_bytes < 12 << 30
    assert outcome.unlimited is not None
    assert outcome.lasting


@pytest.mark.virtual
def test_without_history_there_are_the_verdict_and_the_peaks():
    followed, plain = run_cell(tiny_cell()), run_cell(tiny_cell(history=False))

    assert (plain.run, plain.result.categories) == (None, {})
    for name in ("verdict", "peak_reserved_bytes", "process_total_bytes"):
        assert getattr(plain.result, name) == getattr(followed.result, name)


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("program", "why", "lasting"),
    [
        ("raise ValueError('no\\nsuch thing')", "ValueError: no", True),
        ("raise RuntimeError", "RuntimeError", True),
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'", False),
        (
            "open('/no/such/file')",
            "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",
            False,
        ),
        ("import sys; sys.exit('too bad')", "too bad", True),
        ("import os; os._exit(7)", "the program ended with status 7 and said nothing", True),
        ("import os; os._exit(0)", "the program left without the end that Python has (os._exit?)", True),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "the program was ended by SIGSEGV", True),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "the program was ended by SIGKILL; is the host's memory short?",
            False,
        ),
        ("raise ValueError('x' * 1000)", "ValueError: " + "x" * 287 + "…", True),
    ],
)
def test_a_cell_that_breaks_off_says_why_and_whether_it_would_again(program: str, why: str, lasting: bool):
    outcome = run_cell(cell_of(program))

    assert (outcome.result.verdict, outcome.result.why, outcome.lasting) == (FAILED, why, lasting)


@pytest.mark.virtual
def test_a_cell_that_takes_too_long_is_ended():
    outcome = run_cell(cell_of("import time\ntime.sleep(60)"), limit_s=0.5)

    assert (outcome.result.verdict, outcome.result.why) == (FAILED, "not done after 0.5 s")
    assert not outcome.lasting


@pytest.mark.virtual
@pytest.mark.parametrize(("kills", "verdict"), [(1, FITS), (2, FAILED)])
def test_a_cell_whose_process_is_killed_is_tried_once_more(tmp_path: Path, kills: int, verdict: str):
    program = f"""
import os, signal
done = len(os.listdir({str(tmp_path)!r}))
if done < {kills}:
    open({str(tmp_path)!r} + f"/{{done}}", "w")
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()
"""
    outcome = run_cell(cell_of(program, modules=()))

    assert outcome.result.verdict == verdict
    assert outcome.lasting == (verdict == FITS)
    assert ("killed, twice" in outcome.result.why) == (verdict == FAILED)


@pytest.mark.virtual
def test_a_module_in_the_cells_own_path_is_found_and_the_shells_settings_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "own_module.py").write_text("VALUE = 'mine'")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    program = (
        "import os, own_module\nraise ValueError(own_module.VALUE, 'PYTORCH_CUDA_ALLOC_CONF' in os.environ)"
    )
    outcome = run_cell(cell_of(program, modules=(), environment={"PYTHONPATH": str(tmp_path)}))

    assert outcome.result.why == "ValueError: ('mine', False)"


def test_a_cells_own_settings_are_set():
    cell = tiny_cell(environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:native"})
    given = {"PYTORCH_CUDA_ALLOC_CONF": "x", "NVIDIA_TF32_OVERRIDE": "0", "HOME": "/home"}

    assert pool.environment_for(cell, given) == {"PYTORCH_CUDA_ALLOC_CONF": "backend:native", "HOME": "/home"}


@pytest.mark.virtual
def test_no_more_processes_are_kept_than_there_should_be(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "_servers", OrderedDict())
    cells = [cell_of("", modules=(), environment={"NUMBER": str(number)}) for number in range(5)]
    for cell in cells:
        assert run_cell(cell).result.verdict == FITS
    awake = [cell for cell in cells if pool.server_for(cell).awake]

    assert len(awake) <= 3
    assert cells[4] in awake
    pool.close_all()


@pytest.mark.virtual
def test_a_program_that_runs_is_ended_by_signal_from_outside(tmp_path: Path):
    """As by the kernel, when memory is short."""
    program = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"

    def kill() -> None:
        while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
            time.sleep(0.01)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)

    thread = threading.Thread(target=kill)
    thread.start()
    outcome = run_cell(cell_of(program, modules=()))
    thread.join()

    assert outcome.result.why == "the program was ended by SIGTERM"
    assert not outcome.lasting
