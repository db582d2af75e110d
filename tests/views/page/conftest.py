"""A headless Chromium for the page's tests: the system's own, since Playwright's would have to be fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import Opened

from vramscope.run.run import Run
from vramscope.views.page import page_html

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (the dev extra)"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=program, args=sandbox)
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """`opened(run, width=…, scheme=…)`: the run's page, from a file, as a browser shows it."""
    contexts = []

    def open_page(run: Run, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Opened:
        path = tmp_path / "run.html"
        path.write_text(page_html(run), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(path.as_uri())
        found("vramscope.ready.catch(() => null)")
        return found.settled()

    yield open_page
    for context in contexts:
        context.close()
