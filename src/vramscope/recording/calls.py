"""Which module runs, on every thread, forward and backward, at the price of two small calls a module.

Forward: a wrapper of ``Module.__call__`` labels the thread.  Backward: autograd runs the nodes of a
thread in exactly the reverse order of their creation (its queue is ordered by their sequence number),
so one hook on the last node of each stretch between two changes of module labels everything down to
the next hook.  That node is the output of the module that ends, or the input of the one that begins."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vramscope.run.trace import AUTOCAST, BACKWARD, EVALUATION, GRAD, RECOMPUTE

if TYPE_CHECKING:
    from vramscope.recording.recorder import Recorder


_OUTSIDE = f"0:{GRAD}"
"""The label of code that is in no module."""


class _Thread(threading.local):
    """The modules that a thread is in, as labels, and the last autograd node that it hooked."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.last = -1


class Calls:
    """The wrapper of ``Module.__call__`` and the hooks on autograd's nodes."""

    def __init__(self, torch: ModuleType, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._here = _Thread()
        self._hooks: dict[str, Callable[..., None]] = {}

    def install(self) -> None:
        """Puts the wrapper in place; until CUDA is there it only asks whether it is."""
        torch, recorder, here = self._torch, self._recorder, self._here
        module_class = torch.nn.Module
        real, is_compiling = module_class.__call__, torch.compiler.is_compiling
        grad_enabled, any_autocast = torch.is_grad_enabled, torch._C._is_any_autocast_enabled
        number_of, plain = recorder.models.number_of, torch.Tensor

        @functools.wraps(real)
        def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not recorder.on:
                return real(module, *args, **kwargs)
            stack, labels = here.stack, recorder.labels
            outermost = not stack
            outside = recorder.enters(module, args, kwargs) if outermost else recorder.prefix + stack[-1]
            if not recorder.follows:
                return self._only_once(module, real, args, kwargs)
            grad = grad_enabled()
            number = number_of(module, stack[-1] if stack else None)
            flags = (GRAD if grad else 0) | (AUTOCAST if any_autocast() else 0)
            flags |= (0 if module.training else EVALUATION) | (RECOMPUTE if recorder.in_backward() else 0)
            if grad:
                self._tag((*args, *kwargs.values()), stack[-1] if stack else _OUTSIDE)
            stack.append(label := f"{number}:{flags}")
            labels.set(recorder.prefix + label)
            try:
                found = real(module, *args, **kwargs)
            finally:
                stack.pop()
                labels.set(outside)
            if grad:
                self._tag((found,) if type(found) is plain else _flat(found), label)
            return found

        module_class.__call__ = call

    def _only_once(self, module: Any, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call of which only the outermost is of interest."""
        stack = self._here.stack
        stack.append("")
        try:
            return real(module, *args, **kwargs)
        finally:
            stack.pop()

    def tag_roots(self, roots: Iterable[Any]) -> None:
        """Labels the thread of autograd from the first node of a backward on."""
        for tensor in roots:
            node = getattr(tensor, "grad_fn", None)
            if node is not None and node._sequence_nr() > self._here.last:
                self._hook(node, _OUTSIDE)

    def _tag(self, tensors: Iterable[Any], label: str) -> None:
        """Hooks the newest of the nodes that made these tensors, unless it was hooked already."""
        tensor_class, newest, last = self._torch.Tensor, None, self._here.last
        for tensor in tensors:
            if isinstance(tensor, tensor_class) and (node := _node_of(tensor)) is not None:
                number = node._sequence_nr()
                if last < number < 1 << 63:  # the nodes that accumulate gradients have the highest number
                    newest, last = node, number
        if newest is not None:
            self._here.last = last
            self._hook(newest, label)

    def _hook(self, node: Any, label: str) -> None:
        hook = self._hooks.get(label)
        if hook is None:
            hook = self._hooks[label] = self._made(label)
        node.register_prehook(hook)

    def _made(self, label: str) -> Callable[..., None]:
        recorder, set_label = self._recorder, self._recorder.labels.set
        number, _, flags = label.partition(":")
        shown = f"{number}:{int(flags) | BACKWARD}"

        def entered(*_: Any) -> None:
            set_label(recorder.prefix + shown)

        return entered


def _node_of(tensor: Any) -> Any:
    """The node that made a tensor; None also where autograd refuses to tell."""
    try:
        return tensor.grad_fn
    except RuntimeError:  # a view of many that was changed in place: an error of the program's, at its time
        return None


def _flat(found: Any) -> Iterator[Any]:
    """The values that a module returns, one or two levels deep; what else it hides is not looked for."""
    if isinstance(found, (tuple, list)):
        for item in found:
            if isinstance(item, (tuple, list)):
                yield from item
            else:
                yield item
    elif isinstance(found, dict):
        yield from found.values()
    else:
        yield found
