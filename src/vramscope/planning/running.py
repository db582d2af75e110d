"""Runs a cell: the one function that executors call, here or on another machine."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from vramscope.analysis.peak import peak
from vramscope.planning.cell import Cell
from vramscope.planning.last_words import last_error, signal_name
from vramscope.planning.pool import server_for
from vramscope.planning.result import DOES_NOT_FIT, FAILED, FITS, Failure, Outcome, Result
from vramscope.run.report import Report
from vramscope.run.run import Run
from vramscope.run.store import run_bytes
from vramscope.virtual.predicted import predicted_run
from vramscope.virtual.program import Program
from vramscope.virtual.warm import Ran, WarmServer

_TORN = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Ended by somebody else; other signals are the program's own fault."""
_PASSING = re.compile(
    r"ModuleNotFoundError|ImportError|MemoryError|DefaultCPUAllocator|KeyboardInterrupt"
    r"|OSError|TimeoutError|\w*Connection\w*Error|\w*HTTP\w*Error|BrokenPipeError|FileNotFoundError|PermissionError"
)
"""Errors of the machine or the moment: a library, a file or a host that is not there, memory that is short."""


def run_cell(cell: Cell, limit_s: float | None = None) -> Outcome:
    """Runs the cell on its card, and again without a limit where it does not fit.

    A program that crashes, hangs longer than `limit_s` or is killed is no error: the result says so.
    Raises what the virtual machine raises (TorchError, BuildError …), and CancelledError if this process's
    servers were closed meanwhile."""
    began = time.monotonic()
    server = server_for(cell)
    run, ran = run_once(cell, limit_s, server)
    result, unlimited, lasting = result_of(cell, run, ran, limit_s), None, _lasts(ran)
    if result.verdict == DOES_NOT_FIT and cell.history:
        unlimited, again = run_once(cell.unlimited(), limit_s, server)
        result = _needing(result, result_of(cell.unlimited(), unlimited, again, limit_s))
        lasting = lasting and _lasts(again)
    result = replace(result, seconds=time.monotonic() - began)
    lasting = lasting and not (result.verdict == FAILED and _PASSING.match(result.why))
    return Outcome(result, _kept(cell, run), _kept(cell, unlimited), lasting)


def run_once(cell: Cell, limit_s: float | None = None, server: WarmServer | None = None) -> tuple[Run, Ran]:
    """Runs the cell's program in a fork of a warm process; the Run, and what the program printed last.

    If that process is killed, perhaps for another program's sake, it is tried once more."""
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        script = Path(folder) / f"{cell.name}.py"
        script.write_text(cell.program)
        warm = server or server_for(cell)
        ran = warm.run(script, cell.setting(), limit_s)
        if ran.lost:
            ran = warm.run(script, cell.setting(), limit_s)
        run = predicted_run(ran.finished, Program("script", str(script)), cell.setting())
    return replace(run, name=cell.name), ran


def _lasts(ran: Ran) -> bool:
    """It would end like that again: nobody killed it."""
    status = ran.finished.status
    return not (ran.late or ran.lost or (status < 0 and signal_name(-status) in _TORN))


def result_of(cell: Cell, run: Run, ran: Ran, limit_s: float | None = None) -> Result:
    """The figures of a Run."""
    report = run.report
    assert report is not None
    verdict, why = _verdict(report, ran, limit_s)
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


def _verdict(report: Report, ran: Ran, limit_s: float | None) -> tuple[str, str]:
    if report.oom is not None and not report.oom.caught:
        return DOES_NOT_FIT, ""
    if report.stopped.how in ("finished", "steps") and report.stopped.status == 0:
        return FITS, ""
    return FAILED, _broke_off(report, ran, limit_s)


def _broke_off(report: Report, ran: Ran, limit_s: float | None) -> str:
    """Why there is no result, as a sentence without a full stop."""
    if ran.late:
        return f"not done after {limit_s:g} s" + (f", in {_place(report)}" if _place(report) else "")
    if ran.lost:
        return "the process that it ran in was killed, twice; is the host's memory short?"
    if report.stopped.status < 0:
        return _killed(-report.stopped.status)
    if report.stopped.status == 0:
        return "the program left without the end that Python has (os._exit?)"
    return last_error(ran.output) or f"the program ended with status {report.stopped.status} and said nothing"


def _place(report: Report) -> str:
    """How far it came."""
    return f"step {report.stopped.steps + 1}" if report.stopped.steps else ""


def _killed(number: int) -> str:
    name = signal_name(number)
    hint = "; is the host's memory short?" if name == "SIGKILL" else ""
    return f"the program was ended by {name}{hint}"


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
