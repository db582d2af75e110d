"""A folder of images, one folder below it for each class, looked at before anything is trained on it."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vramscope.errors import UsageError

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""Of the files that torchvision's ImageFolder takes for images."""
_TEST = ("test", "val", "valid", "validation")
_LAYOUT = "PATH/train/CLASS/*.jpg with PATH/test/CLASS/*.jpg, or PATH/CLASS/*.jpg"
_TOLD = 3
"""So many unreadable files are named."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Images by classes."""

    path: Path
    classes: tuple[str, ...]
    train_path: Path
    train: int
    """Images."""
    test_path: Path | None
    test: int | None
    fingerprint: str
    """Changes with the files' names, sizes and times."""


def folder_at(text: str) -> Folder:
    """The folder of a path; UsageError if it is none, has no images, or has some that cannot be read."""
    path = Path(text).expanduser().absolute()
    if not text or not path.is_dir():
        raise UsageError(f"--data folder:{text}: there is no such folder; it holds {_LAYOUT}")
    train_path = path / "train" if (path / "train").is_dir() else path
    test_path = next((path / name for name in _TEST if train_path != path and (path / name).is_dir()), None)
    train = _images(train_path)
    test = _images(test_path) if test_path else {}
    if test_path is not None and set(train) != set(test):
        differing = ", ".join(sorted(set(train) ^ set(test))[:_TOLD])
        raise UsageError(f"--data folder:{text}: {train_path.name} and {test_path.name} have other classes"
                         f" ({differing}): each needs a folder for every class")  # fmt: skip
    files = [file for part in (train, test) for found in part.values() for file in found]
    _check_readable(text, files)
    return Folder(
        path,
        tuple(sorted(train)),
        train_path,
        sum(map(len, train.values())),
        test_path,
        sum(map(len, test.values())) if test_path else None,
        _fingerprint(files),
    )


def _images(path: Path) -> dict[str, list[Path]]:
    """By class, the files that ImageFolder finds; UsageErrors for a folder that it would refuse."""
    classes = sorted(each for each in path.iterdir() if each.is_dir())
    found = {each.name: _below(each) for each in classes}
    if not classes or not any(found.values()):
        raise UsageError(f"{path} has no folders with images: write {_LAYOUT}")
    if empty := [name for name, files in found.items() if not files]:
        raise UsageError(
            f"{path}: the class {empty[0]} has no images ({', '.join(ENDINGS)}); remove its folder or fill it"
        )
    return found


def _below(path: Path) -> list[Path]:
    return sorted(
        Path(folder) / name
        for folder, _, names in os.walk(path, followlinks=True)
        for name in names
        if name.lower().endswith(ENDINGS)
    )


def _check_readable(text: str, files: Sequence[Path]) -> None:
    """Every file begins like an image; one that is cut off only shows when it is read."""
    faults = [(file, fault) for file in files if (fault := _fault(file))]
    if not faults:
        return
    named = "; ".join(f"{file} ({fault})" for file, fault in faults[:_TOLD])
    more = f" and {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
    raise UsageError(
        f"--data folder:{text}: {len(faults)} of {len(files)} images cannot be read: {named}{more};"
        " remove or repair them"
    )


def _fault(file: Path) -> str:
    """What is wrong with an image; "" if nothing is seen."""
    image = importlib.import_module("PIL.Image")  # comes with torchvision
    try:
        with image.open(file) as opened:
            opened.verify()
    except (OSError, SyntaxError, ValueError) as error:
        return str(getattr(error, "strerror", None) or "it is no image")
    return ""


def _fingerprint(files: Sequence[Path]) -> str:
    told = "\n".join(f"{file} {(stat := file.stat()).st_size} {stat.st_mtime_ns}" for file in files)
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()
