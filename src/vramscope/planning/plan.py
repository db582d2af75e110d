"""A plan as one value: what was asked, what came of it, and why.  Views read this and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vramscope.planning.result import Result


@dataclass(frozen=True, slots=True)
class Row:
    """One cell of the matrix."""

    number: int
    """From 1, in the order of the matrix: what `--cell` takes."""
    turned: Mapping[str, str]
    """The positions of the knobs that differ between rows, in the order of `Plan.varied`."""
    card: str
    """A card's id."""
    result: Result
    baseline: bool = False
    """The others on its card are held against it."""
    changes: Mapping[str, int] = field(default_factory=dict)
    """By category, what its peak of allocated holds more or less (bytes) than the baseline's; only what differs."""
    why: tuple[str, ...] = ()
    """What explains that, as sentences without a full stop, the weightiest first."""
    price: tuple[str, ...] = ()
    """What its techniques cost beside memory, for people."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The largest value of a knob that runs, with its proof."""

    knob: str
    card: str
    turned: Mapping[str, str]
    """The row that it was searched for: the other knobs that differ."""
    largest: int | None
    """None: not even the least one fits."""
    ends: Result | None
    """The run at `largest`."""
    fails_at: int | None
    """The next value, tried and found not to run; None: the search came to the end of what makes sense."""
    fails: Result | None
    tried: tuple[tuple[int, str], ...] = ()
    """Every value that was run and its verdict, in order."""
    multiple_of: int = 1
    margin_bytes: int = 0
    """So much of the card was to stay free."""
    note: str = ""
    """What else must be said: a value that is not the largest because something else than memory ended the search."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A card that was tried for `--cheapest`."""

    card: str
    memory_bytes: int
    result: Result


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The smallest card of the catalogue on which a row runs."""

    turned: Mapping[str, str]
    card: str | None
    """None: none of them."""
    tried: tuple[Candidate, ...]
    """From the smallest memory to the largest; the last one is the answer, if there is one."""


@dataclass(frozen=True, slots=True)
class Way:
    """Techniques that together make the work fit into a budget."""

    turned: Mapping[str, str]
    """What is turned, against what was asked for."""
    result: Result
    maths: int
    """The most that any of them does to the result, as `jobs.technique.Maths`: 0 nothing … 3 other training."""
    intrusion: int
    """The sum of theirs: how much is changed."""
    price: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """How the work gets by with so much memory."""

    budget_bytes: int
    card: str
    asked: Result
    """What was asked for, untouched, within the budget."""
    ways: tuple[Way, ...]
    """Those that fit, least intrusive first."""
    nearest: tuple[Way, ...] = ()
    """Where none fits: those that come nearest."""
    tried: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it."""

    source: str
    model: str
    """The model's class."""
    parameters: int
    task: str
    fixed: Mapping[str, str]
    """The knobs that stand alike in all rows and that matter for the task, with their positions."""
    assumed: tuple[str, ...]
    """Those of them that nobody turned."""
    varied: tuple[str, ...]
    """The knobs that differ between rows."""
    cards: tuple[str, ...]
    used_bytes: int
    """What other processes were said to hold on each card."""
    rows: tuple[Row, ...]
    fits: tuple[Fit, ...] = ()
    cheapest: tuple[Cheapest, ...] = ()
    budget: Budget | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """torch and the libraries that the programs use."""
    seconds: float = 0.0
    reused: int = 0
    """So many of the rows were known from an earlier run."""

    def check(self) -> tuple[str, ...]:
        """The sums that do not close in any of its results, as sentences."""
        found = [(f"row {row.number}", row.result) for row in self.rows]
        found += [(f"{fit.knob} {fit.largest}", fit.ends) for fit in self.fits if fit.ends]
        return tuple(f"{name}: {fault}" for name, result in found for fault in result.check())
