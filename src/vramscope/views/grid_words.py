"""What is said of a grid of trainings: pure functions from its values to figures and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from vramscope.lab.grid import TRAINED, Epoch, Grid, Memory, Reading, Training
from vramscope.run.categories import CATEGORIES, plural
from vramscope.units import GIB, format_change, format_gib
from vramscope.views import words

_NEAR_GIB = 0.2
"""Differences this near to the article's, whose readings have one decimal, agree."""
_SMALLEST = 0.005
"""A category that moved by less than this share of the first cell's peak is not told."""
_WEIGHTY = 0.1
"""A category that moved by less than this share of what moved most is not explained."""
NOTHING = "nothing that matters changed"
"""A reason that is none."""


def name(cell: Training | Reading) -> str:
    """``fp32 · freeze:0.95``."""
    return f"{cell.precision} · {cell.tune}"


def subject(grid: Grid) -> str:
    """``resnet18 on fake: 1,020 images to train on, 1,020 to evaluate on``."""
    if grid.train_images is None:
        return f"{grid.model} on {grid.data}"
    test = "none" if grid.test_images is None else f"{grid.test_images:,}"
    return f"{grid.model} on {grid.data}: {grid.train_images:,} images to train on, {test} to evaluate on"


def verdict(grid: Grid) -> str:
    """``all 6 cells trained on cpu (…)``."""
    done, every = len(trained(grid)), len(grid.cells)
    if not every:
        return "no cell was asked for"
    if every == 1:
        return f"{name(grid.cells[0])}: {grid.cells[0].verdict} on {grid.device}"
    how_many = f"all {every}" if done == every else f"{done} of {every}" if done else f"none of {every}"
    return f"{how_many} cells trained on {grid.device}"


def trained(grid: Grid) -> list[Training]:
    """The cells that came to their end."""
    return [cell for cell in grid.cells if cell.verdict == TRAINED]


def trained_with(grid: Grid) -> str:
    """``batch 16 · image 64 · epochs 1 · optimizer adam · seed 0``."""
    sizes = f"batch {grid.batch} · image {grid.image} · epochs {grid.epochs}"
    return f"{sizes} · optimizer {grid.optimizer} · seed {grid.seed}"


def predicted_for(grid: Grid) -> str:
    """``rtx-3060 · batch 90 · image 224``."""
    return f"{grid.card} · batch {grid.predicted_batch} · image {grid.predicted_image}"


def same_sizes(grid: Grid) -> bool:
    """It was trained at the sizes of the predictions, so that the two can be held against each other."""
    full = grid.train_images is None or grid.train_images >= grid.batch
    return full and (grid.batch, grid.image) == (grid.predicted_batch, grid.predicted_image)


def measured(grid: Grid) -> str:
    """Why nothing is measured; nothing where something is."""
    if any(cell.measured for cell in grid.cells):
        return ""
    if grid.device.startswith("cuda"):
        return "nothing: no cell came to its end"
    return f"no card here: training on {grid.device.partition(' ')[0]} takes no memory of an NVIDIA card"


def process_change(grid: Grid, cell: Training) -> int | None:
    """How many bytes more the process is predicted to take than the first cell's; None where nobody knows."""
    first = grid.cells[0]
    return None if cell is first else _beyond(first.predicted, cell.predicted)


def _beyond(first: Memory | None, other: Memory | None) -> int | None:
    """How much larger another process total is; None where one is not known."""
    one = first.process_total_bytes if first else None
    two = other.process_total_bytes if other else None
    return None if one is None or two is None else two - one


def read(grid: Grid, cell: Training) -> float | None:
    """The article's reading of a cell (GB); None: it has none."""
    return next((each.nvitop_gb for each in grid.article if name(each) == name(cell)), None)


def article_change(grid: Grid, cell: Training) -> float | None:
    """The article's reading beyond that of the first cell; None where it has not both."""
    here, first = read(grid, cell), read(grid, grid.cells[0])
    return None if cell is grid.cells[0] or here is None or first is None else round(here - first, 3)


def read_change(grid: Grid, reading: Reading) -> float | None:
    """One of the article's readings beyond its first one; None for that."""
    first = grid.article[0]
    return None if reading is first else round(reading.nvitop_gb - first.nvitop_gb, 3)


def reading_change(grid: Grid, reading: Reading) -> int | None:
    """The same of the predictions, in bytes; None where nobody knows."""
    first = grid.article[0]
    return None if reading is first else _beyond(first.predicted, reading.predicted)


def apart(grid: Grid, reading: Reading) -> float | None:
    """By how much a predicted difference misses the article's (GiB); None: there is nothing to compare."""
    ours, theirs = reading_change(grid, reading), read_change(grid, reading)
    return None if ours is None or theirs is None else abs(ours / GIB - theirs)


def agreement(grid: Grid) -> str:
    """``3 of 5 differences within 0.2 GiB of the article's, the others 0.28 at most``; nothing to compare: ""."""
    gaps = [gap for each in grid.article if (gap := apart(grid, each)) is not None]
    near = sum(gap <= _NEAR_GIB for gap in gaps)
    if not gaps:
        return ""
    far = f", the farthest {max(gaps):.2f} apart" if near < len(gaps) else ""
    of = f"all {len(gaps)}" if near == len(gaps) > 1 else f"{near} of {len(gaps)}"
    return f"{of} differences within {_NEAR_GIB} GiB of the article's{far}"


def freezes_nothing(grid: Grid) -> str:
    """What the article's frozen cells are, where they are no cells of the grid, which says it itself."""
    names = {name(cell) for cell in grid.cells}
    found = {
        each.tune: each.predicted for each in grid.article if each.precision == grid.article[0].precision
    }
    frozen = found.get("article-freeze")
    if frozen is None or frozen != found.get("full") or any("article-freeze" in each for each in names):
        return ""
    return (
        "article-freeze is full to the byte: its loop sets requires_grad on modules, where nothing reads it"
    )


def last(cell: Training) -> Epoch | None:
    """The last epoch."""
    return cell.epochs[-1] if cell.epochs else None


def signed(value: float | None) -> str:
    """``+0.1``, ``−2.0``, ``same``; nothing where nobody knows."""
    if value is None:
        return ""
    return f"{value:+.1f}".replace("-", "−") if round(value, 1) else "same"


def percent(share: float | None) -> str:
    """``71.0 %``; nothing where nobody knows."""
    return "" if share is None else f"{100 * share:.1f} %"


def number(value: float | None, digits: int = 3) -> str:
    """So many significant figures, never as a power of ten; nothing where nobody knows."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return str(value)
    size = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(max(digits - 1 - size, 0), 6)}f}"


def trouble(cell: Training) -> str:
    """Why a cell was not trained; nothing where it was."""
    return "" if cell.verdict == TRAINED else f"{cell.verdict}: {cell.why_not or words.UNKNOWN}"


def not_fitting(grid: Grid) -> list[int]:
    """The numbers of the cells that do not fit the card of the predictions."""
    return [number for number, cell in enumerate(grid.cells, 1) if cell.predicted_fits is False]


def twin(grid: Grid, cell: Training) -> int | None:
    """The number of the first cell before it whose predicted memory is the same to the byte."""
    if cell.predicted is None:
        return None
    for number, other in enumerate(grid.cells, 1):
        if other is cell:
            return None
        if other.predicted == cell.predicted:
            return number
    return None


def changed(grid: Grid, cell: Training) -> str:
    """``process −0.73 GiB: cached −711 MiB, peak allocated −42.9 MiB (optimizer states −86.1 MiB, …)``.

    Nothing for the first cell, and where nothing is predicted."""
    first, change = grid.cells[0].predicted, process_change(grid, cell)
    other = twin(grid, cell)
    if other is not None:
        return f"predicted as cell {other} ({name(grid.cells[other - 1])}) to the byte"
    if first is None or cell.predicted is None or change is None:
        return ""
    parts = [*_beside(first, cell.predicted), _allocated(first, cell.predicted)]
    return f"process {format_change(change)}: {', '.join(filter(None, parts))}".removesuffix(": ")


def consists(cell: Training) -> str:
    """``activations 1.80 · optimizer states 0.09 · cached 1.50 · outside 0.15 GiB``; nothing where nobody knows."""
    parts = parts_of(cell.predicted) if cell.predicted else []
    told = [f"{plural(each)} {format_gib(size)}" for each, size in parts if format_gib(size) != format_gib(0)]
    return f"{' · '.join(told)} GiB" if told else ""


def _beside(first: Memory, other: Memory) -> list[str]:
    """What moved beside the peak of allocated, where it matters."""
    one, two = dict(parts_of(first)), dict(parts_of(other))
    changes = {each: two.get(each, 0) - one.get(each, 0) for each in ("cached", "outside")}
    least = _SMALLEST * (first.allocated_bytes or 0)
    return [f"{each} {format_change(size)}" for each, size in changes.items() if abs(size) > least]


def _allocated(first: Memory, other: Memory) -> str:
    """``peak allocated −42.9 MiB (optimizer states −86.1 MiB, activations +43.1 MiB)``."""
    one, two = first.allocated_bytes, other.allocated_bytes
    if one is None or two is None:
        return ""
    told = (f"{plural(each)} {format_change(size)}" for each, size in moved(first, other).items())
    inside = ", ".join(told)
    change = format_change(two - one) if two != one else "the same"
    return f"peak allocated {change}" + (f" ({inside})" if inside else "")


def moved(first: Memory, other: Memory) -> dict[str, int]:
    """What the peak of allocated holds more or less of each category, the largest change first, without crumbs."""
    if not first.categories or not other.categories:
        return {}
    least = _SMALLEST * (first.allocated_bytes or 0)
    changes = {each: other.categories.get(each, 0) - first.categories.get(each, 0) for each in CATEGORIES}
    told = {each: size for each, size in changes.items() if size and abs(size) >= least}
    return dict(sorted(told.items(), key=lambda item: -abs(item[1])))


def why(grid: Grid, cell: Training) -> list[str]:
    """What is known of the way it is tuned, then the reasons that belong to what moved most.

    A reason is of the highest that its category ever was, not only of the moment when allocated peaks."""
    own = [reason for reason in cell.why if reason != NOTHING and not _category_of(reason)]
    first = grid.cells[0].predicted
    if twin(grid, cell) is not None or first is None or cell.predicted is None:
        return own
    changes = moved(first, cell.predicted)
    most = max(map(abs, changes.values()), default=0)
    weighty = {each: size for each, size in changes.items() if abs(size) >= _WEIGHTY * most}
    return own + [reason for reason in cell.why if _explains(reason, weighty)]


def _explains(reason: str, changes: Mapping[str, int]) -> bool:
    """It is of one of these categories, and of a change in the same direction."""
    category = _category_of(reason)
    return category in changes and (" rose" in reason.partition(":")[0]) == (changes[category] > 0)


def _category_of(reason: str) -> str:
    """The category whose change a reason explains; "" for any other sentence."""
    heads = ((each, plural(each)) for each in CATEGORIES)
    return next((each for each, word in heads if reason.startswith((f"{word} rose", f"{word} fell"))), "")


def reused(grid: Grid) -> str:
    """``6 of 6 cells known from an earlier run``; nothing where none is."""
    if not grid.reused:
        return ""
    return f"{grid.reused} of {words.count(len(grid.cells), 'cell')} known from an earlier run"


def parts_of(memory: Memory) -> list[tuple[str, int]]:
    """What the process total consists of: categories, then `cached` and `outside`; empty where one is not known."""
    total, reserved, allocated = memory.process_total_bytes, memory.reserved_bytes, memory.allocated_bytes
    if total is None or reserved is None or allocated is None:
        return []
    held = [(each, memory.categories[each]) for each in CATEGORIES if memory.categories.get(each)]
    return [
        *(held or [("allocated", allocated)]),
        ("cached", reserved - allocated),
        ("outside", total - reserved),
    ]


def most(memory: Memory | None) -> tuple[str, int] | None:
    """The category that holds most of the peak of allocated, and its bytes; None where nothing was followed."""
    return max(memory.categories.items(), key=lambda item: item[1], default=None) if memory else None


def numbered(numbers: Iterable[int]) -> str:
    """``cell 2``, ``cells 2, 3``."""
    told = [str(each) for each in numbers]
    return f"cell{'s' if len(told) > 1 else ''} {', '.join(told)}"
