"""virtual/warm.py and recording/warm.py: programs in forks of a process that has imported torch already."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from vramscope.cards import find_card
from vramscope.errors import TorchError
from vramscope.run.run import Run
from vramscope.run.store import run_bytes
from vramscope.virtual.launch import launch
from vramscope.virtual.predicted import predicted_run
from vramscope.virtual.program import Program
from vramscope.virtual.setting import Setting
from vramscope.virtual.warm import KILLED, Ran, WarmServer

pytestmark = pytest.mark.virtual

SETTING = Setting(find_card("rtx-3060"), steps=None)
TRAINING = """
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(), torch.nn.Linear(7200, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 3, 32, 32, device="cuda")), torch.randint(10, (16,), device="cuda"))
    loss.backward()
    optimizer.step()
print(loss.item())
"""
"""Without autocast, whose cache is a table of addresses that is freed in their order: in another one each time."""
TOO_LARGE = """
import torch
kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(20)]
"""
RAISES = """
import torch
x = torch.ones(10, device="cuda")
x @ torch.ones(11, device="cuda")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[WarmServer]:
    with WarmServer(("torch", "no_such_library")) as warm:
        yield warm


@pytest.fixture
def ran(server: WarmServer, tmp_path: Path) -> Callable[..., Ran]:
    """`ran(program)`: runs it in a fork of the module's server."""

    def run(program: str, limit_s: float | None = None) -> Ran:
        script = tmp_path / "program.py"
        script.write_text(program)
        return server.run(script, SETTING, limit_s)

    return run


@pytest.mark.parametrize(
    ("program", "verdict"),
    [(TRAINING, "fits"), (TOO_LARGE, "does not fit"), (RAISES, "unknown")],
    ids=["fits", "oom", "raises"],
)
def test_a_run_is_that_of_a_process_of_its_own(
    server: WarmServer, tmp_path: Path, program: str, verdict: str
):
    script = tmp_path / "program.py"
    script.write_text(program)
    itself = Program("script", str(script))
    cold = launch(itself, SETTING.card, outside=SETTING.outside, steps=None)
    warm = server.run(script, SETTING).finished
    one, other = (predicted_run(each, itself, SETTING) for each in (cold, warm))

    assert one.report is not None
    assert one.report.verdict == verdict
    assert other.report == one.report
    assert _parts(other) == _parts(one)
    assert _tables(other) == _tables(one)


_DIFFERING = ("address.npy", "times_us.npy", "stack_frames.npy", "tables/0.json")


def _parts(run: Run) -> dict[str, bytes]:
    """The parts of its file, without what no two processes have in common: their number, addresses and the clock.

    Frames are numbered with those of the recorder, of which there are others."""
    with zipfile.ZipFile(io.BytesIO(run_bytes(run))) as file:
        names = [name for name in file.namelist() if not name.endswith(_DIFFERING)]
        return {name: re.sub(rb'"(pid|time_us)":\d+', b"", file.read(name)) for name in names}


def _tables(run: Run) -> list[object]:
    """What its tables say, with frames instead of their numbers."""
    tables = run.traces[0].tables
    stacks = tuple(tuple(tables.frames[number] for number in stack) for stack in tables.stacks)
    return [replace(tables, frames=(), stacks=()), stacks]


@pytest.mark.parametrize(
    ("program", "status", "said"),
    [
        ("import os; print('here', flush=True); os._exit(3)", 3, "here"),
        ("import sys; sys.exit('no such thing')", 1, "no such thing"),
        ("import sys; sys.exit(300)", 44, ""),
        ("raise ValueError('what')", 1, "ValueError: what"),
        ("def f(:", 1, "SyntaxError"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, ""),
        ("import no_such_library", 1, "ModuleNotFoundError"),
        ("import os; os.closerange(0, 256); print('x')", 1, ""),
        ("print('x' * (5 << 20)); print('last')", 0, "last"),
        (
            "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.2), print('late'))).start()",
            0,
            "late",
        ),
        (
            "import sys; print(sys.argv, sys.path[0] == __file__.rpartition('/')[0], __name__)",
            0,
            "True __main__",
        ),
        ("import sys; assert '' not in sys.path, sys.path; print(sys.stdin.read() == '')", 0, "True"),
        ("import os; print(os.getcwd())", 0, str(Path.cwd())),
    ],
)
def test_a_program_ends_as_it_would_in_a_process_of_its_own(
    ran: Callable[..., Ran], program: str, status: int, said: str
):
    found = ran(program)

    assert found.finished.status == status
    assert said in found.output
    assert len(found.output) <= 16 << 10
    assert not found.late and not found.lost


def test_a_program_that_takes_too_long_is_killed_and_its_children_too(
    ran: Callable[..., Ran], tmp_path: Path
):
    found = ran(_with_children(tmp_path) + "import time; time.sleep(60)", limit_s=1)

    assert found.late
    assert found.finished.status == KILLED
    assert _gone(_numbers(tmp_path))


def test_what_a_program_leaves_running_is_ended_after_it(ran: Callable[..., Ran], tmp_path: Path):
    found = ran(_with_children(tmp_path))

    assert found.finished.status == 0
    assert _gone(_numbers(tmp_path))


def _with_children(folder: Path) -> str:
    """A program's lines that start a daemon, which holds the output open, and write the numbers of both to a folder."""
    return f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({str(folder / "daemon")!r} + ".new", "w").write(str(os.getpid()))
        os.rename({str(folder / "daemon")!r} + ".new", {str(folder / "daemon")!r})
        time.sleep(60)
    os._exit(0)
open({str(folder / "child")!r}, "w").write(str(child.pid))
while not os.path.exists({str(folder / "daemon")!r}):
    time.sleep(0.01)
"""


def _numbers(folder: Path) -> list[int]:
    return [int((folder / name).read_text()) for name in ("child", "daemon")]


def _gone(pids: list[int]) -> bool:
    """Whether the processes end within a while."""
    return any(time.sleep(0.02) or not any(map(_alive, pids)) for _ in range(500))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_programs_run_side_by_side_each_on_its_own_card(server: WarmServer, tmp_path: Path):
    def peak(rows: int) -> int:
        script = tmp_path / f"rows_{rows}.py"
        script.write_text(
            f"import torch, time\nx = torch.empty({rows} << 20, device='cuda')\ntime.sleep(0.3)"
        )
        return server.run(script, SETTING).finished.peak_used_bytes[0]

    with ThreadPoolExecutor(3) as threads:
        peaks = list(threads.map(peak, (25, 125, 325)))

    assert [each - peaks[0] for each in peaks] == [0, 400 << 20, 1200 << 20]


def test_a_killed_server_loses_its_program_and_the_next_one_starts_another(tmp_path: Path):
    started, script = tmp_path / "started", tmp_path / "program.py"
    script.write_text(f"import time; open({str(started)!r}, 'w'); time.sleep(60)")
    with WarmServer(()) as warm, ThreadPoolExecutor(1) as threads:
        lost = threads.submit(warm.run, script, SETTING)
        while not started.exists():
            time.sleep(0.01)
        first = warm.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert lost.result().lost
        assert lost.result().finished.status == KILLED
        script.write_text("print('again')")
        assert warm.run(script, SETTING).output == "again\n"
        assert warm.pid != first


def test_close_ends_what_runs_and_nothing_starts_any_more(tmp_path: Path):
    started, script = tmp_path / "started", tmp_path / "program.py"
    script.write_text(f"import time; open({str(started)!r}, 'w'); time.sleep(60)")
    warm = WarmServer(())
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(warm.run, script, SETTING)
        while not started.exists():
            time.sleep(0.01)
        assert not warm.rest()
        warm.close()
        with pytest.raises(CancelledError):
            running.result()
    with pytest.raises(CancelledError):
        warm.run(script, SETTING)


def test_close_does_not_wait_for_the_imports(tmp_path: Path):
    (tmp_path / "slow_library.py").write_text(
        f"open({str(tmp_path / 'importing')!r}, 'w')\nimport time\ntime.sleep(60)"
    )
    script = tmp_path / "program.py"
    script.write_text("")
    warm = WarmServer(("slow_library",), {**os.environ, "PYTHONPATH": str(tmp_path)})
    failed: list[BaseException] = []

    def run() -> None:
        try:
            warm.run(script, SETTING)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not (tmp_path / "importing").exists():
        time.sleep(0.01)
    warm.close()
    thread.join(20)

    assert [type(error) for error in failed] == [CancelledError]


def test_a_rested_server_starts_again(tmp_path: Path):
    script = tmp_path / "program.py"
    script.write_text("print(1)")
    with WarmServer(()) as warm:
        assert warm.run(script, SETTING).output == "1\n"
        assert warm.rest()
        assert not warm.awake
        assert warm.run(script, SETTING).output == "1\n"


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (
            "import os, sys; print('no room', file=sys.stderr, flush=True); os._exit(1)",
            r"ended while .* odd_library \(no room\)",
        ),
        ("import torch; torch.cuda.init()", "uses the card when it is imported"),
    ],
    ids=["ends", "uses the card"],
)
def test_a_library_that_cannot_be_imported_beforehand_is_named(tmp_path: Path, library: str, said: str):
    (tmp_path / "odd_library.py").write_text(library)
    with (
        WarmServer(("odd_library",), {**os.environ, "PYTHONPATH": str(tmp_path)}) as warm,
        pytest.raises(TorchError, match=said),
    ):
        warm.run(tmp_path / "odd_library.py", SETTING)


def test_nothing_is_left_of_an_owner_that_is_killed(tmp_path: Path):
    script, owner = tmp_path / "program.py", tmp_path / "owner.py"
    script.write_text(_with_children(tmp_path) + "import time; time.sleep(60)")
    owner.write_text(
        "from pathlib import Path\nfrom vramscope.cards import find_card\n"
        "from vramscope.virtual.setting import Setting\nfrom vramscope.virtual.warm import WarmServer\n"
        f"WarmServer(()).run(Path({str(script)!r}), Setting(find_card('rtx-3060'), steps=None))"
    )
    process = subprocess.Popen([sys.executable, str(owner)])
    while not (tmp_path / "daemon").exists():
        time.sleep(0.01)
    child = _numbers(tmp_path)[0]
    program = _parent(child)
    everyone = [_parent(program), program, *_numbers(tmp_path)]
    assert all(map(_alive, everyone))
    process.kill()
    process.wait()

    assert _gone(everyone)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
