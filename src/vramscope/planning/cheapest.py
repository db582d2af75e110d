"""The smallest card on which a program runs, found by running it on cards near its need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from vramscope.cards import Card
from vramscope.planning.plan import Candidate, Cheapest
from vramscope.planning.result import DOES_NOT_FIT, Result

Run = Callable[[str], Result]
"""Runs the cell on a card, named by its id; where it does not fit, the figures are those without a limit."""


def cheapest(run: Run, cards: Sequence[Card], *, turned: Mapping[str, str] | None = None) -> Cheapest:
    """The card with the least memory on which the cell ends, with its proof.

    Of cards with equal memory the one with fewer multiprocessors comes first.  Where it runs was tried on the next
    smaller card, too: the answer's `tried` holds it with its failure.  Cards that cannot run it for another reason,
    such as a torch without code for them, are passed over and stay in `tried` with that reason."""
    tries = _Tries(run, sorted(cards, key=lambda card: (card.memory_bytes, card.sms, card.id)))
    place = tries.first_with(tries.need())
    answer = next((each for each in range(place, len(tries.cards)) if tries(each).fits), None)
    if answer is not None:
        answer = tries.below(answer)
    last = len(tries.cards) - 1 if answer is None else answer
    return Cheapest(
        turned=turned or {},
        card=None if answer is None else tries.cards[answer].id,
        tried=tuple(tries.candidates(last)),
    )


class _Tries:
    """The cards, smallest first, and what came of those that were tried."""

    def __init__(self, run: Run, cards: list[Card]) -> None:
        self.cards = cards
        self._run = run
        self._known: dict[int, Result] = {}

    def __call__(self, place: int) -> Result:
        """What comes of a card."""
        if place not in self._known:
            self._known[place] = self._run(self.cards[place].id)
        return self._known[place]

    def need(self) -> int:
        """About the bytes that it takes without a limit; the middle card tells, or the next one that can run it."""
        middle = len(self.cards) // 2
        for place in (*range(middle, len(self.cards)), *range(middle)):
            result = self(place)
            if result.peak_allocated_bytes is not None and (result.fits or result.verdict == DOES_NOT_FIT):
                return result.peak_allocated_bytes + (result.outside_bytes or 0)
        return 0

    def first_with(self, need_bytes: int) -> int:
        """The first card with so much memory, where the search begins; the largest if none has."""
        fitting = (place for place, card in enumerate(self.cards) if card.memory_bytes >= need_bytes)
        return next(fitting, len(self.cards) - 1)

    def below(self, answer: int) -> int:
        """Goes down from a card that does until one does not for lack of memory."""
        for place in range(answer - 1, -1, -1):
            result = self(place)
            if result.fits:
                answer = place
            elif (
                result.verdict == DOES_NOT_FIT
                and self.cards[place].memory_bytes < self.cards[answer].memory_bytes
            ):
                break
        return answer

    def candidates(self, last: int) -> Iterable[Candidate]:
        """Those that were tried, up to the answer."""
        for place in sorted(self._known):
            if place <= last:
                card = self.cards[place]
                yield Candidate(card.id, card.memory_bytes, self._known[place])
