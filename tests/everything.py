"""All that can be asked of a run: every sum, curve, analysis and view, for runs that may be anything."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.text import Text

from vramscope.analysis.compare import compare
from vramscope.analysis.explain import cannot_tell, explain
from vramscope.analysis.layers import layers
from vramscope.analysis.lines import lines
from vramscope.analysis.peak import peak
from vramscope.analysis.stages import stages
from vramscope.analysis.summary import summary
from vramscope.analysis.timeline import timeline
from vramscope.run.curves import allocated_curve, category_curves, live_at, peak_moment, reserved_curve
from vramscope.run.run import Run
from vramscope.run.trace import Trace
from vramscope.views.compare_json import to_json as diff_json
from vramscope.views.compare_text import compare_text
from vramscope.views.explain_json import explain_json
from vramscope.views.explain_text import explain_text
from vramscope.views.layers_text import layers_text
from vramscope.views.lines_text import lines_text
from vramscope.views.page import page_html
from vramscope.views.paragraphs import TextOptions
from vramscope.views.peak_text import peak_text
from vramscope.views.perfetto import perfetto_json
from vramscope.views.report_json import to_json
from vramscope.views.report_text import report_text
from vramscope.views.run_csv import run_csv
from vramscope.views.run_json import run_json
from vramscope.views.snapshot import snapshot_pickle
from vramscope.views.stages_text import stages_text
from vramscope.views.summary_text import summary_text
from vramscope.views.timeline_text import timeline_text

LAYOUT = TextOptions(90)
OF_A_TRACE: dict[str, Callable[[Run, Trace], Text]] = {
    "summary": lambda run, trace: summary_text(summary(run, trace), run.report, LAYOUT),
    "stages": lambda run, trace: stages_text(stages(trace, run.report), LAYOUT),
    "layers": lambda run, trace: layers_text(layers(trace, run.report), LAYOUT),
    "peak": lambda run, trace: peak_text(peak(trace, report=run.report), LAYOUT),
    "lines": lambda _run, trace: lines_text(lines(trace), LAYOUT),
    "timeline": lambda run, trace: timeline_text(timeline(trace, report=run.report), LAYOUT),
}
"""What `show` shows of one process on one card."""
OF_A_RUN: dict[str, Callable[[Run], Text]] = {
    "summary": lambda run: summary_text(summary(run, run.trace), run.report, LAYOUT),
    "explain": lambda run: explain_text(explain(run), cannot_tell(run), LAYOUT),
    "diff": lambda run: compare_text(compare(run, run), LAYOUT),
}
FILES: dict[str, Callable[[Run], str | bytes]] = {
    "explain": lambda run: explain_json(run, explain(run), cannot_tell(run)),
    "diff": lambda run: diff_json(compare(run, run)),
    "json": run_json,
    "csv": run_csv,
    "trace.json": perfetto_json,
    "pickle": snapshot_pickle,
    "html": page_html,
}
"""What can be written of a run."""


def ask_everything(run: Run) -> None:
    """Raises what any of them raises."""
    run.check()
    for trace in run.traces:
        _curves(trace)
        for show in OF_A_TRACE.values():
            _printed(show(run, trace))
    for tell in OF_A_RUN.values():
        _printed(tell(run))
    for write in FILES.values():
        data = write(run)
        assert data
        assert isinstance(data, bytes) or data.encode()
    if run.report is not None:
        _printed(report_text(run.report, LAYOUT))
        assert to_json(run.report)


def _curves(trace: Trace) -> None:
    assert len(allocated_curve(trace)) == len(reserved_curve(trace)) == trace.moments
    assert category_curves(trace).shape[1] == trace.moments
    live_at(trace, peak_moment(trace) or 0)


def _printed(text: Text) -> None:
    """It fits the terminal (characters of other widths apart), does not paint it, and can be written in UTF-8."""
    shown = text.plain
    assert all(each.isprintable() or each == "\n" for each in shown), repr(shown)
    assert all(min(len(line), cell_len(line)) <= LAYOUT.width for line in shown.splitlines()), shown
    shown.encode()
