"""What NVML says of the cards' memory while a program runs, looked at again and again from outside."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from vramscope.errors import NoGpuError
from vramscope.run.measured import Sample

PERIOD_S = 0.02
"""Between two looks; one takes about 0.1 ms a card."""
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class RealCard:
    """A card as its driver describes it."""

    index: int
    uuid: str
    name: str
    memory_bytes: int
    """All of it; CUDA reports a little less."""


def real_card_name() -> str | None:
    """The name of the machine's first GPU, or None without one; starts no CUDA context."""
    with contextlib.suppress(NoGpuError), _nvml() as nvml:
        return _card(nvml, 0).name if nvml.nvmlDeviceGetCount() else None
    return None


def real_cards() -> tuple[RealCard, ...]:
    """All cards of this machine; NoGpuError if there is none."""
    with _nvml() as nvml:
        count = nvml.nvmlDeviceGetCount()
        if not count:
            raise NoGpuError(
                "the driver is here, but it has no GPU: use `vramscope predict`, which needs none"
            )
        return tuple(_card(nvml, index) for index in range(count))


class Sampler:
    """Looks at every card until it is stopped; use it as a context manager around the program.

    Only changes are kept.  A process counts as the program's if it descends from `root`."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name="nvml", daemon=True)
        self._last: dict[tuple[int, int | None], int] = {}
        self.samples: list[Sample] = []
        self.looks = 0

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        with contextlib.suppress(NoGpuError), _nvml() as nvml:
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
            while not self._done.wait(PERIOD_S):
                self.looks += 1
                for index, handle in enumerate(handles):
                    self._sample(nvml, index, handle)

    def _sample(self, nvml: ModuleType, index: int, handle: Any) -> None:
        now = time.time_ns() // 1000
        others = 0
        for process in _processes(nvml, handle):
            if (
                process.usedGpuMemory is None
            ):  # not told: a container without the host's processes, or Windows
                continue
            if _descends(process.pid, self._root):
                self._keep(Sample(now, index, process.pid, int(process.usedGpuMemory)))
            else:
                others += int(process.usedGpuMemory)
        self._keep(Sample(now, index, None, int(nvml.nvmlDeviceGetMemoryInfo(handle).used), others))

    def _keep(self, sample: Sample) -> None:
        key = (sample.card, sample.pid)
        if self._last.get(key) != sample.used_bytes:
            self._last[key] = sample.used_bytes
            self.samples.append(sample)


@contextlib.contextmanager
def _nvml() -> Iterator[ModuleType]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoGpuError(
            f"there is no NVIDIA GPU to measure on ({error}): use `vramscope predict`, which needs none"
        ) from error
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _card(nvml: ModuleType, index: int) -> RealCard:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    return RealCard(
        index, _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle)), memory
    )


def _processes(nvml: ModuleType, handle: Any) -> list[Any]:
    try:
        return list(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except nvml.NVMLError:  # not permitted here
        return []


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _descends(pid: int, root: int) -> bool:
    """Whether a process is `root` or below it."""
    for _ in range(_DEEPEST):
        if pid == root:
            return True
        parent = _parent(pid)
        if parent is None or parent <= 1:
            return False
        pid = parent
    return False


def _parent(pid: int) -> int | None:
    try:
        # After the name, which may hold anything, come the state and the parent: proc(5)
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
