"""Commands by name, each in a module of its own that is imported when it is asked for."""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Sequence
from typing import Any

import click


class LazyGroup(click.Group):
    """Imports a command on use.

    `commands_there` are their names in the order of use, `prefix` is what their modules' names begin with; each
    command has its own name in its module, and Python's own words get a ``_`` there."""

    def __init__(self, *given: Any, commands_there: Sequence[str], prefix: str = "", **named: Any) -> None:
        super().__init__(*given, **named)
        self.commands_there, self.prefix = commands_there, prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Not by the alphabet."""
        return list(self.commands_there)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, None if there is none."""
        if cmd_name not in self.commands_there:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(f"vramscope.cli.{self.prefix}{name}"), name)
        assert isinstance(command, click.Command)
        return command
