"""The source of a notebook's function with what it uses, as a module of its own.

The names that the source mentions are looked up in the function's globals: modules and
what comes from modules are imported, functions of the notebook are taken with their
own source, and anything else goes by pickle."""

from __future__ import annotations

import ast
import inspect
import pickle
import sys
import textwrap
import types
from collections.abc import Callable, Iterator

from vramscope.errors import UsageError


def module_source(function: Callable[[], object]) -> str:
    """A module's text that defines the function and all it uses; UsageError where that cannot be."""
    pieces: dict[str, str] = {}
    _add_function(function, pieces)
    return "\n\n".join(["from __future__ import annotations", *pieces.values()]) + "\n"


def _add_function(function: Callable[[], object], pieces: dict[str, str]) -> None:
    """What it uses comes before it, for decorators and default values; itself twice only in name."""
    if not isinstance(function, types.FunctionType):
        raise _impossible(str(function), "it is no plain function")
    name = function.__name__
    source = _source(function)
    pieces[name] = ""  # a place for it, so that functions that call each other end
    for used in _names(source):
        if used not in pieces and used in function.__globals__:
            _add(used, function.__globals__[used], pieces)
    del pieces[name]
    pieces[name] = source


def _add(name: str, value: object, pieces: dict[str, str]) -> None:
    if isinstance(value, types.ModuleType):
        pieces[name] = f"import {value.__name__}\n{name} = __import__('sys').modules[{value.__name__!r}]"
    elif (home := _home(value)) is not None:
        pieces[name] = f"from {home} import {getattr(value, '__name__', name)} as {name}"
    elif isinstance(value, types.FunctionType):
        _add_function(value, pieces)
    else:
        pieces[name] = f"{name} = __import__('pickle').loads({_pickled(name, value)!r})"


def _home(value: object) -> str | None:
    """The module that a class or function can be imported from; None for those of the notebook."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    return module if getattr(sys.modules.get(module), name, None) is value else None


def _source(function: types.FunctionType) -> str:
    if function.__name__ == "<lambda>" or function.__code__.co_freevars:
        raise _impossible(function.__qualname__, "it is a lambda or uses variables of an outer function")
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise _impossible(function.__qualname__, "its source is not to be had") from error


def _names(source: str) -> Iterator[str]:
    return (node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))


def _pickled(name: str, value: object) -> bytes:
    try:
        data = pickle.dumps(value)
    except Exception as error:  # pickle lets through whatever an object's own __reduce__ raises
        raise _impossible(name, "it cannot be pickled") from error
    if b"__main__" in data:
        raise _impossible(name, "it is an object of this notebook")
    return data


def _impossible(name: str, why: str) -> UsageError:
    way_out = "pip install cloudpickle, or put the function into a module or a script of its own"
    return UsageError(f"{name} cannot be sent to a fresh process: {why}; {way_out}")
