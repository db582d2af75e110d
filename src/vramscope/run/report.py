"""The report of a prediction: what `vramscope predict` found out, as one value.

Every view reads this and nothing else.  Sizes are bytes as ints, each named by its
metric; what is not known is None.  The field names are those of the JSON schema
(``vramscope.report/1``, docs/report-schema.md)."""

from __future__ import annotations

from dataclasses import dataclass

FITS = "fits"
DOES_NOT_FIT = "does not fit"
UNKNOWN = "unknown"

UNLIMITED_BYTES = 1 << 44
"""The memory of a card under `--memory unlimited`: 16 TiB.  Device memory here is address space, of which
a Linux process on x86-64 has 128 TiB (47 bits, Documentation/arch/x86/x86_64/mm.rst).  With expandable segments
torch reserves 1 1/8 of the card's memory for each pool and stream (CUDACachingAllocator.cpp, ExpandableSegment):
there must be room for some of these beside the card."""


@dataclass(frozen=True, slots=True)
class CardFigures:
    """The card as it was when the prediction was made; a saved report needs no catalogue."""

    id: str
    name: str
    memory_bytes: int
    """As CUDA reports it (`torch.cuda.get_device_properties().total_memory`)."""
    capability: tuple[int, int]
    sms: int
    unverified: tuple[str, ...] = ()
    """The figures of the catalogue that no source confirms."""
    memory_low_bytes: int | None = None
    """The smallest reading known of the same card: drivers differ by up to two percent; None: no other."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a process holds on a card outside of torch's allocator: the CUDA context and loaded kernels."""

    bytes: int
    low_bytes: int
    high_bytes: int
    how: str
    """Where the figure comes from: "modelled", "measured" ..."""
    loading: str = ""
    """The CUDA module loading that it holds for: "lazy" or "eager"."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Versions:
    """What the program ran on; None where no process told."""

    torch: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    allocator: str | None = None
    """The allocator's settings as text (PYTORCH_CUDA_ALLOC_CONF), or "default settings"."""
    python: str | None = None
    vramscope: str | None = None


@dataclass(frozen=True, slots=True)
class Peaks:
    """The highest values of three metrics; they need not fall on the same moment."""

    allocated_bytes: int | None = None
    """Of one process: torch's `max_memory_allocated`."""
    reserved_bytes: int | None = None
    """Of one process: torch's `max_memory_reserved`."""
    process_total_bytes: int | None = None
    """Reserved + outside + other memory, which nvidia-smi shows; of all processes on the card together."""


@dataclass(frozen=True, slots=True)
class DevicePeaks:
    """The peaks on one card."""

    device: int
    peaks: Peaks
    processes: int | None
    """How many processes told that they held memory on it; None: they were killed before they could."""


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step of the leading process (the one with the highest total), over all its cards."""

    step: int
    complete: bool
    """False for what ran after the last step's end, or where the program ended within the step."""
    peaks: Peaks
    phase: str
    """Where allocated was highest."""
    seconds: float | None = None
    """From the end of the step before to this one's, on the host's clock; None: not measured, or the first."""


@dataclass(frozen=True, slots=True)
class Highest:
    """Where the process total of the fullest card first reached its peak."""

    phase: str
    step: int | None
    device: int


@dataclass(frozen=True, slots=True)
class Retry:
    """The card was full, and the allocator gave its cached blocks back to find room.

    On a larger card they would have stayed, so reserved would be higher; later phases start without them."""

    device: int
    step: int | None
    phase: str
    count: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """How the program ended."""

    how: str
    """finished, steps, exception, oom, interrupted; signal: it was killed; exit: it left by `os._exit`."""
    steps: int
    """Complete optimizer steps."""
    status: int
    """The program's exit status; negative: minus the signal's number."""
    partial: bool
    """The program did not come to its end, so what it would have needed later is not in the report."""
    where: str | None = None
    """The program's line that an uncaught exception came from."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """A value that the program read back from the card, where nothing is computed."""

    what: str
    where: str | None
    count: int | None
    value: str | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A size that was invented, is not known, or comes from a model; `bytes` None: not known."""

    what: str
    bytes: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Unsimulated:
    """A call that the virtual card does not simulate, and the status it answered with."""

    library: str
    symbol: str
    answer: int | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A loop that waited on the card for ever and was stopped."""

    where: str | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The request that the card had no room for, after the allocator's own retry."""

    device: int
    requested_bytes: int | None
    capacity_bytes: int | None
    used_bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None
    step: int | None
    phase: str | None
    where: str | None
    line: str | None
    caught: bool = False
    """The program caught it and went on."""
    module: str | None = None
    """The module that ran, forward or backward; None: none did, or nothing was followed."""

    @property
    def needs_bytes(self) -> int | None:
        """At least this much was needed: what was held plus what was asked for."""
        if self.used_bytes is None or self.requested_bytes is None:
            return None
        return self.used_bytes + self.requested_bytes


@dataclass(frozen=True, slots=True)
class Report:
    """All of it.  `check` says whether the sums close."""

    program: tuple[str, ...]
    """The program's words, paths relative to its folder."""
    card: CardFigures
    gpus: int
    capacity_bytes: int | None
    """The memory of the virtual card; None: unlimited."""
    verdict: str
    """fits, does not fit, or unknown where nothing was recorded."""
    needs_bytes: int | None
    """The least memory that a card must have; None: not known."""
    peaks: Peaks
    devices: tuple[DevicePeaks, ...]
    highest: Highest | None
    steps: tuple[Step, ...]
    steady_from: int | None
    """The first step after which no peak grew, where at least one followed; None: they grew to the end."""
    outside: Outside
    versions: Versions
    stopped: Stopped
    assumed: tuple[Assumed, ...] = ()
    uncounted: tuple[Figure, ...] = ()
    modelled: tuple[Figure, ...] = ()
    unsimulated: tuple[Unsimulated, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    oom: OutOfMemory | None = None
    retries: tuple[Retry, ...] = ()
    damaged_lines: int = 0
    """Lines of the journal that could not be read."""

    def check(self) -> tuple[str, ...]:
        """The sums that do not close, as sentences; empty when all is well."""
        parts = [("all", self.peaks), *((f"device {each.device}", each.peaks) for each in self.devices)]
        parts += [(f"step {each.step}", each.peaks) for each in self.steps]
        return tuple(fault for name, peaks in parts for fault in self._faults(name, peaks))

    def _faults(self, name: str, peaks: Peaks) -> list[str]:
        allocated, reserved, total = peaks.allocated_bytes, peaks.reserved_bytes, peaks.process_total_bytes
        outside, overall = self.outside.bytes, self.peaks.process_total_bytes
        faults = []
        if allocated is not None and reserved is not None and allocated > reserved:
            faults.append(f"{name}: allocated {allocated} > reserved {reserved}")
        if reserved and total is not None and reserved + outside > total:
            faults.append(f"{name}: reserved {reserved} + outside {outside} > process total {total}")
        if total is not None and overall is not None and total > overall:
            faults.append(f"{name}: process total {total} > that of all {overall}")
        return faults
