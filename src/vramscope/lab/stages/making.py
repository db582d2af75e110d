"""From what is asked for to the readings: the program is written, and run on the virtual card and on a real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from importlib import metadata

from vramscope.jobs.fingerprint import fingerprint
from vramscope.jobs.libraries import modules_for
from vramscope.jobs.source import HF, TIMM, TORCHVISION
from vramscope.jobs.work import Work
from vramscope.lab.article import CLASSES, Table, article
from vramscope.lab.stages import formula
from vramscope.lab.stages.asking import Asked, work_of
from vramscope.lab.stages.holds import activations_by_kind, holds_of, moments_of, retries_of
from vramscope.lab.stages.measuring import OnCard, has_card, measured
from vramscope.lab.stages.program import write_stages
from vramscope.lab.stages.told import Told, told_by
from vramscope.lab.stages.value import FORWARD, STAGES, Counted, Reading, Staged
from vramscope.planning.cell import Cell
from vramscope.planning.executors import default_jobs, local
from vramscope.planning.facts import environment_of, facts_of
from vramscope.planning.making import Progress
from vramscope.planning.result import Result
from vramscope.planning.running import result_of, run_once
from vramscope.planning.versions import versions_here
from vramscope.run.run import Run

_SHAPES = ("batch", "image", "seq")
_PACKAGES = {TIMM: "timm", TORCHVISION: "torchvision", HF: "transformers"}


@dataclass(frozen=True, slots=True)
class Made:
    """The measurement, with what it was made of."""

    staged: Staged
    program: str
    run: Run
    """On the virtual card."""


def make(asked: Asked) -> Made:
    """Runs the stages of a model.

    SourceError and MissingLibraryError for a model that cannot be had, RecipeError for one that has no such stages; a
    program that breaks off or finds no room is no error: the value says so."""
    work = work_of(asked, facts_of(asked.source))
    cell = _cell(work, asked)
    run, ran = run_once(cell)
    told, real = told_by(ran.output), measured(cell) if asked.measures else None
    return Made(_staged(work, cell, run, told, result_of(cell, run, ran), real), cell.program, run)


def make_all(wanted: Sequence[Asked], tell: Progress) -> list[Made]:
    """All of them, as many at a time as the machine has processors for; a real card is used by one at a time."""
    done = 0
    tell(done, len(wanted), "")
    with local(1 if any(each.measures for each in wanted) and has_card() else default_jobs()) as threads:
        futures = [threads.submit(make, each) for each in wanted]
        for future in as_completed(futures):
            future.result()
            done += 1
            tell(done, len(wanted), "")
        return [future.result() for future in futures]


def _cell(work: Work, asked: Asked) -> Cell:
    return Cell(
        write_stages(work),
        "stages",
        asked.card,
        modules_for(work.source),
        environment_of(work.source),
        fingerprint(work.source),
        asked.memory_bytes,
    )


def _staged(work: Work, cell: Cell, run: Run, told: Told, result: Result, real: OnCard | None) -> Staged:
    known = published(work)
    return Staged(
        source=work.source.text,
        kind=work.facts.kind,
        shapes={name: int(work.recipe[name]) for name in _SHAPES if work.recipe[name].isdigit()},
        precision=work.recipe["precision"],
        parameters=work.facts.parameters,
        card=cell.card,
        capacity_bytes=cell.capacity_bytes,
        readings=_readings(work, run, told, real, known.reserved_bytes if known else {}),
        counted=told.counted,
        activations=_activations(run),
        failure=result.failure,
        why_not=result.why,
        measured_on=real.card if real else "",
        why_not_measured=real.why_not if real else "",
        published_in=article().source if known else "",
        versions=_versions(work, told.counted),
    )


def published(work: Work) -> Table | None:
    """The article's table of a workload; None: it has none."""
    source = work.source
    if source.library != TIMM or work.facts.classes != CLASSES or work.recipe["precision"] != "fp32":
        return None
    if set(dict(source.settings)) - {"num_classes"}:
        return None
    return article().table(source.name, work.recipe.number("batch"), work.recipe.number("image"))


def _readings(
    work: Work, run: Run, told: Told, real: OnCard | None, known: Mapping[str, int]
) -> tuple[Reading, ...]:
    holds = holds_of(run.trace) if run.trace else {}
    retries = retries_of(run.journal)
    return tuple(
        Reading(
            stage,
            formula.form_of(stage),
            _formula(work, told.counted, stage),
            told.readings.get(stage),
            real.told.readings.get(stage) if real else None,
            known.get(stage),
            holds.get(stage),
            retries.get(stage, 0),
        )
        for stage in STAGES
    )


def _formula(work: Work, counted: Counted | None, stage: str) -> int | None:
    element = formula.element_bytes(work.recipe)
    activations = counted.activations if counted else None
    return formula.value_of(
        stage,
        formula.input_bytes(work.facts, work.recipe),
        element * work.facts.parameters,
        None if activations is None else element * activations,
    )


def _activations(run: Run) -> dict[str, int]:
    moment = moments_of(run.trace).get(FORWARD) if run.trace else None
    return {} if moment is None or run.trace is None else activations_by_kind(run.trace, moment)


def _versions(work: Work, counted: Counted | None) -> dict[str, str]:
    wanted = ("torch", "cuda", "cudnn", _PACKAGES[work.source.library])
    found = {name: version for name, version in versions_here().items() if name in wanted}
    return {**found, **({"fvcore": metadata.version("fvcore")} if counted and counted.by == "fvcore" else {})}
