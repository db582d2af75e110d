"""A function carried into a fresh process: a folder with a script that calls it.

A function of a module goes by its name, as pickle does it.  One of `__main__` has no
module that another process could import; it goes by value where cloudpickle is
installed, else by running its script again under the name ``__mp_main__`` (as
multiprocessing does), else, in a notebook, by its source text."""

from __future__ import annotations

import importlib
import importlib.util
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vramscope.errors import UsageError
from vramscope.run.source import module_source

_START = """\
import json, pathlib, pickle, runpy, sys, types
here = pathlib.Path(__file__).parent
told = json.loads((here / "call.json").read_text())
sys.path.extend(place for place in told["path"] if place not in sys.path)
if told["main"]:
    first, main = sys.modules["__main__"], types.ModuleType("__mp_main__")
    run = runpy.run_module if told["by_name"] else runpy.run_path
    main.__dict__.update(run(told["main"], run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main
pickle.loads((here / "function.pickle").read_bytes())()
"""
_START_FROM_SOURCE = """\
import json, pathlib, sys
told = json.loads((pathlib.Path(__file__).parent / "call.json").read_text())
sys.path.extend(place for place in told["path"] if place not in sys.path)
import vramscope_function
getattr(vramscope_function, told["name"])()
"""


def function_name(function: Callable[[], object]) -> str:
    """A function's name as a report shows it."""
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def write_call(function: Callable[[], object], folder: Path) -> Path:
    """Writes what a fresh process needs into `folder`; returns the script that calls the function.

    Raises UsageError, with the way out, for a function that cannot leave this process."""
    if not callable(function):
        raise UsageError(f"predict() takes a path or a function of no arguments, not {function!r}")
    pickled = _by_name(function)
    if pickled is None or b"__main__" in pickled:
        by_value = _by_value(function)
        if by_value is None:
            return _write_from_main(function, pickled, folder)
        pickled = by_value
    return _write(folder, _START, _told(), pickled)


def _write_from_main(function: Callable[[], object], pickled: bytes | None, folder: Path) -> Path:
    main, by_name = _main_module()
    if pickled is not None and main is not None:
        return _write(folder, _START, {**_told(), "main": main, "by_name": by_name}, pickled)
    (folder / "vramscope_function.py").write_text(module_source(function), encoding="utf-8")
    return _write(folder, _START_FROM_SOURCE, {**_told(), "name": function_name(function)}, b"")


def _by_name(function: Callable[[], object]) -> bytes | None:
    try:
        return pickle.dumps(function)
    except Exception:  # pickle lets through whatever an object's own __reduce__ raises
        return None


def _by_value(function: Callable[[], object]) -> bytes | None:
    if importlib.util.find_spec("cloudpickle") is None:
        return None
    cloudpickle = importlib.import_module("cloudpickle")
    try:
        return bytes(cloudpickle.dumps(function))
    except Exception as error:  # as above
        problem = f"{function_name(function)} cannot be sent to a fresh process: {error}"
        raise UsageError(f"{problem}; make what it needs inside it") from error


def _main_module() -> tuple[str | None, bool]:
    """The script that runs now, or the module of `python -m` (True); None in a notebook or after -c."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return spec.name, True
    path = getattr(main, "__file__", None)
    return (str(Path(path).absolute()), False) if path and Path(path).is_file() else (None, False)


def _told() -> dict[str, Any]:
    """What the script reads: where this process finds its modules ("" is the current folder)."""
    return {"path": [place or str(Path.cwd()) for place in sys.path], "main": None, "by_name": False}


def _write(folder: Path, start: str, told: dict[str, Any], pickled: bytes) -> Path:
    (folder / "call.json").write_text(json.dumps(told), encoding="utf-8")
    (folder / "function.pickle").write_bytes(pickled)
    script = folder / "call.py"
    script.write_text(start, encoding="utf-8")
    return script
