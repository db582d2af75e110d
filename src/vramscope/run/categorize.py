"""What each block was for: from what claimed it, and else from when it was born and when it was freed.

The order of the rules, first match wins:
 1. claimed by address: parameters, buffers, gradients, optimizer states (annotated at the boundaries of
    phases), workspaces and communication buffers (the libraries were given their addresses), inputs
 2. made by transformers' cache of keys and values: kv_cache
 3. a half-precision copy of a parameter of the module that runs under autocast: autocast_cache
 4. born and freed within one phase: temporary
 5. a size that torch gives cuBLAS as its workspace, and never freed: workspace
 6. born in a forward (or as a checkpoint's recomputation) and alive after it: activation
 7. born in a backward and alive after it: gradient; in an optimizer's step: optimizer_state
 8. made by moving a module (``Module.to``): parameter
 9. born between phases and gone by the end of the step: input
10. unknown"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vramscope.run import categories as names
from vramscope.run.categories import INDEX
from vramscope.run.owners import Claims
from vramscope.run.trace import AUTOCAST, BACKWARD, RECOMPUTE, Column, Span, Tables

CUBLAS_WORKSPACES = (8519680, 33554432, 1048576)
"""Bytes: 4096 KiB x 2 + 16 KiB x 8 by default, 32 MiB from sm_90 on, and cuBLASLt's 1 MiB
(aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize and getCUDABlasLtWorkspaceSize, torch 2.14)."""


@dataclass(frozen=True, slots=True)
class Origins:
    """Where each block was asked for."""

    module: Column
    flags: Column
    stack: Column
    casts: Mapping[int, tuple[int, ...]]


def categories_of(
    blocks: Mapping[str, Column],
    moments: int,
    spans: Sequence[Span],
    origins: Origins,
    claims: Claims,
    tables: Tables,
) -> tuple[Column, Column, Column]:
    """The columns category, module and name."""
    born, freed = blocks["born"], blocks["freed"]
    phase, stretch, step = _at(spans, np.maximum(born, 0))
    _, last_stretch, last_step = _at(spans, freed)
    alive = freed >= moments
    within = (stretch == last_stretch) & ~alive
    backward, recomputed = (origins.flags & bit > 0 for bit in (BACKWARD, RECOMPUTE))
    forward = np.isin(phase, ("forward", "evaluation"))
    outside = (origins.module == 0) & ~backward
    between = np.isin(phase, ("other", "zero_grad", "init"))
    kind = np.array(claims.kind, dtype=object) if len(born) else np.empty(0, object)
    not_claimed = (kind == "") | ((kind == names.INPUT) & ~outside)
    rules = (
        (_made_in(tables, origins.stack, ("transformers/cache_utils.py",)), names.KV_CACHE),
        (_casts(blocks, origins, forward), names.AUTOCAST_CACHE),
        (within & ~(recomputed & (phase == "backward")), names.TEMPORARY),
        (np.isin(blocks["requested_bytes"], CUBLAS_WORKSPACES) & alive & (phase != "init"), names.WORKSPACE),
        (forward | (recomputed & (phase == "backward")), names.ACTIVATION),
        (phase == "backward", names.GRADIENT),
        (phase == "optimizer_step", names.OPTIMIZER_STATE),
        (
            _made_in(tables, origins.stack, ("torch/nn/modules/module.py",), ("convert", "_apply")),
            names.PARAMETER,
        ),
        (between & outside & ~alive & (last_step <= step + 1) & (phase != "init"), names.INPUT),
    )
    found = np.select([where for where, _ in rules], [INDEX[name] for _, name in rules], INDEX[names.UNKNOWN])
    claimed = np.array([INDEX.get(each, INDEX[names.UNKNOWN]) for each in kind], np.uint8)
    category = np.where(not_claimed, found, claimed).astype(np.uint8)
    return category, _modules(origins.module, claims.name, tables), claims.name


def _at(spans: Sequence[Span], moments: Column) -> tuple[Column, Column, Column]:
    """Phase, stretch and step at moments; spans that follow each other in one phase are one stretch."""
    index = np.clip(np.searchsorted([span.first for span in spans], moments, "right") - 1, 0, None)
    phases = np.array([span.phase for span in spans])
    steps = np.array([span.step or 0 for span in spans])
    stretches = np.concatenate(([0], np.cumsum(phases[1:] != phases[:-1])))
    return phases[index], stretches[index], steps[index]


def _made_in(
    tables: Tables, stack: Column, files: tuple[str, ...], functions: tuple[str, ...] = ()
) -> Column:
    """Whether a stack goes through one of the files (and functions)."""
    frames = {
        number
        for number, frame in enumerate(tables.frames)
        if frame.file in files and (not functions or frame.function in functions)
    }
    through = np.array([not frames.isdisjoint(each) for each in tables.stacks], bool)
    found: Column = through[stack]
    return found


def _casts(blocks: Mapping[str, Column], origins: Origins, forward: Column) -> Column:
    """Copies of parameters under autocast: in a call of a module, each of its own ones at most once.

    The sizes alone would also take an output that happens to be as large as a weight; but weights are cast
    before the output is made (aten/src/ATen/autocast_mode.cpp, cached_cast)."""
    found = np.zeros(len(blocks["born"]), bool)
    rows = np.flatnonzero(forward & (origins.flags & AUTOCAST > 0) & (origins.module > 0))
    left: list[int] = []
    before = -1
    for row in rows.tolist():
        module = int(origins.module[row])
        if module != before:
            left, before = list(origins.casts.get(module, ())), module
        if (size := int(blocks["requested_bytes"][row])) in left:
            left.remove(size)
            found[row] = True
    return found


def _modules(asked_in: Column, name: Column, tables: Tables) -> Column:
    """A block with a name belongs to the module that its tensor is in, whoever ran when it was made."""
    paths = {module.path: number for number, module in enumerate(tables.modules)}
    of_name = np.array([paths.get(_module_path(each), -1) for each in tables.names], np.int32)
    owner = of_name[name]
    found: Column = np.where((name > 0) & (owner >= 0), owner, asked_in)
    return found


def _module_path(name: str) -> str:
    """``Net.fc`` of ``Net.fc.weight`` and of ``Net.fc.weight exp_avg``."""
    return name.partition(" ")[0].rpartition(".")[0]
