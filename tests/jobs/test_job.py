"""The user's own function, whose job is run as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from vramscope.jobs.libraries import modules_for
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.write import settled, write_program
from vramscope.planning.cell import Cell
from vramscope.planning.facts import environment_of, facts_of
from vramscope.planning.result import Result
from vramscope.planning.running import run_cell

JOBS = """
import torch
from torch import nn
from vramscope.jobs.job import Job

def plain():
    return Job(
        model=lambda: nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 8)),
        batch=lambda size: torch.randn(size, 1024),
        loss=lambda model, batch: model(batch).square().mean(),
    )

def own():
    job = plain()
    return Job(job.model, job.batch, job.loss, optimizer=lambda trained: torch.optim.SGD(trained, lr=0.1))

def on_the_card_only():
    def model():
        made = nn.Linear(1024, 8)
        made.scale = float(made.weight.sum().item())
        return made
    job = plain()
    return Job(model, job.batch, job.loss)
"""
PARAMETERS = 1024 * 1024 + 1024 + 8 * 1024 + 8


@pytest.mark.virtual
def test_a_job_is_trained_with_its_own_batches_loss_and_optimizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "jobs_here.py").write_text(JOBS)
    monkeypatch.chdir(tmp_path)

    plain, own = ran("jobs_here:plain"), ran("jobs_here:own")
    used = ran("jobs_here:plain", task="inference", batch="100")
    late = ran("jobs_here:on_the_card_only")

    assert plain.parameters == own.parameters == PARAMETERS
    assert plain.categories["optimizer_state"] >= 2 * 4 * PARAMETERS
    assert "optimizer_state" not in own.categories
    assert "gradient" not in used.categories
    assert late.parameters == 1024 * 8 + 8


def ran(text: str, **positions: str) -> Result:
    source = parse_source(text)
    work = settled(source, recipe_of(positions), facts_of(source))
    cell = Cell(write_program(work).render(), "job", "rtx-3090", modules_for(source), environment_of(source))
    result = run_cell(cell, limit_s=120).result
    assert result.fits, result.why
    return result
