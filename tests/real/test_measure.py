"""Measuring, held against predicting: here the "real" card is a virtual one that NVML and CUDA know nothing else of."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from vramscope.cards import find_card, outside_of
from vramscope.run.curves import allocated_curve, category_curves, reserved_curve
from vramscope.run.store import load_run
from vramscope.virtual.launch import virtual_machine

SCRIPT = """
import time, torch, vramscope
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
vramscope.mark("built")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    loss = model(torch.randn(4096, 1024).cuda()).square().mean()
    time.sleep(0.1)
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    time.sleep(0.1)
"""


def on_card(folder, *words, gpu="rtx-3060"):
    """Runs vramscope as if the machine had a real card."""
    card = find_card(gpu)
    with virtual_machine(card, outside=outside_of(card), steps=None) as (machine, variables):
        for name in ("VRAMSCOPE_JOURNAL", "VRAMSCOPE_MAIN"):
            del variables[name]
        site = variables["PYTHONPATH"].partition(os.pathsep)[0]
        variables["PYTHONPATH"] = variables["PYTHONPATH"].removeprefix(site).lstrip(os.pathsep)
        done = subprocess.run(
            [sys.executable, "-m", "vramscope", *words],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done, machine.peak_used_bytes(1)[0]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    (folder / "train.py").write_text(SCRIPT)
    done, held = on_card(folder, "measure", "-o", "real.vram", "--json", "real.json", "train.py")
    assert done.returncode == 0, done.stderr
    told = [
        sys.executable,
        "-m",
        "vramscope",
        "predict",
        "--gpu",
        "rtx-3060",
        "-o",
        "virtual.vram",
        "train.py",
    ]
    subprocess.run(told, cwd=folder, check=True, capture_output=True, timeout=120)
    return load_run(folder / "real.vram"), load_run(folder / "virtual.vram"), done, held


def test_a_measured_run_has_what_a_predicted_one_has(pair):
    real, virtual, _, _ = pair

    assert (real.origin, virtual.origin) == ("measured", "predicted")
    assert real.check() == virtual.check() == ()
    assert real.report.peaks.allocated_bytes == virtual.report.peaks.allocated_bytes
    assert real.report.peaks.reserved_bytes == virtual.report.peaks.reserved_bytes
    assert [span.phase for span in real.trace.spans] == [span.phase for span in virtual.trace.spans]
    for curve in (allocated_curve, reserved_curve, category_curves):
        assert (curve(real.trace) == curve(virtual.trace)).all()


def test_nvml_gives_the_process_total_and_the_outside(pair):
    real, _, _, held = pair
    outside = outside_of(find_card("rtx-3060")).bytes

    assert real.report.peaks.process_total_bytes == held
    assert real.report.outside.bytes == outside
    assert real.report.outside.how.startswith("measured (NVML, ")
    assert real.report.card.name == "NVIDIA GeForce RTX 3060"
    assert any(entry["kind"] == "nvml" for entry in real.journal.entries)


def test_a_measured_step_has_its_time(pair):
    real, virtual, _, _ = pair
    steps = real.report.steps

    assert all(0.19 < step.seconds < 2 for step in steps[1:] if step.complete)
    assert all(step.seconds is None for step in virtual.report.steps)  # nothing was computed


def test_the_report_says_that_it_was_measured(pair):
    done = pair[2]

    assert "modelled" not in done.stderr
    assert "measured (NVML" in done.stderr
    assert "s a step" in done.stderr


def test_without_a_gpu_it_says_so(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "vramscope", "measure", "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert "no NVIDIA GPU to measure on" in done.stderr
    assert "vramscope predict" in done.stderr


def test_a_program_that_uses_no_card(tmp_path):
    (tmp_path / "train.py").write_text("print('hello')\n")
    done, _ = on_card(tmp_path, "measure", "--json", "-", "train.py")

    assert done.returncode == 0
    report = json.loads(done.stdout.partition("\n")[2])
    assert report["verdict"] == "unknown"
