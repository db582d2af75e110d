"""The sentences of a plan: pure functions from its values to text, free of layout and colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vramscope.planning.plan import Budget, Candidate, Cheapest, Fit, Plan, Row, Way
from vramscope.planning.result import CANNOT_RUN, DOES_NOT_FIT, FAILED, Failure, Result
from vramscope.run.categories import plural
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.units import format_bytes, format_change, format_gib, format_in
from vramscope.views import words
from vramscope.views.figures import phase
from vramscope.views.plan_rows import by_card, capacity_of, change_of_allocated, in_order

MATHS = ("same result", "same sums in another order", "fewer bits", "computes something else")
"""What a technique does to the result, by `jobs.technique.Maths`."""
_BARE = ("on", "off", "none", "auto", "true", "false")
_SMALLEST = 0.005
"""A category below this share of the peak is told with others."""


def subject(plan: Plan) -> str:
    """``timm/resnet18 (ResNet, 11.7 M parameters): image-classification``."""
    inside = ", ".join(filter(None, [plan.model, f"{count(plan.parameters)} parameters"]))
    return f"{plan.source} ({inside})" + (f": {plan.task}" if plan.task else "")


def count(number: int, billion: str = "B") -> str:
    """A large number in three figures: ``11.7 M``, ``8.03 B``; of operations the billions are ``G``."""
    for unit, factor in (("T", 10**12), (billion, 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= 0.9995 * factor:
            value = number / factor
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:,.{digits}f} {unit}"
    return str(number)


def verdicts(plan: Plan) -> list[str]:
    """A sentence for each card: how many rows fit and which takes least; nothing where there are no rows."""
    return [_verdict(plan, card, rows) for card, rows in by_card(plan).items()]


def _verdict(plan: Plan, card: str, rows: list[Row]) -> str:
    of, name = _of(capacity_of(plan, card)), card
    fitting = [row for row in rows if row.result.fits]
    if len(rows) == 1:
        return f"{name}: {outcome(rows[0].result)}"
    if fitting:
        which = f"row {fitting[0].number} ({position(plan, fitting[0].turned)})"
        every = "all" if len(fitting) == len(rows) else f"{len(fitting)} of"
        fit = "fits" if len(fitting) == 1 else "fit"
        return f"{name}: {every} {len(rows)} rows {fit}; {which} takes least, {_gib(fitting[0].result)}{of}"
    least = next((row for row in rows if row.result.verdict == DOES_NOT_FIT), None)
    if least is None or least.result.process_total_bytes is None:
        return f"{name}: none of {len(rows)} rows fits"
    which = f"row {least.number} ({position(plan, least.turned)})"
    return f"{name}: none of {len(rows)} rows fits; {which} comes nearest, it needs {_gib(least.result)}{of}"


def outcome(result: Result) -> str:
    """``fits, 8.17 of 11.76 GiB, 3.59 GiB free``, ``does not fit, needs 30.68 of 23.67 GiB``, ``cannot run: …``."""
    if result.verdict in (CANNOT_RUN, FAILED):
        return f"{result.verdict}: {result.why or words.UNKNOWN}"
    if result.process_total_bytes is None:
        return result.verdict
    taken = f"{_gib(result)}{_of(result.capacity_bytes)}"
    if not result.fits:
        return f"{result.verdict}, needs {taken}"
    if _endless(result.capacity_bytes):
        return f"{result.verdict}, {taken}"
    return f"{result.verdict}, {taken}, {format_gib(result.capacity_bytes - result.process_total_bytes)} GiB free"


def position(plan: Plan, turned: Mapping[str, str], *, named: bool = False) -> str:
    """``amp-fp16 · lora:4 · checkpoint on``; with all names where they are not a row's or it is asked for."""
    if not turned:
        return "as asked for"
    if named or tuple(turned) != plan.varied:
        return " · ".join(f"{knob} {value}" for knob, value in turned.items())
    return " · ".join(_position(knob, turned[knob]) for knob in plan.varied)


def _position(knob: str, value: str) -> str:
    """Positions that mean nothing by themselves go with their knob's name."""
    return f"{knob} {value}" if value.isdigit() or value in _BARE else value


def conditions(plan: Plan) -> tuple[str, str]:
    """What all rows have in common: as it was asked for, and what nobody turned."""
    told = {knob: value for knob, value in plan.fixed.items() if knob != "task"}
    asked = {knob: value for knob, value in told.items() if knob not in plan.assumed}
    return settings(asked), settings({knob: value for knob, value in told.items() if knob in plan.assumed})


def settings(positions: Mapping[str, str]) -> str:
    """``batch 90 · image 224``."""
    return " · ".join(f"{knob} {value}" for knob, value in positions.items())


def card_sentence(plan: Plan, card: str) -> str:
    """``rtx-3060, 11.76 GiB``: what a process may take of it."""
    capacity = capacity_of(plan, card)
    if capacity is None:
        return f"{card}, memory unknown"
    return f"{card}, {'memory unlimited' if _endless(capacity) else f'{format_gib(capacity)} GiB'}"


def used_sentence(plan: Plan) -> str:
    """What others hold; nothing where they hold nothing."""
    return (
        f"{format_bytes(plan.used_bytes)} of each card, by other processes; it is taken off"
        if plan.used_bytes
        else ""
    )


def peak_place(result: Result) -> str:
    """``in backward for layer1.0.conv1``; nothing where it is not known."""
    if result.phase is None:
        return ""
    module = part_of_model(result.module)
    return words.in_phase(result.phase, None) + (f" for {module}" if module else "")


def part_of_model(module: str) -> str:
    """A module's path without the class of the whole model, which every row begins with."""
    return module.partition(".")[2] or module if module[:1].isupper() else module


def consists(result: Result) -> str:
    """``activations 6.88 · workspaces 0.35 · other 0.01 · cached 1.21 · outside 0.17 GiB``; nothing if unknown."""
    whole = result.peak_allocated_bytes or 0
    told = [(name, size) for name, size in result.categories.items() if size >= _SMALLEST * whole and size]
    rest = sum(result.categories.values()) - sum(size for _, size in told)
    parts = [f"{plural(name)} {format_gib(size)}" for name, size in told]
    parts += [f"other {format_gib(rest)}"] if format_gib(rest) != format_gib(0) else []
    if not parts:
        return ""
    if result.peak_reserved_bytes is not None:
        parts.append(f"cached {format_gib(result.peak_reserved_bytes - whole)}")
        if result.process_total_bytes is not None:
            parts.append(f"outside {format_gib(result.process_total_bytes - result.peak_reserved_bytes)}")
    return f"{' · '.join(parts)} GiB"


def changed(plan: Plan, row: Row) -> str:
    """``peak −2.66 GiB: activations −2.90 GiB, gradients +0.10 GiB``, of allocated; nothing for a baseline."""
    change = change_of_allocated(plan, row)
    if change is None or row.result.verdict == FAILED:
        return ""
    if not change and not row.changes:
        return "peak allocated as in the baseline"
    parts = [f"{plural(name)} {format_change(size)}" for name, size in row.changes.items()]
    return f"peak allocated {format_change(change)}: {', '.join(parts) or 'no category by much'}"


def failed(failure: Failure) -> str:
    """``in backward of layer1.0.conv1, step 1: asked for 196 MiB``."""
    of = f" of {part_of_model(failure.module)}" if failure.module else ""
    step = "" if failure.step is None else f", step {failure.step}"
    asked = "" if failure.requested_bytes is None else f": asked for {format_bytes(failure.requested_bytes)}"
    return f"in {phase(failure.phase)}{of}{step}{asked}"


def trouble(result: Result) -> str:
    """Why a row is not one that fits, or what must be known of one that does; nothing where all is well."""
    if result.verdict == DOES_NOT_FIT:
        where = f" {failed(result.failure)}" if result.failure else ""
        return f"does not fit: out of memory{where}"
    if result.verdict in (CANNOT_RUN, FAILED):
        return f"{result.verdict}: {result.why or words.UNKNOWN}"
    if result.retries:
        times = "once" if result.retries == 1 else f"{result.retries} times"
        return f"close: the card was full and the allocator gave its cache back {times}"
    return ""


def why(row: Row) -> tuple[str, ...]:
    """What explains a row's changes; nothing for one that did not come to its end and so has none."""
    return () if row.result.verdict in (CANNOT_RUN, FAILED) else row.why


def price(row: Row) -> tuple[str, ...]:
    """What a row's techniques cost; nothing where it cannot be had at that price."""
    return () if row.result.verdict in (CANNOT_RUN, FAILED) else row.price


def fit_sentence(fit: Fit) -> str:
    """``batch 176 ends (23.10 of 23.67 GiB), 177 fails in backward of layer1.0.conv1, step 1: asked for 196 MiB``."""
    end = f" ({_gib(fit.ends)}{_of(fit.ends.capacity_bytes)})" if fit.ends else ""
    fails = f"{fit.fails_at} {_fails(fit.fails)}"
    if fit.largest is None:
        return f"not even {fit.knob} {fails}" if fit.fails_at is not None else f"no {fit.knob} runs"
    if fit.fails_at is None:
        return f"{fit.knob} {fit.largest} ends{end}; nothing larger was tried"
    return f"{fit.knob} {fit.largest} ends{end}, {fails}"


def fit_conditions(fit: Fit) -> str:
    """``11 values tried, only multiples of 8, 1.20 GiB to stay free``; nothing where there is nothing to say."""
    told = [f"{words.count(len(fit.tried), 'value')} tried"] if fit.tried else []
    told += [f"only multiples of {fit.multiple_of}"] if fit.multiple_of > 1 else []
    told += [f"{format_bytes(fit.margin_bytes)} to stay free"] if fit.margin_bytes else []
    return "; ".join(filter(None, [", ".join(told), fit.note]))


def _fails(result: Result | None) -> str:
    if result is None:
        return "fails"
    if result.failure is not None:
        return f"fails {failed(result.failure)}"
    if result.fits or (result.verdict == DOES_NOT_FIT and not result.why):
        return f"leaves too little free ({_gib(result)}{_of(result.capacity_bytes)})"
    return f"{result.verdict}: {result.why}" if result.why else result.verdict


def cheapest_sentence(found: Cheapest) -> str:
    """``rtx-3060 is the smallest card that it fits: 8.32 of 11.76 GiB``."""
    tried = words.count(len(found.tried), "card")
    if found.card is None:
        return f"it fits no card ({tried} tried)" if found.tried else "no card was tried"
    answer = next((each for each in found.tried if each.card == found.card), None)
    taken = f": {_gib(answer.result)}{_of(answer.result.capacity_bytes)}" if answer else ""
    return f"{found.card} is the smallest card that it fits{taken}"


def candidate(tried: Candidate) -> str:
    """``rtx-3070 (7.79 GiB) does not fit, needs 8.41 of 7.79 GiB``."""
    return f"{tried.card} ({format_bytes(tried.memory_bytes)}): {outcome(tried.result)}"


def budget_sentence(budget: Budget) -> str:
    """``12.0 GiB on rtx-3060: what was asked for does not fit, needs 18.31 of 12.00 GiB``."""
    if budget.asked.fits:
        end = "; nothing needs to be turned"
    elif budget.ways:
        end = f"; {words.count(len(budget.ways), 'way')} to get by with it"
    else:
        end = "; nothing that was tried gets by with it"
    tried = f" ({words.count(budget.tried, 'combination')} tried)" if budget.tried else ""
    size = format_bytes(budget.budget_bytes)
    return f"{size} on {budget.card}: what was asked for {outcome(budget.asked)}{end}{tried}"


def way_sentence(way: Way) -> str:
    """``checkpoint on: 9.20 GiB, 2.80 GiB free; same result``."""
    return f"{settings(way.turned)}: {outcome(way.result)}; {maths(way.maths)}"


def maths(level: int) -> str:
    """What a technique does to the result, plainly."""
    return MATHS[level] if 0 <= level < len(MATHS) else words.UNKNOWN


def notes(plan: Plan) -> list[str]:
    """What is modelled and assumed in any result, each once, with its rows where it is not of all that ran."""
    by_note: dict[str, list[int]] = {}
    ran = [row for row in in_order(plan.rows, "order") if row.result.peak_allocated_bytes is not None]
    for row in ran:
        for note in row.result.notes:
            by_note.setdefault(note, []).append(row.number)
    told = [note if len(rows) == len(ran) else f"{note} ({_rows(rows)})" for note, rows in by_note.items()]
    others = dict.fromkeys(note for result in _searched(plan) for note in result.notes)
    return told + [note for note in others if note not in by_note]


def ran_on(plan: Plan) -> str:
    """``torch 2.14.1 · CUDA 13.0 · timm 1.0.31``."""
    return " · ".join(f"{name} {version}" for name, version in plan.versions.items())


def effort(plan: Plan) -> str:
    """``6 rows in 4.1 s, 2 of them known from an earlier run``."""
    if not plan.seconds and not plan.reused:
        return ""
    rows = f"{words.count(len(plan.rows), 'row')} in " if plan.rows else ""
    known = f", {plan.reused} of them known from an earlier run" if plan.reused else ""
    return f"{rows}{plan.seconds:.3g} s{known if rows else ''}"


def row_names(numbers: Iterable[int]) -> str:
    """``row 4``, ``rows 3, 5``, ``rows 4–6``."""
    told = list(numbers)
    if len(told) == 1:
        return f"row {told[0]}"
    if len(told) > 2 and told == list(range(told[0], told[-1] + 1)):
        return f"rows {told[0]}–{told[-1]}"
    return f"rows {', '.join(map(str, told))}"


def _rows(numbers: list[int], most: int = 4) -> str:
    """Some of the rows by number, the rest by their count."""
    if len(numbers) <= most or numbers == list(range(numbers[0], numbers[-1] + 1)):
        return row_names(numbers)
    return f"{row_names(numbers[:most])} and {len(numbers) - most} more"


def _searched(plan: Plan) -> Iterable[Result]:
    yield from (fit.ends for fit in plan.fits if fit.ends)
    yield from (each.result for found in plan.cheapest for each in found.tried[-1:])
    if plan.budget is not None:
        yield from (plan.budget.asked, *(way.result for way in plan.budget.ways))


def _gib(result: Result) -> str:
    return words.gib(result.process_total_bytes)


def _of(capacity: int | None) -> str:
    return " GiB" if _endless(capacity) else f" of {format_gib(capacity or 0)} GiB"


def _endless(capacity: int | None) -> bool:
    """Not known, or as `--memory unlimited` has it."""
    return capacity is None or capacity >= UNLIMITED_BYTES // 2


def in_unit(size: int | None, unit: str) -> str:
    """A figure of a table; nothing where it is not known because nothing ran."""
    return "" if size is None else format_in(size, unit)
