"""Keys and values that a cache keeps in training, where nobody will generate from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vramscope.analysis.explain.facts import Facts
from vramscope.analysis.explain.finding import RECORDED, WASTE, Finding, Remedy
from vramscope.analysis.explain.savings import Change, highest_together
from vramscope.run.categories import KV_CACHE
from vramscope.run.trace import GRAD
from vramscope.units import format_bytes

_LEAST_SHARE = 0.005
"""Of the peak: below that nobody would change anything."""


def cache_in_training(facts: Facts) -> Iterator[Finding]:
    """Blocks of a cache that were made with gradients recorded, in steps that trained."""
    rows = facts.of(KV_CACHE) & facts.has_flag(GRAD) & facts.boundaries.complete[facts.born_step]
    size = highest_together(facts, np.flatnonzero(rows))
    if size < _LEAST_SHARE * facts.peak_bytes:
        return
    saved = Change(facts).remove(rows).saving().saved_bytes
    yield Finding(
        "kv_cache",
        f"Why are {format_bytes(size)} of keys and values kept in training?",
        "The model copies each layer's keys and values into a cache for generation, also in the forward of a "
        "training step, where nothing is generated: use_cache is on.",
        size,
        WASTE,
        remedies=(Remedy("use_cache=False, in the model's config or call", saved, RECORDED),),
    )
