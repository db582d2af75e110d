"""Runs a cell: the one function that executors call, here or on another machine."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from vramscope.analysis.peak import peak
from vramscope.plan.cell import Cell
from vramscope.plan.pool import server_for
from vramscope.plan.result import DOES_NOT_FIT, FAILED, FITS, Failure, Outcome, Result
from vramscope.run.report import Report
from vramscope.run.run import Run
from vramscope.run.store import run_bytes
from vramscope.virtual.predicted import predicted_run
from vramscope.virtual.program import Program
from vramscope.virtual.warm import Ran

_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt|Warning))\b:? ?(.*)$", re.MULTILINE)


def run_cell(cell: Cell, limit_s: float | None = None) -> Outcome:
    """Runs the cell on its card, and again without a limit where it does not fit.

    A program that crashes, hangs longer than `limit_s` or is killed is no error: the result says so.
    Raises what the virtual machine raises (TorchError, BuildError …)."""
    began = time.monotonic()
    run, ran = run_once(cell, limit_s)
    result, unlimited = result_of(cell, run, ran), None
    if result.verdict == DOES_NOT_FIT and cell.history:
        unlimited, again = run_once(cell.unlimited(), limit_s)
        result = _needing(result, result_of(cell.unlimited(), unlimited, again))
    result = replace(result, seconds=time.monotonic() - began)
    return Outcome(result, _kept(cell, run), _kept(cell, unlimited))


def run_once(cell: Cell, limit_s: float | None = None) -> tuple[Run, Ran]:
    """Runs the cell's program in a fork of a warm process; the Run, and what the program printed last."""
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        script = Path(folder) / f"{cell.name}.py"
        script.write_text(cell.program)
        ran = server_for(cell).run(script, cell.setting(), limit_s)
        run = predicted_run(ran.finished, Program("script", str(script)), cell.setting())
    return replace(run, name=cell.name), ran


def result_of(cell: Cell, run: Run, ran: Ran) -> Result:
    """The figures of a Run."""
    report = run.report
    assert report is not None
    verdict, why = _verdict(report, ran)
    peaks, highest = report.peaks, report.highest
    found = Result(
        verdict=verdict,
        capacity_bytes=cell.capacity_bytes,
        why=why,
        peak_allocated_bytes=peaks.allocated_bytes,
        peak_reserved_bytes=peaks.reserved_bytes,
        process_total_bytes=peaks.process_total_bytes,
        outside_bytes=report.outside.bytes,
        phase=highest.phase if highest else None,
        step=highest.step if highest else None,
        failure=_failure(report),
        retries=sum(retry.count for retry in report.retries),
        notes=tuple(_notes(report)),
    )
    return _followed(found, run)


def _followed(found: Result, run: Run) -> Result:
    """What only a history tells: the peak's module and categories, and the sizes of the model."""
    if run.trace is None:
        return found
    top = peak(run.trace)
    if top is None:
        return found
    modules = run.trace.tables.modules
    return replace(
        found,
        peak_allocated_bytes=top.allocated_bytes,
        phase=top.phase or found.phase,
        step=top.step,
        module=top.module,
        categories={each.name: each.size_bytes for each in top.categories},
        parameters=sum(module.parameters for module in modules),
        trained=sum(module.trainable for module in modules),
    )


def _verdict(report: Report, ran: Ran) -> tuple[str, str]:
    if report.oom is not None and not report.oom.caught:
        return DOES_NOT_FIT, ""
    if report.stopped.how in ("finished", "steps") and report.stopped.status == 0:
        return FITS, ""
    return FAILED, _said(report, ran)


def _said(report: Report, ran: Ran) -> str:
    """The last error that the program printed, in a line."""
    errors = _ERROR.findall(ran.output)
    if errors:
        kind, text = errors[-1]
        return f"{kind}: {text}".rstrip(": ")
    how = (
        f"ended by signal {-report.stopped.status}"
        if report.stopped.status < 0
        else f"ended with status {report.stopped.status}"
    )
    return f"the program {how}"


def _failure(report: Report) -> Failure | None:
    oom = report.oom
    if oom is None or oom.caught:
        return None
    return Failure(oom.phase, oom.step, oom.module, oom.requested_bytes, oom.where)


def _needing(there: Result, without_limit: Result) -> Result:
    """What does not fit, with the figures of a run that did."""
    if without_limit.verdict != FITS:
        return there
    return replace(
        without_limit,
        verdict=there.verdict,
        capacity_bytes=there.capacity_bytes,
        failure=there.failure,
        retries=there.retries,
    )


def _notes(report: Report) -> list[str]:
    unsimulated = [f"{each.library}: {each.symbol} is not simulated" for each in report.unsimulated]
    modelled = [f"{each.what} is modelled" for each in (*report.modelled, *report.uncounted)]
    assumed = [f"assumed: {each.what}" for each in report.assumed]
    return list(dict.fromkeys((*unsimulated, *modelled, *assumed)))


def _kept(cell: Cell, run: Run | None) -> bytes | None:
    if run is None or not cell.history:
        return None
    return run_bytes(run)
