"""Files that are whole or not there: written beside their place, then moved to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write and read, which takes the place of `target` at the end, or is gone if anything was raised."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _umask() -> int:
    """The process's file mask, which mkstemp does not use; there is no way to read it without setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
