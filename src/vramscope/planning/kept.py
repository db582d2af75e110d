"""An outcome as a row of a store, and back, with everything in the row checked: it may come from anybody."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from vramscope.errors import RunError
from vramscope.planning.result import CANNOT_RUN, DOES_NOT_FIT, FAILED, FITS, Outcome, result_from
from vramscope.run.records import natural, text, texts, wrong

Row = tuple[str, bytes | None, bytes | None, bytes]
"""The result as JSON, the two runs, and a digest of these three."""

_LONGEST = 1 << 20
"""Characters of a result; they have a few thousand."""


def row_of(outcome: Outcome) -> Row:
    """The row that keeps an outcome."""
    told = json.dumps(outcome.result.to_json())
    return told, outcome.run, outcome.unlimited, _digest(told, outcome.run, outcome.unlimited)


def outcome_from(row: tuple[object, ...]) -> Outcome:
    """The outcome of a row; RunError says what is wrong with one that cannot be."""
    told, run, unlimited, digest = row
    if not isinstance(told, str) or len(told) > _LONGEST:
        raise RunError("its result is no text, or far too long")
    for each in (run, unlimited):
        if each is not None and not isinstance(each, bytes):
            raise RunError("one of its runs is no bytes")
    assert run is None or isinstance(run, bytes)
    assert unlimited is None or isinstance(unlimited, bytes)
    if digest != _digest(told, run, unlimited):
        raise RunError("it was changed after it was written")
    return Outcome(result_from(_checked(_document(told))), run, unlimited)


def _digest(told: str, run: bytes | None, unlimited: bytes | None) -> bytes:
    whole = hashlib.sha256()
    for part in (told.encode("utf-8", "replace"), run, unlimited):
        whole.update(b"-" if part is None else b"%d:" % len(part) + part)
    return whole.digest()


def _document(told: str) -> dict[str, Any]:
    try:
        found = json.loads(told)
    except (ValueError, RecursionError) as error:
        raise RunError(f"its result is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise wrong("result", "object", found)
    return found


def _checked(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a result, each of its kind."""
    if unknown := set(document) - set(_FIELDS):
        raise RunError(f"its result has a {min(unknown)!r}, which no result has")
    if lacking := {"verdict", "capacity_bytes"} - set(document):
        raise RunError(f"its result has no {min(lacking)}")
    return {name: _FIELDS[name](value, name) for name, value in document.items()}


def _verdict(value: object, where: str) -> str:
    if value not in (FITS, DOES_NOT_FIT, CANNOT_RUN, FAILED):
        raise wrong(where, "a verdict", value)
    return str(value)


def _seconds(value: object, where: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:  # type: ignore[arg-type,operator]
        raise wrong(where, "a number of seconds", value)
    return float(value)  # type: ignore[arg-type]


def _sizes(value: object, where: str) -> dict[str, int]:
    if not isinstance(value, dict):
        raise wrong(where, "object", value)
    return {text(name, where): natural(size, f"{where}.{name}") for name, size in value.items()}


def _failure(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(_FAILURE):
        raise wrong(where, "a failure", value)
    return {name: _FAILURE[name](item, f"{where}.{name}") for name, item in value.items()}


def _or_none(check: Callable[[object, str], Any]) -> Callable[[object, str], Any]:
    return lambda value, where: None if value is None else check(value, where)


_number, _word = _or_none(natural), _or_none(text)
_FAILURE: Mapping[str, Callable[[object, str], Any]] = {
    "phase": _word,
    "step": _number,
    "module": _word,
    "requested_bytes": _number,
    "where": _word,
}
_FIELDS: Mapping[str, Callable[[object, str], Any]] = {
    "verdict": _verdict,
    "capacity_bytes": natural,
    "why": text,
    "peak_allocated_bytes": _number,
    "peak_reserved_bytes": _number,
    "process_total_bytes": _number,
    "outside_bytes": _number,
    "phase": _word,
    "step": _number,
    "module": text,
    "categories": _sizes,
    "parameters": _number,
    "trained": _number,
    "failure": _or_none(_failure),
    "retries": natural,
    "notes": texts,
    "seconds": _seconds,
}
"""The fields of `Result`; a test compares them."""
