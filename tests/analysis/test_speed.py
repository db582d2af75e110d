"""Every analysis of a million events in under two seconds, whole views included."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from million import million_run
from vramscope.analysis.folding import fold
from vramscope.analysis.layers import layers
from vramscope.analysis.lines import lines
from vramscope.analysis.peak import peak
from vramscope.analysis.stages import stages
from vramscope.analysis.summary import summary
from vramscope.analysis.timeline import timeline
from vramscope.run.run import Run
from vramscope.run.trace import Trace
from vramscope.views.paragraphs import TextOptions
from vramscope.views.timeline_text import timeline_text

ANALYSES: dict[str, Callable[[Trace], object]] = {
    "layers": lambda trace: fold(layers(trace).roots),
    "lines": lines,
    "peak": peak,
    "stages": stages,
    "summary": lambda trace: summary(Run(None, traces=(trace,)), trace),
    "timeline": lambda trace: timeline_text(timeline(trace), TextOptions()),
}


@pytest.fixture(scope="module")
def trace() -> Trace:
    found = million_run().trace
    assert found is not None
    return found


@pytest.mark.parametrize("name", ANALYSES)
def test_a_million_events(name: str, trace: Trace):
    begun = time.process_time()
    ANALYSES[name](trace)

    assert time.process_time() - begun < 2
