"""A run on a card that isn't there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import vramscope
from vramscope.api.program import refuse_nested, shown_words, split_journal
from vramscope.api.setting import Setting
from vramscope.run.collect import build_report
from vramscope.run.report import UNLIMITED_BYTES, Outside

if TYPE_CHECKING:
    from vramscope.run.run import Run
    from vramscope.virtual.launch import Program


def run_program(program: Program, setting: Setting) -> Run:
    """Runs the program under the setting; the report and the journal that it was made from."""
    from vramscope.cards import outside_of
    from vramscope.run.assemble import traces_of
    from vramscope.run.run import PREDICTED, Run
    from vramscope.virtual.launch import launch

    refuse_nested("predicted")
    environment = os.environ if setting.environment is None else setting.environment
    outside = outside_of(setting.card, eager=environment.get("CUDA_MODULE_LOADING", "").upper() == "EAGER")
    finished = launch(
        program,
        setting.card,
        devices=setting.gpus,
        memory_bytes=setting.memory_bytes,
        outside=outside,
        steps=setting.steps,
        assume=setting.assume,
        environment=setting.environment if setting.history else {**environment, "VRAMSCOPE_HISTORY": "off"},
    )
    journal, history = split_journal(finished.journal, program)
    report = build_report(
        journal,
        setting.card,
        program=shown_words(program),
        gpus=setting.gpus,
        capacity_bytes=_capacity(setting),
        outside=_reported(outside),
        status=finished.status,
        machine_peaks=finished.peak_used_bytes,
        vramscope=vramscope.__version__,
    )
    return Run(report, journal, traces_of(history), PREDICTED, " ".join(report.program))


def _capacity(setting: Setting) -> int | None:
    if setting.memory_bytes is None:
        return setting.card.memory_bytes
    return None if setting.memory_bytes >= UNLIMITED_BYTES else setting.memory_bytes


def _reported(outside: Any) -> Outside:
    """The cards' figure as the report keeps it."""
    return Outside(
        bytes=outside.bytes,
        low_bytes=outside.low_bytes,
        high_bytes=outside.high_bytes,
        how=outside.how,
        loading=outside.loading,
        note=outside.note or "",
    )
