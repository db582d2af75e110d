"""A plan: what fits, with which technique, at which batch, on which card."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from vramscope.api.program import refuse_nested
from vramscope.api.setting import card_named, memory_of
from vramscope.errors import UsageError
from vramscope.units import parse_size

if TYPE_CHECKING:
    from vramscope.planning.making import Planned, Progress
    from vramscope.planning.plan import Plan
    from vramscope.planning.points import Request
    from vramscope.planning.store import Store

_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


def make_plan(
    source: str,
    gpu: str | Sequence[str] | None = None,
    *,
    knobs: Mapping[str, str] | None = None,
    vary: Mapping[str, Sequence[str]] | None = None,
    memory: str | int | None = None,
    used: str | int | None = None,
    fit: str | None = None,
    margin: str | int | None = None,
    multiple_of: int | None = None,
    cheapest: bool = False,
    budget: str | int | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
    limit_s: float | None = None,
    progress: Progress | None = None,
) -> Planned:
    """The plan with its rows' programs and runs; the arguments are those of `vramscope.plan`."""
    from vramscope.planning.making import Means
    from vramscope.planning.searching import Search, search

    refuse_nested("planned")
    request = _request(source, gpu, knobs or {}, vary or {}, memory, used, limit_s)
    wanted = Search(fit, cheapest, _size(budget), multiple_of, margin_of(margin))
    with _means(executor, dask, jobs, out) as (chosen, store):
        return search(request, wanted, Means(chosen, store, *([progress] if progress else [])))


def _request(
    source: str,
    gpu: str | Sequence[str] | None,
    knobs: Mapping[str, str],
    vary: Mapping[str, Sequence[str]],
    memory: str | int | None,
    used: str | int | None,
    limit_s: float | None,
) -> Request:
    from vramscope.jobs.recipe import recipe_of
    from vramscope.jobs.source import parse_source
    from vramscope.planning.points import Request

    names = gpu.split(",") if isinstance(gpu, str) else list(gpu or ())
    cards = tuple(card_named(name).id for name in names) or (card_named(None).id,)
    recipe = recipe_of({name: str(value) for name, value in knobs.items()})
    varied = {name: tuple(map(str, values)) for name, values in vary.items()}
    return Request(parse_source(source), recipe, varied, cards, memory_of(memory), _size(used) or 0, limit_s)


def _size(text: str | int | None) -> int | None:
    """The bytes of a size; UsageError for one that is not above zero."""
    if isinstance(text, int):
        return parse_size(str(text))
    return None if text is None else parse_size(text)


def margin_of(text: str | int | None) -> Callable[[int], int]:
    """From a card's memory, the bytes that must stay free: ``5%``, ``1GiB`` or a number of bytes."""
    share = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if share is None:
        size = _size(text) or 0
        return lambda whole: size
    part = float(share[1]) / 100
    if part >= 1:
        raise UsageError(f"a margin of {text} leaves nothing of the card")
    return lambda whole: round(whole * part)


@contextmanager
def _means(
    executor: Executor | None, dask: str | None, jobs: int | None, out: str | os.PathLike[str] | None
) -> Iterator[tuple[Executor, Store]]:
    """Who runs the cells, and where what came of them is kept."""
    from vramscope.planning import executors
    from vramscope.planning.store import Store

    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs}: at least one cell must run at a time")
    with ExitStack() as open_:
        store = open_.enter_context(Store(out))
        if executor is None:
            given = executors.dask(dask) if dask else executors.local(jobs or executors.default_jobs())
            executor = open_.enter_context(given)
        yield executor, store


def plan(
    source: str,
    gpu: str | Sequence[str] | None = None,
    *,
    vary: Mapping[str, Sequence[str]] | None = None,
    memory: str | int | None = None,
    used: str | int | None = None,
    fit: str | None = None,
    margin: str | int | None = None,
    multiple_of: int | None = None,
    cheapest: bool = False,
    budget: str | int | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
    limit_s: float | None = None,
    **knobs: str | int,
) -> Plan:
    """Runs a model's steps on cards that aren't there, in every combination asked for.

    source        timm/NAME, torchvision/NAME, hf/REPO, hf/FOLDER, hf/TYPE?key=value&…, diffusers/CLASS, module:function
    gpu           a card's name, or several; None: the machine's own card, else an RTX 4090
    vary          a matrix: {"precision": ["fp32", "amp-bf16"], "tune": ["full", "lora:8"]}; the firsts are the baseline
    memory, used  instead of each card's memory; what other processes hold on it: bytes or a text like "12GiB"
    fit           the knob whose largest value is wanted (batch, seq, image, lora-rank, layers); margin ("5%", bytes)
                  is what must stay free, multiple_of what its values are multiples of
    cheapest      find the smallest card on which it fits
    budget        find what makes it fit into so much memory
    out           a file that keeps finished cells, so that the next time they are known
    jobs, dask, executor   cells side by side here, on a Dask cluster, or by any concurrent.futures executor
    limit_s       the longest that a cell may take
    knobs         the positions of the others: precision="amp-fp16", batch=64, optimizer_impl="fused"

    A cell that cannot run says why in its row.  Raises VramscopeError (SourceError, RecipeError,
    MissingLibraryError, UsageError …) where nothing could be run at all."""
    return make_plan(
        source,
        gpu,
        knobs={name.replace("_", "-"): str(value) for name, value in knobs.items()},
        vary=vary,
        memory=memory,
        used=used,
        fit=fit,
        margin=margin,
        multiple_of=multiple_of,
        cheapest=cheapest,
        budget=budget,
        out=out,
        jobs=jobs,
        dask=dask,
        executor=executor,
        limit_s=limit_s,
    ).plan
