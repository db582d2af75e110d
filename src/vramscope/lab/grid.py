"""A grid of real trainings as one value: what was asked for, what came of each cell.  Views read this alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

TRAINED, FAILED, CANNOT_RUN = "trained", "failed", "cannot run"


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the data; losses are means over samples, accuracies shares of them."""

    epoch: int
    """From 1."""
    train_loss: float
    train_accuracy: float
    test_loss: float | None
    """None: the data have no test part."""
    test_accuracy: float | None
    seconds: float
    """Of training alone, without the evaluation."""
    steps: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Peaks of one run, predicted or measured."""

    allocated_bytes: int | None
    reserved_bytes: int | None
    process_total_bytes: int | None
    """What NVML shows for the process; None: nobody could read it."""
    categories: Mapping[str, int] = field(default_factory=dict)
    """What allocated consisted of at its peak; empty where nothing was followed."""


@dataclass(frozen=True, slots=True)
class Training:
    """One cell of the grid."""

    precision: str
    tune: str
    verdict: str
    why_not: str = ""
    """Why it cannot run or failed, as a sentence."""
    parameters: int | None = None
    trainable: int | None = None
    epochs: tuple[Epoch, ...] = ()
    seconds_per_step: float | None = None
    """The median of the steps after the first epoch's first ones."""
    samples_per_second: float | None = None
    shortest_step_seconds: float | None = None
    """What the card's arithmetic alone needs for a step, a bound (theory.rates); None: not known, or no card."""
    predicted: Memory | None = None
    """On the virtual card of `Grid.card`, at the batch and image size of `Grid.predicted_batch` and `…_image`."""
    predicted_fits: bool | None = None
    measured: Memory | None = None
    """On the device that trained; None on a CPU, which has no such memory."""
    why: tuple[str, ...] = ()
    """What it saved against the first cell and why, as sentences without a full stop."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One of the article's six cells: what its author read, beside what is predicted of it, trained here or not."""

    precision: str
    tune: str
    nvitop_gb: float
    """As the article prints it, with one decimal."""
    predicted: Memory | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """All of it."""

    model: str
    data: str
    device: str
    """cuda, mps or cpu, with its name."""
    batch: int
    image: int
    epochs: int
    optimizer: str
    seed: int
    card: str
    """The id of the virtual card of the predictions."""
    predicted_batch: int
    predicted_image: int
    cells: tuple[Training, ...]
    article: tuple[Reading, ...] = ()
    """The article's cells, fp32 and full first; none where the model or the sizes are not the article's."""
    versions: Mapping[str, str] = field(default_factory=dict)
    reused: int = 0
    """So many cells were finished by an earlier run."""
    train_images: int | None = None
    test_images: int | None = None
    """None: the data have no test part."""
    notes: tuple[str, ...] = ()
    """What else must be said, as sentences without a full stop: why nothing is predicted …"""
    kept_in: str = ""
    """The file in which finished cells are kept."""

    def to_json(self) -> dict[str, Any]:
        """A plain value."""
        return asdict(self)
