"""`vramscope export`: a saved run as a file for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vramscope.cli.writing import write_file
from vramscope.errors import UsageError

if TYPE_CHECKING:
    from vramscope.run.run import Run


@click.command()
@click.argument("run_path", metavar="RUN")
@click.argument("file", metavar="FILE")
def export(run_path: str, file: str) -> None:
    """Write a saved run as another kind of file, which the ending of FILE names.

    .html: a page to look at. .json: all of it. .csv: a line per block. .pickle: a memory snapshot of torch's.
    .trace.json: counters for Perfetto."""
    from vramscope.run.store import load_run

    make = _maker(file)
    write_file(file, make(load_run(run_path)))


def _maker(file: str) -> Callable[[Run], bytes]:
    """What makes the contents of a file of that name; UsageError where its ending names nothing."""
    for ending, make in _MAKERS.items():
        if Path(file).name.lower().endswith(ending):
            return make
    raise UsageError(f"the ending of {file} names no kind of file: use one of {', '.join(_MAKERS)}")


def _html(run: Run) -> bytes:
    from vramscope.views.page import page_html

    return page_html(run).encode()


def _perfetto(run: Run) -> bytes:
    from vramscope.views.perfetto import perfetto_json

    return perfetto_json(run).encode()


def _json(run: Run) -> bytes:
    from vramscope.views.run_json import run_json

    return run_json(run).encode()


def _csv(run: Run) -> bytes:
    from vramscope.views.run_csv import run_csv

    return run_csv(run).encode()


def _pickle(run: Run) -> bytes:
    from vramscope.views.snapshot import snapshot_pickle

    return snapshot_pickle(run)


_MAKERS: dict[str, Callable[[Run], bytes]] = {
    ".html": _html,
    ".trace.json": _perfetto,
    ".json": _json,
    ".csv": _csv,
    ".pickle": _pickle,
}
"""By the ending, the longer first where one ends with another."""
