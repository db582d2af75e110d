"""What came of a cell, as one plain value that a database, another process and every view can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

FITS, DOES_NOT_FIT, CANNOT_RUN, FAILED = "fits", "does not fit", "cannot run", "failed"
"""It ended; the card had no room; it was not started, for a reason that is known beforehand; it broke off."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The request that the card had no room for."""

    phase: str | None
    step: int | None
    module: str | None
    """None: no module ran, or nothing was followed."""
    requested_bytes: int | None
    where: str | None
    """The program's line."""


@dataclass(frozen=True, slots=True)
class Result:
    """A cell's figures.  Where it does not fit, those of a run on the same card with memory without end."""

    verdict: str
    capacity_bytes: int
    """What the process could take of the card."""
    why: str = ""
    """Why it cannot run or failed, as a sentence."""
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    process_total_bytes: int | None = None
    """Its peak: what the card must have."""
    outside_bytes: int | None = None
    phase: str | None = None
    """Where allocated peaked."""
    step: int | None = None
    module: str = ""
    """The module that ran then; "" is not known."""
    categories: Mapping[str, int] = field(default_factory=dict)
    """What allocated consisted of then; empty where nothing was followed."""
    parameters: int | None = None
    """Elements of the model, and of what is trained; None where nothing was followed."""
    trained: int | None = None
    failure: Failure | None = None
    retries: int = 0
    """How often the allocator had to give its cache back to find room."""
    notes: tuple[str, ...] = ()
    """What was assumed, modelled or not simulated."""
    seconds: float = 0.0
    """How long it took to find out."""

    @property
    def fits(self) -> bool:
        """It ended on the card."""
        return self.verdict == FITS

    def check(self) -> tuple[str, ...]:
        """The sums that do not close, as sentences."""
        allocated, reserved = self.peak_allocated_bytes, self.peak_reserved_bytes
        total, outside, faults = self.process_total_bytes, self.outside_bytes, []
        parts = sum(self.categories.values())
        if self.categories and parts != allocated:
            faults.append(f"categories {parts} != allocated {allocated}")
        if allocated is not None and reserved is not None and allocated > reserved:
            faults.append(f"allocated {allocated} > reserved {reserved}")
        if None not in (reserved, total, outside) and reserved + outside > total:  # type: ignore[operator]
            faults.append(f"reserved {reserved} + outside {outside} > process total {total}")
        if self.fits and total is not None and total > self.capacity_bytes:
            faults.append(f"fits, but takes {total} of {self.capacity_bytes}")
        return tuple(faults)

    def to_json(self) -> dict[str, Any]:
        """A plain value; `result_from` gives the result again."""
        return asdict(self)


def result_from(value: Mapping[str, Any]) -> Result:
    """The result of what `Result.to_json` gave."""
    failure = value.get("failure")
    return Result(
        **{
            **value,
            "failure": Failure(**failure) if failure else None,
            "notes": tuple(value.get("notes", ())),
        }
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """A cell's result with the runs that it was read from, as the bytes of ``.vram`` files."""

    result: Result
    run: bytes | None = None
    """On the card; None where nothing was followed or nothing ran."""
    unlimited: bytes | None = None
    """Where it does not fit: on the same card with memory without end."""
    lasting: bool = True
    """Another try would come out the same; False: it was killed, took too long, or something of this machine
    was missing."""
