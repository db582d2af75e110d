"""A program while it is being written: a task and the techniques fill its parts, `render` puts them in order."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import indent

from vramscope.jobs.wrapping import wrapped, wrapped_title

_STANDARD = (
    *("contextlib", "copy", "functools", "itertools", "json", "math", "os", "pathlib", "re", "sys"),
    "time",
)


@dataclass(slots=True)
class Script:
    """The parts of a plain PyTorch program, each a list of lines of code (a line may hold several, indented).

    The names that all programs share: ``device``, ``model``, ``batch()``, ``loss``, ``optimizer``, ``trained``
    (the parameters that the optimizer gets), ``step``, BATCH and STEPS."""

    title: str
    """What the program is, for its docstring."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables that must be set before torch is imported."""
    imports: set[str] = field(default_factory=lambda: {"import torch"})
    """Import statements."""
    constants: dict[str, str] = field(default_factory=dict)
    """Names in capitals and their values' code."""
    settings: list[str] = field(default_factory=list)
    """Switches of torch that are set before the model is made."""
    functions: list[str] = field(default_factory=list)
    """Definitions."""
    build_contexts: list[str] = field(default_factory=lambda: ["device"])
    """What `build` runs within; ``device`` makes the model on the card."""
    build: list[str] = field(default_factory=list)
    """Makes ``model``."""
    model: list[str] = field(default_factory=list)
    """What is done to the model then, in order."""
    optimizer: list[str] = field(default_factory=list)
    """Makes ``optimizer`` (and others that `optimizers` names)."""
    own_optimizer: str = ""
    """The line that makes the user's own ``optimizer``, used as long as nobody asks for another."""
    optimizers: list[str] = field(default_factory=lambda: ["optimizer"])
    """The optimizers that step; none: backward itself steps."""
    batch: list[str] = field(default_factory=list)
    """The body of ``batch()``: makes one micro-batch on ``device`` and returns it."""
    fetch: str = "inputs = batch()"
    """The line that takes a batch."""
    contexts: list[str] = field(default_factory=list)
    """What the forward runs within: autocast …"""
    loss: list[str] = field(default_factory=list)
    """Computes ``loss`` from what `fetch` took.  Empty: the program trains nothing."""
    run: list[str] = field(default_factory=list)
    """What a program that trains nothing does with a batch."""
    accumulate: int = 1
    """So many micro-batches per step."""
    scaler: bool = False
    """The loss is scaled by ``scaler``, a GradScaler."""
    before_step: list[str] = field(default_factory=list)
    """Between the last backward and the optimizer: clipping."""
    after_step: list[str] = field(default_factory=list)
    """After the optimizer: an EMA's update."""
    zero_grad: str = "{}.zero_grad()"
    """How gradients are given up; ``{}`` is the optimizer's name."""
    steps: int = 3

    def render(self) -> str:
        """The whole program as text."""
        parts = [
            wrapped_title(self.title),
            "\n".join(self.import_lines()),
            "\n".join(self._constants()),
            "\n".join(self.settings),
            *(f"\n{each}\n" for each in self.functions),
            "\n".join((*_within(self.build_contexts, self.build), *self.model)),
            "\n".join(self.optimizer),
            "\ndef batch():\n" + indent("\n".join(self.batch), "    ") + "\n",
            "\n".join(self._loop()),
        ]
        text = wrapped("\n\n".join(part for part in parts if part.strip()) + "\n")
        ast.parse(text)  # a piece that wrote nonsense shows here, not in a process far away
        return text

    def import_lines(self) -> list[str]:
        """As isort orders them; environment variables come before torch."""
        lines = _merged({*self.imports, *(["import os"] if self.environment else [])})
        standard = sorted(
            (each for each in lines if each.split()[1].split(".")[0] in _STANDARD), key=_import_order
        )
        others = sorted(lines.difference(standard), key=_import_order)
        variables = [
            f'os.environ.setdefault("{name}", "{value}")  # read when torch is loaded'
            for name, value in self.environment.items()
        ]
        return [*standard, *([""] if standard else []), *variables, *([""] if variables else []), *others]

    def step_lines(self) -> list[str]:
        """What follows a loss: backward, and all that a step is."""
        return [self._backward(), *self._step()]

    def _constants(self) -> list[str]:
        constants = {**self.constants, "STEPS": str(self.steps)}
        names, values = ", ".join(constants), ", ".join(constants.values())
        return [f"{names} = {values}", 'device = torch.device("cuda")']

    def _loop(self) -> list[str]:
        body = self._training() if self.loss else [self.fetch, *_within(self.contexts, self.run)]
        return ["for step in range(STEPS):", indent("\n".join(body), "    ")]

    def _training(self) -> list[str]:
        micro = [self.fetch, *_within(self.contexts, self.loss), self._backward()]
        if self.accumulate > 1:
            head = f"for _ in range({self.accumulate}):  # micro-batches of one step"
            micro = [head, indent("\n".join(micro), "    ")]
        return [*micro, *self._step()]

    def _backward(self) -> str:
        loss = f"(loss / {self.accumulate})" if self.accumulate > 1 else "loss"
        return f"scaler.scale({loss.strip('()')}).backward()" if self.scaler else f"{loss}.backward()"

    def _step(self) -> list[str]:
        unscale = (
            [f"scaler.unscale_({each})" for each in self.optimizers]
            if self.scaler and self.before_step
            else []
        )
        stepping = [f"scaler.step({each})" if self.scaler else f"{each}.step()" for each in self.optimizers]
        update = ["scaler.update()"] if self.scaler else []
        zeroing = [self.zero_grad.format(each) for each in self.optimizers]
        return [*unscale, *self.before_step, *stepping, *update, *zeroing, *self.after_step]


def _within(contexts: Sequence[str], lines: Iterable[str]) -> list[str]:
    """The lines under a ``with`` of the contexts."""
    if not contexts:
        return list(lines)
    return [f"with {', '.join(contexts)}:", indent("\n".join(lines), "    ")]


def _import_order(line: str) -> tuple[int, str]:
    """Plain imports before ``from`` ones, each by module."""
    return (line.startswith("from "), line.split()[1].lower())


def _merged(lines: Iterable[str]) -> set[str]:
    """One ``from`` import per module."""
    names: dict[str, set[str]] = {}
    for line in lines:
        module, _, imported = line.partition(" import ")
        names.setdefault(module, set()).update(filter(None, imported.split(", ")))
    return {
        f"{module} import {', '.join(sorted(found, key=_name_order))}" if found else module
        for module, found in names.items()
    }


def _name_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as isort has them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)
