"""The spans of a process: what is written down at the boundaries of its phases.

A boundary (an outermost module call after something else, a backward, an optimizer's step, a
zero_grad, a mark) is a reading of counters, and from it on the allocator's events carry the new
span's number: nothing is allocated on the card, and nothing is freed."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from vramscope.recording import ending, journal, where
from vramscope.recording.calls import Calls
from vramscope.recording.garbage import uncollected
from vramscope.recording.history import History
from vramscope.recording.labels import Labels, NoLabels
from vramscope.recording.models import Models
from vramscope.recording.owners import Owners
from vramscope.recording.peaks import Peaks
from vramscope.recording.stacks import Stacks

_TRACED = {"FakeTensor", "FunctionalTensor"}
"""Tensors without memory: a compiler looks at a backward that does not happen."""


class Recorder:
    """The state of one process: which step, which phase, and what the events since the last boundary mean."""

    def __init__(self, torch: ModuleType, core: ctypes.CDLL | None) -> None:
        self._torch = torch
        self._peaks = Peaks(torch, core)
        self._pid = os.getpid()
        # Not by id(): a new optimizer may get the address of one that is gone, and would go on counting from it.
        self._steps_taken: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._wanted = int(os.environ.get("VRAMSCOPE_STEPS") or 0)
        self._backward_depth = 0
        self._step = 1
        self._phase = "init"
        self._finished = False
        self._span = 0
        self._stack = 0
        self._began_us = time.time_ns() // 1000
        self.on = False
        """CUDA was started: from here on there is something to record."""
        self.follows = os.environ.get("VRAMSCOPE_HISTORY") != "off"
        """Every allocation is followed, not only the peaks of phases."""
        self.prefix = "0:"
        """How the labels of this span begin."""
        self.labels = Labels(torch) if self.follows else NoLabels()
        self.models = Models(torch)
        self._owners = Owners(torch, self.labels, self.models)
        self._stacks = Stacks()
        self._history = History(torch, self.labels, self._stacks, core)
        self._calls = Calls(torch, self)

    def install(self) -> None:
        """Hooks that mark the boundaries; those that need CUDA wait until the program starts it."""
        self._torch.cuda._lazy_call(self._cuda_is_here)
        optimizers = importlib.import_module("torch.optim.optimizer")
        optimizers.register_optimizer_step_pre_hook(self._step_begins)
        optimizers.register_optimizer_step_post_hook(self._step_ended)
        self._watch_backward()
        for owner in (optimizers.Optimizer, self._torch.nn.Module):
            self._watch_zero_grad(owner)
        self._calls.install()

    # -- boundaries ---------------------------------------------------------------------------
    @uncollected
    def begin(self, phase: str, mark: str | None = None) -> None:
        """Ends the open span, writes it, and begins one of another phase; only where it ends is its peak known."""
        if self._pid != os.getpid():
            return
        self._write_span(mark)
        self._span += 1
        self._history.span = self._span
        self._phase = phase
        self.prefix = f"{self._span}:"
        self._stack = self._stacks.of_frame(sys._getframe(1))
        self._began_us = time.time_ns() // 1000
        if self.on:  # a mark within a module is still within it
            self.labels.set(self.prefix + (self.labels.get().partition(":")[2] or "0:0"))

    def mark(self, text: str) -> None:
        """A boundary that the program names itself."""
        self.begin(self._phase, text)

    def in_backward(self) -> bool:
        """Whether autograd is running: a module that is called then is recomputed."""
        return self._backward_depth > 0

    @uncollected
    def enters(self, module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """An outermost module is called; the label that its thread has again afterwards."""
        if self._backward_depth == 0 and self._pid == os.getpid():
            if self.follows and self.models.meet(module):
                self._owners.modules()
            phase = "forward" if self._torch.is_grad_enabled() else "evaluation"
            if self._phase != phase:
                self.begin(phase)
            if self.follows:
                self._owners.inputs((*args, *kwargs.values()))
                self._history.take_if_much()
        return self.labels.get()

    @uncollected
    def finish(self) -> None:
        """The last span: what follows the last step, or all of a program that only infers."""
        if not self._finished and self._pid == os.getpid():
            self._finished = True
            if self.on and self.follows:
                self.models.register_all()
                self._owners.new_step()
                self._owners.modules()
                self._owners.gradients()
            self.begin("other")  # what is freed from here on is the end of the process
            self._history.take()

    def _write_span(self, mark: str | None) -> None:
        devices = self._peaks.take()
        if devices or mark is not None:
            journal.write(
                "span",
                step=self._step,
                phase=self._phase,
                devices=devices,
                number=self._span,
                mark=mark,
                stack=self._stack,
                time_us=self._began_us,
            )

    def _watch_backward(self) -> None:
        graph, autograd = self._torch.autograd.graph, self._torch.autograd
        real: Callable[..., Any] = graph._engine_run_backward

        @functools.wraps(real)
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if any(type(root).__name__ in _TRACED for root in args[0]):
                return real(*args, **kwargs)
            if self._backward_depth == 0:
                self.begin("backward")
                if self.on and self.follows:
                    self._calls.tag_roots(args[0])
            self._backward_depth += 1
            try:
                return real(*args, **kwargs)
            finally:
                self._backward_depth -= 1
                if self._backward_depth == 0:
                    if self.on and self.follows:
                        self._owners.gradients()
                    self.begin("other")

        graph._engine_run_backward = autograd._engine_run_backward = run_backward

    def _watch_zero_grad(self, owner: Any) -> None:
        real: Callable[..., Any] = owner.zero_grad
        is_compiling = self._torch.compiler.is_compiling

        @functools.wraps(real)
        def zero_grad(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not self.on or self._backward_depth:
                return real(*args, **kwargs)
            self.begin("zero_grad")
            self._owners.new_step()
            try:
                return real(*args, **kwargs)
            finally:
                self.begin("other")

        owner.zero_grad = zero_grad

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._backward_depth == 0:  # an optimizer that steps within backward belongs to it
            self.begin("optimizer_step")

    @uncollected
    def _step_ended(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """With several optimizers, a step is one of the optimizer that has stepped most."""
        taken = self._steps_taken[optimizer] = self._steps_taken.get(optimizer, 0) + 1
        if self.on and self.follows:
            self._owners.optimizer(optimizer)
            self._owners.new_step()
        if self._backward_depth == 0:
            self.begin("other")
        if taken >= self._step:
            journal.write("step", step=self._step, time_us=time.time_ns() // 1000)
            self._history.step_ended(self._step)
            self._step += 1
            if self._wanted and taken >= self._wanted:
                self._stop()

    def _stop(self) -> None:
        self._history.take()
        self._finished = True
        ending.stop_after_steps()

    # -- once CUDA is there ---------------------------------------------------------------------
    def _cuda_is_here(self) -> None:
        self._peaks.begin()
        if self.follows:
            self._history.start()
        self.on = True
        self.labels.set(self.prefix + "0:0")
        for device in range(self._torch.cuda.device_count()):
            self._write_device(device)
        with contextlib.suppress(RuntimeError):  # backend:cudaMallocAsync has no observers
            self._torch._C._cuda_attach_out_of_memory_observer(self._out_of_memory)

    def _write_device(self, device: int) -> None:
        told = self._torch.cuda.get_device_properties(device)
        journal.write(
            "device",
            device=device,
            name=told.name,
            memory_bytes=told.total_memory,
            capability=[told.major, told.minor],
            sms=told.multi_processor_count,
            uuid=str(getattr(told, "uuid", "")) or None,
        )

    def _out_of_memory(self, device: int, requested: int, allocated: int, free: int) -> None:
        line = where.current_line()
        journal.write(
            "oom",
            device=device,
            requested_bytes=requested,
            step=self._step,
            phase="backward" if self._backward_depth else self._phase,
            where=line and line.where,
            line=line and line.text,
            module=self.models.path_of(self.labels.get()),
            **self._peaks.now(device),
        )
