"""Oxford's 102 flowers: 1020 images to train on and 6149 to evaluate on, fetched once by torchvision."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from vramscope.errors import UsageError
from vramscope.lab.training.places import cache_folder
from vramscope.planning.last_words import NOTHING, last_error

_FETCH = """\
import sys

from torchvision.datasets import Flowers102

Flowers102(sys.argv[1], "train", download=sys.argv[2] == "fetch")
"""
_BYTES = "345 MB"


def root_of(given: str | os.PathLike[str] | None) -> Path:
    """The folder in which torchvision keeps it: the one that is given, or one in the user's cache."""
    return cache_folder() / "data" if given is None else Path(given).expanduser().absolute()


def fetch(root: str) -> None:
    """Sees that it is there, and downloads it if it is not; UsageError if that cannot be."""
    if (Path(root) / "flowers-102").is_dir() and not _try(root, "look"):
        return
    error = _try(root, "fetch")
    if error:
        raise UsageError(
            f"--data flowers102: it is not in {root} and its {_BYTES} cannot be downloaded ({error}). Without a"
            " network, copy a folder flowers-102 there that torchvision has fetched elsewhere, or train on"
            " folders of images of your own, --data folder:PATH, or on noise, --data fake"
        )


def _try(root: str, how: str) -> str:
    """Opens it in a process of its own, which may import torch; what went wrong, or ""."""
    try:
        Path(root).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{root}: {error.strerror}"
    done = subprocess.run([sys.executable, "-c", _FETCH, root, how], capture_output=True, text=True)
    return last_error(done.stderr) or NOTHING if done.returncode else ""
