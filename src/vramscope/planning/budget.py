"""How a workload gets by with less memory: changes are tried alone, then together, the least intrusive first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor

from vramscope.jobs.technique import Maths
from vramscope.jobs.work import Work
from vramscope.planning.plan import Budget, Way
from vramscope.planning.result import DOES_NOT_FIT, FITS, Result
from vramscope.planning.stacks import Alone, Stack, distinct, likely, set_in, together, weight
from vramscope.planning.ways import Change, changes_for, with_changes

_NOTABLE = 0.005
"""A change that saves a smaller share of what is needed is left aside."""
_PER_LEVEL = 2
"""So many ways at each level of Maths, of those that need a single change."""
_MOST_WAYS = 5
_GUESSES = 6
"""So many stacks are tried at each level."""
_ANCHORS = 2
"""So many changes of a level are tried with all that helps beside them."""
_FRAGMENTS = "allocator"
"""The knob that only helps where there is room, but in pieces."""
_MOST_RUNS = 70
"""Beyond it nothing is made smaller any more."""

Unlimited = Callable[[Work], Result]
"""Runs a workload on the card with memory without end; nothing needs to be followed."""
Within = Callable[[Work, bool], Result]
"""Runs a workload within the budget; True: every allocation is followed."""


def budget(
    work: Work,
    unlimited: Unlimited,
    within: Within,
    *,
    budget_bytes: int,
    card: str,
    pool: Executor | None = None,
) -> Budget:
    """What makes the work fit, each way proven by a run within the budget; no ways if it fits as it is.

    Each change says what it does to the maths; a way has the most of its changes."""
    search = _Search(work, unlimited, within, budget_bytes, pool)
    asked = search.followed(())
    if asked.verdict != DOES_NOT_FIT:
        return Budget(budget_bytes, card, asked, (), tried=search.tried)
    search.measure_alone()
    ways = [way for stack in search.ways() if (way := search.way(stack)).result.fits]
    nearest = () if ways else tuple(search.way(stack) for stack in search.nearest())
    return Budget(budget_bytes, card, asked, tuple(sorted(ways, key=_rank)), nearest, search.tried)


def _rank(way: Way) -> tuple[int, int]:
    return way.intrusion, way.maths


class _Search:
    """What was tried so far."""

    def __init__(
        self, work: Work, unlimited: Unlimited, within: Within, budget_bytes: int, pool: Executor | None
    ) -> None:
        self._work, self._unlimited, self._within = work, unlimited, within
        self._budget_bytes, self._pool = budget_bytes, pool
        self._known: dict[tuple[str, bool], Result] = {}
        self.alone: list[Alone] = []
        self.tried = 0
        self._asked_bytes = 1

    def followed(self, stack: Stack) -> Result:
        """What comes of some changes within the budget, with a history."""
        return self._run(stack, followed=True)

    def fits(self, stack: Stack) -> bool:
        """Some changes together fit; False where they do not go together."""
        return with_changes(self._work, stack) is not None and self._run(stack, followed=False).fits

    def _run(self, stack: Stack, *, followed: bool) -> Result:
        work = with_changes(self._work, stack)
        assert work is not None  # `fits` has looked
        key = repr(work.recipe), followed
        if key not in self._known:
            self.tried += 1
            self._known[key] = self._within(work, followed)
        return self._known[key]

    def measure_alone(self) -> None:
        """Runs every change alone, without a limit, and keeps those that save something, the gentlest first."""
        changes = changes_for(self._work)
        measured = [change for change in changes if change.knob != _FRAGMENTS]
        works = [work for change in measured if (work := with_changes(self._work, [change])) is not None]
        asked, *results = self._map([self._work, *works])
        self.tried += len(results) + 1
        self._asked_bytes = asked.process_total_bytes or 1
        if _least(asked) <= self._budget_bytes:
            self.alone += [self._as_asked(change, asked) for change in changes if change.knob == _FRAGMENTS]
        for change, result in zip(measured, results, strict=True):
            if result.verdict == FITS and self._saves(result, asked):
                total = result.process_total_bytes or 1
                self.alone.append(Alone(change, total, _least(result), total / self._asked_bytes))
        self.alone.sort(key=lambda each: (each.change.intrusion, each.change.maths, each.total_bytes))

    def _as_asked(self, change: Change, asked: Result) -> Alone:
        """A change of how memory is cut up, which shows only where it is short."""
        return Alone(change, self._asked_bytes, _least(asked), 1.0)

    def _saves(self, result: Result, asked: Result) -> bool:
        """It takes notably less in all, or at least allocates less at the peak."""
        total = (result.process_total_bytes or self._asked_bytes) / self._asked_bytes
        return min(total, _least(result) / max(_least(asked), 1)) < 1 - _NOTABLE

    def _map(self, works: Sequence[Work]) -> list[Result]:
        return list((map if self._pool is None else self._pool.map)(self._unlimited, works))

    def ways(self) -> Iterator[Stack]:
        """Stacks that fit: for each level single changes, or a few together that are gentler than those before."""
        found: list[Stack] = []
        for level in Maths:
            found += self._single(level) or self._several(level, found)
        yield from sorted(distinct(found), key=weight)[:_MOST_WAYS]

    def _single(self, level: Maths) -> list[Stack]:
        """Changes of the level that do alone, of different knobs."""
        found: dict[str, Stack] = {}
        for each in self.alone:
            change = each.change
            if change.maths != level or change.knob in found or len(found) == _PER_LEVEL:
                continue
            if each.least_bytes <= self._budget_bytes and self.fits((change,)):
                found[change.knob] = (change,)
        return list(found.values())

    def _several(self, level: Maths, found: Sequence[Stack]) -> list[Stack]:
        """Stacks of the level that fit: one that is gentler than all that touch the maths less, or others."""
        bound = min((weight(stack)[0] for stack in found), default=None)
        times = self._asked_bytes / self._budget_bytes
        for stack in likely(self._helping, level, bound, times, self._goes)[:_GUESSES]:
            if self.fits(stack):
                return [self._fewer(stack)]
        if any(len(stack) == 1 for stack in found):
            return []  # more changes that do more to the maths than the one that is enough
        around = [stack for anchor in self._anchors(level) if (stack := self._around(anchor, level))]
        needed = [stack for stack in around if not any(set_in(other, stack) for other in found)]
        return sorted(needed, key=weight)[:_PER_LEVEL]

    @property
    def _helping(self) -> list[Alone]:
        return [each for each in self.alone if each.change.knob != _FRAGMENTS]

    def _goes(self, stack: Stack) -> bool:
        return with_changes(self._work, stack) is not None

    def _anchors(self, level: Maths) -> list[Change]:
        """The changes of the level that save the most."""
        here = [each for each in self._helping if each.change.maths == level]
        return [each.change for each in sorted(here, key=lambda each: each.total_bytes)[:_ANCHORS]]

    def _around(self, anchor: Change, level: Maths) -> Stack:
        """A change with as little beside it as does; none if it does not do with all that touches the maths less."""
        for beside in dict.fromkeys((Maths(max(level - 1, 0)), level)):
            stack = together(self._helping, beside, self._goes, (anchor,))
            if self.tried < _MOST_RUNS and self.fits(stack):
                return self._gentler(self._fewer(stack, anchor), anchor)
        return ()

    def _fewer(self, stack: Stack, anchor: Change | None = None) -> Stack:
        """Without the changes that are not needed; the most intrusive are given up first."""
        for change in sorted(stack, key=lambda change: (-change.maths, -change.intrusion)):
            less = tuple(each for each in stack if each is not change)
            if change is not anchor and self.tried < _MOST_RUNS and less and self.fits(less):
                stack = less
        return stack

    def _gentler(self, stack: Stack, anchor: Change) -> Stack:
        """With less intrusive positions of the same knobs, where they do."""
        for change in sorted(stack, key=lambda change: -change.intrusion):
            for other in self._milder(change) if change is not anchor else ():
                instead = tuple(other if each is change else each for each in stack)
                if self.tried < _MOST_RUNS and self.fits(instead):
                    stack = instead
                    break
        return stack

    def _milder(self, change: Change) -> Iterable[Change]:
        return [
            each.change
            for each in self.alone
            if each.change.knob == change.knob
            and each.change.maths <= change.maths
            and each.change.intrusion < change.intrusion
        ]

    def nearest(self) -> Iterator[Stack]:
        """Where nothing fits: all that helps, for each level that adds something."""
        stacks = [together(self._helping, level, self._goes) for level in Maths]
        yield from distinct(stack for stack in stacks if stack)[-2:]

    def way(self, stack: Stack) -> Way:
        """A stack with its proof."""
        return Way(
            turned={name: position for change in stack for name, position in change.turned.items()},
            result=self.followed(stack),
            maths=int(max(change.maths for change in stack)),
            intrusion=sum(change.intrusion for change in stack),
            price=tuple(change.price for change in stack),
        )


def _least(result: Result) -> int:
    """What it cannot do without: what is allocated at the peak, and what is outside of the allocator."""
    return (result.peak_allocated_bytes or 0) + (result.outside_bytes or 0)
