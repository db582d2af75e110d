"""transformers' generate() makes as many tokens as it may: the most that memory has to hold.

Which token ends a sequence is a value; that the longest allowed length is reached is not, it is a shape."""

from __future__ import annotations

import functools
import threading
from types import ModuleType
from typing import Any

from vramscope.recording.imports import after_import
from vramscope.recording.values import notes

_state = threading.local()
"""longest_reached: of the generate() running in this thread; None where it has no longest length."""


def install() -> None:
    """Waits for transformers' generation."""
    after_import("transformers.generation.utils", _wrap)


def _wrap(module: ModuleType) -> None:
    mixin = getattr(module, "GenerationMixin", None)
    criteria = getattr(module, "StoppingCriteriaList", None)
    longest = getattr(module, "MaxLengthCriteria", None)
    if criteria is None or longest is None or not hasattr(mixin, "_has_unfinished_sequences"):
        return
    _note_length(criteria, longest)
    _forget_length(mixin)
    _go_on_until_longest(mixin)


def _note_length(criteria: Any, longest: Any) -> None:
    original = criteria.__call__

    @functools.wraps(original)
    def call(self: Any, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        limits = [one.max_length for one in self if isinstance(one, longest)]
        _state.longest_reached = input_ids.shape[1] >= min(limits) if limits else None
        return original(self, input_ids, scores, **kwargs)

    criteria.__call__ = call


def _forget_length(mixin: Any) -> None:
    original = mixin._get_stopping_criteria

    @functools.wraps(original)
    def begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        _state.longest_reached = None
        return original(self, *args, **kwargs)

    mixin._get_stopping_criteria = begin


def _go_on_until_longest(mixin: Any) -> None:
    original = mixin._has_unfinished_sequences

    @functools.wraps(original)
    def has_unfinished(self: Any, this_peer_finished: bool, synced_gpus: bool, device: Any) -> bool:
        reached = getattr(_state, "longest_reached", None)
        if reached is None or device.type != "cuda":
            return bool(original(self, this_peer_finished, synced_gpus, device))
        if this_peer_finished and not reached:
            notes.assume("choice", "generate() goes on to its maximal length")
        return not reached

    mixin._has_unfinished_sequences = has_unfinished
