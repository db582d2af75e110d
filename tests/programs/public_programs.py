"""Runs a small program of a public library, unchanged, as a process of its own on a virtual card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from ran import Ran
from vramscope.cards import find_card, outside_of
from vramscope.run.categories import INDEX
from vramscope.run.curves import live_at, peak_moment
from vramscope.run.sums import faults_of
from vramscope.run.trace import Trace
from vramscope.virtual.launch import virtual_machine

SCRIPTS = Path(__file__).parent / "scripts"
# torch gives each thread that calls cuBLAS a work space of its own: the program's and autograd's.
# ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize(): 2 x 4096 + 8 x 16 KiB before capability 9.0.
WORKSPACES = 2 * 8320 * 1024
# Nothing is downloaded, and no library writes outside the test's folder.
QUIET = {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "true", "WANDB_MODE": "disabled", "TOKENIZERS_PARALLELISM": "false"}
CACHES = ("HF_HOME", "TORCH_HOME", "YOLO_CONFIG_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "MPLCONFIGDIR")


def is_explained(trace: Trace) -> bool:
    """Whether at the peak at most 1 % of the bytes are unknown, and 95 % of the activations know their module.

    Losses and scales that are made outside of modules are allowed a thousandth of all bytes, as in a program
    without larger activations they are all there is."""
    live, blocks = live_at(trace, peak_moment(trace)), trace.blocks
    size, category = blocks.size_bytes[live], blocks.category[live]
    activation = category == INDEX["activation"]
    homeless = size[activation & (blocks.module[live] == 0)].sum()
    few = homeless <= max(0.05 * size[activation].sum(), 0.001 * size.sum())
    return bool(size[category == INDEX["unknown"]].sum() <= 0.01 * size.sum() and few)


@dataclass(frozen=True)
class Ended(Ran):
    """A public program that has ended."""

    command: tuple[str, ...] = ()
    how: dict[str, object] = field(default_factory=dict)
    """What it was run with."""

    def unchanged(self) -> Ended:
        """Itself, if following every allocation changed no peak: against a run that notes those of phases alone.

        That such a run is as one without a recorder, test_neutral.py holds."""
        with tempfile.TemporaryDirectory() as folder:  # where a compiler does not find its work done
            peaks_only = run_program(Path(folder), *self.command, **{**self.how, "history": False})
        assert peaks_only.returncode == 0, peaks_only.stderr
        assert peaks_only.traces == ()
        assert self.peak_used_bytes == peaks_only.peak_used_bytes
        assert self.step_peaks() == peaks_only.step_peaks()
        assert self.allocated_peaks() == peaks_only.allocated_peaks()
        return self

    def step_peaks(self) -> dict[int, tuple[int, int]]:
        """Per step the highest allocated and reserved bytes."""
        found: dict[int, tuple[int, int]] = {}
        for span in self.of("span"):
            for device in span["devices"]:
                before = found.get(span["step"], (0, 0))
                peaks = device["peak_allocated_bytes"], device["peak_reserved_bytes"]
                found[span["step"]] = max(before[0], peaks[0]), max(before[1], peaks[1])
        return found

    def allocated_peaks(self) -> dict[str, object]:
        """What the program itself read, by name."""
        return {name: facts.get("peak_allocated_bytes") for name, facts in self.facts.items()}

    def check(self, how: str = "finished") -> Ended:
        """Itself, if the program ended well and so, met no call that the virtual card lacks, and had its stdout to itself."""
        assert self.returncode == 0, f"status {self.returncode}\n{self.stdout}\n{self.stderr}"
        assert not self.unsimulated(), self.unsimulated()
        assert "vramscope" not in self.stdout
        assert [entry["how"] for entry in self.of("end")] == [how]
        for trace in self.traces:
            assert not faults_of(trace), faults_of(trace)
            assert is_explained(trace)
        return self

    def unsimulated(self) -> list[str]:
        """The calls that the virtual card had no answer for."""
        return [f"{entry['library']}:{entry['symbol']}" for entry in self.of("unsimulated")]

    @property
    def facts(self) -> dict[str, dict[str, int]]:
        """By name what the program itself printed; some of the libraries print beside it."""
        lines = [json.loads(line) for line in self.stdout.splitlines() if line.startswith('{"name"')]
        return {line.pop("name"): line for line in lines}

    def peak(self, name: str) -> int:
        """Bytes that torch had allocated at most during the program's part of that name."""
        return self.facts[name]["peak_allocated_bytes"]


def run_program(
    folder: Path,
    *command: str,
    gpu: str = "rtx-3090",
    devices: int = 1,
    steps: int | None = None,
    recorded: bool = True,
    history: bool = True,
    timeout: float = 120,
) -> Ended:
    """Runs ``python *command`` in `folder`; a first word that ends in .py is one of scripts/.

    Without `recorded` the program has the virtual card alone, with no recorder in its process; without
    `history` the recorder notes the peaks of phases only.
    """
    asked = {"gpu": gpu, "devices": devices, "steps": steps, "timeout": timeout}
    script = [str(SCRIPTS / command[0]), *command[1:]] if command[0].endswith(".py") else list(command)
    given = {**os.environ, **QUIET, **{name: str(folder / name.lower()) for name in CACHES}}
    card = find_card(gpu)
    with virtual_machine(card, outside=outside_of(card), devices=devices, steps=steps, environment=given) as (machine, variables):
        if not history:
            variables["VRAMSCOPE_HISTORY"] = "off"
        if not recorded:
            del variables["VRAMSCOPE_JOURNAL"], variables["PYTHONPATH"]
        done = subprocess.run(
            [sys.executable, *script], cwd=folder, env=variables, capture_output=True, text=True, timeout=timeout, check=False
        )
        entries = [dict(entry) for entry in machine.journal().entries]
        used = machine.peak_used_bytes(devices)
        return Ended(done.returncode, done.stdout, done.stderr, entries, used, command, asked)
