"""A saved run can be attached to a bug report: it tells of the program, not of the machine or its user."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.virtual

SOURCES = Path(__file__).parents[2] / "src"
LIBRARY = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(256, 256)

    def forward(self, x):
        return self.inner(x)
"""
TRAIN = """
import torch, vramscope
from parts.net import Net

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    loss = model(torch.ones(8, 256, device="cuda")).sum()
    print(loss.item())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
vramscope.mark("trained")
raise RuntimeError("an error of the program's own")
"""
SECRETS = {
    "VRAMSCOPE_TEST_TOKEN": "hf_a1b2c3d4e5",
    "HOME": "/home/somebody-in-particular",
    "PS1": "prompt-of-mine",
}


def test_a_run_tells_nothing_of_the_machine(tmp_path: Path):
    folder = tmp_path / "somewhere" / "project"
    (folder / "parts").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "parts" / "net.py").write_text(LIBRARY)
    words = [
        sys.executable,
        "-m",
        "vramscope",
        "predict",
        "--gpu",
        "rtx-3060",
        "-o",
        str(tmp_path / "a.vram"),
    ]
    environment = {**os.environ, **SECRETS, "PYTHONPATH": str(SOURCES)}
    environment.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))

    subprocess.run(
        [*words, str(folder / "train.py")], cwd=tmp_path, env=environment, capture_output=True, check=False
    )

    told = "\n".join(_parts(tmp_path / "a.vram"))
    assert "parts/net.py" in told  # the program's lines are there, relative to its folder
    assert "trained" in told
    for secret in (*SECRETS.values(), str(tmp_path), str(Path.home()), sys.prefix, str(SOURCES)):
        assert secret not in told
    assert len(_values(environment)) > len(SECRETS)
    assert not [value for value in _values(environment) if value in told]


def _parts(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name).decode("utf-8", "replace") for name in archive.namelist()]


def _values(environment: dict[str, str]) -> list[str]:
    """What stands in the environment and is long enough not to stand elsewhere by chance."""
    return [value for value in environment.values() if len(value) >= 12]
