"""The user's own function, which returns a `vramscope.Job`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from vramscope.errors import SourceError
from vramscope.jobs.facts import CUSTOM, INFERENCE, Facts
from vramscope.jobs.job import Job
from vramscope.jobs.source import Source
from vramscope.jobs.sources.paper import Paper, first_line


def on_paper(source: Source) -> Paper:
    """The module of a job, on the meta device if it can be made there, else on the virtual card."""
    job = job_of(source)
    module = _module(source, job)
    if not hasattr(module, "named_modules"):
        raise SourceError(f"{source.text}: the job's model() returned {_kind(module)}, not a torch.nn.Module")
    abilities = ("own_optimizer",) if job.optimizer is not None else ()
    return Paper(module, Facts(tasks=(CUSTOM, INFERENCE), abilities=abilities))


def job_of(source: Source) -> Job:
    """What the function returns; SourceError if there is no such function or it returns something else."""
    place, _, name = source.name.partition(":")
    function = getattr(_imported(source, place), name, None)
    if not callable(function):
        raise SourceError(f"{source.text}: the module {place} has no function {name}")
    try:
        job = function()
    except Exception as error:
        raise SourceError(f"{source.text}: {name}() raised {_kind(error)}: {first_line(error)}") from error
    if not isinstance(job, Job):
        raise SourceError(f"{source.text}: {name}() returned {_kind(job)}, not a vramscope.Job")
    return job


def _imported(source: Source, place: str) -> Any:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise SourceError(
                f"{source.text}: there is no module {place} in the current folder or where Python looks"
            ) from error
        raise SourceError(f"{source.text}: {place} cannot be imported: {error}") from error
    except Exception as error:
        raise SourceError(
            f"{source.text}: {place} cannot be imported: {_kind(error)}: {first_line(error)}"
        ) from error


def _module(source: Source, job: Job) -> Any:
    faults = []
    for device in _devices():
        try:
            with device:
                return job.model()
        except Exception as error:
            faults.append(error)
    raise SourceError(
        f"{source.text}: the job's model() raised {_kind(faults[-1])}: {first_line(faults[-1])}"
    )


def _devices() -> Iterator[Any]:
    import torch

    yield torch.device("meta")
    yield torch.device("cuda")


def _kind(thing: object) -> str:
    return type(thing).__name__
