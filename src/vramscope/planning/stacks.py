"""Changes put together: which stacks are worth a run, and in which order.  Nothing is decided here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from vramscope.jobs.technique import Maths
from vramscope.planning.ways import Change

_DEEPEST = 4
"""So many changes together are looked for; what needs more is made of all that help."""
_HOPE, _DOUBT = 1.25, 2
"""A stack is tried up to so many times the budget by guess; beyond the budget it counts as so much more intrusive."""
_ALIKE = 0.02
"""Savings that differ by less of what is needed are alike: another moment may be the peak then."""

Stack = tuple[Change, ...]
Goes = Callable[[Stack], bool]
"""Whether changes go with each other."""


@dataclass(frozen=True, slots=True)
class Alone:
    """A change that was made alone."""

    change: Change
    total_bytes: int
    """What the process takes then, without a limit."""
    least_bytes: int
    """Less than this it cannot take, however often the allocator gives its cache back."""
    share: float
    """`total_bytes` over what is taken without the change."""


def weight(stack: Stack) -> tuple[int, int]:
    """How intrusive a stack is, and what it does to the maths."""
    return sum(change.intrusion for change in stack), max(change.maths for change in stack)


def distinct(stacks: Iterable[Stack]) -> list[Stack]:
    """Each set of changes once."""
    found: list[Stack] = []
    for stack in stacks:
        if not any(len(stack) == len(other) and set_in(stack, other) for other in found):
            found.append(stack)
    return found


def set_in(few: Stack, many: Stack) -> bool:
    """All changes of one stack are in another."""
    return all(each in many for each in few)


def likely(alone: Sequence[Alone], level: Maths, bound: int | None, times: float, goes: Goes) -> list[Stack]:
    """Two to four changes of a level that may do together, the least intrusive first; below a bound of intrusion.

    `times`: how often what is needed holds the budget.  What changes save together is guessed from what each
    saves alone."""
    allowed = [each for each in alone if each.change.maths <= level]
    found: list[tuple[int, float, Stack]] = []
    for size in range(2, _DEEPEST + 1):
        for few in combinations(allowed, size):
            stack = tuple(each.change for each in few)
            intrusion, maths = weight(stack)
            share = _left(few) * times
            if maths == level and share <= _HOPE and (bound is None or intrusion < bound) and _apart(stack):
                found.append((intrusion, share, stack))
    found.sort(key=lambda each: (each[0] + (_DOUBT if each[1] > 1 else 0), each[1]))
    return [stack for _, _, stack in found if goes(stack)]


def together(alone: Sequence[Alone], level: Maths, goes: Goes, first: Stack = ()) -> Stack:
    """For each knob the change up to the level that saves the most, as far as they go with each other.

    Of those that save alike, the more intrusive one: alone it may not show what it can."""
    stack = first
    chosen = [each for each in alone if each.change.maths <= level]
    for each in sorted(chosen, key=lambda each: (round(each.share / _ALIKE), -each.change.intrusion)):
        more = (*stack, each.change)
        if _apart(more) and goes(more):
            stack = more
    return stack


def _left(few: Sequence[Alone]) -> float:
    """The share that changes are likely to leave: between what each leaves of the last and what none shares."""
    one_by_one = math.prod(each.share for each in few)
    side_by_side = max(1 - sum(1 - each.share for each in few), 0.0)
    return (one_by_one + side_by_side) / 2


def _apart(stack: Stack) -> bool:
    """Every change is of a knob of its own."""
    return len({change.knob for change in stack}) == len(stack)
