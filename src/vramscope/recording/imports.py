"""Runs something right after a module was imported, without importing it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def after_import(name: str, do: Callable[[ModuleType], None]) -> None:
    """Calls ``do(module)`` once `name` is imported; at once if it is already."""
    module = sys.modules.get(name)
    if module is not None:
        do(module)
    else:
        sys.meta_path.insert(0, _Finder(name, do))


class _Finder(MetaPathFinder):
    """Finds one module through the other finders and puts our loader around its own."""

    def __init__(self, name: str, do: Callable[[ModuleType], None]) -> None:
        self._name, self._do = name, do

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)  # not there now; it may be later
            return None
        spec.loader = _Loader(spec.loader, self._do)
        return spec


class _Loader(Loader):
    """Another loader, and something to do after it."""

    def __init__(self, real: Loader, do: Callable[[ModuleType], None]) -> None:
        self._real, self._do = real, do

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._real  # from here on nobody needs to see us
            module.__loader__ = self._real
        self._real.exec_module(module)
        self._do(module)
