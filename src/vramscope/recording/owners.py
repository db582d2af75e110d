"""What the blocks are that outlive a step: parameters, buffers, gradients, optimizer states, inputs.

At the boundaries of phases the tensors that the program itself keeps are looked up, and their blocks
annotated in the allocator's history.  By address: asking a tensor for its storage would make a Python
object that counts as one more holder, and autograd would allocate otherwise."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from vramscope.recording import journal
from vramscope.recording.models import is_lazy

if TYPE_CHECKING:
    from vramscope.recording.labels import Labels
    from vramscope.recording.models import Models

_DEEPEST = 3


class Owners:
    """Annotates the blocks of the tensors that modules and optimizers hold."""

    def __init__(self, torch: Any, labels: Labels, models: Models) -> None:
        self._torch, self._labels, self._models = torch, labels, models
        self._parameters: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._known: dict[int, str] = {}
        """What was annotated since the gradients were last given up; a block may be another one after that."""
        self._held: dict[int, weakref.ref[Any]] = {}
        self._optimizers: set[int] = set()

    def modules(self) -> None:
        """Parameters and buffers of every known module, and what hangs on them (a quantized weight's scales)."""
        for path, module in self._models.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    if self._name_of(parameter) is None:  # a tied weight keeps its first name
                        self._parameters[id(parameter)] = (weakref.ref(parameter), f"{path}.{name}")
                    self._label("p", self._name_of(parameter) or "", parameter)
            for name, buffer in module._buffers.items():
                self._label("b", f"{path}.{name}", buffer)

    def gradients(self) -> None:
        """The gradients of every known parameter; those that were annotated in this step are skipped."""
        for reference, name in list(self._parameters.values()):
            parameter = reference()
            if parameter is not None and parameter.is_leaf and (grad := parameter.grad) is not None:
                self._label("g", name, grad)

    def optimizer(self, optimizer: Any) -> None:
        """The optimizer's states, and its parameters that belong to no module."""
        if id(optimizer) not in self._optimizers:
            self._optimizers.add(id(optimizer))
            self._adopt(optimizer)
        for parameter, state in list(optimizer.state.items()):
            owner = self._name_of(parameter) or type(optimizer).__name__
            for key, value in state.items() if isinstance(state, dict) else ():
                if not self._is_held(value):
                    self._label("o", f"{owner} {key}", value)

    def inputs(self, values: Iterable[Any]) -> None:
        """The tensors that an outermost module is called with; whether they are inputs their birth tells."""
        for value in values:
            for tensor in self._tensors(value, 0):
                if address := _address(tensor):
                    self._labels.annotate(address, "i:0")

    def new_step(self) -> None:
        """Gradients may be given up from here on, and their addresses come back as something else."""
        self._known.clear()

    def _adopt(self, optimizer: Any) -> None:
        kind = type(optimizer).__name__
        groups = optimizer.param_groups
        for number, parameter in enumerate(each for group in groups for each in group["params"]):
            if self._name_of(parameter) is None:
                self._parameters[id(parameter)] = (weakref.ref(parameter), f"{kind}.params.{number}")
                self._label("p", f"{kind}.params.{number}", parameter)
        _write_optimizer(kind, groups)

    def _is_held(self, value: Any) -> bool:
        """Whether this very object was annotated before: an optimizer keeps its states."""
        known = self._held.get(id(value))
        if known is not None and known() is value:
            return True
        if isinstance(value, self._torch.Tensor):
            self._held[id(value)] = weakref.ref(value)
        return False

    def _name_of(self, parameter: Any) -> str | None:
        reference, name = self._parameters.get(id(parameter), (None, None))
        return name if reference is not None and reference() is parameter else None

    def _label(self, letter: str, name: str, value: Any) -> None:
        for tensor in (value,) if self._is_plain(value) else self._tensors(value, 0):
            address = _address(tensor)
            if address and self._known.get(address) != letter:
                self._known[address] = letter
                self._labels.annotate(address, f"{letter}:{self._models.name_number(name)}")

    def _is_plain(self, value: Any) -> bool:
        """A tensor on a card with nothing behind it, which most are."""
        return (
            type(value) is self._torch.Tensor and value.is_cuda and not value.__dict__ and not value.is_sparse
        )

    def _tensors(self, value: Any, depth: int) -> Iterator[Any]:
        """The plain tensors on a card in a value, as deep as quantized weights and batches go."""
        if isinstance(value, self._torch.Tensor):
            yield from self._parts(value, depth)
        elif depth < _DEEPEST:
            for item in _items(value):
                yield from self._tensors(item, depth + 1)

    def _parts(self, tensor: Any, depth: int) -> Iterator[Any]:
        if is_lazy(tensor):
            return
        if hasattr(tensor, "__tensor_flatten__"):  # a subclass that wraps others and has no memory of its own
            names, _ = tensor.__tensor_flatten__()
            for name in names:
                yield from self._tensors(getattr(tensor, name), depth + 1)
        elif tensor.is_cuda and tensor.layout is self._torch.strided:
            yield tensor
            if depth < _DEEPEST and (extra := getattr(tensor, "__dict__", None)):
                for item in list(extra.values()):
                    yield from self._tensors(item, depth + 1)


def _address(tensor: Any) -> int:
    """Where the tensor's storage begins; 0 for one that has no memory (a fake one of a tracer's)."""
    try:
        return int(tensor.data_ptr() - tensor.storage_offset() * tensor.element_size())
    except RuntimeError:
        return 0


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return value
    if type(value).__name__ == "QuantState":  # bitsandbytes: the scales of a quantized weight
        return list(vars(value).values())
    return ()


def _write_optimizer(kind: str, groups: Any) -> None:
    first = {key: value for key, value in groups[0].items() if key != "params"} if groups else {}
    plain = {
        key: value
        for key, value in first.items()
        if value is None or isinstance(value, (bool, int, float, str, tuple))
    }
    count = sum(int(each.numel()) for group in groups for each in group["params"])
    journal.write("optimizer", **{"class": kind, "parameters": count, "settings": plain})
