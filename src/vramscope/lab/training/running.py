"""Runs a cell's program in a plain process of its own and listens to what it says."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from vramscope.lab.grid import Epoch, Memory
from vramscope.lab.training.ending import why_failed
from vramscope.lab.training.request import CUDA
from vramscope.real.nvml import Sampler

Told = Mapping[str, Any]
"""A line that a program has said: ``at`` is model, train, test, epoch, memory, end or flops."""
_WARM_UP = 2
"""Steps in which libraries choose their ways; they tell nothing of the others."""
_KEPT = 1 << 16
"""So many bytes of what the process printed last are looked at."""


@dataclass(slots=True)
class Trained:
    """What came of a process."""

    why_not: str = ""
    """Why it failed; "": it came to its end."""
    parameters: int | None = None
    trainable: int | None = None
    epochs: list[Epoch] = field(default_factory=list)
    seconds: list[list[float]] = field(default_factory=list)
    """Of each epoch's steps."""
    memory: Memory | None = None
    flops: int | None = None
    """Of a step, forward and backward, multiplications and additions apart; None: nobody counted."""
    convolution_flops: int = 0
    """Those of them that are in convolutions."""
    ended: bool = False


def train(program: str, device: str, on_told: Callable[[Told], None]) -> Trained:
    """Trains for real, and waits for the end of it.

    If this process is killed, the other one ends when it has something to say that nobody hears."""
    trained = Trained()
    with ExitStack() as open_:
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="vramscope-")))
        script = folder / "cell.py"
        script.write_text(program)
        errors = open_.enter_context((folder / "errors").open("w+b"))
        child = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        open_.callback(_end, child)
        sampler = open_.enter_context(Sampler(child.pid)) if device == CUDA else None
        assert child.stdout is not None
        for told in _lines(child.stdout):
            _take(trained, told)
            on_told(told)
        status = child.wait()
        if not trained.ended:
            trained.why_not = why_failed(status, _tail(errors), device)
    if sampler is not None and trained.memory is not None:
        trained.memory = _with_total(trained.memory, sampler, child.pid)
    return trained


def pace(trained: Trained, batch: int, images: int) -> tuple[float | None, float | None]:
    """Seconds of a step (the median of full batches), and samples per second; None: there was none.

    Waiting for images is not in them; it is in the seconds of epochs."""
    full = max(images // batch, 1)
    counted = [seconds[:full] for seconds in trained.seconds]
    steps = [each for seconds in counted for each in seconds]
    steps = steps[_WARM_UP:] or steps
    if not steps:
        return None, None
    median = statistics.median(steps)
    return median, min(batch, images) / median if median else None


def _end(child: subprocess.Popen[bytes]) -> None:
    """Nothing outlives its owner."""
    if child.poll() is None:
        child.kill()
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _lines(output: IO[bytes]) -> Iterator[Told]:
    """What it says; libraries may print other things in between."""
    for line in output:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict) and "at" in told:
            yield told


def _take(trained: Trained, told: Told) -> None:
    at = told["at"]
    if at == "model":
        trained.parameters, trained.trainable = told["parameters"], told["trainable"]
    elif at == "epoch":
        trained.epochs.append(_epoch(told))
        trained.seconds.append(told["step_seconds"])
    elif at == "memory":
        trained.memory = Memory(told["allocated"], told["reserved"], None)
    elif at == "flops":
        trained.flops, trained.convolution_flops = told["step"], told["convolutions"]
    elif at == "end":
        trained.ended = True  # a count that fails after it is no failure of the training


def _epoch(told: Told) -> Epoch:
    train, test = told["train"], told["test"]
    return Epoch(
        told["epoch"],
        train["loss"],
        train["accuracy"],
        test["loss"] if test else None,
        test["accuracy"] if test else None,
        told["seconds"],
        len(told["step_seconds"]),
    )


def _with_total(memory: Memory, sampler: Sampler, pid: int) -> Memory:
    """The most that NVML showed of the process."""
    shown: Sequence[int] = [sample.used_bytes for sample in sampler.samples if sample.pid == pid]
    return Memory(memory.allocated_bytes, memory.reserved_bytes, max(shown, default=None))


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, 2)
    errors.seek(max(size - _KEPT, 0))
    return errors.read().decode(errors="replace")
