"""A run in a file: ``RUN.vram``, a zip of JSON and of NumPy's columns (docs/run-format.md).

    format.json                 {"schema": "vramscope.run/2", "vramscope": "0.1.0", …}
    report.json                 the report, vramscope.report/1; an imported run has none
    journal.jsonl               what the processes wrote
    tables/0.json, tables/0/…   modules, names, frames, stacks: one for each process
    traces/0.json, traces/0/…   spans and the like, and the columns of blocks and segments

JSON and numbers throughout: reading needs no torch and can run no code.  A file is
written beside its place and then moved there, so it is whole or not there."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import vramscope
from vramscope.errors import RunError
from vramscope.run.archive import DAMAGE, Archive
from vramscope.run.arrays import pack, unpack
from vramscope.run.columns import column_files, with_columns
from vramscope.run.files import replacing
from vramscope.run.journal import read_journal, write_journal
from vramscope.run.records import natural, plain, text
from vramscope.run.report import Report
from vramscope.run.run import IMPORTED, MEASURED, PREDICTED, Run
from vramscope.run.schema import check_schema, report_from_dict, report_to_dict
from vramscope.run.soundness import require_sound
from vramscope.run.tables import (
    stack_columns,
    stacks_of,
    tables_from_dict,
    tables_to_dict,
    trace_from_dict,
    trace_to_dict,
)
from vramscope.run.trace import Tables, Trace

RUN_SCHEMA = "vramscope.run/2"
_WITHOUT_TRACES = "vramscope.run/1"
"""The schema before: a report and a journal."""
_MOST_PARTS = 4096
"""Traces or tables: one for each process and card."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that zip knows; the same run gives the same bytes
_QUICKLY = 1  # zlib's level: a million events in a second, and hardly larger than with the best one


def save_run(path: str | os.PathLike[str], run: Run) -> None:
    """Writes the run, all at once; RunError if the place cannot be written, or the run could not be read."""
    target = Path(path)
    try:
        with replacing(target) as file:
            _write(file, run)
            with zipfile.ZipFile(file) as archive:  # it takes a tenth of a second to know that it is readable
                _unpacked(Archive(archive))
    except OSError as error:
        raise RunError(f"cannot write {target}: {error.strerror}; choose another place with -o") from error
    except RunError as error:
        raise RunError(f"cannot write {target}: {error}") from error


def load_run(path: str | os.PathLike[str]) -> Run:
    """Reads a run file; RunError says what is wrong with one that cannot be read.

    What it returns is sound: every number in it points to what there is (`vramscope.run.soundness`)."""
    try:
        with zipfile.ZipFile(path) as file:
            return _unpacked(Archive(file))
    except OSError as error:
        raise RunError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from error
    except DAMAGE as error:
        raise RunError(f"{os.fspath(path)} is no run of vramscope, or was cut off: {error}") from error
    except RunError as error:
        raise RunError(f"{os.fspath(path)}: {error}") from error


def run_bytes(run: Run) -> bytes:
    """The bytes of the run's file, for a place that is no file of its own."""
    file = io.BytesIO()
    _write(file, run)
    return file.getvalue()


def run_from_bytes(data: bytes) -> Run:
    """The run of such bytes; RunError as `load_run`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _unpacked(Archive(file))
    except (OSError, *DAMAGE) as error:
        raise RunError(f"these bytes are no run of vramscope, or were cut off: {error}") from error


def _write(file: BinaryIO, run: Run) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, data in _parts(run):
            archive.writestr(zipfile.ZipInfo(part, _EPOCH), data, zipfile.ZIP_DEFLATED, _QUICKLY)


def _parts(run: Run) -> Iterator[tuple[str, bytes]]:
    tables = _distinct(run.traces)
    yield "format.json", _json(_form(run, len(tables)))
    if run.report is not None:
        yield "report.json", _json(report_to_dict(run.report))
    yield "journal.jsonl", write_journal(run.journal)
    for number, each in enumerate(tables):
        yield f"tables/{number}.json", _json(tables_to_dict(each))
        depths, frames = stack_columns(each.stacks)
        yield f"tables/{number}/stack_depths.npy", pack(depths)
        yield f"tables/{number}/stack_frames.npy", pack(frames)
    for number, trace in enumerate(run.traces):
        own = next(index for index, each in enumerate(tables) if each is trace.tables)
        yield f"traces/{number}.json", _json(trace_to_dict(trace, own))
        yield from column_files(trace, f"traces/{number}")


def _form(run: Run, tables: int) -> dict[str, Any]:
    return {
        "schema": RUN_SCHEMA,
        "vramscope": vramscope.__version__,
        "origin": run.origin,
        "name": run.name,
        "tables": tables,
        "traces": len(run.traces),
    }


def _distinct(traces: tuple[Trace, ...]) -> list[Tables]:
    """The tables that the traces have, each once: those of one process share one."""
    return list({id(trace.tables): trace.tables for trace in traces}.values())


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _unpacked(archive: Archive) -> Run:
    form = _document(archive, "format.json")
    schema = form.get("schema") if isinstance(form, dict) else None
    if schema == _WITHOUT_TRACES:
        return Run(_report(archive), read_journal(archive.read("journal.jsonl")))
    check_schema(schema, RUN_SCHEMA)
    report = _report(archive) if "report.json" in archive else None
    journal = read_journal(archive.read("journal.jsonl"))
    traces = _traces(archive, _count(form, "traces"), _count(form, "tables"))
    origin = text(form.get("origin"), "origin")
    if origin not in (PREDICTED, MEASURED, IMPORTED):
        raise RunError(f"its origin is {origin[:40]!r}: it was not written by vramscope")
    return Run(report, journal, traces, origin, text(form.get("name"), "name"))


def _document(archive: Archive, name: str) -> Any:
    return json.loads(archive.read(name).decode())  # of bytes json would guess at the encoding


def _report(archive: Archive) -> Report:
    return report_from_dict(plain(_document(archive, "report.json"), "report"))


def _count(form: dict[str, Any], what: str) -> int:
    found = natural(form.get(what), what)
    if found > _MOST_PARTS:
        raise RunError(f"it says that it holds {found} {what}: it was not written by vramscope")
    return found


def _traces(archive: Archive, count: int, tables: int) -> tuple[Trace, ...]:
    known = tuple(_tables(archive, f"tables/{number}") for number in range(tables))
    return tuple(_trace(archive, f"traces/{number}", known) for number in range(count))


def _tables(archive: Archive, where: str) -> Tables:
    depths = unpack(archive.read(f"{where}/stack_depths.npy"), "<i8", f"{where}/stack_depths")
    frames = unpack(archive.read(f"{where}/stack_frames.npy"), "<i8", f"{where}/stack_frames")
    document = _document(archive, f"{where}.json")
    return tables_from_dict(document, stacks_of(depths, frames, where), where)


def _trace(archive: Archive, where: str, tables: tuple[Tables, ...]) -> Trace:
    empty = trace_from_dict(_document(archive, f"{where}.json"), tables, where)
    trace = with_columns(empty, where, archive.read)
    require_sound(trace, where)
    return trace
