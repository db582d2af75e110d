"""What puzzles people about a run's memory, answered with the run's own numbers, and only where it applies.

A new question is a function that yields findings, and a line below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from vramscope.analysis.explain.autocast import cache_never_freed
from vramscope.analysis.explain.checkpointing import checkpointing_covers_nothing
from vramscope.analysis.explain.facts import Facts, facts_of
from vramscope.analysis.explain.finding import Finding, in_order
from vramscope.analysis.explain.first_step import first_step_differs
from vramscope.analysis.explain.frozen import freeze_freezes_nothing
from vramscope.analysis.explain.gradients import gradients_through_evaluation, gradients_through_forward
from vramscope.analysis.explain.inference import forward_without_backward
from vramscope.analysis.explain.kv_cache import cache_in_training
from vramscope.analysis.explain.leak import leaks
from vramscope.analysis.explain.logits import large_logits
from vramscope.analysis.explain.lora import lora_base_trains
from vramscope.analysis.explain.lower import lower_the_peak
from vramscope.analysis.explain.outside import total_above_reserved
from vramscope.analysis.explain.peak import peak_made_of
from vramscope.analysis.explain.reserved import reserved_above_allocated
from vramscope.analysis.explain.rounding import allocated_above_requested
from vramscope.analysis.explain.trouble import allocator_retried, ran_out_of_memory
from vramscope.analysis.explain.unused import optimizer_holds_frozen, trainable_without_gradient
from vramscope.run.run import IMPORTED, Run

OF_A_REPORT: tuple[Callable[[Run], Iterable[Finding]], ...] = (
    ran_out_of_memory,
    total_above_reserved,
    allocator_retried,
)
"""Questions that the report answers."""

OF_A_TRACE: tuple[Callable[[Facts], Iterable[Finding]], ...] = (
    peak_made_of,
    reserved_above_allocated,
    allocated_above_requested,
    first_step_differs,
    large_logits,
    leaks,
    freeze_freezes_nothing,
    lora_base_trains,
    checkpointing_covers_nothing,
    gradients_through_forward,
    gradients_through_evaluation,
    forward_without_backward,
    cache_never_freed,
    cache_in_training,
    trainable_without_gradient,
    optimizer_holds_frozen,
)
"""Questions that take the allocator's history."""


def explain(run: Run, others: Sequence[Run] = ()) -> tuple[Finding, ...]:
    """The answers for a run, those with most bytes at stake first.

    `others` are runs of the same program under other settings: what a change saves that the recorded
    bytes cannot tell, they can."""
    found = [finding for question in OF_A_REPORT for finding in question(run)]
    facts = facts_of(run, run.trace, tuple(others)) if run.trace is not None else None
    if facts is not None:
        found += [finding for question in OF_A_TRACE for finding in question(facts)]
        found += lower_the_peak(facts, found)
    return in_order(found)


def cannot_tell(run: Run) -> tuple[str, ...]:
    """What of a run is not known, so that some questions stay without an answer."""
    found = []
    if run.report is None:
        what = "a snapshot" if run.origin == IMPORTED else "a run without a report"
        found.append(f"{what} knows neither the card nor what the process held outside the allocator")
    elif run.report.stopped.partial:
        found.append("the program was cut off: what would have come later is in no answer")
    if run.trace is None or not run.trace.moments:
        found.append("no history of the allocator is in the run: what made the peak is not known")
        return tuple(found)
    if len(run.traces) > 1:
        shown = f"process {run.trace.pid} on cuda:{run.trace.device}"
        found.append(
            f"of {len(run.traces)} histories only that of {shown} is explained, which allocated most"
        )
    tables = run.trace.tables
    if len(tables.modules) < 2:
        found.append("no modules are known: nothing is said about layers, frozen ones and checkpoints")
    if not any(span.phase in ("backward", "optimizer_step") for span in run.trace.spans):
        found.append("no training step is known: nothing is said about steps and optimizers")
    return (*found, *run.trace.notes)
