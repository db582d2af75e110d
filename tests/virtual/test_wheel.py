"""The torch that is installed, read from files."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from vramscope.errors import PlatformError, TorchError
from vramscope.virtual import wheel


def fake_torch(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str, cuda: str | None) -> None:
    """A torch of that version is all that find_spec finds."""
    (folder / "torch").mkdir()
    (folder / "torch" / "version.py").write_text(
        f"__version__ = '{version}'\ncuda: Optional[str] = {cuda!r}\n"
    )
    spec = ModuleSpec("torch", None, origin=str(folder / "torch" / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def test_the_installed_wheel_has_every_library():
    found = wheel.find_wheel()

    assert set(found.libraries) == set(wheel.STAND_INS)
    assert all(path.is_file() for path in found.libraries.values())
    assert found.cudnn is not None
    assert found.cudnn.count(".") == 2


def test_finding_it_imports_no_torch():
    before = "torch" in sys.modules
    wheel.find_wheel()
    assert ("torch" in sys.modules) == before


def test_no_torch(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TorchError, match=r"no torch is installed for .*pip install torch"):
        wheel.find_wheel()


def test_a_cpu_torch(tmp_path, monkeypatch):
    fake_torch(tmp_path, monkeypatch, "2.14.1+cpu", None)
    with pytest.raises(TorchError, match=r"this torch \(2.14.1\+cpu\) has no CUDA: try: pip install"):
        wheel.find_wheel()


@pytest.mark.parametrize(
    ("version", "cuda", "text"),
    [("2.7.1+cu128", "12.8", "older than 2.8"), ("2.9.0+cu118", "11.8", "CUDA 11.8")],
)
def test_too_old(tmp_path, monkeypatch, version, cuda, text):
    fake_torch(tmp_path, monkeypatch, version, cuda)
    with pytest.raises(TorchError, match=text):
        wheel.find_wheel()


def test_a_torch_without_its_libraries(tmp_path, monkeypatch):
    fake_torch(tmp_path, monkeypatch, "2.14.1+cu130", "13.0")
    with pytest.raises(TorchError, match=r"without libcudart.so"):
        wheel.find_wheel()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(PlatformError, match=rf"needs Linux \(here: {platform}\)"):
        wheel.find_wheel()
