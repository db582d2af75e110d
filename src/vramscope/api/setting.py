"""The conditions that a program is run under, as people write them and as the floors below take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vramscope.errors import UnknownCardError, UsageError
from vramscope.run.report import UNLIMITED_BYTES
from vramscope.units import parse_size

if TYPE_CHECKING:
    from vramscope.cards import Card

DEFAULT_CARD = "rtx-4090"
DEFAULT_STEPS = 3
MOST_GPUS = 64
"""VS_MAX_DEVICES of virtual/native/vs.h."""


def card_named(name: str | None, default: str = DEFAULT_CARD) -> Card:
    """A card of the catalogue; without a name the machine's own if the catalogue has it, else the default."""
    from vramscope.cards import find_card

    if name is not None:
        return find_card(name)
    from vramscope.real.nvml import real_card_name

    real = real_card_name()
    if real is not None:
        try:
            return find_card(real)
        except UnknownCardError:
            pass
    return find_card(default)


def checked_gpus(number: int) -> int:
    """A number of cards that a virtual machine can have."""
    if not 1 <= number <= MOST_GPUS:
        raise UsageError(f"{number} cards cannot be: 1 to {MOST_GPUS}")
    return number


def memory_of(memory: str | int | None) -> int | None:
    """The bytes of a size, of "unlimited", or None for the card's own."""
    if isinstance(memory, str):
        return UNLIMITED_BYTES if memory.strip().lower() == "unlimited" else parse_size(memory)
    if memory is not None and memory <= 0:
        raise UsageError(f"a card of {memory} bytes cannot be")
    return memory


def steps_of(steps: int | str | None) -> int | None:
    """A number of steps from one on; None for "all"."""
    if steps is None or steps == "all":
        return None
    try:
        number = int(steps)
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"{steps!r} is no number of steps; write 1, 3, 10 ... or all")
    return number


def assumptions(assume: str | Mapping[str, object] | Sequence[str] | None) -> str:
    """The assumptions as one text, ``nonzero=0.5;float=1.0``; UsageError for one that does not exist."""
    if not assume:
        return ""
    if isinstance(assume, str):
        text = assume
    elif isinstance(assume, Mapping):
        text = ";".join(f"{key}={value}" for key, value in assume.items())
    else:
        text = ";".join(assume)
    from vramscope.recording.values import policy

    policy.parse(text)
    return text
