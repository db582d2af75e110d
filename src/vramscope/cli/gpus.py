"""`vramscope gpus`: the cards that can be predicted for."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from vramscope.units import format_gib
from vramscope.views.columns import in_columns

if TYPE_CHECKING:
    from vramscope.cards import Card

_HEAD = ("id", "name", "memory", "capability", "SMs", "unverified")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def gpus(as_json: bool) -> None:
    """List the cards of the catalogue, and which of their figures no source confirms."""
    from vramscope.cards import all_cards

    cards = list(all_cards())
    if as_json:
        print(json.dumps([_values(card) for card in cards], indent=2), file=sys.stdout)
    else:
        print("\n".join(in_columns([_HEAD, *map(_row, cards)], right={2, 3, 4})), file=sys.stdout)


def _values(card: Card) -> dict[str, Any]:
    return {
        "id": card.id,
        "name": card.name,
        "memory_bytes": card.memory_bytes,
        "capability": list(card.capability),
        "sms": card.sms,
        "unverified": list(card.unverified),
    }


def _row(card: Card) -> tuple[str, ...]:
    major, minor = card.capability
    figures = (f"{format_gib(card.memory_bytes)} GiB", f"{major}.{minor}", str(card.sms))
    return (card.id, card.name, *figures, ", ".join(card.unverified))
