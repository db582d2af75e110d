"""What each block of an imported history was for, as far as stacks and lifetimes tell.

The order of the rules, first match wins:
 1. the program said so, in the metadata of an exported run
 2. asked for by a library as its workspace, by torch.distributed, by transformers' cache of keys and values:
    these stacks leave no doubt; or by autocast, and half as large as something that stays: autocast_cache
 3. of a size that torch gives cuBLAS and never freed, where no other tensor is likely to be: workspace
 4. in an optimizer's step: optimizer_state if it outlives the step
 5. moved, loaded or made by a module: parameter (a few of them are buffers, which no stack tells apart)
 6. born and freed within one phase: temporary
 7. born in a forward that a backward follows and alive after it: activation
 8. born in a backward and alive after it: gradient
 9. unknown, of which inputs are the most"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vramscope.run import categories as names
from vramscope.run.categories import INDEX
from vramscope.run.categorize import CUBLAS_WORKSPACES
from vramscope.run.imported.stacks import (
    BACKWARD,
    CACHE,
    CAST,
    COMMUNICATION,
    FORWARD,
    LOAD,
    MAKE,
    MOVE,
    STEP,
    WORKSPACE,
)
from vramscope.run.trace import Column, Span


def kinds_of(blocks: Mapping[str, Column], moments: int, says: Column, spans: Sequence[Span]) -> Column:
    """uint8[blocks], the category; `says` are the bits of the stack that each was asked for with."""
    born, freed = blocks["born"], blocks["freed"]
    firsts = np.array([span.first for span in spans])
    phases = np.array([span.phase for span in spans])
    at_birth = np.clip(np.searchsorted(firsts, np.maximum(born, 0), "right") - 1, 0, None)
    at_end = np.clip(np.searchsorted(firsts, freed, "right") - 1, 0, None)
    alive, before = freed >= moments, born < 0
    phase = np.where(before, _phase_told(says), phases[at_birth])
    within = ~before & ~alive & (at_birth == at_end)
    forward = phase == "forward"
    trains = bool(np.any(phases == "backward"))

    def through(bits: int) -> Column:
        found: Column = says & bits > 0
        return found

    rules = (
        (through(WORKSPACE), names.WORKSPACE),
        (through(CAST) & _halves(blocks, alive), names.AUTOCAST_CACHE),
        (through(COMMUNICATION), names.COMMUNICATION),
        (through(CACHE), names.KV_CACHE),
        (_for_cublas(blocks["requested_bytes"], forward) & alive, names.WORKSPACE),
        ((phase == "optimizer_step") & within, names.TEMPORARY),
        (phase == "optimizer_step", names.OPTIMIZER_STATE),
        (through(MOVE | LOAD | MAKE) & ~within, names.PARAMETER),
        (within, names.TEMPORARY),
        (forward & trains & ~(before & alive), names.ACTIVATION),
        (phase == "backward", names.GRADIENT),
    )
    chosen = [where for where, _ in rules]
    return np.select(chosen, [INDEX[name] for _, name in rules], INDEX[names.UNKNOWN]).astype(np.uint8)


def _for_cublas(requested: Column, forward: Column) -> Column:
    """8,320 KiB no tensor is likely to have; one of 32 MiB that stays may be a gradient, but not in a forward."""
    usual = requested == CUBLAS_WORKSPACES[0]
    found: Column = usual | (np.isin(requested, CUBLAS_WORKSPACES) & forward)
    return found


def _halves(blocks: Mapping[str, Column], alive: Column) -> Column:
    """Half as large as one that stays: autocast keeps casts of parameters, those of activations it does not."""
    found: Column = np.isin(blocks["requested_bytes"] * 2, blocks["requested_bytes"][alive])
    return found


def _phase_told(says: Column) -> Column:
    """The phase of a block that was there before, by its stack alone."""
    found: Column = np.select(
        [says & BACKWARD > 0, says & STEP > 0, says & FORWARD > 0],
        ["backward", "optimizer_step", "forward"],
        "other",
    )
    return found
