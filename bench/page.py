"""The page of a run of 100,000 events: how large it is, how soon something is painted, how soon all of it is there."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "views" / "page")]

from page_runs import uneven  # noqa: E402

from million import million_run  # noqa: E402
from vramscope.run.run import Run  # noqa: E402
from vramscope.views.page import page_html  # noqa: E402

PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
READY = "async () => { await vramscope.ready; return performance.now(); }"


def opened(path: Path, times: int) -> tuple[list[float], list[float]]:
    """Milliseconds until the first paint and until the chart, the icicle and the tables are there."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("there is no Chromium: apt-get install chromium")
    painted, ready = [], []
    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            ready.append(page.evaluate(READY))
            page.wait_for_timeout(200)  # the browser tells of a paint a little later
            painted.append(page.evaluate(PAINTED))
            page.close()
        browser.close()
    return painted, ready


def report(name: str, run: Run, times: int) -> None:
    began = time.perf_counter()
    page = page_html(run).encode()
    made = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.html"
        path.write_bytes(page)
        painted, ready = opened(path, times)
    print(f"{run.traces[0].moments:,} events, {name}")
    print(f"  size             {len(page) / 1e6:.2f} MB")
    print(f"  made in          {made:.2f} s")
    print(f"  first paint      {statistics.median(painted):.0f} ms, worst {max(painted):.0f} ms")
    print(f"  all of it there  {statistics.median(ready):.0f} ms, worst {max(ready):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    run = million_run(options.events)
    report("steps that repeat", run, options.times)
    report("no two blocks alike", uneven(run), options.times)


if __name__ == "__main__":
    main()
