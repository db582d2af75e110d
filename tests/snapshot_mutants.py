"""Snapshot files that are wrong: real ones with bytes changed, and with fields of another type, size or place."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bytes_changed import cut, flipped, moved
from histories import BASE, MIB, block, event, frame, freed, segment, snapshot
from traces import training_story
from vramscope.views.snapshot import snapshot_of

PUBLIC = Path(__file__).parents[2] / "shared/truth/snapshots"
"""Snapshots that others published; where they are not, the small ones have to do."""
_LARGEST = 300_000
WORDS: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        1,
        511,
        1 << 20,
        1 << 31,
        (1 << 40) + 1,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        (1 << 64) - 1,
    ),
    *(
        -(1 << 63),
        0.5,
        float("inf"),
        float("nan"),
        "",
        "a",
        "\x1b[31m",
        "\ud800",
        "é" * 3000,
        "[bold]",
        [],
        {},
    ),
    *(
        [[]],
        [None] * 3,
        [0],
        {"a": 1},
        {1: {}},
        (0, 0),
        (),
        "inactive",
        "active_allocated",
        "alloc",
        "segment_map",
    ),
    *(
        "segment_unmap",
        "free_completed",
        "oom",
        "annotate",
        "category: input; module: a",
        "END",
        "../../x.py",
    ),
]
"""What a value is changed to."""


def _small() -> dict[str, Any]:
    """All kinds of events and fields, in few."""
    stack = [frame("/a/net.py", 3, "forward"), frame("/a/train.py", 7, "<module>")]
    mapped = segment(BASE, 40 * MIB, block(BASE, 4 * MIB, frames=stack), is_expandable=True)
    return snapshot(
        event("segment_alloc", BASE + 64 * MIB, 20 * MIB, 5, frames=stack),
        event("alloc", BASE + 64 * MIB, 5 * MIB, 6, frames=stack, user_metadata="category: activation"),
        event("segment_map", BASE + 20 * MIB, 20 * MIB, 7, pool_id=(0, 1)),
        event("alloc", BASE + 4 * MIB, 30 * MIB, 8, frames=[]),
        event("annotate", BASE + 4 * MIB, 0, 9, user_metadata="x"),
        *freed(BASE + 4 * MIB, 30 * MIB, 10),
        event("segment_unmap", BASE + 20 * MIB, 20 * MIB, 11),
        event("oom", 0, 1 << 45, 12, device_free=7),
        *freed(BASE + 64 * MIB, 5 * MIB, 13),
        event("segment_free", BASE + 64 * MIB, 20 * MIB, 14),
        event("segment_map", BASE + 20 * MIB, 20 * MIB, 15),
        event("snapshot", 0, 0, 16),
        segments=[mapped, segment(BASE + 128 * MIB, 2 * MIB, block(BASE + 128 * MIB, 512, 3))],
        external_annotations=[
            {"device": 0, "name": "Optimizer.step#A", "stage": "START", "time_us": 8},
            {"device": 0, "name": "Optimizer.step#A", "stage": "END", "time_us": 11},
        ],
        allocator_settings={
            "expandable_segments": True,
            "max_split_size": -1,
            "roundup_power2_divisions": {"1": 4},
        },
    )


@cache
def originals() -> tuple[bytes, ...]:
    """Files that are right."""
    made = (_small(), snapshot_of(training_story().run()))
    public = sorted(PUBLIC.glob("*.pickle")) if PUBLIC.is_dir() else []
    small = [path.read_bytes() for path in public if path.stat().st_size < _LARGEST]
    return (*(pickle.dumps(each, protocol) for each in made for protocol in (2, 4, 5)), *small)


def mutant(seed: int) -> bytes:
    """The wrong file of that number; the same one each time on the same originals."""
    chance = random.Random(seed)
    data = chance.choice(originals())
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice((flipped, cut, moved, _reworded, _reworded, _reworded, _reworded))(data, chance)
    return data


def _reworded(data: bytes, chance: random.Random) -> bytes:
    """A whole pickle again, of other values; one that is none any more stays as it is.

    What is loaded here is only what this file wrote, or a few changed bytes of it."""
    from vramscope.errors import RunError
    from vramscope.run.unpickle import unpickled

    try:
        value = unpickled(data)
    except RunError:
        return data
    for _ in range(chance.randint(1, 3)):
        _change(value, chance)
    return pickle.dumps(value, chance.choice((2, 4, 4, 4, 5)))


def _change(value: Any, chance: random.Random) -> None:
    """One value somewhere in it, in place: another one, none at all, or two that change places."""
    path: list[Any] = [value]
    while isinstance(path[-1], (dict, list)) and path[-1] and (len(path) < 3 or chance.random() < 0.9):
        last = path[-1]
        path.append(last[chance.choice(list(last) if isinstance(last, dict) else range(len(last)))])
    holders = [each for each in path if isinstance(each, (dict, list)) and each]
    if holders:
        chance.choice(_CHANGES)(holders[-1], chance)


def _key(holder: Any, chance: random.Random) -> Any:
    return chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))


def _replace(holder: Any, chance: random.Random) -> None:
    holder[_key(holder, chance)] = chance.choice(WORDS)


def _nudge(holder: Any, chance: random.Random) -> None:
    key = _key(holder, chance)
    if type(holder[key]) is int:
        holder[key] = max(holder[key] + chance.choice((-MIB, -512, -1, 1, 512, MIB, 20 * MIB)), 0)


def _lose(holder: Any, chance: random.Random) -> None:
    del holder[_key(holder, chance)]


def _swap(holder: Any, chance: random.Random) -> None:
    one, other = _key(holder, chance), _key(holder, chance)
    holder[one], holder[other] = holder[other], holder[one]


def _repeat(holder: Any, chance: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(chance.randrange(len(holder)), holder[_key(holder, chance)])


_CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (
    _replace,
    _replace,
    _replace,
    _nudge,
    _lose,
    _swap,
    _repeat,
)
