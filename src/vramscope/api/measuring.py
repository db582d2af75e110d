"""A run on this machine's GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import vramscope
from vramscope.api.program import refuse_nested
from vramscope.api.setting import DEFAULT_STEPS
from vramscope.errors import UnknownCardError
from vramscope.run.collect import build_report
from vramscope.run.journal import Entry, integer, text
from vramscope.run.report import CardFigures

if TYPE_CHECKING:
    from vramscope.real.nvml import RealCard
    from vramscope.run.run import Run
    from vramscope.virtual.program import Program


def measure_program(
    program: Program, steps: int | None = DEFAULT_STEPS, environment: Mapping[str, str] | None = None
) -> Run:
    """Runs the program on the real card; what the recorder and NVML saw of it."""
    from vramscope.real.launch import measure as launch_measured
    from vramscope.run.assemble import traces_of
    from vramscope.run.measured import device_cards, devices_of, entries_of, totals_of, with_totals
    from vramscope.run.run import MEASURED, Run
    from vramscope.virtual.program import shown_words, split_journal

    refuse_nested("measured", environment)
    finished = launch_measured(program, steps=steps, environment=environment)
    journal, history = split_journal(finished.journal, program)
    traces = traces_of(history)
    cards = device_cards(journal, {card.uuid.removeprefix("GPU-"): card.index for card in finished.cards})
    totals = totals_of(finished.samples, traces, cards, finished.looks)
    devices = devices_of(journal)
    card = _measured_card(devices, finished.cards)
    report = build_report(
        with_totals(journal, totals.outside.bytes),
        card,
        timed=True,
        program=shown_words(program),
        gpus=max(len(devices), 1),
        capacity_bytes=card.memory_bytes,
        outside=totals.outside,
        status=finished.status,
        machine_peaks=[totals.peaks.get(number, 0) for number in range(len(devices))],
        vramscope=vramscope.__version__,
    )
    kept = replace(journal, entries=(*journal.entries, *entries_of(finished.samples)))
    return Run(report, kept, traces, MEASURED, " ".join(report.program))


def _measured_card(devices: Sequence[Entry], cards: Sequence[RealCard]) -> CardFigures:
    """The card as the program's torch described it; as NVML does, for a program that used none."""
    told = devices[0] if devices else {}
    name = text(told, "name") or cards[0].name
    major, minor = told.get("capability") or (0, 0)
    memory = integer(told, "memory_bytes") or cards[0].memory_bytes
    return CardFigures(_card_id(name), name, memory, (major, minor), integer(told, "sms") or 0)


def _card_id(name: str) -> str:
    from vramscope.cards import find_card

    try:
        return find_card(name).id
    except UnknownCardError:
        return name.lower().replace(" ", "-")
