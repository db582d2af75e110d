"""A run in a file: ``RUN.vram``, a zip of the report and of the journal that it was made from.

    format.json     {"schema": "vramscope.run/1", "vramscope": "0.1.0"}
    report.json     the report, vramscope.report/1
    journal.jsonl   what the processes wrote

Plain JSON throughout: reading needs no torch and can run no code.  A file is
written beside its place and then moved there, so it is whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vramscope.errors import RunError
from vramscope.run.journal import Journal, read_journal, write_journal
from vramscope.run.report import Report
from vramscope.run.schema import check_schema, report_from_dict, report_to_dict

RUN_SCHEMA = "vramscope.run/1"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that zip knows; the same run gives the same bytes
# What zipfile and json raise on damaged content: NotImplementedError for an unknown compression,
# RuntimeError for a part marked as encrypted (and its subclass RecursionError for absurd nesting).
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
_LARGEST_PART_BYTES = 1 << 30  # an unpacked part beyond this is no run of ours


@dataclass(frozen=True, slots=True)
class Run:
    """What a run file holds."""

    report: Report
    journal: Journal


def save_run(path: str | os.PathLike[str], run: Run) -> None:
    """Writes the run, all at once; RunError if the place cannot be written."""
    target = Path(path)
    try:
        _replace(target, run)
    except OSError as error:
        raise RunError(f"cannot write {target}: {error.strerror}; choose another place with -o") from error


def load_run(path: str | os.PathLike[str]) -> Run:
    """Reads a run file; RunError says what is wrong with one that cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _unpacked(archive)
    except OSError as error:
        raise RunError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from error
    except _DAMAGE as error:
        raise RunError(f"{os.fspath(path)} is no run of vramscope, or was cut off: {error}") from error
    except RunError as error:
        raise RunError(f"{os.fspath(path)}: {error}") from error


def _replace(target: Path, run: Run) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, data in _parts(run).items():
                archive.writestr(zipfile.ZipInfo(part, _EPOCH), data, zipfile.ZIP_DEFLATED)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _parts(run: Run) -> dict[str, bytes]:
    form = {"schema": RUN_SCHEMA, "vramscope": run.report.versions.vramscope}
    return {
        "format.json": json.dumps(form).encode(),
        "report.json": json.dumps(report_to_dict(run.report), indent=1).encode(),
        "journal.jsonl": write_journal(run.journal),
    }


def _unpacked(archive: zipfile.ZipFile) -> Run:
    form = json.loads(_part(archive, "format.json"))
    check_schema(form.get("schema") if isinstance(form, dict) else None, RUN_SCHEMA)
    report = report_from_dict(json.loads(_part(archive, "report.json")))
    return Run(report, read_journal(_part(archive, "journal.jsonl")))


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise RunError(f"it holds no {name}: it was not written by vramscope") from None
    if info.file_size > _LARGEST_PART_BYTES:
        raise RunError(f"its {name} would unpack to {info.file_size} bytes: it was not written by vramscope")
    return archive.read(info)


def _umask() -> int:
    """The process's file mask, which mkstemp does not use; there is no way to read it without setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
