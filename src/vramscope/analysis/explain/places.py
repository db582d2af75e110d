"""Where in the program a moment or a block is, in words."""

from __future__ import annotations

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.lookup import line_of, module_path, phase_of
from vramscope.run.categories import CATEGORIES
from vramscope.run.trace import Column


def count(number: int, thing: str) -> str:
    """A number and its noun: ``1 step``, ``1,200 blocks``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def moment_place(facts: Facts, moment: int) -> str:
    """``in backward, step 2, for ResNet.layer1.0.conv1``, as far as it is known."""
    phase, step = phase_of(facts.trace, moment)
    row = born_at(facts, moment)
    module = "" if row is None else module_path(facts.trace, row)
    line = "" if row is None else block_line(facts, row)
    told = [
        _phase(phase, step),
        f"step {step}" if step is not None else "",
        f"for {module}" if module else "",
        f"at {line}" if line and not module else "",
    ]
    return ", ".join(filter(None, told)) or f"at event {moment:,}"


def _phase(phase: str | None, step: int | None) -> str:
    """Nothing where phases are not known at all, as in a snapshot."""
    if phase in (None, "other"):
        return "between phases" if step is not None else ""
    return f"in {phase.replace('_', ' ')}"


def born_at(facts: Facts, moment: int) -> int | None:
    """The block that an event gave out; None if the event was of another kind."""
    row = int(facts.blocks.born.searchsorted(moment))
    return row if row < len(facts.blocks) and facts.blocks.born[row] == moment else None


def block_line(facts: Facts, row: int) -> str:
    """``train.py:41 in main``, the program's own innermost line that asked for a block; "" if not known."""
    return line_of(facts.trace.tables, int(facts.blocks.stack[row])) or ""


def block_category(facts: Facts, row: int) -> str:
    """What a block is for."""
    return CATEGORIES[int(facts.blocks.category[row])]


def block_words(facts: Facts, row: int) -> str:
    """``activation of Net.a, train.py:10 in main``, as far as it is known."""
    kind = block_category(facts, row).replace("_", " ")
    owner = facts.trace.tables.names[int(facts.blocks.name[row])] or module_path(facts.trace, row)
    line = block_line(facts, row)
    return kind + (f" of {owner}" if owner else "") + (f", {line}" if line else "")


def lines_by_weight(facts: Facts, rows: Column, most: int = 3) -> tuple[str, ...]:
    """The lines that asked for most of some blocks' bytes."""
    return _by_weight([block_line(facts, int(row)) for row in rows], facts.blocks.size_bytes[rows], most)


def modules_by_weight(facts: Facts, rows: Column, most: int = 3) -> tuple[str, ...]:
    """The modules that hold most of some blocks' bytes."""
    return _by_weight(
        [module_path(facts.trace, int(row)) for row in rows], facts.blocks.size_bytes[rows], most
    )


def _by_weight(names: list[str], sizes: Column, most: int) -> tuple[str, ...]:
    totals: dict[str, int] = {}
    for name, size in zip(names, sizes.tolist(), strict=True):
        totals[name] = totals.get(name, 0) + size
    totals.pop("", None)
    return tuple(sorted(totals, key=lambda name: -totals[name])[:most])


def listed(names: tuple[str, ...], most: int = 3) -> str:
    """The first of some names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
