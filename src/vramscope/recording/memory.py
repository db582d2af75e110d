"""What is written down while the program runs: spans between the boundaries of its phases.

Boundaries are few (the first module call, each backward, each optimizer step), so that recording
costs nothing to speak of, and each is a reading of counters: nothing is allocated on the card.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from vramscope.errors import TorchError
from vramscope.recording import ending, journal, where
from vramscope.recording.peaks import Peaks

_recorder: Recorder | None = None


def install(torch: ModuleType) -> None:
    """Begins recording in this process; torch has just been imported."""
    global _recorder
    if _recorder is not None:
        return
    core = ctypes.CDLL(None)
    if not hasattr(core, "vs_used_bytes"):  # LD_PRELOAD was taken away: there is no virtual card
        return
    _refuse_another_torch(torch)
    _recorder = Recorder(torch, core)
    journal.write(
        "torch",
        torch=torch.__version__,
        cuda=torch.version.cuda,
        cudnn=_cudnn_version(torch),
        allocator=os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        or os.environ.get("PYTORCH_ALLOC_CONF")
        or "default settings",
    )
    _recorder.install()
    _install_values(torch)


def _refuse_another_torch(torch: ModuleType) -> None:
    """A child of another Python may bring another torch, whose cuDNN would be mixed with the first one's."""
    made_for = os.environ.get("VRAMSCOPE_TORCH")
    if made_for and torch.__version__ != made_for:
        raise TorchError(
            f"{sys.executable} has torch {torch.__version__}, but this virtual card was made for torch {made_for}; "
            "libraries of two wheels must not be mixed: start vramscope with that Python"
        )


def finish() -> None:
    """Writes the span that is still open; called when the process ends."""
    if _recorder is not None:
        _recorder.finish()


def _cudnn_version(torch: ModuleType) -> str | None:
    """From the library: ``torch.backends.cudnn.version()`` would look at the card."""
    cudnn = getattr(torch._C, "_cudnn", None)
    return None if cudnn is None else ".".join(map(str, cudnn.getRuntimeVersion()))


def _install_values(torch: ModuleType) -> None:
    from vramscope.recording import values

    values.install(torch)


class Recorder:
    """The state of one process: which step, which phase, and the peaks since the last boundary."""

    def __init__(self, torch: ModuleType, core: ctypes.CDLL) -> None:
        self._torch = torch
        self._peaks = Peaks(torch, core)
        self._pid = os.getpid()
        # Not by id(): a new optimizer may get the address of one that is gone, and would go on counting from it.
        self._steps_taken: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._wanted = int(os.environ.get("VRAMSCOPE_STEPS") or 0)
        self._backward_depth = 0
        self._step = 1
        self._next_is = "init"
        self._finished = False

    def install(self) -> None:
        """Hooks that mark the boundaries; those that need CUDA wait until the program starts it."""
        torch = self._torch
        torch.cuda._lazy_call(self._cuda_is_here)
        optimizers = importlib.import_module("torch.optim.optimizer")
        optimizers.register_optimizer_step_pre_hook(self._step_begins)
        optimizers.register_optimizer_step_post_hook(self._step_ended)
        self._watch_backward()
        self._watch_first_forward()

    # -- boundaries ---------------------------------------------------------------------------
    def boundary(self, ended: str) -> None:
        """Writes the span since the last boundary, whose phase is known only now that it ends."""
        if self._pid != os.getpid():
            return
        devices = self._peaks.take()
        if devices:
            journal.write("span", step=self._step, phase=ended, devices=devices)

    def finish(self) -> None:
        """The last span: what follows the last step, or all of a program that only infers."""
        if not self._finished and self._pid == os.getpid():
            self._finished = True
            self.boundary(self._next_is if self._step == 1 else "other")

    def _watch_first_forward(self) -> None:
        """The first call of a module ends "init"; the watch takes itself off then."""
        module = self._torch.nn.Module
        real, is_compiling = module.__call__, self._torch.compiler.is_compiling

        @functools.wraps(real)
        def first_call(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                module.__call__ = real
                self.boundary("init")
                self._next_is = "forward"
            return real(*args, **kwargs)

        module.__call__ = first_call

    def _watch_backward(self) -> None:
        graph, autograd = self._torch.autograd.graph, self._torch.autograd
        real: Callable[..., Any] = graph._engine_run_backward

        @functools.wraps(real)
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if self._backward_depth == 0:
                self.boundary("forward")
            self._backward_depth += 1
            try:
                return real(*args, **kwargs)
            finally:
                self._backward_depth -= 1
                if self._backward_depth == 0:
                    self.boundary("backward")

        graph._engine_run_backward = autograd._engine_run_backward = run_backward

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._backward_depth == 0:  # an optimizer that steps within backward belongs to it
            self.boundary("other")

    def _step_ended(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """With several optimizers, a step is one of the optimizer that has stepped most."""
        taken = self._steps_taken[optimizer] = self._steps_taken.get(optimizer, 0) + 1
        if self._backward_depth == 0:
            self.boundary("optimizer_step")
        if taken >= self._step:
            journal.write("step", step=self._step)
            self._step += 1
            if self._wanted and taken >= self._wanted:
                self._finished = True
                ending.stop_after_steps()

    # -- once CUDA is there ---------------------------------------------------------------------
    def _cuda_is_here(self) -> None:
        self._peaks.begin()
        with contextlib.suppress(RuntimeError):  # backend:cudaMallocAsync has no observers
            self._torch._C._cuda_attach_out_of_memory_observer(self._out_of_memory)

    def _out_of_memory(self, device: int, requested: int, allocated: int, free: int) -> None:
        line = where.current_line()
        journal.write(
            "oom",
            device=device,
            requested_bytes=requested,
            step=self._step,
            phase="backward" if self._backward_depth else self._next_is,
            where=line and line.where,
            line=line and line.text,
            **self._peaks.now(device),
        )
