"""Modules' paths as code."""

from __future__ import annotations

import json
from collections.abc import Sequence

_SHORT = 90


def names_code(paths: Sequence[str]) -> str:
    """A list of paths as code: as a range where they are counted in one container, else name by name."""
    return _counted(paths) or _written(paths)


def _counted(paths: Sequence[str]) -> str | None:
    heads, tails = zip(*(path.rpartition(".")[::2] for path in paths), strict=True)
    if len(paths) < 3 or len(set(heads)) > 1 or not all(tail.isdigit() for tail in tails):
        return None
    numbers = [int(tail) for tail in tails]
    step = numbers[1] - numbers[0]
    counted = range(numbers[0], numbers[-1] + 1, step) if step > 0 else range(0)
    if list(counted) != numbers:
        return None
    bounds = [str(each) for each in (counted.start, counted.stop, counted.step)]
    bounds = bounds[: 3 if step > 1 else 2]
    return f'(f"{heads[0]}.{{index}}" for index in range({", ".join(bounds)}))'


def _written(paths: Sequence[str]) -> str:
    code = ", ".join(json.dumps(path) for path in paths)
    if len(code) < _SHORT:
        return f"[{code}]"
    return "[\n" + "".join(f"    {json.dumps(path)},\n" for path in paths) + "]"
