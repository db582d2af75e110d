"""Which device trains."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from vramscope.errors import NoGpuError, TorchError
from vramscope.lab.training.request import AUTO, CPU, CUDA, MPS
from vramscope.planning.last_words import last_error
from vramscope.real.nvml import real_card_name

_LOOK = """\
import json

import torch

cuda = torch.cuda.get_device_name() if torch.cuda.is_available() else None
print(json.dumps({"cuda": cuda, "mps": torch.backends.mps.is_available()}))
"""


@dataclass(frozen=True, slots=True)
class Device:
    """What trains."""

    kind: str
    """cuda, mps or cpu."""
    name: str

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.kind} ({self.name})" if self.name else self.kind


def device_of(asked: str) -> Device:
    """The device that is asked for; NoGpuError if it is not here.

    torch is asked in a process of its own, and only where a driver or the system makes it worth while."""
    if asked == CPU or (asked == AUTO and not _worth_looking()):
        return Device(CPU, _cpu_name())
    found = _looked() if asked != CUDA or _worth_looking() else {}
    if found.get(CUDA) and asked in (AUTO, CUDA):
        return Device(CUDA, str(found[CUDA]))
    if found.get(MPS) and asked in (AUTO, MPS):
        return Device(MPS, _cpu_name())
    if asked == AUTO:
        return Device(CPU, _cpu_name())
    what = "no NVIDIA GPU that torch can use" if asked == CUDA else "no Apple GPU that torch can use"
    raise NoGpuError(f"--device {asked}: there is {what} here; --device cpu trains everywhere")


def _worth_looking() -> bool:
    return sys.platform == "darwin" or real_card_name() is not None


def _looked() -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True)
    if done.returncode:
        raise TorchError(f"torch cannot be imported: {last_error(done.stderr)}")
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


def _cpu_name() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
