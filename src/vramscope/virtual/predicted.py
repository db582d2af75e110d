"""From a program that has ended on a virtual machine to its Run."""

from __future__ import annotations

import vramscope
from vramscope.cards import Outside as CardOutside
from vramscope.run.assemble import traces_of
from vramscope.run.collect import build_report
from vramscope.run.report import Outside
from vramscope.run.run import PREDICTED, Run
from vramscope.virtual.launch import Finished
from vramscope.virtual.program import Program, shown_words, split_journal
from vramscope.virtual.setting import Setting


def predicted_run(finished: Finished, program: Program, setting: Setting) -> Run:
    """The Run of a program that has ended on a virtual machine."""
    journal, history = split_journal(finished.journal, program)
    report = build_report(
        journal,
        setting.card,
        program=shown_words(program),
        gpus=setting.gpus,
        capacity_bytes=setting.capacity_bytes,
        outside=_reported(setting.outside),
        status=finished.status,
        machine_peaks=finished.peak_used_bytes,
        vramscope=vramscope.__version__,
    )
    return Run(report, journal, traces_of(history), PREDICTED, " ".join(report.program))


def _reported(outside: CardOutside) -> Outside:
    """The cards' figure as the report keeps it."""
    return Outside(
        bytes=outside.bytes,
        low_bytes=outside.low_bytes,
        high_bytes=outside.high_bytes,
        how=outside.how,
        loading=outside.loading,
        note=outside.note or "",
    )
