"""Nothing but the program itself imports torch: each of these runs in a fresh Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import builders
from traces import training_story
from vramscope.run.journal import journal_of
from vramscope.run.run import Run
from vramscope.run.store import save_run

SOURCES = Path(__file__).parents[1] / "src"
CHECK = """
import sys
{}
assert "torch" not in sys.modules, "torch was imported"
"""
CLI = "from vramscope.cli import status_of; assert status_of({!r}) == 0"


@pytest.mark.parametrize(
    "code",
    [
        "import vramscope",
        "import vramscope; vramscope.predict; vramscope.Report; vramscope.mark('nothing')",
        CLI.format(["--help"]),
        CLI.format(["--version"]),
        CLI.format(["predict", "--help"]),
        CLI.format(["lab", "--help"]),
        CLI.format(["lab", "stages", "--help"]),
        CLI.format(["lab", "train", "--help"]),
        CLI.format(["formula", "--params", "11e9"]),
        CLI.format(["formula", "linear:inputs=2,outputs=2,rows=2"]),
        CLI.format(["gpus"]),
        CLI.format(["show", "a.vram"]),
        CLI.format(["show", "--json", "a.vram"]),
        CLI.format(["explain", "a.vram"]),
        CLI.format(["diff", "a.vram", "a.vram"]),
        CLI.format(["show", "--stages", "--layers", "--peak", "--lines", "--timeline", "a.vram"]),
    ],
)
def test_without_torch(tmp_path: Path, code: str):
    traces = (training_story().trace(),)
    save_run(tmp_path / "a.vram", Run(builders.trained(), journal_of(builders.training()), traces))

    found = fresh(code, tmp_path)

    assert found.returncode == 0, found.stderr


def test_the_check_can_fail(tmp_path: Path):
    (tmp_path / "torch.py").write_text("")

    found = fresh("import torch", tmp_path)

    assert found.returncode == 1
    assert "torch was imported" in found.stderr


def test_import_is_light():
    """rich and click come with the command line alone."""
    found = fresh("import vramscope, sys; assert not {'rich', 'click', 'json'} & set(sys.modules)", Path())

    assert found.returncode == 0, found.stderr


def fresh(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}:{folder}"}
    command = [sys.executable, "-c", CHECK.format(code)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
