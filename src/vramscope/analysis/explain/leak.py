"""Memory that grows from step to step: the same line makes it in each, and nobody gives it back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import WRONG, Evidence, Finding
from vramscope.analysis.explain.places import block_line, block_words, count
from vramscope.run.categories import ACTIVATION, INPUT, KV_CACHE, TEMPORARY, UNKNOWN
from vramscope.run.trace import Column
from vramscope.units import format_bytes

_NAMED = 5
"""So many steps, and kinds of blocks, are named."""
_SOON = 1_000_000
"""Steps after which nobody fears to run out of memory."""


def leaks(facts: Facts) -> Iterator[Finding]:
    """Blocks of one stack that at least two steps before the last made and nobody freed.

    What the last step made may be given up by a next one, so it is no proof."""
    rows = _never_freed(facts)
    groups = [group for group in _alike(facts, rows) if len(_steps(facts, group)) > 1]
    if not groups:
        return
    groups.sort(key=lambda group: -int(facts.blocks.size_bytes[group].sum()))
    every = np.concatenate(groups)
    steps = _steps(facts, every)
    total = int(facts.blocks.size_bytes[every].sum())
    each = total // len(steps)
    lines = tuple(dict.fromkeys(filter(None, (block_line(facts, int(group[0])) for group in groups))))
    yield Finding(
        "leak",
        f"Why does memory grow by {format_bytes(each)} each step?",
        " ".join(_story(facts, lines, steps, each)),
        total,
        WRONG,
        evidence=tuple(_parts(facts, groups)),
        where=lines[:3],
    )


def _never_freed(facts: Facts) -> Column:
    born = facts.born_step
    last = facts.steps[-1] if facts.steps else 0
    passing = facts.of(ACTIVATION, TEMPORARY, INPUT, KV_CACHE, UNKNOWN) & ~facts.born_in_phase("init")
    kept = facts.blocks.freed == facts.trace.moments
    found: Column = np.flatnonzero(passing & kept & (born > 0) & (born < last))
    return found


def _alike(facts: Facts, rows: Column) -> list[Column]:
    """The rows by stack and module."""
    if not len(rows):
        return []
    keys = (
        facts.blocks.stack[rows].astype(np.int64) * len(facts.trace.tables.modules)
        + facts.blocks.module[rows]
    )
    which = np.unique(keys, return_inverse=True)[1]
    order = np.argsort(which, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(which[order])) + 1)


def _steps(facts: Facts, rows: Column) -> Column:
    found: Column = np.unique(facts.born_step[rows])
    return found


def _story(facts: Facts, lines: tuple[str, ...], steps: Column, each: int) -> Iterator[str]:
    made = f"made at {lines[0]}" if lines else "made without a Python line on the stack, in backward perhaps"
    named = ", ".join(str(facts.step_number(step)) for step in steps[:_NAMED].tolist())
    more = " …" if len(steps) > _NAMED else ""
    yield (
        f"Blocks {made} in steps {named}{more} were never given back: something still refers to them, as a list "
        "that collects losses or outputs does."
    )
    left = _left(facts)
    if left is not None and left // max(each, 1) < _SOON:
        yield f"At that rate the card is full after {count(max(left // each, 0), 'more step')}."


def _left(facts: Facts) -> int | None:
    """What the card had left at the peak; None: not known."""
    report = facts.run.report
    if report is None or report.peaks.process_total_bytes is None or report.oom is not None:
        return None
    memory = report.card.memory_bytes if report.capacity_bytes is None else report.capacity_bytes
    return memory - report.peaks.process_total_bytes


def _parts(facts: Facts, groups: list[Column]) -> Iterator[Evidence]:
    for group in groups[:_NAMED]:
        size = int(facts.blocks.size_bytes[group].sum())
        yield Evidence("kept", size, f"{count(len(group), 'block')}: {block_words(facts, int(group[0]))}")
