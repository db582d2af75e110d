"""torchvision's non-maximum suppression: its kernel writes a mask that nobody can read."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torch import Tensor

from vramscope.recording.imports import after_import
from vramscope.recording.values import kernels, notes
from vramscope.recording.values.settings import policy


def install() -> None:
    """Waits for torchvision's operators."""
    after_import("torchvision.extension", _replace)


def _replace(module: ModuleType) -> None:
    kernels.replace("nms", _nms, "torchvision")


def _nms(call: kernels.Call) -> kernels.Kernel:
    def nms(keyset: Any, boxes: Tensor, scores: Tensor, threshold: float) -> Any:
        total = boxes.shape[0]
        kept = round(policy().keep * total)
        with kernels.answered(kept):
            out = call(keyset, boxes, scores, threshold)
        if total:
            notes.assume("keep", f"non-maximum suppression keeps {kept:,} of {total:,} boxes")
        return out

    return nms
