"""The page put together from a run."""

from __future__ import annotations

import json
from html import escape
from string import Template
from typing import Any

from vramscope.analysis.explain import cannot_tell, explain
from vramscope.analysis.layers import layers
from vramscope.analysis.stages import stages
from vramscope.analysis.summary import Recorded, Summary, summary
from vramscope.analysis.timeline import timeline
from vramscope.run.categories import CATEGORIES
from vramscope.run.run import PREDICTED, Run
from vramscope.run.trace import Trace
from vramscope.units import format_bytes
from vramscope.views import words
from vramscope.views.page import files
from vramscope.views.page.basis import basis_html, steps_html
from vramscope.views.page.data import trace_text
from vramscope.views.page.findings import findings_html
from vramscope.views.page.markup import element, joined
from vramscope.views.page.summary import summary_html, title_of
from vramscope.views.page.tables import layer_tables, stage_tables

_NOTHING = element("p", "This run holds no history of blocks: no timeline and no layers.", class_="notice")
_LINKS = (
    ("timeline", "Timeline"),
    ("moment", "Live"),
    ("explained", "Explained"),
    ("stages", "Stages"),
    ("layers", "Layers"),
    ("steps", "Steps"),
    ("basis", "Basis"),
)


def page_html(run: Run) -> str:
    """The whole page, ready to be written to a file in UTF-8.  It is for people; its markup is no interface."""
    found = summary(run, run.trace)
    body = "".join(
        (
            files.text_of("history.html") if run.traces else _NOTHING,
            findings_html(explain(run), [each for each in cannot_tell(run) if each not in found.notes]),
            files.text_of("tables.html") if run.traces else "",
            steps_html(run.report),
            basis_html(run.report),
        )
    )
    page = Template(files.text_of("template.html")).substitute(
        policy=escape(files.policy()),
        title=escape(title_of(run)),
        style=files.style(),
        summary=summary_html(run, found),
        body=body,
        links=_links(body),
        footer=escape(_footer(run)),
        traces=_data(run, found),
        script=files.script(),
    )
    return page.encode("utf-8", "replace").decode()  # a file's name may hold bytes that are no UTF-8


def _links(body: str) -> str:
    return joined(element("a", text, href=f"#{name}") for name, text in _LINKS if f'id="{name}"' in body)


def _footer(run: Run) -> str:
    version = run.report.versions.vramscope if run.report else None
    return " ".join(["vramscope", *([version] if version else [])])


def _data(run: Run, found: Summary) -> str:
    """The figures of the run, and each history as a text that only its script reads."""
    blocks = [f'<script type="application/json" id="run">{_json(_told(run, found))}</script>']
    for number, trace in enumerate(run.traces):
        blocks.append(f'<script type="text/plain" id="trace-{number}">{_history(run, trace)}</script>')
    return "\n".join(blocks)


def _told(run: Run, found: Summary) -> dict[str, Any]:
    every = [found.trace, *found.others] if found.trace else []
    return {
        "categories": CATEGORIES,
        "capacity_bytes": words.memory_bytes(run.report) if run.report else None,
        "traces": [_label(each) for each in every],
    }


def _label(trace: Recorded) -> str:
    peak = format_bytes(trace.peak_allocated_bytes)
    return f"process {trace.process}, cuda:{trace.device}, peak allocated {peak}"


def _history(run: Run, trace: Trace) -> str:
    found = timeline(trace, 1, run.report)
    more = {
        "phases": [[band.name.replace("_", " "), band.step, band.first, band.end] for band in found.phases],
        "steps": [[f"step {band.step}", band.step, band.first, band.end] for band in found.steps],
        "marks": [[mark.name, mark.moment] for mark in found.marks],
        "stages": stage_tables(stages(trace, run.report), clock=run.origin != PREDICTED),
        "layers": layer_tables(layers(trace, run.report)),
    }
    return trace_text(trace, run.report.outside.bytes if run.report else None, more)


def _json(value: object) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
