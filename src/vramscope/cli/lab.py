"""`vramscope lab`: experiments that teach where training memory goes, each a command of its own."""

from __future__ import annotations

import click

from vramscope.cli.lazy import LazyGroup

EXPERIMENTS = ("stages", "train")
"""Each is the command of its name in the module ``lab_`` and its name."""


@click.group(cls=LazyGroup, commands_there=EXPERIMENTS, prefix="lab_")
def lab() -> None:
    """Measure a model stage by stage, or train it in several ways, beside what is predicted."""
