"""What would lower the peak, and by how much: every change whose saving the recorded bytes show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from vramscope.analysis.explain.checkpointing import checkpointing_remedies
from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import ALLOCATED, Finding, Remedy
from vramscope.analysis.explain.optimizer import optimizer_remedies
from vramscope.analysis.explain.outputs import output_remedies
from vramscope.units import format_bytes

LEAST_SHARE = 0.005
"""Of the peak; what saves less is not worth a change."""
REMEDIES: tuple[Callable[[Facts], Iterable[Remedy]], ...] = (
    optimizer_remedies,
    output_remedies,
    checkpointing_remedies,
)
"""Those that belong to no puzzle of their own."""


def lower_the_peak(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The changes of the other answers and these, each alone, by what they save."""
    found = [remedy for each in REMEDIES for remedy in each(facts)]
    found += [replace(remedy, note="") for finding in findings for remedy in finding.remedies]
    least = LEAST_SHARE * facts.peak_bytes
    known = [each for each in found if each.of == ALLOCATED and (each.saved_bytes or 0) > least]
    if not known:
        return
    known.sort(key=lambda each: -(each.saved_bytes or 0))
    first: dict[str, Remedy] = {}
    for each in known:
        first.setdefault(each.change, each)
    yield Finding(
        "lower",
        f"What would lower the peak of {format_bytes(facts.peak_bytes)}?",
        "Each of these alone, to the next highest moment; what two of them save together is not their sum.",
        known[0].saved_bytes or 0,
        remedies=tuple(first.values()),
    )
