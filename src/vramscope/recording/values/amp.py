"""GradScaler: gradients are finite, so every step happens and the scale keeps its course."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from vramscope.recording.values import kernels
from vramscope.recording.values.known import forget, note_constant, values_of
from vramscope.recording.values.settings import policy


def install() -> None:
    """Replaces the two kernels of torch.amp.GradScaler."""
    kernels.replace("_amp_foreach_non_finite_check_and_unscale_", _check)
    kernels.replace("_amp_update_scale_", _update)


def _check(call: kernels.Call) -> kernels.Kernel:
    def check(keyset: Any, grads: list[Tensor], found_inf: Tensor, inverse_scale: Tensor) -> Any:
        out = call(keyset, grads, found_inf, inverse_scale)
        note_constant(found_inf, 0.0 if policy().finite else 1.0, in_place=True)
        return out

    return check


def _update(call: kernels.Call) -> kernels.Kernel:
    def update(
        keyset: Any,
        scale: Tensor,
        tracker: Tensor,
        found_inf: Tensor,
        growth: float,
        backoff: float,
        interval: int,
    ) -> Any:
        known = [values_of(tensor) for tensor in (scale, tracker, found_inf)]
        out = call(keyset, scale, tracker, found_inf, growth, backoff, interval)
        if any(values is None for values in known):
            forget(scale)
            forget(tracker)
            return out
        factor, good_steps, overflow = (values.item() for values in known if values is not None)
        factor, good_steps = _next(factor, int(good_steps), bool(overflow), growth, backoff, interval)
        note_constant(scale, factor, in_place=True)
        note_constant(tracker, good_steps, in_place=True)
        return out

    return update


def _next(
    scale: float, good_steps: int, overflow: bool, growth: float, backoff: float, interval: int
) -> tuple[float, int]:
    """The scale and the number of steps without overflow after one step, as torch's CUDA kernel has it
    (aten/src/ATen/native/cuda/AmpKernels.cu, amp_update_scale_cuda_kernel)."""
    if overflow:
        return scale * backoff, 0
    if good_steps + 1 == interval:
        return scale * growth, 0
    return scale, good_steps + 1
