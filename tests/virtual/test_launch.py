"""What the launcher sets, and what of it survives awkward surroundings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from vramscope.cards import find_card, outside_of
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.virtual.build import ensure_built
from vramscope.virtual.launch import launch, virtual_machine
from vramscope.virtual.program import Program
from vramscope.virtual.wheel import find_wheel


def card():
    return find_card("l4")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (Program("script", "train.py", ("--lr", "1")), ["train.py", "--lr", "1"]),
        (Program("module", "package.train"), ["-m", "package.train"]),
        (Program("code", "print(1)", ("x",)), ["-c", "print(1)", "x"]),
    ],
)
def test_the_words_are_those_of_python(program, words):
    assert program.command() == words


def test_what_the_user_preloads_and_imports_stays():
    given = {"LD_PRELOAD": "/lib/mine.so", "PYTHONPATH": "/my/modules", "HOME": "/home/me"}
    with virtual_machine(card(), outside=outside_of(card()), environment=given) as (_, variables):
        assert variables["LD_PRELOAD"].endswith(":/lib/mine.so")
        assert variables["PYTHONPATH"].endswith(":/my/modules")
        assert variables["HOME"] == "/home/me"


def test_a_cache_folder_with_a_space_in_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache: 1"))
    stand_ins = ensure_built(find_wheel())
    assert " " in str(stand_ins.folder)
    with virtual_machine(card(), outside=outside_of(card()), steps=None) as (_, variables):
        assert " " not in variables["LD_PRELOAD"]
        done = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.get_device_name())"], env=variables, capture_output=True, text=True)
    assert done.stdout.strip() == "NVIDIA L4", done.stderr


def test_the_status_is_the_programs():
    for code, status in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)):
        assert launch(Program("code", code), card(), outside=outside_of(card())).status == status


def test_programs_that_use_no_torch_run_as_ever(virtual):
    ran = virtual("import json, sqlite3; print(json.dumps([1]))", cold=True).check()
    assert ran.stdout == "[1]\n"
    assert not ran.of("torch")
    assert ran.peak_used_bytes == [0]


def test_two_machines_at_once_do_not_see_each_other():
    hold = "import torch, sys; x = torch.empty(20 * 2**30, dtype=torch.uint8, device='cuda'); sys.stdin.read()"
    outside = outside_of(card())
    with virtual_machine(card(), outside=outside) as (first, one), virtual_machine(card(), outside=outside) as (second, two):
        children = [subprocess.Popen([sys.executable, "-c", hold], env=e, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for e in (one, two)]
        errors = [child.communicate("")[1] for child in children]
        assert errors == ["", ""]
        assert first.peak_used_bytes(1) == second.peak_used_bytes(1)


def test_no_variable_of_ours_changes_what_torch_computes(virtual):
    out = virtual("import os; print(sorted(k for k in os.environ if k.startswith(('PYTORCH', 'CUDA', 'NCCL'))))", cold=True).check()
    assert eval(out.stdout) == sorted(k for k in os.environ if k.startswith(("PYTORCH", "CUDA", "NCCL")))


def test_a_child_with_another_torch_is_refused():
    with virtual_machine(card(), outside=outside_of(card())) as (_, variables):
        variables["VRAMSCOPE_TORCH"] = "2.8.0+cu128"
        done = subprocess.run([sys.executable, "-c", "import torch"], env=variables, capture_output=True, text=True)
    assert done.returncode == 1
    assert "this virtual card was made for torch 2.8.0+cu128; libraries of two wheels must not be mixed" in done.stderr


def test_who_ends_vramscope_ends_the_program_and_gets_the_report(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import torch, time; x = torch.empty(2**30, device='cuda'); print('up', flush=True); time.sleep(60)")
    command = [sys.executable, "-m", "vramscope", "predict", "--gpu", "l4", str(script)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"

    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=30)

    assert child.returncode == 128 + signal.SIGTERM
    assert "killed by SIGTERM: partial" in err
    assert "4.2" in err  # the 4 GiB and the context


def test_expandable_segments_have_room_on_a_card_without_a_limit(virtual):
    """torch reserves more than the card's memory for every pool and stream."""
    code = """
import torch
for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
    with torch.cuda.stream(stream):
        large, small = torch.empty(1 << 30, device="cuda"), torch.empty(8, device="cuda")
"""
    virtual(
        code, "h100", memory_bytes=UNLIMITED_BYTES, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
    ).check()
