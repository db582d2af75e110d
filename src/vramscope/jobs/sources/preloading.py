"""Imports the parts of transformers that take long, for a process that forks: without using the card.

transformers imports torchao where it is, and torchao's module for MX formats asks what the card can do when it is
imported, after which no fork could use a card.  So that module is imported as on a machine without one; programs
that compute in MX formats are not among those that are written here.
recording/warm.py imports this module by its name."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

_ASKS = "torchao.prototype.mx_formats.kernels"
_MODULES = (
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "transformers.generation.utils",
)


@contextlib.contextmanager
def _no_card() -> Iterator[None]:
    """There is no card, for those who ask whether there is one."""
    triton: Any = importlib.import_module("torch.utils._triton")
    with (
        mock.patch("torch.cuda.is_available", return_value=False),
        mock.patch.object(triton, "has_triton", return_value=False),
    ):
        yield


def _preload() -> None:
    with _no_card(), contextlib.suppress(Exception):
        importlib.import_module(_ASKS)
    for name in _MODULES:
        importlib.import_module(name)


_preload()
