"""The largest value of a knob that runs: values are tried on the virtual card until two neighbours prove it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor

from vramscope.errors import UsageError
from vramscope.planning.guess import ends, next_values
from vramscope.planning.plan import Fit
from vramscope.planning.result import DOES_NOT_FIT, Result

_PROOFS = 3
"""So often is the search taken up again where a followed run contradicts the quick one."""
_DOUBLINGS = 4
"""So often is a first value doubled that fails for another reason than memory: images can be too small."""
_MANY_RETRIES = 6
"""Two for each of a program's steps: beyond the first one it is still short of memory."""

Run = Callable[[int, bool], Result]
"""Runs the cell at a value; True: every allocation is followed, so that a failure names its module."""


def fit(
    run: Run,
    *,
    start: int,
    least: int,
    most: int,
    multiple_of: int = 1,
    margin_bytes: int = 0,
    pool: Executor | None = None,
    knob: str = "",
    card: str = "",
    turned: Mapping[str, str] | None = None,
) -> Fit:
    """The largest multiple between `least` and `most` that ends, with its proof: the next one does not.

    `run` must already keep the margin free.  With a pool, two values are tried at a time.
    UsageError if there is no multiple between the ends."""
    search = _Search(run, multiple_of, least, most, pool)
    search.begin(start)
    proven = 0
    while search.close_in() and proven < _PROOFS:
        proven += 1
    search.look_above()
    low, high = search.ends()
    none, all_ = low < search.least, high > search.most
    return Fit(
        knob=knob,
        card=card,
        turned=turned or {},
        largest=None if none else low * multiple_of,
        ends=search.known.get(low) if not none else None,
        fails_at=None if all_ else high * multiple_of,
        fails=search.known.get(high),
        tried=tuple((value * multiple_of, search.known[value].verdict) for value in search.order),
        multiple_of=multiple_of,
        margin_bytes=margin_bytes,
        note="; ".join(search.notes(low, high)),
    )


class _Search:
    """What was tried so far.  All values are in units of `multiple_of` from here on."""

    def __init__(self, run: Run, unit: int, least: int, most: int, pool: Executor | None) -> None:
        self.least, self.most = -(-least // unit), most // unit
        if self.least > self.most:
            raise UsageError(f"there is no multiple of {unit} from {least} to {most}")
        self.known: dict[int, Result] = {}
        self.order: list[int] = []
        self.unit = unit
        self._run, self._pool = run, pool
        self._width = 1 if pool is None else 2

    def ends(self) -> tuple[int, int]:
        """The largest value that fits and the smallest that does not."""
        return ends(self.known, self.least, self.most)

    def begin(self, start: int) -> None:
        """Tries a first value and its double; larger ones while they fail for another reason than memory."""
        first = min(max(start // self.unit, self.least), self.most)
        self._try((first, 2 * first)[: self._width])
        lowest = self.least
        for _ in range(_DOUBLINGS):
            if not _is_other(self.known[first]) or first == self.most:
                break
            self.least, first = first + 1, min(2 * first, self.most)
            self._try((first,))
        if _is_other(self.known[first]):
            self.least = lowest  # nothing runs anywhere: what is below may

    def close_in(self) -> bool:
        """Narrows the bracket to two neighbours and follows both; False if nothing is left to prove.

        After a bold try that came to little it is halved once, after another one twice, then four times:
        where the guesses are worth nothing they cost little."""
        caution = halvings = 0
        while values := self._next(bold=halvings == 0):
            before = self.ends()
            self._try(values)
            if halvings:
                halvings -= 1
            else:
                caution = 0 if self._came_far(*before) else 2 * caution or 1
                halvings = caution
        return self._prove()

    def _came_far(self, low: int, high: int) -> bool:
        """The last values halved the bracket, or doubled the search's way up."""
        new_low, new_high = self.ends()
        if high > self.most:
            return new_high <= self.most or new_low >= 2 * low
        return 2 * (new_high - new_low) <= high - low

    def _next(self, bold: bool) -> tuple[int, ...]:
        low, high = self.ends()
        if high - low <= 1:
            return ()
        return next_values(self.known, self.least, self.most, width=self._width, bold=bold)

    def _prove(self) -> bool:
        """Follows the two ends; True if that changed a verdict."""
        ends_ = [value for value in self.ends() if value in self.known]
        before = [self.known[value].verdict for value in ends_]
        self._run_all(ends_, followed=True)
        return before != [self.known[value].verdict for value in ends_]

    def look_above(self) -> None:
        """Tries a few values above the end: the allocator's holes may leave one that fits there."""
        low, high = self.ends()
        if self.least <= low and high <= self.most:
            self._try((high + 1, high + max(2, low // 50)))

    def _try(self, values: Iterable[int]) -> None:
        self._run_all(
            [
                each
                for each in dict.fromkeys(values)
                if self.least <= each <= self.most and each not in self.known
            ]
        )

    def _run_all(self, values: list[int], followed: bool = False) -> None:
        if self._pool is None:
            results = [self._run(value * self.unit, followed) for value in values]
        else:
            waiting = [self._pool.submit(self._run, value * self.unit, followed) for value in values]
            results = [each.result() for each in waiting]
        self.order += [value for value in values if value not in self.known]
        self.known.update(zip(values, results, strict=True))

    def notes(self, low: int, high: int) -> Iterable[str]:
        """What must be said beside the two ends."""
        if high > self.most:
            yield f"{self.most * self.unit} is the largest that makes sense; it fits"
        elif _is_other(self.known[high]):
            yield f"{high * self.unit} fails for another reason than memory: {self.known[high].why}"
        if above := [value for value, result in self.known.items() if value > high and result.fits]:
            values = ", ".join(str(value * self.unit) for value in sorted(above))
            yield f"{values} fits all the same: so near to the limit it depends on where holes are left"
        if low in self.known and self.known[low].retries >= _MANY_RETRIES:
            yield self._retries(low)

    def _retries(self, low: int) -> str:
        """A run that lives on giving its cache back is slow."""
        free = [value for value, result in self.known.items() if low > value > low // 2 and _is_calm(result)]
        without = f"; {max(free) * self.unit} runs without" if free else ""
        times = self.known[low].retries
        return (
            f"at {low * self.unit} the allocator gives its cache back {times} times, which is slow{without}"
        )


def _is_calm(result: Result) -> bool:
    return result.fits and not result.retries


def _is_other(result: Result) -> bool:
    """It fails for another reason than memory."""
    return not result.fits and result.verdict != DOES_NOT_FIT
