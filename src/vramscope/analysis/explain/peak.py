"""What the peak is made of, and at which moment it is reached."""

from __future__ import annotations

from collections.abc import Iterator

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import Evidence, Finding
from vramscope.analysis.explain.places import block_words, count, moment_place
from vramscope.analysis.peak import Peak, peak
from vramscope.run.categories import INDEX, UNKNOWN, plural
from vramscope.units import format_bytes


def peak_made_of(facts: Facts) -> Iterator[Finding]:
    """The allocated bytes at their highest moment, by category."""
    found = peak(facts.trace, facts.peak, facts.run.report)
    assert found is not None
    first = found.categories[0]
    share = f"{100 * first.size_bytes / found.allocated_bytes:.0f} %"
    most = f"{share} of it is {plural(first.name)}."
    if first.name == UNKNOWN:
        most = f"What {share} of it is for is not known."
    yield Finding(
        "peak",
        f"What is the peak of {format_bytes(found.allocated_bytes)} made of?",
        f"Allocated memory is highest {moment_place(facts, found.moment)}. {most}",
        found.allocated_bytes,
        evidence=tuple(_parts(facts, found)),
        where=tuple(filter(None, (found.module, found.line))),
    )


def _parts(facts: Facts, found: Peak) -> Iterator[Evidence]:
    rows = facts.live(found.moment)
    for each in found.categories:
        mine = rows[facts.blocks.category[rows] == INDEX[each.name]]
        row = int(mine[facts.blocks.size_bytes[mine].argmax()])
        size = format_bytes(int(facts.blocks.size_bytes[row]))
        many = f"{count(each.blocks, 'block')}, the largest {size}: " if each.blocks > 1 else ""
        yield Evidence(plural(each.name), each.size_bytes, many + block_words(facts, row))
