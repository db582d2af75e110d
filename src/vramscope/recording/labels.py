"""What the allocator's history is told beside sizes and addresses: who is asking, and what a block is.

torch's own hooks carry it: a text per thread that every event keeps (`_set_memory_metadata`), and an
event that names a block which exists already (`_annotate_tensor`).  Both cost under a microsecond and
allocate nothing.  A label reads ``span:module:flags``, an annotation ``letter:name`` (`run.owners.LETTERS`)."""

from __future__ import annotations

import time
from types import ModuleType


class Labels:
    """Labels of threads and blocks; for a torch that has none of its own, a log by time."""

    def __init__(self, torch: ModuleType) -> None:
        core = torch._C
        self.native = hasattr(core, "_cuda_setMemoryMetadata") and hasattr(core, "_cuda_annotateMemory")
        self.set = core._cuda_setMemoryMetadata if self.native else self._log_label
        self._get = core._cuda_getMemoryMetadata if self.native else self._last_label
        self._annotate = core._cuda_annotateMemory if self.native else self._log_annotation
        self.log: list[tuple[int, str]] = []
        """(microseconds, label) where torch keeps none itself."""
        self.annotations: list[tuple[int, int, str]] = []
        """(microseconds, address, annotation), likewise."""

    def get(self) -> str:
        """The label that this thread has now."""
        return str(self._get())

    def annotate(self, address: int, text: str) -> bool:
        """Names the block that begins at an address; False if none does."""
        try:
            self._annotate(address, text)
        except (
            RuntimeError
        ):  # no allocation of the caching allocator's: a slice of a larger one, or on the host
            return False
        return True

    def _log_label(self, label: str) -> None:
        self.log.append((time.time_ns() // 1000, label))

    def _last_label(self) -> str:
        return self.log[-1][1] if self.log else ""

    def _log_annotation(self, address: int, text: str) -> None:
        self.annotations.append((time.time_ns() // 1000, address, text))


class NoLabels(Labels):
    """Where nothing is followed, nothing is labelled."""

    def __init__(self) -> None:
        self.native = False
        self.log, self.annotations = [], []
        self.set = self._nothing

    def get(self) -> str:
        """No label."""
        return ""

    def _nothing(self, label: str) -> None:
        """There is nobody to read it."""
