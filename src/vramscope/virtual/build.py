"""Compiles the stand-ins for the installed torch, once, into the user's cache.

The folder's name is a key of everything that decides the result.  It is filled beside its place
and renamed under a lock, so that ten processes may start at once and none ever sees half of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vramscope.errors import BuildError
from vramscope.virtual import symbols
from vramscope.virtual.wheel import Wheel

NATIVE = Path(__file__).parent / "native"
CORE_SONAME = "vs-core.so"
# Not "libcudart.so": at that name in /proc/self/maps torch would load the real libraries first
# (torch/__init__.py, _preload_cuda_deps).
FILE_NAME = "vs-{}.so"
DRIVER_SONAMES = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}
# In link order: the driver calls the runtime, everything calls the core.
ORDER = (
    "cudart",
    "cuda",
    "nvml",
    "cublaslt",
    "cublas",
    "cudnn",
    "cufft",
    "cusparse",
    "cusparselt",
    "cusolver",
    "curand",
    "cupti",
    "nccl",
)
# The first driver branch of each CUDA (CUDA Toolkit Release Notes, table "CUDA Toolkit and
# Corresponding Driver Versions"), which NVML names; nothing is decided by it.
DRIVERS = {"13": "580.65.06", "12": "525.60.13"}


@dataclass(frozen=True, slots=True)
class StandIns:
    """A built set: `folder` holds the libraries, `preload` are those to load, in order."""

    folder: Path
    preload: tuple[Path, ...]

    @property
    def driver_folder(self) -> Path:
        """Where the driver lies under its own names, for those that link to it (Triton)."""
        return self.folder / "driver"


def ensure_built(wheel: Wheel) -> StandIns:
    """The stand-ins for a wheel, compiled now if they are not there yet.

    Raises BuildError without a C compiler, with a cache that cannot be written, or where compiling fails.
    """
    folder = _cache_folder() / f"{wheel.torch}-{_key(wheel)}"
    if not folder.is_dir():
        with _locked(folder):
            if not folder.is_dir():
                _build_at(folder, wheel)
    return StandIns(folder, tuple(folder / FILE_NAME.format(name) for name in ("core", *ORDER)))


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / "vramscope" / "stand-ins"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(_unwritable(folder, error)) from None
    return folder


def _unwritable(folder: Path, error: OSError) -> str:
    return f"cannot keep the compiled stand-ins in {folder}: {error.strerror}; make it writable or set XDG_CACHE_HOME"


def _key(wheel: Wheel) -> str:
    """A hash over our sources and everything of the wheel that the result depends on."""
    digest = hashlib.sha256()
    for source in sorted(
        [*NATIVE.rglob("*.[ch]"), *NATIVE.glob("*.symbols"), Path(symbols.__file__), Path(__file__)]
    ):
        digest.update(source.read_bytes())
    digest.update(repr([wheel.torch, wheel.cuda, wheel.cudnn]).encode())
    for name, path in sorted(wheel.libraries.items()):
        digest.update(f"{name} {path.name} {path.stat().st_size}\n".encode())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the lock of one folder; it ends with the process, however that ends."""
    lock = folder.with_name(f".{folder.name}.lock")
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise BuildError(_unwritable(folder.parent, error)) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _build_at(folder: Path, wheel: Wheel) -> None:
    print(
        f"vramscope: compiling the virtual card for torch {wheel.torch} (once) ...",
        file=sys.stderr,
        flush=True,
    )
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise BuildError(_unwritable(folder.parent, error)) from None
    try:
        _Build(scratch, wheel, _compiler()).run()
        scratch.chmod(0o755)
        scratch.rename(folder)
    except OSError as error:
        raise BuildError(_unwritable(folder.parent, error)) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _compiler() -> str:
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        found = shutil.which(name)
        if found:
            return found
    raise BuildError(
        "the virtual card is compiled on first use and no C compiler was found; "
        "try `apt install gcc` (or `dnf install gcc`), or set CC"
    )


class _Build:
    """One run of the compiler over all libraries, in a scratch folder."""

    def __init__(self, folder: Path, wheel: Wheel, compiler: str) -> None:
        self.folder, self.wheel, self.compiler = folder, wheel, compiler
        self.refused: list[str] = []
        self.exported = cache(symbols.exported)  # asked for a library's functions, then for their version
        cuda = wheel.cuda.split(".")
        version = int(cuda[0]) * 1000 + int(cuda[1]) * 10
        self.flags = [
            "-std=c11", "-O1", "-fPIC", "-Wall", "-Wextra", f"-I{NATIVE / 'include'}", f"-I{NATIVE}",
            "-DCUBLASAPI=", f"-DVS_CUDA_VERSION={version}", f'-DVS_DRIVER_VERSION="{DRIVERS[cuda[0]]}"',
            *(f"-isystem{folder}" for folder in wheel.includes),
        ]  # fmt: skip

    def run(self) -> None:
        self._link_core()
        names = [name for name in ORDER if self._sources(name) or name in self.wheel.libraries]
        with ThreadPoolExecutor() as pool:
            prepared = dict(zip(names, pool.map(self._prepare, names), strict=True))
            first, rest = names[:1], names[1:]
            for group in (first, rest):  # the runtime first: others link to it
                list(pool.map(lambda name: self._link(name, prepared[name]), group))
        (self.folder / "refused.txt").write_text("\n".join(sorted(self.refused)))
        self._name_the_driver()

    def _sources(self, name: str) -> list[Path]:
        return sorted([*NATIVE.glob(f"{name}.c"), *NATIVE.glob(f"{name}_*.c")])

    def _compile(self, source: Path, label: str) -> Path:
        target = self.folder / f"{label}-{source.stem}.o"
        self._cc([*self.flags, "-c", str(source), "-o", str(target)])
        return target

    def _prepare(self, name: str) -> list[Path]:
        """A library's objects: its own sources, then stubs for what they leave out."""
        objects = [self._compile(source, name) for source in self._sources(name)]
        have = symbols.defined(objects) if objects else set()
        missing = [symbol for symbol in self._symbols(name) if symbol not in have]
        stubs = self.folder / f"{name}-stubs.c"
        stubs.write_text(symbols.stub_source(name, missing))
        self.refused += [f"{name} {symbol}" for symbol in symbols.refused(name, missing)]
        return [*objects, self._compile(stubs, name)]

    def _symbols(self, name: str) -> list[str]:
        if name == "nvml":
            return (NATIVE / "nvml.symbols").read_text().split()
        if name == "cuda":
            return symbols.driver_functions(
                self._cc([*self.flags, "-E", "-P", "-include", "cuda.h", "-x", "c", "/dev/null"])
            )
        return self.exported(self.wheel.libraries[name])[0]

    def _link_core(self) -> None:
        objects = [self._compile(source, "core") for source in sorted((NATIVE / "core").glob("*.c"))]
        self._share("core", CORE_SONAME, [], objects, [])

    def _link(self, name: str, objects: list[Path]) -> None:
        soname, extra = DRIVER_SONAMES.get(name, ""), []
        if name in self.wheel.libraries:
            real = self.wheel.libraries[name]
            soname, extra = real.name, self._version_script(name, self.exported(real)[1])
        if name == "cuda":
            extra = self._old_driver_names(objects)
        needs = ["core"] if name in ("cudart", "nvml") else ["cudart", "core"]
        self._share(name, soname, extra, objects, [self.folder / FILE_NAME.format(need) for need in needs])

    def _version_script(self, name: str, node: str) -> list[str]:
        if not node:
            return []
        script = self.folder / f"{name}.map"
        script.write_text(f"{node} {{ global: *; }};\n")
        return [f"-Wl,--version-script={script}"]

    def _old_driver_names(self, objects: list[Path]) -> list[str]:
        pairs = symbols.driver_aliases(symbols.defined(objects))
        return [f"-Wl,--defsym={plain}={versioned}" for plain, versioned in pairs.items()]

    def _share(
        self, name: str, soname: str, extra: list[str], objects: list[Path], needs: list[Path]
    ) -> None:
        self._cc([
            "-shared", "-o", str(self.folder / FILE_NAME.format(name)), *map(str, objects), f"-Wl,-soname,{soname}",
            "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-Wl,-rpath,$ORIGIN", "-Wl,--as-needed", *extra, *map(str, needs),
            "-lpthread", "-ldl",
        ])  # fmt: skip

    def _name_the_driver(self) -> None:
        driver = self.folder / "driver"
        driver.mkdir()
        for name, soname in DRIVER_SONAMES.items():
            (driver / soname).symlink_to(f"../{FILE_NAME.format(name)}")
        for leftover in (
            *self.folder.glob("*.o"),
            *self.folder.glob("*.map"),
            *self.folder.glob("*-stubs.c"),
        ):
            leftover.unlink()

    def _cc(self, arguments: list[str]) -> str:
        done = subprocess.run([self.compiler, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            first = "\n  ".join(done.stderr.strip().splitlines()[:12])
            raise BuildError(
                f"compiling the virtual card for torch {self.wheel.torch} (CUDA {self.wheel.cuda}) failed:\n  {first}\n"
                "`vramscope doctor` says what of this torch is supported"
            )
        return done.stdout
