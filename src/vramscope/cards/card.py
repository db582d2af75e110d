"""What a card is: the figures that a CUDA program can see, and where each of them is from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from vramscope.errors import CardError

_ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")

# struct vs_card (virtual/native/vs.h) beside `name`, `major`, `minor` and `outside_bytes`:
# its fields are this class's, so one list serves both sides.
_NATIVE_FIGURES = (
    "sms",
    "memory_bytes",
    "l2_bytes",
    "shared_per_sm_bytes",
    "shared_per_block_optin_bytes",
    "shared_reserved_bytes",
    "registers_per_sm",
    "threads_per_sm",
    "blocks_per_sm",
    "sm_khz",
    "memory_khz",
    "bus_bits",
)


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of GPU, described by what `cudaGetDeviceProperties` says about it.

    Sizes are bytes, clocks kHz (as in cudaDeviceProp), the bus width bits.
    """

    id: str
    name: str  #: as CUDA reports it
    aliases: tuple[str, ...]
    capability: tuple[int, int]
    sms: int
    memory_bytes: int
    memory_low_bytes: int | None  #: the smallest reading known of the same card; None: no second one
    l2_bytes: int
    shared_per_sm_bytes: int
    shared_per_block_optin_bytes: int
    shared_reserved_bytes: int
    registers_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    l1_bytes: int  #: per SM, shared memory included (the unified data cache)
    sm_khz: int
    memory_khz: int
    bus_bits: int
    unverified: tuple[str, ...]  #: figures that rest on no reading
    sources: tuple[tuple[str, str], ...]  #: (figure, where it is from); "figures" speaks for the unnamed

    def source_of(self, figure: str) -> str | None:
        """Where a figure is from, in words; None if it is unverified.

        Raises CardError for a name that is no figure with a source.
        """
        if figure not in type(self).__dataclass_fields__:
            raise CardError(f"a card has no figure {figure!r}")
        if figure in self.unverified:
            return None
        sources = dict(self.sources)
        source = sources.get(figure, sources.get("figures"))
        if source is None:
            raise CardError(f"{self.id}: {figure} has no source and is not marked as unverified")
        return source

    def with_memory(self, memory_bytes: int) -> Card:
        """The same card with another memory size, as the user says it; then nobody has measured it."""
        if memory_bytes <= 0:
            raise CardError(f"{self.id}: a card of {memory_bytes} bytes cannot be; give a size above zero")
        others = tuple(pair for pair in self.sources if pair[0] != "memory_bytes")
        sources = (*others, ("memory_bytes", "as given"))
        unverified = tuple(figure for figure in self.unverified if figure != "memory_bytes")
        return replace(
            self, memory_bytes=memory_bytes, memory_low_bytes=None, unverified=unverified, sources=sources
        )

    def supported_by(self, arch_list: Iterable[str]) -> bool:
        """Whether a torch built for `arch_list` (`torch.cuda.get_arch_list()`) runs on this card.

        Machine code (``sm_xy``) runs on its own major version from its minor version on, PTX
        (``compute_xy``) on everything from its version on (CUDA C++ Programming Guide, "Binary
        Compatibility", "PTX Compatibility").  Code with suffix ``a`` runs on exactly its own
        capability, with ``f`` within its major version.
        """
        return any(self._runs(arch) for arch in arch_list)

    def _runs(self, arch: str) -> bool:
        match = _ARCH.fullmatch(arch)
        if match is None:
            return False
        built = int(match[2]), int(match[3])
        if match[4] == "a":
            return built == self.capability
        same_major = built[0] == self.capability[0]
        is_portable_ptx = match[1] == "compute" and not match[4]
        return built <= self.capability and (same_major or is_portable_ptx)

    def to_native(self, outside_bytes: int) -> str:
        """The text of $VRAMSCOPE_CARD, from which the stand-ins fill their `struct vs_card`.

        `outside_bytes` is what the first use of the card takes off it.  Raises CardError if the
        name cannot be written in ``key=value;...`` or nothing would be left of the memory.
        """
        self._check_native(outside_bytes)
        major, minor = self.capability
        fields: dict[str, str | int] = {"name": self.name, "major": major, "minor": minor}
        for figure in _NATIVE_FIGURES:
            fields[figure] = getattr(self, figure)
        fields["outside_bytes"] = outside_bytes
        return ";".join(f"{key}={value}" for key, value in fields.items())

    def _check_native(self, outside_bytes: int) -> None:
        if set(self.name) & set(";=\n\0") or not 0 < len(self.name.encode()) < 256:
            raise CardError(f"{self.id}: a name is 1 to 255 bytes without ';' and '=', unlike {self.name!r}")
        if not 0 <= outside_bytes < self.memory_bytes:
            raise CardError(
                f"{self.id}: {outside_bytes} bytes outside the allocator do not fit a card of"
                f" {self.memory_bytes}; give it more memory"
            )
