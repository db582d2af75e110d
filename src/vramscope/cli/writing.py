"""Files that a verb writes: whole or not at all, and an error that names them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from vramscope.errors import RunError
from vramscope.run.files import replacing


def write_file(path: str | Path, data: bytes) -> None:
    """Replaces a file; RunError says why it cannot be written."""
    try:
        with replacing(Path(path)) as file:
            file.write(data)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}; choose another place") from error


def write_text(path: str | None, text: Callable[[], str]) -> None:
    """Writes what is only made if it is wanted: to a file, for ``-`` to stdout, for None nowhere."""
    if path == "-":
        print(text(), end="", file=sys.stdout)
    elif path is not None:
        write_file(path, text().encode())
