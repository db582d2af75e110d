"""The data sets, and how a program brings their images: Flowers102, a folder, or images made of noise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from vramscope.errors import MissingLibraryError, UsageError
from vramscope.jobs.technique import nearest
from vramscope.lab.article import CLASSES
from vramscope.lab.training import article
from vramscope.lab.training.flowers import root_of
from vramscope.lab.training.folder import Folder, folder_at

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.lab.training.request import Request

FAKE, FLOWERS, FOLDER = "fake", "flowers102", "folder"
KINDS = (FAKE, FLOWERS, FOLDER)
_READERS = 2
"""Processes that read images from files."""

_TRANSFORM = """\
transform = transforms.Compose(
    [
        transforms.Resize((IMAGE, IMAGE)),
        transforms.ToTensor(),
        transforms.Normalize({mean}, {std}),
    ]
)"""
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet, as everybody has them."""
_READ = '''\
def read(path):
    """An image of a file; an error names it."""
    try:
        return {read}
    except (OSError, SyntaxError, ValueError) as error:
        raise OSError(f"{{path}} cannot be read: {{error}}") from error'''
_LOADER = """\
def batches_of(images, shuffle):
    order = torch.Generator().manual_seed(SEED)
    return DataLoader(
        images,
        BATCH,
        shuffle=shuffle,
        num_workers=WORKERS,
        persistent_workers=WORKERS > 0,
        pin_memory=device.type == "cuda",
        generator=order,
    )"""


@dataclass(frozen=True, slots=True)
class Data:
    """What is trained on."""

    kind: str
    text: str
    """As people wrote it."""
    classes: int
    train: int
    """Images."""
    test: int | None
    """Images to evaluate on; None: there are none."""
    place: str = ""
    """The folder that it is in."""
    folder: Folder | None = None

    @property
    def fingerprint(self) -> str:
        """What the program's text does not say: the files of a folder."""
        return self.folder.fingerprint if self.folder else ""


def data_of(request: Request) -> Data:
    """The data that a request names; UsageErrors for those that there are not, or that cannot be used.

    Nothing is downloaded."""
    kind, colon, rest = request.data.partition(":")
    if kind not in KINDS or bool(colon) != (kind == FOLDER):
        words = (FAKE, FLOWERS, "folder:PATH")
        raise UsageError(f"--data {request.data}: {nearest(request.data, words)}")
    if find_spec("torchvision") is None:
        raise MissingLibraryError(f"--data {request.data}", "torchvision", "pip install torchvision")
    if kind == FOLDER:
        folder = folder_at(rest)
        return Data(
            kind, request.data, len(folder.classes), folder.train, folder.test, str(folder.path), folder
        )
    if kind == FLOWERS:
        if find_spec("scipy") is None:
            raise MissingLibraryError(f"--data {FLOWERS}", "scipy", "pip install scipy")
        place = str(root_of(request.data_root))
        return Data(kind, kind, CLASSES, article.TRAIN_IMAGES, article.TEST_IMAGES, place)
    return Data(kind, kind, CLASSES, request.size, request.size)


def write_data(script: Script, data: Data, channels: int, workers: int | None) -> None:
    """Writes what makes ``train_batches`` and ``test_batches``, and the constants that this needs."""
    readers = workers if workers is not None else 0 if data.kind == FAKE else _READERS
    script.constants.update(CLASSES=str(data.classes), WORKERS=str(readers))
    script.imports |= {
        "from torch.utils.data import DataLoader",
        "from torchvision import datasets, transforms",
    }
    script.functions.append(_LOADER)
    mean, std = (_MEAN, _STD) if channels == len(_MEAN) else ((0.5,), (0.5,))
    script.batch[:] = [_TRANSFORM.format(mean=mean, std=std), *_WRITERS[data.kind](script, data, channels)]


def _fake(script: Script, data: Data, channels: int) -> list[str]:
    script.constants["IMAGES"] = str(data.train)
    shape = f"({channels}, IMAGE, IMAGE)"
    return [
        f"noise = datasets.FakeData(IMAGES, {shape}, CLASSES, transform, random_offset=SEED)",
        f"other = datasets.FakeData(IMAGES, {shape}, CLASSES, transform, random_offset=SEED + IMAGES)",
        "train_batches, test_batches = batches_of(noise, True), batches_of(other, False)",
    ]


def _flowers(script: Script, data: Data, channels: int) -> list[str]:
    _write_read(script, channels)
    return [
        f'train_images = datasets.Flowers102({_path(data.place)}, "train", transform, loader=read)',
        f'test_images = datasets.Flowers102({_path(data.place)}, "test", transform, loader=read)',
        "train_batches, test_batches = batches_of(train_images, True), batches_of(test_images, False)",
    ]


def _folder(script: Script, data: Data, channels: int) -> list[str]:
    _write_read(script, channels)
    assert data.folder is not None
    folder = data.folder
    lines = [
        f"train_images = datasets.ImageFolder({_path(folder.train_path)}, transform, loader=read)",
    ]
    if folder.test_path is None:
        return [*lines, "train_batches, test_batches = batches_of(train_images, True), []"]
    return [
        *lines,
        f"test_images = datasets.ImageFolder({_path(folder.test_path)}, transform, loader=read)",
        "train_batches, test_batches = batches_of(train_images, True), batches_of(test_images, False)",
    ]


def _path(place: str | Path) -> str:
    """A path as code, in double quotes."""
    return json.dumps(str(place))


def _write_read(script: Script, channels: int) -> None:
    script.imports.add("from torchvision.datasets.folder import default_loader")
    loaded = "default_loader(path)" if channels == 3 else 'default_loader(path).convert("L")'
    script.functions.append(_READ.format(read=loaded))


_WRITERS = {FAKE: _fake, FLOWERS: _flowers, FOLDER: _folder}
