"""Values that are read back from a card that isn't there.

On a virtual card kernels compute nothing.  What a program copies to it, fills, counts or compares there is
known all the same; the rest is assumed, by a policy that the user can set, and each assumption is named."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["assumptions", "flush", "install"]

from vramscope.recording import journal
from vramscope.recording.values.notes import Assumption, flush
from vramscope.recording.values.notes import assumptions as _assumptions

_installed = False
_TOO_OLD = "they are all zeros: torch.library.get_kernel, with which they are followed, comes with torch 2.9"


def install(torch_module: ModuleType) -> None:
    """Makes values known in this process; does nothing the second time, or on a real card.

    Raises UsageError for a setting in $VRAMSCOPE_ASSUME that makes no sense."""
    global _installed
    from vramscope.recording.values import kernels

    if _installed or not kernels.on_virtual_card():
        return
    _installed = True
    if not hasattr(torch_module.library, "get_kernel"):
        journal.write("uncounted", what="values read back from the card", bytes=None, note=_TOO_OLD)
        return
    from vramscope.recording.values import (
        amp,
        boxes,
        draws,
        generate,
        produce,
        propagate,
        read,
        redrawing,
        waiting,
    )
    from vramscope.recording.values.settings import policy

    policy()
    produce.install()
    propagate.install(draws.guesses())
    draws.install()
    read.install()
    amp.install()
    generate.install()
    boxes.install()
    redrawing.install(torch_module)
    # torch.optim deletes its submodule's name, so it isn't an attribute.
    optimizer = importlib.import_module(f"{torch_module.__name__}.optim.optimizer")
    optimizer.register_optimizer_step_post_hook(waiting.stepped)


def assumptions() -> list[Assumption]:
    """Everything assumed so far, in the order of first use."""
    return _assumptions()
