"""Text for the terminal in lines of a width: sentences beside their labels, blocks, and what comes last."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

INDENT = "  "
LABEL = 16
"""So wide is a label with the gap behind it."""
GLUE = "\u00a0"
"""A space that no line breaks at."""
_ASCII = {"·": ",", "…": "~", "×": "x", "−": "-", "–": "-"}


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How the report is laid out, and which commands its last lines name."""

    width: int = 80
    ascii_only: bool = False
    """The terminal's encoding has no block characters or middle dots."""
    commands: tuple[str, ...] = ()
    """What to do next, each a whole command line."""
    facts: tuple[tuple[str, str], ...] = ()
    """What else is known, each a label and a sentence; they come before the report's own."""


def wrapped(label: str, sentence: str, layout: TextOptions, style: str = "") -> list[Text]:
    """The sentence beside its label, hanging under itself where it is too long for a line."""
    indent = len(INDENT) + (LABEL if label else 0)
    width = max(20, layout.width - indent)
    plain = "".join(each if each.isprintable() or each == GLUE else " " for each in sentence)
    lead = len(plain) - len(plain.lstrip())
    pieces = textwrap.wrap(plain, width, subsequent_indent=" " * lead, break_on_hyphens=False) or [""]
    first = f"{INDENT}{label:<{LABEL}}" if label else INDENT
    heads = [first, *[" " * indent] * (len(pieces) - 1)]
    pairs = zip(heads, pieces, strict=True)
    return [Text.assemble((head, "dim"), (piece.replace(GLUE, " "), style)) for head, piece in pairs]


def glued(text: str) -> str:
    """The parts between middle dots, none of which a line ends in."""
    return " · ".join(part.replace(" ", GLUE) for part in text.split(" · "))


def labelled(told: Iterable[tuple[str, str]], layout: TextOptions) -> list[Text]:
    """Sentences beside their labels, those that are empty left out."""
    return [line for label, sentence in told if sentence for line in wrapped(label, sentence, layout)]


def command_lines(layout: TextOptions) -> list[Text]:
    """What to do next: the options' commands, which no line breaks."""
    return [
        Text.assemble((f"{INDENT}{'' if number else 'next':<{LABEL}}", "dim"), command)
        for number, command in enumerate(layout.commands)
    ]


def joined(blocks: Iterable[Sequence[Text]], layout: TextOptions) -> Text:
    """Blocks with an empty line before each."""
    lines = [line for block in blocks if block for line in (*block, Text())]
    return finished([Text(), *lines[:-1]], layout)


def finished(lines: Sequence[Text], layout: TextOptions) -> Text:
    """The lines as one text, in the terminal's characters."""
    text = Text("\n").join(lines)
    return Text(as_ascii(text.plain), spans=text.spans) if layout.ascii_only else text


def as_ascii(plain: str) -> str:
    """The same number of characters, so that the styles' places hold."""
    return "".join(each if each.isascii() else _ASCII.get(each, "?") for each in plain)
