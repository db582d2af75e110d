"""What tests of several floors share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ran import Ran
from virtual_runs import run_virtual


@pytest.fixture
def virtual() -> Callable[..., Ran]:
    """`virtual(code, gpu=...)`: runs code on a virtual card and gives back what it printed and journalled."""
    return run_virtual
