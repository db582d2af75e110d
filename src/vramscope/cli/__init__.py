"""The command line: one verb per file, each loaded when it is asked for.

Exit status: the program's own for `predict`; 2 wrong usage or nothing to predict with;
3 out of memory; 4 over `--fail-over`; 128 + n for a signal; 141 if nobody reads stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

import vramscope
from vramscope.cli.console import say, silence
from vramscope.cli.lazy import LazyGroup
from vramscope.errors import VramscopeError

VERBS = (
    *("predict", "measure", "plan", "formula", "lab", "show", "explain", "diff", "export", "import"),
    *("gpus", "doctor"),
)
"""In the order of use; each is the command of its name in the module of its name."""
INTERRUPTED = 130
NOBODY_READS = 141
"""128 + SIGPIPE, as a shell has it."""


@click.group(cls=LazyGroup, commands_there=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(vramscope.__version__, message="%(prog)s %(version)s")
def group() -> None:
    """What a PyTorch program will do to a GPU's memory, measured on a card that isn't there."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process with its status."""
    sys.exit(status_of(sys.argv[1:] if arguments is None else arguments))


def status_of(arguments: Sequence[str]) -> int:
    """Runs the command line; what went wrong is said on stderr, never as a traceback of ours."""
    try:
        status = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        silence(sys.stdout)
        return NOBODY_READS


def _run(arguments: Sequence[str]) -> int:
    """Not through click's `main`, which ends the process itself where a pipe is broken."""
    try:
        with group.make_context("vramscope", list(arguments)) as context:
            result = group.invoke(context)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    except click.ClickException as error:
        say_usage(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except VramscopeError as error:
        say(f"error: {error}")
        return error.exit_code


def say_usage(error: click.ClickException) -> None:
    """The usage line where click knows the verb, then what is wrong."""
    context = getattr(error, "ctx", None)
    if isinstance(context, click.Context):
        say(context.get_usage(), prefix="")
    say(f"error: {error.format_message()}")
