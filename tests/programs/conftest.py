"""Programs of public libraries on a virtual card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from public_programs import WORKSPACES, Ended, run_program


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Ended]:
    """`program("name.py", *arguments, gpu=...)`: runs one of scripts/ in an empty folder."""

    def run(*command: str, **how: object) -> Ended:
        return run_program(tmp_path, *command, **how)  # type: ignore[arg-type]

    return run


@pytest.fixture
def workspaces() -> int:
    """Bytes of cuBLAS's work spaces in a program that trains in one thread."""
    return WORKSPACES
