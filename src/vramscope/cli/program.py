"""Where a verb's own words end and the program's begin.

As with python itself: the first word that is no option is the script, `-m` and `-c`
take the next one, and all that follows belongs to the program, whatever it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from vramscope.errors import UsageError

if TYPE_CHECKING:
    from vramscope.virtual.program import Program

_KINDS: dict[str, Literal["module", "code"]] = {"-m": "module", "-c": "code"}


class ProgramCommand(click.Command):
    """A verb that is followed by a program; its words are left in `program_words(ctx)`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the verb's own words only."""
        valued = {name for each in self.params if _takes_value(each) for name in each.opts}
        own, program = split_program(args, valued)
        ctx.meta["vramscope.own"], ctx.meta["vramscope.program"] = own, program
        return super().parse_args(ctx, list(own))

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The program's place in the usage line."""
        return [*super().collect_usage_pieces(ctx), "[--] SCRIPT.py | -m MODULE | -c CODE", "[ARGS]..."]


def own_words(ctx: click.Context) -> tuple[str, ...]:
    """The verb's own words, as they were given."""
    return tuple(ctx.meta["vramscope.own"])


def program_words(ctx: click.Context) -> tuple[str, ...]:
    """The program's words, without a leading `--`."""
    return tuple(ctx.meta["vramscope.program"])


def split_program(words: Sequence[str], valued: set[str]) -> tuple[list[str], list[str]]:
    """The verb's own words and the program's; `valued` are the options whose value is a word of its own."""
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return list(words[:position]), list(words[position + 1 :])
        if not word.startswith("-") or word == "-" or word[:2] in _KINDS:
            break
        position += 2 if word in valued else 1
    return list(words[:position]), list(words[position:])


def program_of(words: Sequence[str]) -> Program:
    """The program that these words name; UsageError if they name none."""
    from vramscope.api import script
    from vramscope.virtual.program import Program

    if not words:
        raise UsageError("no program was named: vramscope predict train.py, -m package.train or -c 'code'")
    first, rest = words[0], tuple(words[1:])
    if first[:2] in _KINDS:
        target, arguments = _attached(first, rest)
        return Program(_KINDS[first[:2]], target, arguments)
    if first == "-":
        raise UsageError("a program cannot come from stdin: save it in a file, or pass it with -c")
    try:
        return script(first, rest)
    except UsageError as error:
        raise UsageError(f"{error}{_hint(first)}") from None


def _attached(first: str, rest: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The value of -m or -c: the next word, or what is glued to it (`-mpackage`)."""
    if len(first) > 2:
        return first[2:], rest
    if not rest:
        raise UsageError(f"{first} needs {'a module' if first == '-m' else 'code'} after it")
    return rest[0], rest[1:]


def _hint(word: str) -> str:
    if word.rpartition("/")[2].startswith("python"):
        return "; leave out python: the script is run by the same one as vramscope"
    return ""


def _takes_value(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.is_flag and not parameter.count
