"""Texts that a view must come to again.

UPDATE_GOLDENS=1 pytest tests/views writes them anew; read the difference before you keep it."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """The text is the kept one of that name, but for empty lines at its end."""
    golden, shown = _FOLDER / f"{name}.txt", text.rstrip("\n") + "\n"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")
