"""Spans, steps, the stop, the end: what the recorder writes, and that the program cannot tell it is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from vramscope.cards import find_card, outside_of
from vramscope.virtual.launch import virtual_machine

TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x = torch.empty(512, 64, device="cuda")
def step():
    loss = model(x).square().mean(); loss.backward(); optimizer.step(); optimizer.zero_grad()
"""


def test_phases_in_their_order(virtual):
    ran = virtual(TRAIN + "\nfor _ in range(2): step()\nprint('end')").check()

    phases = [(s["step"], s["phase"]) for s in ran.of("span")]
    assert phases[:5] == [(1, "init"), (1, "forward"), (1, "backward"), (1, "other"), (1, "optimizer_step")]
    assert phases[5:8] == [(2, "other"), (2, "zero_grad"), (2, "other")]
    assert phases[8:12] == [(2, "forward"), (2, "backward"), (2, "other"), (2, "optimizer_step")]
    assert [s["step"] for s in ran.of("step")] == [1, 2]
    assert ran.of("end")[0]["how"] == "finished"
    assert ran.stdout == "end\n"


def test_sums_close_in_every_span(virtual):
    ran = virtual(TRAIN + "\nfor _ in range(3): step()").check()
    outside = outside_of(find_card("rtx-3090")).bytes
    for span in ran.of("span"):
        for d in span["devices"]:
            assert d["allocated_bytes"] <= d["peak_allocated_bytes"] <= d["peak_reserved_bytes"]
            assert d["peak_reserved_bytes"] + outside <= d["peak_used_bytes"]


def test_the_program_is_stopped_after_the_wanted_steps_and_cleans_up(virtual):
    ran = virtual(
        TRAIN
        + """
import atexit; atexit.register(print, "atexit")
try:
    while True: step()
finally: print("finally")
""",
        steps=3,
        cold=True,
    ).check()

    assert ran.stdout.split() == ["finally", "atexit"]
    assert len(ran.of("step")) == 3
    assert ran.of("end")[0]["how"] == "steps"


def test_a_program_that_catches_everything_is_stopped_all_the_same(virtual):
    ran = virtual(
        TRAIN
        + """
while True:
    try: step()
    except BaseException: pass
""",
        steps=2,
        timeout=60,
    ).check()
    assert ran.of("end")[0]["how"] == "steps"


def test_training_in_a_thread_ends_the_program(virtual):
    ran = virtual(
        TRAIN
        + """
import threading
def run():
    while True: step()
thread = threading.Thread(target=run); thread.start(); thread.join()
""",
        steps=2,
        timeout=60,
    ).check()
    assert len(ran.of("step")) == 2


def test_two_optimizers_are_not_two_steps(virtual):
    ran = virtual(
        TRAIN
        + """
other = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4): step(); other.step()
""",
        steps=3,
    ).check()
    assert [s["step"] for s in ran.of("step")] == [1, 2, 3]


def test_an_optimizer_within_backward_counts_as_one(virtual):
    ran = virtual(
        TRAIN
        + """
for p in model.parameters():
    o = torch.optim.SGD([p], lr=0.1)
    def hook(p, o=o): o.step(); o.zero_grad()
    p.register_post_accumulate_grad_hook(hook)
for _ in range(5): model(x).sum().backward()
""",
        steps=3,
    ).check()
    assert [s["step"] for s in ran.of("step")] == [1, 2, 3]


def test_the_programs_own_readings_are_those_without_a_recorder():
    program = (
        TRAIN
        + """
import json
read = lambda: [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated(), torch.cuda.memory_stats()["active_bytes.all.peak"], torch.cuda.memory_stats()["segment.all.peak"]]
out = []
for i in range(6):
    step(); out.append(read())
    if i in (1, 3): big = torch.empty(3 * 2**20, device="cuda"); del big; torch.cuda.reset_peak_memory_stats(); out.append(read())
print(json.dumps(out))
"""
    )
    card = find_card("rtx-3090")
    with virtual_machine(card, outside=outside_of(card), steps=None) as (_, variables):
        with_recorder = json.loads(_output(program, variables))
        bare = {k: v for k, v in variables.items() if k not in ("VRAMSCOPE_JOURNAL", "PYTHONPATH")}
        assert json.loads(_output(program, bare)) == with_recorder


def test_a_reset_by_the_program_hides_no_peak_from_the_report(virtual):
    ran = virtual("""
import torch
x = torch.empty(2**28, device="cuda"); del x; torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
print(torch.cuda.max_memory_allocated())
""").check()
    assert ran.stdout.strip() == "0"
    assert ran.of("span")[0]["devices"][0]["peak_allocated_bytes"] == 2**30


@pytest.mark.parametrize(("code", "how"), [("raise SystemExit(3)", "finished"), ("1 / 0", "exception"), ("raise KeyboardInterrupt", "interrupted"),
                                           ("torch.empty(2**40, device='cuda')", "oom")])  # fmt: skip
def test_the_end_is_named(virtual, code, how):
    ran = virtual(f"import torch\n{code}")
    assert ran.returncode != 0
    assert ran.of("end")[0]["how"] == how


def test_out_of_memory_in_backward_names_the_users_line(virtual, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""import torch
def train():
    x = torch.empty(2**29, device="cuda", requires_grad=True)
    y = (x * 2).exp()
    y.sum().backward()
train()
""")
    ran = virtual(f"import runpy; runpy.run_path({str(script)!r})", gpu="rtx-3060", memory_bytes=7 * 2**30)
    (oom,) = ran.of("oom")
    assert oom["phase"] == "backward"
    assert oom["where"].startswith(("train.py:5", str(script))) or "train.py:5 in train" in oom["where"]
    assert oom["line"] == "y.sum().backward()"


def test_a_thread_that_outlives_the_interpreter_does_not_crash_it(virtual):
    # The autograd thread wakes up in Python code after the main thread has begun to finalize.
    ran = virtual("""
import threading, time, torch
def slow(gradient): time.sleep(0.5); return gradient
def run():
    a = torch.ones(4, 4, device="cuda", requires_grad=True); b = a * 2; b.register_hook(slow); b.sum().backward()
threading.Thread(target=run, daemon=True).start(); time.sleep(0.25)
""")
    assert ran.returncode == 0, ran.stderr


def _output(program: str, variables: dict[str, str]) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True
    ).stdout


def test_without_a_machine_nothing_is_recorded():
    code = "from vramscope.recording import bootstrap; bootstrap.begin(); import sys; print(sys.meta_path[0].__class__.__name__)"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VRAMSCOPE")}
    assert _output(code, environment).strip() != "_Finder"


LAZY = """
import torch
model = torch.nn.Sequential(torch.nn.LazyLinear(512), torch.nn.LazyBatchNorm1d()).cuda()
optimizer = None
for _ in range(2):
    loss = model(torch.randn(8, 1024, device="cuda")).sum()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    loss.backward()
    optimizer.step()
"""


def test_a_module_whose_parameters_have_no_shape_yet_is_followed_all_the_same(virtual):
    """`LazyLinear` holds parameters that no operator may touch before the first forward."""
    ran = virtual(LAZY, "t4").check()

    assert any(entry["path"] == "Sequential.0" for entry in ran.of("module"))
