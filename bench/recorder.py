"""What recording costs: a steady step with the recorder against one without, on the same virtual card.

    python bench/recorder.py [ROUNDS]

Both are run in turn, each in a process of its own; the ratio is that of the medians.  A step's time is the
processor's, as its threads take turns, and the mean over 40 steps, in which the history is read as often as in
any long run."""

from __future__ import annotations

import statistics
import subprocess
import sys

from vramscope.cards import find_card, outside_of
from vramscope.virtual.launch import virtual_machine

PROGRAM = """
import sys, time, torch
if sys.argv[1] == "resnet50":
    import timm
    model, x = timm.create_model("resnet50").cuda(), torch.randn(32, 3, 224, 224, device="cuda")
    y = torch.randint(1000, (32,), device="cuda")
    def loss(): return torch.nn.functional.cross_entropy(model(x), y)
else:
    from transformers import GPT2Config, GPT2LMHeadModel
    model, x = GPT2LMHeadModel(GPT2Config()).cuda(), torch.randint(50257, (4, 512), device="cuda")
    def loss(): return model(x, labels=x).loss
optimizer = torch.optim.AdamW(model.parameters())
def step():
    loss().backward(); optimizer.step(); optimizer.zero_grad()
for _ in range(5): step()
began = time.process_time()
for _ in range(40): step()
print((time.process_time() - began) / 40)
"""


def seconds(model: str, recorded: bool) -> float:
    """One process's mean step."""
    card = find_card("rtx-4090")
    with virtual_machine(card, outside=outside_of(card), steps=None) as (_, variables):
        if not recorded:
            del variables["VRAMSCOPE_JOURNAL"], variables["PYTHONPATH"]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, model], env=variables, capture_output=True, text=True, check=True
        )
    return float(done.stdout.splitlines()[-1])


def main(rounds: int) -> None:
    for model in ("resnet50", "gpt2"):
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(rounds):
            for recorded in (False, True):
                times[recorded].append(seconds(model, recorded))
        bare, watched = (statistics.median(times[each]) for each in (False, True))
        print(f"{model:10} {bare * 1e3:6.1f} ms a step, recorded {watched * 1e3:6.1f} ms: {watched / bare:.2f} x (allowed 3)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
