"""Watches one step of a program from inside its process, on the virtual card; nothing of it runs elsewhere.

The figures of the comparison are not from here, but from the same program without a watcher."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vramscope.theory.seen import Layer, Parameter, Saved, Seen, Tensor

_FUNCTIONS = ("scaled_dot_product_attention", "cross_entropy")
_CONFIG = {
    "layers": ("num_hidden_layers", "n_layer"),
    "hidden": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "head": ("head_dim",),
    "window": ("sliding_window",),
}
_SQUASHING = ("ReLU", "ReLU6", "Sigmoid", "Tanh", "Softmax")
_BENDING = (
    "GELU",
    "SiLU",
    "Hardswish",
    "Hardsigmoid",
    "Mish",
    "GELUActivation",
    "SiLUActivation",
    "NewGELUActivation",
    "FastGELUActivation",
)


class Watch:
    """Watches a model from now on, until `write`."""

    def __init__(self, model: Any, optimizers: dict[str, Any]) -> None:
        import torch

        self.torch, self.model = torch, model
        self.parameters = [*_parameters(model, optimizers)]
        self.buffer_bytes = _buffer_bytes(model)
        self.weights = {_place(each) for each in (*model.parameters(), *model.buffers())}
        self.kept: list[Any] = []  # so that no memory is used twice, and a number means one tensor
        self.layers: list[Layer] = []
        self.saved: dict[int, Saved] = {}
        self.batch: list[Tensor] = []
        self.batches = 0
        self.path: list[tuple[str, str]] = []
        self.modules: list[Any] = []
        self.open = ExitStack()
        self._enter()

    def _enter(self) -> None:
        from torch.utils.flop_counter import FlopCounterMode

        torch = self.torch
        for path, module in self.model.named_modules():
            module.register_forward_pre_hook(functools.partial(self._before, path))
            module.register_forward_hook(functools.partial(self._after, path), always_call=True)
        for name in _FUNCTIONS:
            self._wrap(name)
        self.counter = self.open.enter_context(FlopCounterMode(display=False))
        self.open.enter_context(torch.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor))

    def fetched(self, *batch: Any) -> None:
        """The data of a micro-batch."""
        self.batches += 1
        if self.batches == 1:
            self.batch += [self._tensor(each) for each in _tensors(batch)]

    def write(self, path: str) -> None:
        """Ends watching and writes what was seen, as JSON."""
        self.open.close()
        counts = self.counter.get_flop_counts().get("Global", {})
        convolutions = sum(count for name, count in counts.items() if "convolution" in str(name))
        seen = Seen(
            tuple(self.parameters),
            self.buffer_bytes,
            tuple(self.layers),
            tuple(self.saved.values()),
            tuple(self.batch),
            max(self.batches, 1),
            int(self.counter.get_total_flops()),
            int(convolutions),
            _config(self.model),
        )
        Path(path).write_text(json.dumps(asdict(seen)))

    def _before(self, path: str, module: Any, inputs: Any, kind: str = "") -> None:
        self.path.append((path, kind or type(module).__name__))
        self.modules.append(module)

    def _leave(self) -> None:
        self.path.pop()
        self.modules.pop()

    def _after(self, path: str, module: Any, inputs: Any, output: Any) -> None:
        self._leave()
        family = _family(module, self.torch)
        if family:
            self._note(path, type(module).__name__, family, inputs, output, module)

    def _wrap(self, name: str) -> None:
        functional = self.torch.nn.functional
        real = getattr(functional, name)

        @functools.wraps(real)
        def watched(*inputs: Any, **named: Any) -> Any:
            path = self.path[-1][0] if self.path else ""
            self._before(path, None, inputs, name)
            try:
                result = real(*inputs, **named)
            finally:
                self._leave()
            self._note(path, name, name, (*inputs, *named.values()), result, None)
            return result

        setattr(functional, name, watched)
        self.open.callback(setattr, functional, name, real)

    def _note(self, path: str, kind: str, family: str, inputs: Any, output: Any, module: Any) -> None:
        torch = self.torch
        if self.batches > 1:
            return
        weight = getattr(module, "weight", None)
        found = [*_tensors(inputs)]
        grad = torch.is_grad_enabled() and any(each.requires_grad for each in _tensors((output,)))
        trains = grad and (weight is None or bool(weight.requires_grad) or family not in ("linear", "conv"))
        cast = torch.get_autocast_dtype("cuda").itemsize if torch.is_autocast_enabled("cuda") else None
        self.layers.append(
            Layer(
                path,
                kind,
                family,
                tuple(self._tensor(each) for each in found),
                tuple(self._tensor(each) for each in _tensors((output,))),
                _figures(module),
                trains,
                cast,
                self._keeps(),
                torch._C._current_graph_task_id() != -1,
            )
        )

    def _keeps(self) -> bool:
        """What is saved now comes to us: nobody else stands before us, as a checkpoint or an offload does."""
        top = self.torch._C._autograd._top_saved_tensors_default_hooks(False)
        return top is not None and top[0] == self._keep

    def _keep(self, tensor: Any) -> Any:
        """A tensor that is saved for backward."""
        place = _place(tensor)
        if tensor.is_cuda and place not in self.weights and self.batches < 2:
            self.kept.append(tensor.detach())
            kind = self.path[-1][1] if self.path else ""
            cast = self._is_cast(tensor)
            size = tensor.untyped_storage().nbytes()
            self.saved.setdefault(place, Saved(kind, place, size, cast))
        return tensor

    def _is_cast(self, tensor: Any) -> bool:
        """A copy in autocast's type of the weight of the module that runs: it has the weight's sides."""
        weight = getattr(self.modules[-1], "weight", None) if self.modules else None
        if weight is None:
            return False
        finer = weight.element_size() > tensor.element_size()
        return finer and sorted(weight.shape) == sorted(tensor.shape)

    def _tensor(self, tensor: Any) -> Tensor:
        self.kept.append(tensor.detach())
        return Tensor(
            _place(tensor),
            tensor.untyped_storage().nbytes(),
            tuple(tensor.shape),
            tensor.element_size(),
            bool(tensor.is_floating_point()),
            bool(tensor.requires_grad),
        )


def _place(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors on a card within tuples, lists, mappings and outputs of models."""
    if hasattr(value, "untyped_storage"):
        if value.is_cuda:
            yield value
    elif hasattr(value, "items"):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)


def _parameters(model: Any, optimizers: dict[str, Any]) -> Iterator[Parameter]:
    owner = {
        id(each): name
        for name, optimizer in optimizers.items()
        for group in optimizer.param_groups
        for each in group["params"]
    }
    for name, each in model.named_parameters():
        state = getattr(each, "quant_state", None)
        shape = tuple(state.shape) if state is not None else tuple(each.shape)
        yield Parameter(
            name, shape, each.element_size(), each.requires_grad, owner.get(id(each), ""), state is not None
        )


def _buffer_bytes(model: Any) -> int:
    sizes = {_place(each): each.untyped_storage().nbytes() for each in model.buffers() if each.is_cuda}
    return sum(sizes.values())


def _family(module: Any, torch: Any) -> str:
    """Which formula goes with a module; "" is none."""
    nn, name = torch.nn, type(module).__name__
    if isinstance(module, nn.Linear) or name == "Conv1D":
        return "linear"
    if isinstance(module, nn.modules.conv._ConvNd):
        return "conv"
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return "batch_norm"
    if isinstance(module, nn.LayerNorm):
        return "layer_norm"
    if isinstance(module, nn.RMSNorm):
        return "rms_norm"
    if name.endswith("RMSNorm"):
        return "written_rms_norm"
    if isinstance(module, nn.Embedding):
        return "embedding"
    if isinstance(module, nn.MaxPool2d):
        return "max_pool"
    if isinstance(module, nn.Dropout) and module.training and module.p > 0:
        return "dropout"
    if name in _SQUASHING:
        return "squashing"
    return "bending" if name in _BENDING else ""


def _figures(module: Any) -> dict[str, Any]:
    """What a formula must know of a module beside its tensors."""
    weight = getattr(module, "weight", None)
    if weight is None:
        return {}
    bias = getattr(module, "bias", None)
    return {
        "weight": list(weight.shape),
        "bias": bias is not None,
        "groups": getattr(module, "groups", 1),
        "transposed": bool(getattr(module, "transposed", False)),
    }


def _config(model: Any) -> dict[str, int]:
    """The figures of a transformer's config."""
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "get_text_config"):
        return {}
    text = config.get_text_config()
    found = {name: _first(text, names) for name, names in _CONFIG.items()}
    return {name: value for name, value in found.items() if value is not None}


def _first(config: Any, names: Iterable[str]) -> int | None:
    values = (getattr(config, name, None) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)
