"""Cards: what is known about each GPU, and how to find one by name."""

from __future__ import annotations

from vramscope.cards.card import Card
from vramscope.cards.catalogue import all_cards, find_card
from vramscope.cards.outside import Outside, outside_of

__all__ = ["Card", "Outside", "all_cards", "find_card", "outside_of"]
