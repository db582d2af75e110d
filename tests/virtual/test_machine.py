"""Several processes on one virtual machine, its monitors, and its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vramscope.cards import find_card, outside_of
from vramscope.virtual.launch import virtual_machine

GIB = 2**30


def test_children_by_fork_spawn_and_subprocess_see_the_card(virtual):
    out = (
        virtual("""
import multiprocessing, os, subprocess, sys
def name(_=None):
    import torch
    return torch.cuda.get_device_name(0) + str(torch.ones(2, device="cuda").shape)
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool: print(pool.map(name, [0])[0])
    print(subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.get_device_name(0))"], capture_output=True, text=True).stdout.strip())
""")
        .check()
        .stdout.split("\n")
    )

    assert out[0].startswith("NVIDIA GeForce RTX 3090torch.Size")
    assert out[1] == "NVIDIA GeForce RTX 3090"


def test_spawned_data_loader_workers(virtual, tmp_path):
    script = tmp_path / "loader.py"
    script.write_text("""
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.full((4,), float(i))
if __name__ == "__main__":
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context=context, pin_memory=True)
        print(sum(batch.cuda().shape[0] for batch in loader))
""")
    out = virtual(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')").check()
    assert out.stdout.split() == ["8", "8"]


def test_processes_share_the_cards_memory(virtual):
    out = virtual("""
import subprocess, sys, torch
x = torch.empty(16 * 2**30, dtype=torch.uint8, device="cuda")
child = "import torch; torch.empty(10 * 2**30, dtype=torch.uint8, device='cuda')"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stderr.strip().splitlines()[-1])
""").check()

    assert "OutOfMemoryError" in out.stdout
    assert "Process" in out.stdout  # torch names the other process and what it holds


def test_monitors_see_process_and_memory(virtual):
    pytest.importorskip("pynvml")
    out = virtual("""
import os, subprocess, sys, torch
x = torch.empty(5 * 2**30, dtype=torch.uint8, device="cuda")
used = torch.cuda.device_memory_used()
code = "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0); p = n.nvmlDeviceGetComputeRunningProcesses(h); print(n.nvmlDeviceGetName(h), p[0].pid, p[0].usedGpuMemory, n.nvmlDeviceGetMemoryInfo(h).used, sep='|')"
seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip().split("|")
print(seen == [torch.cuda.get_device_name(0), str(os.getpid()), str(used), str(used)], used > 5 * 2**30)
""").check()
    assert out.stdout.split() == ["True", "True"]


def test_nvitop(virtual):
    pytest.importorskip("nvitop")
    out = (
        virtual("""
import subprocess, sys, torch
x = torch.empty(5 * 2**30, dtype=torch.uint8, device="cuda")
done = subprocess.run([sys.executable, "-m", "nvitop", "-1"], capture_output=True, text=True)
print(done.stdout); print("ERR", done.stderr)
""")
        .check()
        .stdout
    )
    assert "GeForce RTX 3090" in out
    assert "5426MiB" in out or "5427MiB" in out or "MiB / " in out
    assert "Traceback" not in out


def test_the_machine_ends_with_its_owner_also_after_a_kill(tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-c", """
import sys, time
from vramscope.cards import find_card, outside_of
from vramscope.virtual.launch import virtual_machine
card = find_card("l4")
with virtual_machine(card, outside=outside_of(card)) as (machine, variables):
    print(variables["VRAMSCOPE_MACHINE"], variables["VRAMSCOPE_JOURNAL"], flush=True)
    time.sleep(60)
"""], stdout=subprocess.PIPE, text=True)  # fmt: skip
    paths = owner.stdout.readline().split()
    assert all(Path(path).exists() for path in paths)

    owner.send_signal(signal.SIGKILL)
    owner.wait()

    assert not any(Path(path).exists() for path in paths)


def test_a_killed_process_gives_its_memory_back():
    card = find_card("rtx-3060")
    with virtual_machine(card, outside=outside_of(card), steps=None) as (machine, variables):
        hold = "import torch, time; x = torch.empty(8 * 2**30, dtype=torch.uint8, device='cuda'); print('held', flush=True); time.sleep(60)"
        first = subprocess.Popen(
            [sys.executable, "-c", hold], env=variables, stdout=subprocess.PIPE, text=True
        )
        assert first.stdout.readline().strip() == "held"
        first.kill()
        first.wait()
        time.sleep(0.05)
        again = subprocess.run(
            [sys.executable, "-c", hold.replace("time.sleep(60)", "")],
            env=variables,
            capture_output=True,
            text=True,
        )

        assert again.returncode == 0, again.stderr
        assert machine.peak_used_bytes(1)[0] < 10 * GIB


def test_the_recorder_leaves_sys_path_and_argv_alone(virtual):
    out = virtual(
        "import os, sys; print([p for p in sys.path if 'recording' in p], sys.argv, 'VRAMSCOPE_MAIN' in os.environ)",
        cold=True,
    ).check()
    assert out.stdout.strip() == "[] ['-c'] False"


def test_a_users_own_sitecustomize_still_runs(virtual, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.mine = 42")
    out = virtual(
        "print(mine); import torch; print(torch.cuda.is_available())", PYTHONPATH=str(tmp_path)
    ).check()
    assert out.stdout.split() == ["42", "True"]
    assert out.of("torch")
