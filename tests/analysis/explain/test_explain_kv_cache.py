from __future__ import annotations

import numpy as np
import pytest

from asking import MIB, ask, the_answer
from traces import Story
from vramscope.analysis.explain.finding import RECORDED, WASTE
from vramscope.analysis.explain.kv_cache import cache_in_training
from vramscope.run.trace import GRAD


def caching(flags: int, trained: bool = True) -> Story:
    """A cache of 10 MiB in each forward, and a peak in backward that is 30 MiB above the next highest moment."""
    story = Story().span("init", 1)
    story.alloc(40 * MIB, "parameter")
    for step in (1, 2, 3):
        story.span("forward", step)
        cache = story.alloc(10 * MIB, "kv_cache", flags=flags)
        if trained:
            story.span("backward", step)
            story.free(story.alloc(50 * MIB, "temporary"))
        story.free(cache)
        if trained:
            story.span("optimizer_step", step)
            story.free(story.alloc(1 * MIB, "temporary"))
    return story


def test_a_cache_in_training():
    found = the_answer(cache_in_training, caching(GRAD))

    assert found.question == "Why are 10.0 MiB of keys and values kept in training?"
    assert found.severity == WASTE
    assert [(each.saved_bytes, each.known) for each in found.remedies] == [(10 * MIB, RECORDED)]


@pytest.mark.parametrize("story", [caching(0), caching(GRAD, trained=False)])
def test_a_cache_for_generation(story: Story):
    assert ask(cache_in_training, story) == []


def test_what_it_saves_is_what_happens(virtual):
    pytest.importorskip("transformers")
    code = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=500, use_cache=%s)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    x = torch.randint(0, 500, (4, 512)).cuda()
    model(x, labels=x).loss.backward(); optimizer.step(); optimizer.zero_grad()
print(torch.cuda.max_memory_allocated())
"""
    cached, plain = (virtual(code % use, HF_HUB_OFFLINE="1").check() for use in (True, False))
    happened = int(cached.stdout.split()[-1]) - int(plain.stdout.split()[-1])
    (found,) = ask(cache_in_training, cached.traces[0])

    assert found.remedies[0].saved_bytes == pytest.approx(happened, rel=0.02)
    assert np.isclose(found.stake_bytes, 2 * 4 * 4 * 512 * 256 * 4)
