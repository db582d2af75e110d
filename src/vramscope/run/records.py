"""Small frozen dataclasses as JSON objects and back, each field checked against its type."""

from __future__ import annotations

import functools
import reprlib
import typing
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from vramscope.errors import RunError

LARGEST = 1 << 62
"""No size, count or time in a run is larger, so that sums of them stay within int64."""
_T = TypeVar("_T")


def to_objects(values: Iterable[Any]) -> list[dict[str, Any]]:
    """One JSON object for each value."""
    return [{each.name: getattr(value, each.name) for each in fields(value)} for value in values]


def to_values(kind: type[_T], document: object, where: str) -> tuple[_T, ...]:
    """The values that `to_objects` made this list of; RunError, naming the field, for anything else.

    Fields that this version does not know are left alone, and one that is not there has its default."""
    if not isinstance(document, list):
        raise wrong(where, "list", document)
    return tuple(_value(kind, item, f"{where}[{number}]") for number, item in enumerate(document))


def natural(value: object, where: str) -> int:
    """A whole number from 0 to LARGEST."""
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise wrong(where, f"a whole number from 0 to {LARGEST}", value)
    return value


def text(value: object, where: str) -> str:
    """A text; half a surrogate pair, as in the name of a file that is not UTF-8, becomes a question mark.

    Nothing could print it otherwise."""
    if type(value) is not str:
        raise wrong(where, "text", value)
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def truth(value: object, where: str) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise wrong(where, "true or false", value)
    return value


def texts(value: object, where: str) -> tuple[str, ...]:
    """A list of texts, as a tuple."""
    return tuple(text(item, f"{where}[{number}]") for number, item in enumerate(items(value, where)))


def settings(value: object, where: str) -> dict[str, Any]:
    """A mapping from texts to plain values; lists become tuples."""
    if not isinstance(value, dict):
        raise wrong(where, "object", value)
    return {text(key, where): plain(item, where) for key, item in value.items()}


def items(value: object, where: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise wrong(where, "list", value)
    return value


def plain(value: object, where: str) -> Any:
    """A JSON value whose numbers are not absurd and whose texts can be printed; lists become tuples."""
    if isinstance(value, list):
        return tuple(plain(item, where) for item in value)
    if isinstance(value, dict):
        return {text(key, where): plain(item, where) for key, item in value.items()}
    if isinstance(value, str):
        return text(value, where)
    if isinstance(value, int) and abs(value) > 2 * LARGEST:
        raise wrong(where, "a number of 64 bits", value)
    return value


def wrong(where: str, expected: str, value: object) -> RunError:
    """What is said of a value that is not what it should be."""
    return RunError(f"its {where} is {reprlib.repr(value)}, not {expected}: the run is damaged")


def _value(kind: type[_T], item: object, where: str) -> _T:
    if not isinstance(item, dict):
        raise wrong(where, "object", item)
    found = {}
    for name, decode, required in _decoders(typing.cast(Any, kind)):
        if name in item:
            found[name] = decode(item[name], f"{where}.{name}")
        elif required:
            raise RunError(f"its {where} has no {name}: the run is damaged")
    return kind(**found)


@functools.cache
def _decoders(kind: Any) -> list[tuple[str, Callable[[object, str], Any], bool]]:
    hints = typing.get_type_hints(kind)
    return [
        (each.name, _decoder(hints[each.name]), each.default is MISSING and each.default_factory is MISSING)
        for each in fields(kind)
    ]


def _decoder(hint: Any) -> Callable[[object, str], Any]:
    plainly = {int: natural, str: text, bool: truth, tuple[str, ...]: texts, dict[str, Any]: settings}
    if hint in plainly:
        return plainly[hint]
    inner = _decoder(next(each for each in typing.get_args(hint) if each is not type(None)))
    return lambda value, where: None if value is None else inner(value, where)
