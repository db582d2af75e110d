"""Runs to compare: a small transformer that is trained in one way or another."""

from __future__ import annotations

from dataclasses import replace

import builders
from builders import MIB, a_report, end, span, step
from traces import Story, training_story
from vramscope.run.journal import Journal
from vramscope.run.report import Report
from vramscope.run.run import IMPORTED, MEASURED, Run
from vramscope.run.trace import AUTOCAST, BACKWARD, GRAD, RECOMPUTE, Module, Optimizer

LAYERS = 3
WIDTH = 1 << 20
"""Elements of each layer's weight."""


def trained_story(
    *,
    lora: bool = False,
    batch: int = 4,
    checkpointing: bool = False,
    autocast: bool = False,
    optimizer: str = "AdamW",
    steps: int = 2,
) -> Story:
    """Full fine-tuning, or with the base frozen and an adapter beside each layer."""
    story = Story().span("init", 1)
    root, base = ("PeftModel", "PeftModel.base_model.model.") if lora else ("GPT", "GPT.")
    _modules(story, root, base, lora)
    trained = [each for each in story.modules if each.trainable]
    story.optimizers.append(
        Optimizer(optimizer, sum(each.trainable for each in trained), None, None, {"lr": 0.001})
    )
    for module in story.modules:
        if module.parameter_bytes:
            story.alloc(module.parameter_bytes, "parameter", module=module.path, name=f"{module.path}.weight")
    held: list[int] = []
    for number in range(1, steps + 1):
        held += _step(story, number, trained, batch, checkpointing, autocast, optimizer)
    return story


def _modules(story: Story, root: str, base: str, lora: bool) -> None:
    for path in dict.fromkeys((root, f"{root}.base_model" if lora else root, base.rstrip("."), f"{base}h")):
        story.modules.append(Module(path, "ModuleList" if path.endswith("h") else "GPT"))
    frozen = 0 if lora else 1
    for layer in range(LAYERS):
        path = f"{base}h.{layer}.mlp"
        story.modules.append(Module(f"{base}h.{layer}", "Block"))
        if lora:
            story.modules.append(Module(path, "lora.Linear"))
        inner = f"{path}.base_layer" if lora else path
        story.modules.append(Module(inner, "Linear", WIDTH, 4 * WIDTH, frozen * WIDTH, frozen * 4 * WIDTH))
        if lora:
            for part in ("lora_A", "lora_B"):
                story.modules.append(Module(f"{path}.{part}", "Linear", 8192, 32768, 8192, 32768))
    head = f"{base}lm_head"
    story.modules.append(Module(head, "Linear", WIDTH, 4 * WIDTH, frozen * WIDTH, frozen * 4 * WIDTH))


def _step(
    story: Story,
    number: int,
    trained: list[Module],
    batch: int,
    checkpointing: bool,
    autocast: bool,
    optimizer: str,
) -> list[int]:
    flags = GRAD | (AUTOCAST if autocast else 0)
    story.span("forward", number, line=10)
    given = story.alloc(batch * MIB // 4, "input", line=9)
    kept = []
    for module in [each for each in story.modules if each.kind == "Linear"]:
        size = batch * (MIB // 8 if "lora_" in module.path else MIB) // (2 if autocast else 1)
        if not checkpointing or module.path.endswith("lm_head"):
            kept.append(story.alloc(size, "activation", module=module.path, line=10, flags=flags))
    story.span("backward", number, line=12)
    if checkpointing:
        kept.append(story.alloc(batch * MIB, "activation", line=12, flags=flags | RECOMPUTE | BACKWARD))
    scratch = story.alloc(MIB, "workspace", line=12, flags=BACKWARD)
    grads = [
        story.alloc(each.trainable_bytes, "gradient", module=each.path, line=12, flags=BACKWARD)
        for each in trained
    ]
    for block in (scratch, *kept):
        story.free(block)
    story.span("optimizer_step", number, line=13)
    states = {"AdamW": 2, "SGD": 0}[optimizer]
    made = [
        story.alloc(each.trainable_bytes, "optimizer_state", module=each.path, line=13)
        for each in trained
        for _ in range(states if number == 1 else 0)
    ]
    story.free(story.alloc(sum(each.trainable_bytes for each in trained), "temporary", line=13))
    story.span("zero_grad", number, line=14)
    for block in (*grads, given):
        story.free(block)
    return made


def run_of(story: Story, name: str, **report: object) -> Run:
    """A predicted run with a report of the same peaks."""
    trace = story.trace()
    return Run(_report_of(story, **report), Journal(), (trace,), name=name)


def _report_of(story: Story, outside: int = 170, how: str = "steps", **changes: object) -> Report:
    from vramscope.run.curves import allocated_curve, reserved_curve

    trace = story.trace()
    allocated, reserved = int(allocated_curve(trace).max()), int(reserved_curve(trace).max())
    figures = {
        "device": 0,
        "peak_allocated_bytes": allocated,
        "peak_reserved_bytes": reserved,
        "peak_used_bytes": reserved + outside * MIB,
    }
    steps = max(each.step or 0 for each in trace.spans)
    entries = [builders.PROCESS, builders.TORCH]
    for number in range(1, steps + 1):
        entries += [{**span(number, "backward", 0, 0), "devices": [figures]}, step(number)]
    report = a_report([*entries, end(how, steps)])
    return replace(report, **changes)


def full() -> Run:
    return run_of(trained_story(), "train.py --full")


def lora() -> Run:
    return run_of(trained_story(lora=True), "train.py --lora")


def checkpointed() -> Run:
    return run_of(trained_story(checkpointing=True), "train.py --checkpoint")


def autocast() -> Run:
    return run_of(trained_story(autocast=True, batch=8, optimizer="SGD"), "train.py --amp")


def measured() -> Run:
    """The full run on a real card, with another cuDNN and one more block of work space."""
    story = trained_story()
    story.span("other", 2)
    story.alloc(3 * MIB, "workspace", line=20)
    run = run_of(story, "train.py --full", outside=240)
    assert run.report is not None
    report = run.report
    real = replace(
        report,
        outside=replace(report.outside, bytes=240 * MIB, how="measured"),
        versions=replace(report.versions, cudnn="9.10.2"),
    )
    return replace(run, report=real, origin=MEASURED)


def imported() -> Run:
    return replace(training_story().run(), origin=IMPORTED, name="dump.pickle")


def cut_off() -> Run:
    """Out of memory in its second step."""
    run = run_of(trained_story(steps=1), "train.py --full")
    return replace(run, report=builders.out_of_memory())


def without_history() -> Run:
    return Run(builders.trained(), name="train.py")


def empty() -> Run:
    return Run(None, origin=IMPORTED)


PAIRS = {
    "full_lora": (full, lora),
    "full_checkpointed": (full, checkpointed),
    "full_autocast": (full, autocast),
    "full_measured": (full, measured),
    "measured_full": (measured, full),
    "full_full": (full, full),
    "full_cut_off": (full, cut_off),
    "imported_full": (imported, full),
    "without_history": (without_history, full),
    "empty": (empty, empty),
}
"""What is compared in the goldens."""
