"""The command line on a virtual machine of paper: what `launch` would return is given as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import builders
from vramscope.cli import status_of
from vramscope.run.journal import Journal, journal_of


@dataclass
class Finished:
    status: int
    journal: Journal
    peak_used_bytes: list[int] | None = None
    seconds: float = 0.1


@dataclass
class PaperMachine:
    """What the next launches give, and what they were asked for."""

    journal: list[Mapping[str, Any]] = field(
        default_factory=lambda: [*builders.training(), builders.end("steps", 3)]
    )
    status: int = 0
    during: Callable[[Any], None] = lambda _program: None
    asked: list[dict[str, Any]] = field(default_factory=list)
    real: str | None = None

    def launch(self, program: Any, card: Any, **how: Any) -> Finished:
        self.asked.append({"program": program, "card": card, **how})
        self.during(program)
        return Finished(self.status, journal_of(self.journal))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> PaperMachine:
    paper = PaperMachine()
    monkeypatch.setattr("vramscope.virtual.launch.launch", paper.launch)
    monkeypatch.setattr("vramscope.real.nvml.real_card_name", lambda: paper.real)
    monkeypatch.setattr("vramscope.virtual.setting.outside_of", lambda card, eager=False: builders.OUTSIDE)
    monkeypatch.delenv("VRAMSCOPE_JOURNAL", raising=False)
    return paper


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text("print('hello')\n")
    return path


@dataclass
class Ran:
    status: int
    out: str
    err: str


@pytest.fixture
def vramscope(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: str) -> Ran:
        status = status_of(list(words))
        return Ran(status, *capsys.readouterr())

    return run
