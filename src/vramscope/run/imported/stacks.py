"""The stacks of a snapshot as numbers, and what each says about what the program was doing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vramscope.run.imported.places import clean, library_file, shown_files
from vramscope.run.trace import Frame, Module, Tables

FORWARD, BACKWARD, STEP, ZERO_GRAD, MOVE, LOAD, MAKE, CACHE, WORKSPACE, CAST, COMMUNICATION, PYTHON = (
    1 << bit for bit in range(12)
)
"""What a stack goes through: a module's call, autograd, an optimizer's step or its zero_grad, Module.to and
the like, the loading of a checkpoint, a module of torch's that makes its own tensors, transformers' cache of
keys and values, a library's workspace, autocast's cache, torch.distributed; and whether it has any Python."""

_MODULE = "torch/nn/modules/module.py"
_LOADERS = ("transformers/modeling_utils.py", "transformers/core_model_loading.py", "torch/serialization.py")
_DISTRIBUTED = ("torch/distributed/distributed_c10d.py", "torch/nn/parallel/distributed.py")
_NOT_STEPPING = ("torch/optim/lr_scheduler.py", "torch/optim/swa_utils.py")
_NATIVE_FILE = re.compile(r"^$|^\?\?|\.(?:so|c|cc|cpp|cu|h|hpp|cuh)(?:\.|$)", re.IGNORECASE)
_NATIVE = (
    (re.compile(r"torch::autograd::Engine::|PythonEngine::"), BACKWARD),
    (re.compile(r"workspace|run_conv_plan", re.IGNORECASE), WORKSPACE),
    (re.compile(r"autocast::cached_cast"), CAST),
    (re.compile(r"^c10d::"), COMMUNICATION),
)


class Stacks:
    """Numbers of stacks as a snapshot has them, innermost frame first; 0 is the empty one.

    A snapshot names one frame and often one whole stack many times, as one object: each is looked at once."""

    def __init__(self) -> None:
        self.says: list[int] = [0]
        """Per number, the bits above."""
        self.tabled: list[int] = [0]
        """Per number, the stack in the tables: of Python's frames alone, so that several may have the same."""
        self._frames: dict[tuple[str, int, str], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {(): 0}
        self._numbers: dict[tuple[int, int], int] = {(0, 0): 0}
        self._lists: dict[int, int] = {}
        self._keys: dict[tuple[int, ...], int] = {}
        self._dicts: dict[int, tuple[int, int, bool]] = {}

    def of(self, told: object) -> int:
        """The number of a stack."""
        if not isinstance(told, list) or not told:
            return 0
        number = self._lists.get(id(told))
        if number is None:
            key = tuple(map(id, told))
            number = self._keys.get(key)
            if number is None:
                number = self._keys[key] = self._new(told)
            self._lists[id(told)] = number
        return number

    def tables(self, modules: Sequence[Module], names: Iterable[str]) -> Tables:
        """The tables that numbers of stacks, modules and names stand for, with short paths."""
        shown = shown_files({file for file, _, _ in self._frames})
        frames = tuple(
            Frame(shown[file].name, line, name, shown[file].user) for file, line, name in self._frames
        )
        return Tables(tuple(modules), tuple(names), frames, tuple(self._stacks))

    def _new(self, told: list[object]) -> int:
        found = [self._frame(each) for each in told]
        python = [(number, says, library) for number, says, library in found if number >= 0]
        stack = self._stacks.setdefault(tuple(number for number, _, _ in python), len(self._stacks))
        says = _joined(says for _, says, _ in found)
        if python and python[-1][2]:  # a thread of autograd's: a function or a hook with no program below
            says |= BACKWARD
        if python and python[0][1] & MAKE == 0:
            says &= ~MAKE  # only what a module's own __init__ asks for
        number = self._numbers.setdefault((stack, says), len(self._numbers))
        if number == len(self.says):
            self.says.append(says)
            self.tabled.append(stack)
        return number

    def _frame(self, told: object) -> tuple[int, int, bool]:
        """The frame's number, -1 if it is none of Python's; what it says; whether it is torch's."""
        found = self._dicts.get(id(told))
        if found is None:
            found = self._dicts[id(told)] = self._new_frame(told)
        return found

    def _new_frame(self, told: object) -> tuple[int, int, bool]:
        if not isinstance(told, dict):
            return -1, 0, False
        file, name, line = told.get("filename"), told.get("name"), told.get("line")
        file = clean(file) if isinstance(file, str) else ""
        name = clean(name) if isinstance(name, str) else "?"
        line = line if type(line) is int and 0 <= line < 1 << 31 else 0
        if _NATIVE_FILE.search(file) or "::" in name:
            return -1, native_says(name), False
        library = library_file(file) or ""
        number = self._frames.setdefault((file, line, name), len(self._frames))
        return number, PYTHON | python_says(library, name), library.startswith("torch/")


def native_says(function: str) -> int:
    """What a frame of C++ says."""
    return sum(bit for pattern, bit in _NATIVE if pattern.search(function))


def python_says(file: str, function: str) -> int:
    """What a frame of Python says; `file` is within its library, as ``torch/optim/adamw.py``."""
    if file == _MODULE:
        return {"_call_impl": FORWARD, "_wrapped_call_impl": FORWARD, "load_state_dict": LOAD}.get(
            function, MOVE if function in ("_apply", "convert", "to", "cuda") else 0
        )
    if file.startswith("torch/optim/"):
        return _optimizer_says(file, function)
    if file.startswith("torch/nn/modules/"):
        return {"__init__": MAKE, "reset_parameters": MAKE, "forward": FORWARD}.get(function, 0)
    if file == "torch/autograd/graph.py":
        return BACKWARD if function == "_engine_run_backward" else 0
    if file in ("torch/autograd/__init__.py", "torch/_tensor.py"):
        return BACKWARD if function in ("backward", "grad", "_make_grads") else 0
    if file == "transformers/cache_utils.py":
        return CACHE
    if file in _LOADERS or file.startswith("safetensors/"):
        return LOAD
    if file in _DISTRIBUTED:
        return COMMUNICATION
    return FORWARD if function == "forward" else 0  # some stacks lack the calls of modules between


def _optimizer_says(file: str, function: str) -> int:
    """torch wraps every optimizer's step, also those of others (profile_hook_step in optimizer.py)."""
    if function == "zero_grad":
        return ZERO_GRAD
    wrapped = file == "torch/optim/optimizer.py" and function in ("wrapper", "profile_hook_step")
    return STEP if wrapped or (function == "step" and file not in _NOT_STEPPING) else 0


def _joined(says: Iterable[int]) -> int:
    """All that the frames say; of a module's call and an optimizer's step only the innermost.

    (A closure of an optimizer calls the model within its step; no model steps within its forward.)"""
    found = 0
    for each in says:  # innermost first
        found |= each & ~(FORWARD | STEP) if found & (FORWARD | STEP) else each
    return found
