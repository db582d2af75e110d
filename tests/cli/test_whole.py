"""The whole command on a virtual card: real torch, real processes, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.virtual

SOURCES = Path(__file__).parents[2] / "src"
TRAIN = """
import sys, torch
width = int(sys.argv[1])
layer = torch.nn.Linear(width, width, device="cuda")
optimizer = torch.optim.Adam(layer.parameters())
for number in range(5):
    layer(torch.ones(64, width, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", number + 1, flush=True)
"""
WAIT = "import time\nprint('waiting', flush=True)\ntime.sleep(60)\n"
FUNCTION = """
import torch, vramscope
WIDTH = 1024
def job():
    print(torch.nn.Linear(WIDTH, WIDTH, device="cuda").weight.device, flush=True)
if __name__ == "__main__":
    report = vramscope.predict(job, "rtx-3060")
    print(report.verdict, report.program, report.check())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "wait.py").write_text(TRAIN + WAIT)
    (tmp_path / "function.py").write_text(FUNCTION)
    return tmp_path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "vramscope", "predict", "--gpu", "rtx-3060", *words]


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_three_steps(folder: Path):
    ran = run(command("--json", "report.json", "-o", "train.vram", "train.py", "1024"), folder)

    report = json.loads((folder / "report.json").read_text())
    weight, bias = 1024 * 1024 * 4, 1024 * 4
    assert ran.returncode == 0
    assert ran.stdout == "step 1\nstep 2\n"
    assert "fits NVIDIA GeForce RTX 3060" in ran.stderr
    assert [step["complete"] for step in report["steps"]] == [True] * 3
    assert report["stopped"] == {"how": "steps", "steps": 3, "status": 0, "partial": False, "where": None}
    assert report["peaks"]["allocated_bytes"] >= 4 * (weight + bias)  # weights, gradients, Adam's two states
    assert (
        report["peaks"]["process_total_bytes"]
        >= report["peaks"]["reserved_bytes"] + report["outside"]["bytes"]
    )
    assert report["program"] == ["train.py", "1024"]


def test_out_of_memory(folder: Path):
    ran = run(command("--memory", "1GiB", "train.py", "16384"), folder)

    assert ran.returncode == 3
    assert "torch.OutOfMemoryError" in ran.stderr
    assert "does not fit NVIDIA GeForce RTX 3060: out of memory in init, step 1; needs at least" in " ".join(
        ran.stderr.split()
    )
    assert "vramscope predict --gpu rtx-3060 --memory unlimited train.py 16384" in ran.stderr


def test_ctrl_c(folder: Path):
    process = subprocess.Popen(
        command("--steps", "all", "wait.py", "256"),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() != "waiting\n":
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)

    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert errors.index("KeyboardInterrupt") < errors.index("partial: interrupted")


@pytest.mark.parametrize(
    ("ending", "status", "told"),
    [
        ("os._exit(5)", 5, "left without an end (os._exit), exit status 5: partial"),
        ("os.kill(os.getpid(), 9)", 137, "killed by SIGKILL: partial"),
        ("sys.exit(6)", 6, "ran to its end, exit status 6"),
        ("1 / 0", 1, "crashed at <string>:1 in <module>, exit status 1"),
    ],
)
def test_endings(folder: Path, ending: str, status: int, told: str):
    ran = run(command("-c", f"import os, sys, torch; torch.ones(9, device='cuda'); {ending}"), folder)

    assert ran.returncode == status
    assert told in ran.stderr
    assert ("Traceback" in ran.stderr) == (ending == "1 / 0")


def test_a_scripts_function(folder: Path):
    ran = run([sys.executable, "function.py"], folder)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "cuda:0\nfits ('job()',) ()\n"
