"""A report as JSON values and back: the schema ``vramscope.report/1``.

The dataclasses of report.py are the schema; docs/report-schema.md explains each field."""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

from vramscope.errors import RunError
from vramscope.run.report import Report

REPORT_SCHEMA = "vramscope.report/1"


def report_to_dict(report: Report) -> dict[str, Any]:
    """The report as JSON values, the schema's name first."""
    return {"schema": REPORT_SCHEMA, **dataclasses.asdict(report)}


def report_from_dict(document: object) -> Report:
    """The report that report_to_dict made these values of; RunError for anything else.

    Fields that this version does not know are left alone, and those that it has a default for may be
    missing: a later one may add some within a schema."""
    if not isinstance(document, dict):
        raise RunError(f'this is no report: a JSON object with "schema": "{REPORT_SCHEMA}" was expected')
    check_schema(document.get("schema"), REPORT_SCHEMA)
    report = _decoded(Report, document, "")
    assert isinstance(report, Report)
    return report


def check_schema(found: object, known: str) -> None:
    """Raises RunError unless `found` is the schema that this version reads."""
    family, _, version = known.rpartition("/")
    match = re.fullmatch(re.escape(family) + r"/([0-9]{1,6})", found) if isinstance(found, str) else None
    if match is None:
        raise RunError(f"its schema is {found!r}, not {known}: it was not written by vramscope")
    if int(match[1]) > int(version):
        newer = f"it was written by a newer vramscope ({found}; this one reads {known})"
        raise RunError(f"{newer}: pip install -U vramscope")
    if found != known:
        raise RunError(f"its schema {found} is no longer read; make it again with `vramscope predict`")


def field_names(kind: type = Report, prefix: str = "") -> Iterator[str]:
    """Every field of the schema, nested ones with their path (``steps[].peaks.allocated_bytes``)."""
    for name, annotation in _hints(kind).items():
        inner, repeated = _value_class(annotation)
        path = f"{prefix}{name}{'[]' if repeated else ''}"
        yield path
        if inner is not None:
            yield from field_names(inner, f"{path}.")


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of a dataclass's fields; Python compiles each of them anew when it is asked."""
    return typing.get_type_hints(kind)


def _required(kind: Any) -> list[str]:
    """The fields that were there from the beginning: those without a default."""
    nothing = dataclasses.MISSING
    return [
        each.name
        for each in dataclasses.fields(kind)
        if each.default is nothing and each.default_factory is nothing
    ]


def _value_class(annotation: Any) -> tuple[type | None, bool]:
    """The dataclass within an annotation, and whether it is a list of them."""
    arguments = typing.get_args(annotation)
    repeated = typing.get_origin(annotation) is tuple and arguments[-1] is Ellipsis
    found = [each for each in (annotation, *arguments) if dataclasses.is_dataclass(each)]
    return (typing.cast(type, found[0]) if found else None), repeated


def _decoded(annotation: Any, value: object, path: str) -> object:
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union):
        inner = next(each for each in typing.get_args(annotation) if each is not type(None))
        return None if value is None else _decoded(inner, value, path)
    if origin is tuple:
        return _decoded_tuple(typing.get_args(annotation), value, path)
    if dataclasses.is_dataclass(annotation):
        return _decoded_fields(typing.cast(type, annotation), value, path)
    if type(value) is not annotation:
        raise _wrong(path, annotation.__name__, value)
    return value


def _decoded_tuple(arguments: tuple[Any, ...], value: object, path: str) -> tuple[object, ...]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(path, "list", value)
    kinds = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else list(arguments)
    if len(kinds) != len(value):
        raise _wrong(path, f"list of {len(kinds)}", value)
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(_decoded(kind, item, f"{path}[{n}]") for n, (kind, item) in pairs)


def _decoded_fields(kind: type, value: object, path: str) -> object:
    if not isinstance(value, dict):
        raise _wrong(path, "object", value)
    hints, dot = _hints(kind), f"{path}." if path else ""
    missing = [name for name in _required(kind) if name not in value]
    if missing:
        raise RunError(f"the report has no {dot}{missing[0]}: it is damaged or not a report")
    known = {name: hint for name, hint in hints.items() if name in value}
    return kind(**{name: _decoded(hint, value[name], dot + name) for name, hint in known.items()})


def _wrong(path: str, expected: str, value: object) -> RunError:
    return RunError(f"{path} is {str(value)[:40]!r}, not {expected}: the report is damaged")
