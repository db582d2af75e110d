"""How a program makes the model of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.jobs.source import TIMM

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work


def write_model(script: Script, work: Work) -> None:
    """Writes the lines that make ``model`` on ``device`` with random weights."""
    _WRITERS[work.source.library](script, work)


def _timm(script: Script, work: Work) -> None:
    settings = "".join(f", {key}={value}" for key, value in work.source.settings)
    script.imports.add("import timm")
    script.build.append(f'model = timm.create_model("{work.source.name}"{settings})')


_WRITERS = {TIMM: _timm}
