from __future__ import annotations

from asking import MIB, ask, the_answer
from traces import Story
from vramscope.analysis.explain.autocast import cache_never_freed
from vramscope.analysis.explain.finding import RECORDED, WRONG


def casting(around_the_loop: bool) -> Story:
    """Two weights of 10 MiB as casts; the optimizer's step needs 100 MiB, forward and backward 50."""
    story = Story().span("init", 1)
    story.alloc(40 * MIB, "parameter")
    casts: list[int] = []
    for step in (1, 2, 3):
        story.span("forward", step)
        casts = casts or [story.alloc(10 * MIB, "autocast_cache", module="Net.a") for _ in range(2)]
        kept = story.alloc(50 * MIB, "activation")
        if not around_the_loop:
            while casts:
                story.free(casts.pop())
        story.span("backward", step)
        story.free(kept)
        story.span("optimizer_step", step)
        story.free(story.alloc(100 * MIB, "temporary"))
    return story


def test_a_cache_around_the_loop():
    found = the_answer(cache_never_freed, casting(True))

    assert found.question == "Why are 20.0 MiB of autocast's casts never given back?"
    assert found.answer.startswith("2 casts of weights outlive the optimizer step.")
    assert found.severity == WRONG
    assert [(each.saved_bytes, each.known) for each in found.remedies] == [(20 * MIB, RECORDED)]


def test_a_cache_of_each_forward():
    assert ask(cache_never_freed, casting(False)) == []
