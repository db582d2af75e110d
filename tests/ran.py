"""A program that has run on a virtual card, as tests look at it."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope.run.assemble import traces_of
from vramscope.run.journal import journal_of
from vramscope.run.trace import Trace


@dataclass(frozen=True)
class Ran:
    """A child process that has ended, and what it and its children journalled."""

    returncode: int
    stdout: str
    stderr: str
    journal: list[dict[str, object]]
    peak_used_bytes: list[int]

    def of(self, kind: str) -> list[dict[str, object]]:
        """The journal's entries of one kind."""
        return [entry for entry in self.journal if entry["kind"] == kind]

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The allocators' histories."""
        return traces_of(journal_of(self.journal))

    def check(self) -> Ran:
        """Itself, if the child ended well; else the test fails with what it printed."""
        assert self.returncode == 0, f"status {self.returncode}\n{self.stdout}\n{self.stderr}"
        return self
