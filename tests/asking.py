"""Questions asked of stories, and training loops in a few words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from traces import Story
from vramscope.analysis.explain.facts import Facts, facts_of
from vramscope.analysis.explain.finding import Finding
from vramscope.run.run import Run
from vramscope.run.trace import Blocks, Segments, Trace

KIB, MIB = 1 << 10, 1 << 20
_T = TypeVar("_T")


def facts(told: Story | Trace, *others: Run, run: Run | None = None) -> Facts:
    """What the questions get to see."""
    trace = told.trace() if isinstance(told, Story) else told
    found = facts_of(run or Run(None, origin="imported", traces=(trace,)), trace, others)
    assert found is not None
    return found


def ask(question: Callable[[Facts], Iterable[_T]], told: Story | Trace, *others: Run) -> list[_T]:
    """The answers of one question."""
    return list(question(facts(told, *others)))


def the_answer(question: Callable[[Facts], Iterable[_T]], told: Story | Trace, *others: Run) -> _T:
    """The one answer that there is."""
    (found,) = ask(question, told, *others)
    return found


def figures(finding: Finding) -> dict[str, int]:
    """The evidence, by its labels."""
    return {each.label: each.size_bytes for each in finding.evidence}


def blocks_with(trace: Trace, **columns: Any) -> Trace:
    """The trace with other columns of its blocks."""
    kept = {name: getattr(trace.blocks, name) for name in Blocks.__slots__}
    return replace(trace, blocks=Blocks(**{**kept, **columns}))


def segments_with(trace: Trace, **columns: Any) -> Trace:
    """The trace with other columns of its segments."""
    kept = {name: getattr(trace.segments, name) for name in Segments.__slots__}
    return replace(trace, segments=Segments(**{**kept, **columns}))
