"""Where the installed torch and its NVIDIA libraries are, read from files: torch is not imported."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from vramscope.errors import PlatformError, TorchError

OLDEST_TORCH = (2, 8)
"""The first torch whose wheel brings a cuDNN that plans without a device (9.8, NVIDIA's cuDNN
release notes, "deviceless ahead-of-time compilation"; torch 2.8.0 brings 9.10)."""
SUPPORTED_CUDA = (12, 13)
INSTALL_LINE = "pip install torch --index-url https://download.pytorch.org/whl/cu130"


@dataclass(frozen=True, slots=True)
class Wheel:
    """One installed torch: its versions and the folders of it and of its libraries."""

    torch: str
    cuda: str
    folder: Path
    libraries: dict[str, Path]
    """Real libraries by short name: ``cudart`` -> .../libcudart.so.13."""
    includes: tuple[Path, ...]

    @property
    def cudnn(self) -> str | None:
        """The cuDNN version that the wheel brings, such as ``9.24.0``, or None if it cannot be read."""
        for folder in self.includes:
            header = folder / "cudnn_version.h"
            if header.is_file():
                numbers = re.findall(r"#define CUDNN_(?:MAJOR|MINOR|PATCHLEVEL) (\d+)", header.read_text())
                return ".".join(numbers[:3]) if len(numbers) >= 3 else None
        return None


STAND_INS = {
    "cudart": "libcudart.so.*",
    "cublas": "libcublas.so.*",
    "cublaslt": "libcublasLt.so.*",
    "cudnn": "libcudnn.so.*",
    "cufft": "libcufft.so.*",
    "cusolver": "libcusolver.so.*",
    "cusparse": "libcusparse.so.*",
    "cusparselt": "libcusparseLt.so.*",
    "curand": "libcurand.so.*",
    "cupti": "libcupti.so.*",
    "nccl": "libnccl.so.*",
}
"""The libraries that are replaced, with the names their files have in the wheels."""


def find_wheel() -> Wheel:
    """The torch of this Python.

    Raises PlatformError where no CUDA torch can exist, TorchError where it is missing, has no
    CUDA, is too old or lacks one of its libraries.
    """
    if sys.platform != "linux":
        raise PlatformError(
            f"a virtual card needs Linux (here: {sys.platform}), because torch's CUDA wheels exist for it alone; "
            "use a Linux machine or container, without a GPU"
        )
    folder = _torch_folder()
    torch, cuda = _versions(folder)
    roots = [*_nvidia_folders(folder), folder / "lib"]
    libraries = {name: _library(roots, pattern, torch) for name, pattern in STAND_INS.items()}
    includes = tuple(root / "include" for root in (p.parent for p in roots) if (root / "include").is_dir())
    return Wheel(torch, cuda, folder, libraries, includes)


def _torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise TorchError(f"no torch is installed for {sys.executable}; try: {INSTALL_LINE}")
    return Path(spec.origin).parent


def _versions(folder: Path) -> tuple[str, str]:
    text = (folder / "version.py").read_text()
    torch = _assigned(text, "__version__") or "unknown"
    cuda = _assigned(text, "cuda")
    if cuda is None:
        raise TorchError(f"this torch ({torch}) has no CUDA: try: {INSTALL_LINE}")
    if int(cuda.split(".")[0]) not in SUPPORTED_CUDA:
        raise TorchError(
            f"torch {torch} is built for CUDA {cuda}; virtual cards exist for CUDA 12 and 13: {INSTALL_LINE}"
        )
    numbers = tuple(int(n) for n in re.findall(r"\d+", torch)[:2])
    if numbers < OLDEST_TORCH:
        raise TorchError(
            f"torch {torch} is older than {'.'.join(map(str, OLDEST_TORCH))}, "
            f"the first whose cuDNN plans without a GPU; try: {INSTALL_LINE}"
        )
    return torch, cuda


def _assigned(text: str, name: str) -> str | None:
    match = re.search(rf"^{name}\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", text, re.M)
    return match[1] if match else None


def _nvidia_folders(torch_folder: Path) -> list[Path]:
    """The lib folders of the nvidia-* packages beside torch (CUDA 12: one each; CUDA 13: mostly cu13)."""
    return sorted(p for p in (torch_folder.parent / "nvidia").glob("*/lib") if p.is_dir())


def _library(roots: list[Path], pattern: str, torch: str) -> Path:
    found = [path for root in roots for path in sorted(root.glob(pattern))]
    if not found:
        raise TorchError(
            f"torch {torch} is installed without {pattern.removesuffix('.*')}, which its wheel needs; "
            f"reinstall it: {INSTALL_LINE}"
        )
    return found[0]
