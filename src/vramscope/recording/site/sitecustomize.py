"""Loaded by every Python on the virtual machine before its program: starts the recorder.

It stands before a ``sitecustomize`` of the user's own, so it loads that one too, and takes its
folder off ``sys.path``: the program sees the path that it would see anyway.
"""

import contextlib
import sys
from pathlib import Path

_here = str(Path(__file__).parent)
sys.path[:] = [entry for entry in sys.path if entry != _here]
_ours = sys.modules.pop(__name__)
with contextlib.suppress(ImportError):
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  (the user's)
sys.modules.setdefault(__name__, _ours)  # the import of this file expects to find something

with contextlib.suppress(ImportError):  # a Python that has no vramscope: only the card, no recording
    from vramscope.recording import bootstrap

    bootstrap.begin()
