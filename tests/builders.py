"""Runs as data: journals in a short notation, and the reports that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vramscope.run.collect import build_report
from vramscope.run.journal import journal_of
from vramscope.run.report import Outside, Report

MIB = 1 << 20
GIB = 1 << 30
MAIN = 100
"""The pid of the program itself."""


@dataclass(frozen=True)
class ACard:
    """A card as the catalogue has it, as far as a report needs one."""

    id: str = "rtx-3060"
    name: str = "NVIDIA GeForce RTX 3060"
    memory_bytes: int = 12_629_508_096
    capability: tuple[int, int] = (8, 6)
    sms: int = 28
    unverified: tuple[str, ...] = ("clock",)


OUTSIDE = Outside(170 * MIB, 120 * MIB, 320 * MIB, "formula", "lazy", "context 103 MiB")
TORCH = {
    "pid": MAIN,
    "kind": "torch",
    "torch": "2.14.1+cu130",
    "cuda": "13.0",
    "cudnn": "9.24.0",
    "allocator": "default settings",
}
PROCESS = {"pid": MAIN, "kind": "process", "argv": ["train.py"], "python": "3.11.7", "main": True}


def span(
    step: int,
    phase: str,
    allocated: int,
    reserved: int,
    *,
    device: int = 0,
    pid: int = MAIN,
    outside: int = 170,
) -> dict[str, Any]:
    """A span of one card; sizes in MiB."""
    figures = {
        "device": device,
        "peak_allocated_bytes": allocated * MIB,
        "peak_reserved_bytes": reserved * MIB,
        "allocated_bytes": allocated * MIB // 2,
        "reserved_bytes": reserved * MIB,
        "peak_used_bytes": (reserved + outside) * MIB,
    }
    return {"pid": pid, "kind": "span", "step": step, "phase": phase, "devices": [figures]}


def step(number: int, pid: int = MAIN) -> dict[str, Any]:
    return {"pid": pid, "kind": "step", "step": number}


def end(how: str, steps: int) -> dict[str, Any]:
    return {"pid": MAIN, "kind": "end", "how": how, "steps": steps}


def oom(step: int = 1, phase: str = "backward", **changes: Any) -> dict[str, Any]:
    """2 GiB asked for where 10.5 GiB are held."""
    return {
        "pid": MAIN,
        "kind": "oom",
        "device": 0,
        "requested_bytes": 2 * GIB,
        "capacity_bytes": 12_629_508_096,
        "used_bytes": 10 * GIB + 512 * MIB,
        "allocated_bytes": 9 * GIB,
        "reserved_bytes": 10 * GIB,
        "step": step,
        "phase": phase,
        "where": "train.py:41 in main",
        "line": "loss.backward()",
        **changes,
    }


def training(steps: int = 3, base: int = 7000, growth: int = 150) -> list[dict[str, Any]]:
    """A training loop whose second step needs more than its first, by the optimizer's state."""
    entries: list[dict[str, Any]] = [PROCESS, TORCH, span(1, "init", 100, 140)]
    for number in range(1, steps + 1):
        more = 0 if number == 1 else growth
        entries += [
            span(number, "forward", base - 200 + more, base + 800 + more),
            span(number, "backward", base + more, base + 1200 + more),
            span(number, "optimizer_step", 600 + more, base + 1200 + more),
            step(number),
        ]
    return entries


def a_report(
    entries: Sequence[Mapping[str, Any]],
    *,
    status: int = 0,
    card: ACard | None = None,
    capacity_bytes: int | None = 12_629_508_096,
    gpus: int = 1,
    outside: Outside = OUTSIDE,
    machine_peaks: Sequence[int] | None = None,
) -> Report:
    return build_report(
        journal_of(entries),
        card or ACard(),
        program=("train.py", "--batch-size", "90"),
        gpus=gpus,
        capacity_bytes=capacity_bytes,
        outside=outside,
        status=status,
        machine_peaks=machine_peaks,
        vramscope="0.1.0",
    )


def trained(**changes: Any) -> Report:
    """Three steps, stopped, all well."""
    return a_report([*training(), end("steps", 3)], **changes)


def out_of_memory() -> Report:
    """A second step that finds no room."""
    entries = [*training(1), span(2, "forward", 8800, 10000), oom(2), end("oom", 1)]
    return a_report(entries, status=1)


def troubled() -> Report:
    """Nine steps with everything that a report can have beside its figures."""
    reads = [
        {
            "pid": MAIN,
            "kind": "assumed",
            "what": "nonzero",
            "where": f"model.py:{line}",
            "count": times,
            "value": value,
        }
        for line, times, value in [(212, 3, "takes all of 4,096 rows"), (240, 1, "takes all of 64 rows")]
    ]
    losses = [
        {
            "pid": MAIN,
            "kind": "assumed",
            "what": "float",
            "where": f"train.py:{line}",
            "count": 1,
            "value": "is 1.0",
        }
        for line in range(41, 46)
    ]
    plan = {
        "pid": MAIN,
        "kind": "uncounted",
        "what": "cuFFT plan",
        "bytes": None,
        "note": "its size is not published",
    }
    call = {"pid": MAIN, "kind": "unsimulated", "library": "cufft", "symbol": "cufftXtExec", "answer": 16}
    space = {
        "pid": MAIN,
        "kind": "modelled",
        "what": "cuDNN LSTM work space",
        "bytes": 12 * MIB,
        "note": "a formula",
    }
    loop = {
        "pid": MAIN,
        "kind": "waiting",
        "where": "train.py:77 in warm_up",
        "note": "40,000 reads in a row",
    }
    entries = [*training(9), *reads, *losses, plan, call, space, loop, {"nonsense": True}, end("steps", 9)]
    return a_report(entries)


def on_two_cards() -> Report:
    """No optimizer; a second process on the second card."""
    spans = [
        span(1, "forward", 3000, 3500),
        span(1, "other", 800, 900, device=1),
        span(1, "forward", 2000, 2500, device=1, pid=7),
    ]
    return a_report([PROCESS, TORCH, *spans, end("finished", 0)], gpus=2)


REPORTS = {
    "trained": trained,
    "out_of_memory": out_of_memory,
    "troubled": troubled,
    "on_two_cards": on_two_cards,
    "killed": lambda: a_report(training(2), status=-9),
    "nothing_recorded": lambda: a_report([PROCESS, end("exception", 0)], status=1),
    "need_of_a_bigger_card": lambda: trained(capacity_bytes=None, card=ACard(memory_bytes=6 * GIB)),
    "cut_in_the_first_step": lambda: a_report(
        [PROCESS, TORCH, span(1, "init", 100, 140), end("exception", 0)], status=1
    ),
    "close": lambda: trained(capacity_bytes=8530 * MIB),
    "caught_out_of_memory": lambda: a_report([oom(1), *training(), end("steps", 3)]),
}
"""Every kind of report, for the views."""
