"""The user's own workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Job:
    """What `vramscope plan your.module:function` needs of a workload; the function returns one of these.

    Everything is called with the card as torch's default device, so nothing needs a ``device=``."""

    model: Callable[[], Any]
    """Makes the module, with random weights."""
    batch: Callable[[int], Any]
    """Makes a batch of so many samples, of any kind."""
    loss: Callable[[Any, Any], Any]
    """The loss, a scalar tensor, of ``(model, batch)``; for inference its value is not used."""
    optimizer: Callable[[Any], Any] | None = None
    """Makes an optimizer of the list of trained parameters; None: `vramscope plan` chooses."""
