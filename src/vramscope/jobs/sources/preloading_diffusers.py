"""Imports diffusers for a process that forks: without using the card.

It asks whether there is a card when it is imported.  torch's usual way to find out forbids forks; NVML's does not.
recording/warm.py imports this module by its name."""

import importlib
import os
from unittest import mock

from vramscope.jobs.sources import preloading

__all__ = ["preloading"]

with mock.patch.dict(os.environ, PYTORCH_NVML_BASED_CUDA_CHECK="1"):
    importlib.import_module("diffusers")
