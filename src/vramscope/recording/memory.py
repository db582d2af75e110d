"""Recording in this process: begun once torch is there, ended with the process."""

from __future__ import annotations

import ctypes
import os
import sys
from types import ModuleType

from vramscope.errors import TorchError
from vramscope.recording import journal
from vramscope.recording.recorder import Recorder

_recorder: Recorder | None = None


def install(torch: ModuleType) -> None:
    """Begins recording in this process; torch has just been imported."""
    global _recorder
    if _recorder is not None:
        return
    real = bool(os.environ.get("VRAMSCOPE_REAL"))
    core = ctypes.CDLL(None)
    virtual = hasattr(core, "vs_used_bytes")
    if not (virtual or real):  # LD_PRELOAD was taken away: there is no virtual card
        return
    _refuse_another_torch(torch)
    _recorder = Recorder(torch, None if real else core)
    journal.write(
        "torch",
        torch=torch.__version__,
        cuda=torch.version.cuda,
        cudnn=_cudnn_version(torch),
        allocator=os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        or os.environ.get("PYTORCH_ALLOC_CONF")
        or "default settings",
    )
    _recorder.install()
    if virtual:  # also where it is measured as if it were a real one
        _install_values(torch)


def _refuse_another_torch(torch: ModuleType) -> None:
    """A child of another Python may bring another torch, whose cuDNN would be mixed with the first one's."""
    made_for = os.environ.get("VRAMSCOPE_TORCH")
    if made_for and torch.__version__ != made_for:
        raise TorchError(
            f"{sys.executable} has torch {torch.__version__}, but this virtual card was made for torch {made_for}; "
            "libraries of two wheels must not be mixed: start vramscope with that Python"
        )


def finish() -> None:
    """Writes the span that is still open and the counts of what was assumed; called when the process ends."""
    if _recorder is not None:
        _recorder.finish()
    notes = sys.modules.get("vramscope.recording.values.notes")
    if notes is not None:  # a process that is left at once runs no atexit handlers
        notes.flush()


def mark(text: str) -> bool:
    """Ends the span that is open with a mark; False where nothing is recorded."""
    if _recorder is None or not _recorder.on:
        return False
    _recorder.mark(text)
    return True


def _cudnn_version(torch: ModuleType) -> str | None:
    """From the library: ``torch.backends.cudnn.version()`` would look at the card."""
    cudnn = getattr(torch._C, "_cudnn", None)
    return None if cudnn is None else ".".join(map(str, cudnn.getRuntimeVersion()))


def _install_values(torch: ModuleType) -> None:
    from vramscope.recording import values

    values.install(torch)
