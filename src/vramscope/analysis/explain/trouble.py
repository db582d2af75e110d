"""What a report says went wrong: no room for a request, or room only after the cache was given back."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.analysis.explain.finding import RESERVED, UNTRIED, WASTE, WRONG, Evidence, Finding, Remedy
from vramscope.analysis.explain.reserved import EXPANDABLE
from vramscope.run.report import OutOfMemory
from vramscope.run.run import Run
from vramscope.units import format_bytes


def ran_out_of_memory(run: Run) -> Iterator[Finding]:
    """The request that the card had no room for, and what held the card then."""
    oom = run.report.oom if run.report else None
    if oom is None or oom.requested_bytes is None:
        return
    ended = "went on after" if oom.caught else "ended with"
    needs = oom.needs_bytes
    yield Finding(
        "out_of_memory",
        f"Why was there no room for {format_bytes(oom.requested_bytes)}?",
        " ".join(_oom_story(oom, ended)),
        needs or oom.requested_bytes,
        WRONG,
        evidence=tuple(_held(oom)),
        remedies=tuple(_in_pieces(oom)),
        where=(oom.where,) if oom.where else (),
    )


def allocator_retried(run: Run) -> Iterator[Finding]:
    """The card was full, and the allocator gave its cache back to go on."""
    report = run.report
    retries = report.retries if report else ()
    if report is None or not retries or (report.oom is not None and not report.oom.caught):
        return
    total = sum(each.count for each in retries)
    first = retries[0]
    step = f", step {first.step}" if first.step is not None else ""
    yield Finding(
        "retries",
        f"Why did the allocator have to try {'again' if total == 1 else f'{total} times again'}?",
        f"The card was full, first in {first.phase.replace('_', ' ')}{step}: it gave all of its cache back to the "
        "card, and asked again. That stops the card each time, and it asks anew for what it gave back. The job "
        "fits only just; a little more of anything and it runs out of memory.",
        0,
        WASTE,
    )


def _oom_story(oom: OutOfMemory, ended: str) -> Iterator[str]:
    where = f" at {oom.where}" if oom.where else ""
    phase = f" in {oom.phase.replace('_', ' ')}" if oom.phase else ""
    step = f", step {oom.step}" if oom.step is not None else ""
    yield f"The program {ended} a request for {format_bytes(oom.requested_bytes or 0)}{where}{phase}{step}."
    if oom.used_bytes is not None and oom.capacity_bytes is not None:
        free = max(oom.capacity_bytes - oom.used_bytes, 0)
        yield f"{format_bytes(free)} of the card's {format_bytes(oom.capacity_bytes)} were free."
    if _cached(oom) >= (oom.requested_bytes or 0) > 0:
        yield f"{format_bytes(_cached(oom))} were reserved and unused, but in no one piece that was large enough."


def _cached(oom: OutOfMemory) -> int:
    if oom.reserved_bytes is None or oom.allocated_bytes is None:
        return 0
    return oom.reserved_bytes - oom.allocated_bytes


def _held(oom: OutOfMemory) -> Iterator[Evidence]:
    if oom.allocated_bytes is not None:
        yield Evidence("allocated", oom.allocated_bytes)
    if _cached(oom):
        yield Evidence("cached", _cached(oom), "reserved, but not allocated")
    if oom.used_bytes is not None and oom.reserved_bytes is not None and oom.used_bytes > oom.reserved_bytes:
        yield Evidence("outside", oom.used_bytes - oom.reserved_bytes, "context, kernels, other processes")
    yield Evidence("asked for", oom.requested_bytes or 0)


def _in_pieces(oom: OutOfMemory) -> Iterator[Remedy]:
    if _cached(oom) >= (oom.requested_bytes or 0) > 0:
        yield Remedy(EXPANDABLE, None, UNTRIED, of=RESERVED)
