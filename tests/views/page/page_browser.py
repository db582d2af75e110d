"""A page as the tests' browser has it open."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ARTEFACTS = Path(__file__).parents[3] / "artefacts"
"""Where the tests leave screenshots; git does not see it."""


@dataclass
class Opened:
    """A page in the browser, with all that it complained of and asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __call__(self, script: str, argument: object = None) -> Any:
        """What a script gives in the page."""
        return self.page.evaluate(script, argument)

    def until(self, condition: str) -> None:
        """Waits for a condition; Playwright's own way would evaluate a string, which the page forbids."""
        deadline = time.monotonic() + 10
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.02)

    def settled(self) -> Opened:
        """After the frame in which what was chosen is shown."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
        )
        return self


def keep_screenshot(opened: Opened, name: str) -> None:
    """Leaves a picture of the whole page, to be looked at."""
    ARTEFACTS.mkdir(exist_ok=True)
    opened.page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True)
