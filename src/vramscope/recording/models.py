"""The program's modules and the names of what they hold, numbered as they are met."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import ModuleType
from typing import Any

from vramscope.recording import journal


class Models:
    """Numbers for modules (by path) and for tensors' names; every new one is journalled once."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch
        self._numbers: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._by_path: dict[str, int] = {"": 0}
        self._names: dict[str, int] = {"": 0}
        self._roots: dict[str, Callable[[], Any]] = {}
        """Who has a root's name; one with parameters keeps it, also when it is gone."""
        self._looked = False
        self._homes: dict[int, tuple[weakref.ref[Any], str]] = {}

    def number_of(self, module: Any, parent: str | None) -> int:
        """The module's number; `parent` is the label of the module that calls it, None for the outermost."""
        known = self._numbers.get(id(module))
        if known is not None:
            return known[0]
        if parent is None:
            self.register(module)
            return self._numbers[id(module)][0]
        caller = int(parent.partition(":")[0])
        path = next((path for path, number in self._by_path.items() if number == caller), "")
        self._add(module, f"{path}.{type(module).__name__}" if path else type(module).__name__)
        return self._numbers[id(module)][0]

    def meet(self, module: Any) -> bool:
        """Names a module that is called as the outermost; whether parameters may have come with it."""
        if id(module) in self._numbers:
            return False
        if not self._looked:
            self._looked = True
            self.register_all()
            return True
        self.register(module)
        return _has_parameters(module)

    def register(self, root: Any) -> None:
        """Names an outermost module and all below it that have no name yet."""
        prefix = self._root_name(root)
        for path, module in _tree(root):
            if id(module) not in self._numbers:
                self._add(module, f"{prefix}.{path}" if path else prefix)

    def register_all(self) -> None:
        """Names every module that exists: those that nobody has called hold parameters too."""
        modules = list(_existing(self._torch.nn.Module))
        below = {id(child) for module in modules for child in module._modules.values() if child is not None}
        for module in modules:
            if id(module) not in below and id(module) not in self._numbers:
                self.register(module)

    def path_of(self, label: str) -> str | None:
        """The path of the module that a thread's label (``span:module:flags``) names; None if it names none."""
        number = label.split(":")[1:2]
        return next((path for path, known in self._by_path.items() if [str(known)] == number and path), None)

    def modules(self) -> Iterator[tuple[str, Any]]:
        """Path and module of all that are still there."""
        paths = {number: path for path, number in self._by_path.items()}
        for number, reference in list(self._numbers.values()):
            module = reference()
            if module is not None:
                yield paths[number], module

    def name_number(self, name: str) -> int:
        """The number of a tensor's name."""
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self._names)
            journal.write("name", number=number, name=name)
        return number

    def _is_first(self, parameter: Any, path: str) -> bool:
        """Whether a parameter is no other module's: tied weights are counted once, where they were met first."""
        known = self._homes.get(id(parameter))
        if known is not None and known[0]() is parameter:
            return known[1] == path
        self._homes[id(parameter)] = (weakref.ref(parameter), path)
        return True

    def _root_name(self, root: Any) -> str:
        """The class, with a number where another of it is still there or had parameters."""
        kind = type(root).__name__
        if getattr(root, "_is_replica", False):  # DataParallel's copies are made anew for every call
            return kind
        names = (kind if number == 1 else f"{kind}#{number}" for number in count(1))
        name = next(name for name in names if name not in self._roots or self._roots[name]() is None)
        # One without, a loss say, may be made anew for every step.
        self._roots[name] = _held if _has_parameters(root) else weakref.ref(root)
        return name

    def _add(self, module: Any, path: str) -> None:
        number = self._by_path.get(path)
        if number is None:
            number = self._by_path[path] = len(self._by_path)
            own = [
                each
                for each in module._parameters.values()
                if each is not None and not is_lazy(each) and self._is_first(each, path)
            ]
            journal.write("module", number=number, path=path, **_facts(module, own))
        key, numbers = id(module), self._numbers
        self._numbers[key] = (number, weakref.ref(module, _forget(numbers, key)))


def _tree(root: Any) -> Iterator[tuple[str, Any]]:
    """A module and all below it, each once, with their paths; not by methods that a program may have replaced."""
    seen, waiting = {id(root)}, [("", root)]
    while waiting:
        path, module = waiting.pop()
        yield path, module
        below = [(name, child) for name, child in module._modules.items() if child is not None]
        for name, child in reversed(below):
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append((f"{path}.{name}" if path else name, child))


def _has_parameters(root: Any) -> bool:
    return any(
        parameter is not None for _, module in _tree(root) for parameter in module._parameters.values()
    )


def _held() -> bool:
    """In the place of a weak reference whose name is never given again."""
    return True


def _forget(numbers: dict[int, Any], key: int) -> Callable[[Any], None]:
    def gone(reference: Any) -> None:
        if numbers.get(key, (0, None))[1] is reference:
            del numbers[key]

    return gone


def _existing(kind: type) -> Iterator[Any]:
    """Every living object of a class; by type alone, since asking a lazy proxy for its class would load it."""
    return (each for each in gc.get_objects() if issubclass(type(each), kind) and "_modules" in each.__dict__)


def _facts(module: Any, own: Sequence[Any]) -> dict[str, Any]:
    """What a module holds itself; `own` are its parameters but for those that are another module's too."""
    trained = [each for each in own if each.requires_grad]
    return {
        "class": type(module).__name__,
        "parameters": sum(map(elements, own)),
        "parameter_bytes": sum(map(stored_bytes, own)),
        "trainable": sum(map(elements, trained)),
        "trainable_bytes": sum(map(stored_bytes, trained)),
        "buffer_bytes": sum(
            stored_bytes(each) for each in module._buffers.values() if each is not None and not is_lazy(each)
        ),
        "casts": [2 * each.numel() for each in own if each.element_size() == 4 and each.is_floating_point()],
        "notes": _notes(module),
    }


def is_lazy(tensor: Any) -> bool:
    """Whether it has no shape before the first forward (`torch.nn.LazyLinear`); then it is not counted."""
    return hasattr(tensor, "materialize") and type(tensor).__name__.startswith("Uninitialized")


def elements(parameter: Any) -> int:
    """How many numbers a parameter stands for; a quantized one holds several in a byte."""
    shape = getattr(getattr(parameter, "quant_state", None), "shape", None)
    count = 1
    for size in shape or ():
        count *= size
    return count if shape else int(parameter.numel())


def stored_bytes(tensor: Any) -> int:
    """The bytes of a tensor's elements as they are stored."""
    return int(tensor.numel() * tensor.element_size())


def _notes(module: Any) -> list[str]:
    found = ["requires_grad attribute"] if module.__dict__.get("requires_grad") is False else []
    return [*found, "gradient_checkpointing"] if module.__dict__.get("gradient_checkpointing") else found
