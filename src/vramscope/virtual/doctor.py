"""What of the installed torch would not be simulated, and what stands in the way of a virtual card."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from vramscope.errors import VramscopeError
from vramscope.virtual import symbols
from vramscope.virtual.build import DRIVER_SONAMES, FILE_NAME, StandIns, ensure_built
from vramscope.virtual.wheel import STAND_INS, Wheel, find_wheel

T = TypeVar("T")
Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `try_` says what to do where something is wrong."""

    level: Level
    what: str
    detail: str
    try_: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, in the order in which a virtual card needs them."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether a virtual card can be used."""
        return all(finding.level != "error" for finding in self.findings)


def diagnose() -> Diagnosis:
    """Looks at this Python's torch, its libraries, the compiler and the cache; never raises."""
    findings = [_system(), _compiler()]
    wheel = _try(findings, "torch", find_wheel)
    if wheel is not None:
        findings += [_torch(wheel), _cudnn(wheel)]
        stand_ins = _try(findings, "virtual card", lambda: ensure_built(wheel))
        if stand_ins is not None:
            findings.append(Finding("ok", "virtual card", f"compiled in {stand_ins.folder}"))
            findings += _missing(wheel, stand_ins)
    return Diagnosis(tuple(findings))


def _try(findings: list[Finding], what: str, do: Callable[[], T]) -> T | None:
    try:
        return do()
    except VramscopeError as error:
        detail, _, hint = str(error).partition("; ")
        findings.append(Finding("error", what, detail, hint or None))
        return None


def _system() -> Finding:
    text = (
        f"{platform.system()} {platform.release()}, {platform.machine()}, Python {platform.python_version()}"
    )
    if platform.system() != "Linux":
        return Finding("error", "system", text, "use Linux: torch's CUDA wheels exist for it alone")
    return Finding("ok", "system", text)


def _compiler() -> Finding:
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        if found := shutil.which(name):
            return Finding("ok", "C compiler", found)
    return Finding("error", "C compiler", "none found", "apt install gcc, or set CC")


def _torch(wheel: Wheel) -> Finding:
    return Finding("ok", "torch", f"{wheel.torch}, CUDA {wheel.cuda}, in {wheel.folder}")


def _cudnn(wheel: Wheel) -> Finding:
    version = wheel.cudnn
    if version is None:
        return Finding(
            "warning",
            "cuDNN",
            "its version cannot be read",
            "reinstall the nvidia-cudnn package of this torch",
        )
    return Finding("ok", "cuDNN", f"{version}: plans for the described card by its own deviceless mode")


def _missing(wheel: Wheel, stand_ins: StandIns) -> Iterator[Finding]:
    """What torch's libraries want from the replaced ones and the stand-ins lack, or refuse."""
    have = {
        name: set(symbols.exported(stand_ins.folder / FILE_NAME.format(name))[0])
        for name in [*STAND_INS, *DRIVER_SONAMES]
    }
    wanted = _wanted(wheel)
    for name, real in wheel.libraries.items():
        used = sorted(wanted.get(real.name, set()))
        lacking = [symbol for symbol in used if symbol not in have[name]]
        refused = [symbol for symbol in used if refuses(name, symbol, stand_ins)]
        if lacking:
            detail = f"no stand-in for {', '.join(lacking)}"
            yield Finding("error", name, detail, "report this with the torch version")
        elif refused:
            yield Finding("warning", name, f"refused by name if called: {_some(refused)}")
        else:
            yield Finding("ok", name, f"all {len(used)} functions that torch wants are simulated")


def _wanted(wheel: Wheel) -> dict[str, set[str]]:
    """By soname, the functions that torch's own libraries want; NCCL's carry no version, so go by name."""
    found: dict[str, set[str]] = {}
    folder = wheel.folder / "lib"
    for library in [*sorted(folder.glob("libtorch*.so")), folder / "libc10_cuda.so"]:
        for node, names in symbols.wanted(library).items():
            found.setdefault(node, set()).update(names)
    nccl = {name for name in found.get("", set()) if re.fullmatch(r"nccl[A-Z]\w*", name)}
    found.setdefault(wheel.libraries["nccl"].name, set()).update(nccl)
    return found


def refuses(library: str, symbol: str, stand_ins: StandIns) -> bool:
    """Whether a function is a stub that refuses: those are listed when the stand-ins are built."""
    return f"{library} {symbol}" in _refused(stand_ins.folder)


@cache
def _refused(folder: Path) -> frozenset[str]:
    return frozenset((folder / "refused.txt").read_text().splitlines())


def _some(names: list[str], most: int = 12) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
