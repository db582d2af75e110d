"""Where a search should look next: pure functions of what was tried.  They choose values, they decide nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from vramscope.planning.result import Result

_SPREAD = 0.8
"""Points for a line are this far apart: nearer ones differ by chance, such as another convolution's workspace."""
_STRIDE = 16
"""Beyond the largest value that fits, a guess goes at most so many times as far."""

Point = tuple[int, int]
"""A value and the bytes that it took."""


def ends(known: Mapping[int, Result], least: int, most: int) -> tuple[int, int]:
    """The largest value that fits below the smallest that does not, and the latter.

    `least` - 1: none fits; `most` + 1: all do."""
    high = min(
        (value for value, result in known.items() if not result.fits and value >= least), default=most + 1
    )
    low = max((value for value in known if least <= value < high), default=least - 1)
    return low, high


def next_values(
    known: Mapping[int, Result], least: int, most: int, *, width: int, bold: bool
) -> tuple[int, ...]:
    """At most `width` values to try next between the ends, the most telling one first.

    `bold`: where the memory is likely to end; otherwise where the bracket is halved."""
    low, high = ends(known, least, most)
    if low < least:
        wanted = [least, *_between(low, high, width)]
    elif high > most:
        wanted = [*(_likely(known, low, high) if bold else []), 2 * low, 4 * low]
        wanted = [min(value, _STRIDE * max(low, 1), most) for value in wanted]
    else:
        wanted = [*(_likely(known, low, high) if bold else []), *_between(low, high, width)]
    inside = dict.fromkeys(min(max(value, low + 1), high - 1) for value in wanted)
    return tuple(value for value in inside if value not in known)[:width]


def _between(low: int, high: int, width: int) -> list[int]:
    """Values that cut a bracket into equal parts."""
    return [low + (high - low) * part // (width + 1) for part in range(1, width + 1)]


def _likely(known: Mapping[int, Result], low: int, high: int) -> list[int]:
    """The last value before the memory is full, and the first that could not run even without a hole in it.

    Between them the allocator gives its cache back and goes on: only running tells.  Nothing where a value that
    fits is already beyond the first: then the guess has nothing more to say."""
    fitting = [(value, result) for value, result in known.items() if result.fits]
    if not fitting or _ends_otherwise(known, high):
        return [low + 1] if fitting else []
    capacity = fitting[0][1].capacity_bytes
    full = crossing(_points(fitting, _total), capacity)
    over = crossing(_points(fitting, _allocated), capacity)
    guesses = [math.floor(full)] if full is not None else []
    guesses += (
        [math.floor(over) + 1] if over is not None else [math.floor(full) + 1] if full is not None else []
    )
    return [value for value in guesses if low < value < high]


def _ends_otherwise(known: Mapping[int, Result], high: int) -> bool:
    """The value that does not run fails for another reason than memory: then the very next may, too."""
    return high in known and known[high].failure is None and known[high].verdict != "does not fit"


def _points(fitting: Sequence[tuple[int, Result]], size: Callable[[Result], int | None]) -> list[Point]:
    sizes = [(value, size(result)) for value, result in fitting]
    return sorted((value, taken) for value, taken in sizes if taken is not None)


def _total(result: Result) -> int | None:
    """What it takes, where that says what it wants: no cache had to be given back."""
    return result.process_total_bytes if not result.retries else None


def _allocated(result: Result) -> int | None:
    if result.peak_allocated_bytes is None:
        return None
    return result.peak_allocated_bytes + (result.outside_bytes or 0)


def crossing(points: Sequence[Point], capacity: int) -> float | None:
    """Where the curve through the last points reaches the capacity; None if that cannot be said."""
    apart: list[Point] = []
    for point in reversed(points):
        if not apart or point[0] <= _SPREAD * apart[-1][0]:
            apart.append(point)
    if len(apart) >= 3 and (found := _parabola(apart[2], apart[1], apart[0], capacity)) is not None:
        return found
    return _line(apart[1], apart[0], capacity) if len(apart) >= 2 else None


def _line(first: Point, second: Point, capacity: int) -> float | None:
    slope = (second[1] - first[1]) / (second[0] - first[0])
    return second[0] + (capacity - second[1]) / slope if slope > 0 else None


def _parabola(first: Point, second: Point, third: Point, capacity: int) -> float | None:
    """As `_line` for a curve that grows faster and faster; None where it does not."""
    (x1, y1), (x2, y2), (x3, y3) = first, second, third
    steep = (y3 - y2) / (x3 - x2)
    bend = (steep - (y2 - y1) / (x2 - x1)) / (x3 - x1)
    slope = steep + bend * (x3 - x2)  # at the last point
    if bend <= 0 or slope <= 0:
        return None
    left = capacity - y3
    inside = slope * slope + 4 * bend * left
    return None if inside < 0 else x3 + (math.sqrt(inside) - slope) / (2 * bend)
