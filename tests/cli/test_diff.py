"""`vramscope diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pairs import full, lora, measured
from vramscope.run.store import save_run


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, run in (("full", full()), ("lora", lora()), ("measured", measured())):
        save_run(f"{name}.vram", run)
    return tmp_path


def test_diff(vramscope, saved):
    ran = vramscope("diff", "full.vram", "lora.vram")

    assert (ran.status, ran.err) == (0, "")
    assert "  A               full.vram: predicted, 2 complete steps" in ran.out
    assert "gradients fell by 15.8 MiB: 49,152 instead of 4.2 M trainable parameters" in ran.out


def test_residuals(vramscope, saved):
    out = vramscope("diff", "full.vram", "measured.vram").out

    assert "peak allocated as predicted, to the byte" in out
    assert "  process total" in out
    assert "+73.0" in out


def test_as_json(vramscope, saved):
    ran = vramscope("diff", "--json", "full.vram", "lora.vram")

    found = json.loads(ran.out)
    assert found["schema"] == "vramscope.diff/1"
    assert found["a"]["name"] == "train.py --full"


@pytest.mark.parametrize("words", [("full.vram", "missing.vram"), ("missing.vram", "full.vram")])
def test_a_run_that_is_not_there(vramscope, saved, words: tuple[str, str]):
    ran = vramscope("diff", *words)

    assert ran.status == 2
    assert "error: cannot read missing.vram: No such file or directory" in ran.err


def test_one_run_is_not_enough(vramscope, saved):
    ran = vramscope("diff", "full.vram")

    assert ran.status == 2
    assert "Missing argument 'B'" in ran.err
