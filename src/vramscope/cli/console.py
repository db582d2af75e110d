"""What the command line says itself; a reader that has gone away never changes the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from vramscope.views.paragraphs import TextOptions


def say(message: str, *, prefix: str = "vramscope: ") -> None:
    """One message on stderr."""
    _write(sys.stderr, Text(prefix + message))


def show_text(
    draw: Callable[[TextOptions], Text], commands: tuple[str, ...] = (), *, stdout: bool = True
) -> None:
    """What a view draws for the terminal's width, with an empty line after it; `commands` end a report.

    In colours if the stream is a terminal and NO_COLOR is not set."""
    stream = sys.stdout if stdout else sys.stderr
    if stream is None:
        return
    console = _console(stream)
    text = draw(TextOptions(console.width, console.options.ascii_only, commands))
    _write(stream, Text("\n").join([text, Text()]))


def silence(stream: TextIO | None) -> None:
    """Sends what is still unwritten nowhere: else Python ends with status 120 when it fails to flush."""
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    except (OSError, ValueError):  # a stream without a file descriptor has nothing to flush
        pass
    finally:
        os.close(nowhere)


def _write(stream: TextIO | None, text: Text) -> None:
    if stream is None:  # the process was started with it closed
        return
    console = _console(stream)
    with console.capture() as painted:  # rich ends the process itself where it writes into a broken pipe
        console.print(text, soft_wrap=True)
    try:
        stream.write(painted.get())
        stream.flush()
    except OSError:
        if stream is sys.stdout:
            raise
        silence(stream)


def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False, markup=False, emoji=False)
