"""The parts of a model that run one after the other: its repeated blocks, and what lies beside them.

A repeated block is a numbered module whose siblings are of its class and have modules of their own, as
``GPT2.h.0`` … ``GPT2.h.11``; of nested ones the outermost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.run.trace import BACKWARD, RECOMPUTE, Column, Module


def repeated_blocks(modules: tuple[Module, ...]) -> tuple[str, ...]:
    """The paths of the repeated blocks."""
    parents = {module.path.rpartition(".")[0] for module in modules}
    numbered = [each for each in modules if each.path.rpartition(".")[2].isdigit() and each.path in parents]
    alike = Counter((each.path.rpartition(".")[0], each.kind) for each in numbered)
    found = {each.path for each in numbered if alike[(each.path.rpartition(".")[0], each.kind)] > 1}
    outermost = (each.path for each in numbered if each.path in found and not _within(each.path, found))
    return tuple(dict.fromkeys(outermost))


def children_of_roots(modules: tuple[Module, ...]) -> tuple[str, ...]:
    """The paths of what the outermost modules consist of."""
    return tuple(each.path for each in modules if each.path.count(".") == 1)


def part_numbers(modules: tuple[Module, ...], parts: tuple[str, ...]) -> Column:
    """int64, for each module the number of the part that it is in or below; -1: none."""
    known = {path: number for number, path in enumerate(parts)}
    return np.array([_part(module.path, known) for module in modules], np.int64)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of parts in forward."""

    of_block: Column
    """int64, for each block the call that made it; -1: none did."""
    end: Column
    """int64, for each call the moment after the last block that it made."""
    output: Column
    """int64, for each call the row of its output; -1: nothing outlived it."""


def calls_of(facts: Facts, parts: tuple[str, ...]) -> Calls:
    """All calls; a part that is called twice in a row counts as called once."""
    part = part_numbers(facts.trace.tables.modules, parts)[facts.blocks.module]
    first = ~facts.has_flag(BACKWARD) & ~facts.has_flag(RECOMPUTE)
    rows = np.flatnonzero(facts.born_in_phase("forward") & first & (part >= 0))
    keys = facts.born_in[rows] * max(len(parts), 1) + part[rows]
    call = np.cumsum(np.diff(keys, prepend=keys[:1]) != 0)
    of_block = np.full(len(facts.blocks), -1, np.int64)
    of_block[rows] = call
    end = np.zeros(int(call[-1]) + 1 if len(call) else 0, np.int64)
    np.maximum.at(end, call, facts.blocks.born[rows] + 1)
    return Calls(of_block, end, _outputs(facts, rows, call, end))


def _outputs(facts: Facts, rows: Column, call: Column, end: Column) -> Column:
    """Of what outlives a call the last that isn't tiny beside the largest (as the statistics of a norm are)."""
    outlives = facts.blocks.freed[rows] >= end[call]
    rows, call = rows[outlives], call[outlives]
    sizes, largest = facts.blocks.size_bytes[rows], np.zeros(len(end), np.int64)
    np.maximum.at(largest, call, sizes)
    sizeable = 16 * sizes >= largest[call]
    found = np.full(len(end), -1, np.int64)
    np.maximum.at(found, call[sizeable], rows[sizeable])
    return found


def _within(path: str, paths: set[str]) -> bool:
    above = path.rpartition(".")[0]
    return bool(above) and (above in paths or _within(above, paths))


def _part(path: str, known: dict[str, int]) -> int:
    while path:
        if path in known:
            return known[path]
        path = path.rpartition(".")[0]
    return -1
