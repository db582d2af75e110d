"""`vramscope show`: a saved run's report, and its memory by stage, layer, moment and line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from vramscope.cli.console import show_text

if TYPE_CHECKING:
    from rich.text import Text

    from vramscope.run.run import Run
    from vramscope.run.trace import Trace
    from vramscope.views.paragraphs import TextOptions


class _Asked(NamedTuple):
    """What belongs to one view alone."""

    depth: int | None
    at: int | None


_Part = tuple[object, Callable[["TextOptions"], "Text"]]
"""What a view shows, and how it is drawn."""


@click.command()
@click.argument("run_path", metavar="RUN")
@click.option("--stages", is_flag=True, help="By the program's marks, else by phase: kept, peak, change.")
@click.option("--layers", is_flag=True, help="By module: parameters, kept activations, share of the peak.")
@click.option("--depth", metavar="N", type=click.IntRange(min=0), help="Levels of modules for --layers.")
@click.option("--peak", is_flag=True, help="What is live at the peak, by category, module and line.")
@click.option("--at", metavar="MOMENT", type=int, help="Another moment for --peak: an event's number.")
@click.option("--lines", is_flag=True, help="By source line, at the peak and over the run.")
@click.option("--timeline", is_flag=True, help="A plot over the whole run.")
@click.option("--device", metavar="N", type=int, help="Of several cards, this one. [the fullest]")
@click.option("--process", metavar="PID", type=int, help="Of several processes, this one. [the fullest]")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def show(
    run_path: str,
    depth: int | None,
    at: int | None,
    device: int | None,
    process: int | None,
    as_json: bool,
    **views: bool,
) -> None:
    """Print what a saved run knows: its report, or the parts that are asked for."""
    from vramscope.analysis.lookup import chosen_trace
    from vramscope.run.store import load_run

    views["layers"] |= depth is not None
    views["peak"] |= at is not None
    run = load_run(run_path)
    trace = chosen_trace(run, device, process)
    wanted = {name: make for name, make in _VIEWS.items() if views[name]}
    parts = {name: make(run, trace, _Asked(depth, at)) for name, make in wanted.items() if trace is not None}
    if as_json:
        print(_json(run, trace, wanted, parts), end="", file=sys.stdout)
    else:
        show_text(lambda layout: _text(run, trace, wanted, parts, layout))


def _json(run: Run, trace: Trace | None, wanted: Collection[str], parts: Mapping[str, _Part]) -> str:
    from vramscope.analysis.summary import summary
    from vramscope.views.report_json import to_json
    from vramscope.views.show_json import show_json

    if not wanted and run.report is not None:
        return to_json(run.report)
    found = {name: parts[name][0] if name in parts else None for name in wanted}
    return show_json(run, trace, found or {"summary": summary(run, trace)})


def _text(
    run: Run, trace: Trace | None, wanted: Collection[str], parts: Mapping[str, _Part], layout: TextOptions
) -> Text:
    from rich.text import Text

    from vramscope.analysis.summary import summary
    from vramscope.views.summary_text import opening_text, summary_text

    if not wanted:
        return summary_text(summary(run, trace), run.report, layout)
    opening = opening_text(summary(run, trace), wanted, layout)
    drawn = [*opening, *(draw(layout) for _, draw in parts.values())]
    return Text("\n").join([Text(), Text("\n\n").join(drawn)])


def _stages(run: Run, trace: Trace, _asked: _Asked) -> _Part:
    from vramscope.analysis.stages import stages
    from vramscope.run.run import PREDICTED
    from vramscope.views.stages_text import stages_text

    found = stages(trace, run.report)
    return found, lambda layout: stages_text(found, layout, clock=run.origin != PREDICTED)


def _layers(run: Run, trace: Trace, asked: _Asked) -> _Part:
    from vramscope.analysis.layers import layers
    from vramscope.views.layers_text import layers_text

    found = layers(trace, run.report)
    return found, lambda layout: layers_text(found, layout, asked.depth)


def _peak(run: Run, trace: Trace, asked: _Asked) -> _Part:
    from vramscope.analysis.peak import peak
    from vramscope.views.peak_text import peak_text

    found = peak(trace, asked.at, run.report)
    return found, lambda layout: peak_text(found, layout)


def _lines(_run: Run, trace: Trace, _asked: _Asked) -> _Part:
    from vramscope.analysis.lines import lines
    from vramscope.views.lines_text import lines_text

    found = lines(trace)
    return found, lambda layout: lines_text(found, layout)


def _timeline(run: Run, trace: Trace, _asked: _Asked) -> _Part:
    from vramscope.analysis.timeline import timeline
    from vramscope.views.timeline_text import timeline_text

    found = timeline(trace, report=run.report)
    return found, lambda layout: timeline_text(found, layout)


_VIEWS = {"stages": _stages, "layers": _layers, "peak": _peak, "lines": _lines, "timeline": _timeline}
"""In the order in which they are shown."""
