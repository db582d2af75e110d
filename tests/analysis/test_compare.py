"""Two runs side by side: figures by hand, modules that were wrapped, and a reason for each change."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import numpy as np
import pytest

from builders import MIB, trained
from million import million_run
from pairs import (
    LAYERS,
    PAIRS,
    WIDTH,
    autocast,
    checkpointed,
    cut_off,
    empty,
    full,
    imported,
    lora,
    measured,
    run_of,
    trained_story,
    without_history,
)
from traces import Story, training_story
from vramscope.analysis.compare import compare
from vramscope.analysis.compare.figures import Comparison, Held, ModulePair, Pair
from vramscope.analysis.compare.modules import Path, matched
from vramscope.run.categories import INDEX
from vramscope.run.report import Retry
from vramscope.run.run import MEASURED, Run
from vramscope.run.trace import Module, Span, Trace

ADAPTERS = LAYERS * 2 * 32768
"""Bytes of the LoRA's own weights."""


def named(pairs: tuple[Pair, ...], name: str) -> Pair:
    return next(pair for pair in pairs if pair.name == name)


def reason(found: Comparison, about: str) -> str:
    return next(each.sentence for each in found.reasons if each.about == about)


def module(found: Comparison, path: str) -> ModulePair:
    left = list(found.modules)
    while left:
        each = left.pop()
        if each.path == path:
            return each
        left += each.children
    raise AssertionError(path)


def test_categories_of_full_and_lora():
    found = compare(full(), lora())

    weights = (LAYERS + 1) * 4 * WIDTH
    assert named(found.categories, "parameter") == Pair("parameter", weights, weights + ADAPTERS)
    assert named(found.categories, "gradient") == Pair("gradient", weights, ADAPTERS)
    assert named(found.highest, "optimizer_state") == Pair("optimizer_state", 2 * weights, 2 * ADAPTERS)
    assert named(found.highest, "temporary") == Pair("temporary", weights, ADAPTERS)
    assert "temporary" not in [
        pair.name for pair in found.categories
    ]  # it is there in the optimizer's step alone
    assert [pair.name for pair in found.highest] == [
        "parameter",
        "gradient",
        "optimizer_state",
        "activation",
        "input",
        "temporary",
        "workspace",
    ]


def test_categories_at_the_peak_sum_to_it():
    found = compare(full(), lora())

    peak = named(found.totals, "peak allocated")
    assert sum(pair.a_bytes or 0 for pair in found.categories) == peak.a_bytes
    assert sum(pair.b_bytes or 0 for pair in found.categories) == peak.b_bytes


def test_totals():
    found = compare(full(), measured())

    assert [(pair.name, pair.change_bytes) for pair in found.totals] == [
        ("peak allocated", 0),
        ("peak reserved", 3 * MIB),
        ("process total", 73 * MIB),
        ("outside", 70 * MIB),
    ]


def test_phases_are_those_of_the_last_complete_step():
    """The first step has no optimizer states yet, so its forward is lower than that of the second."""
    story = training_story()
    found = compare(story.run(), story.run())

    weights, states = 3 * 4096, 3 * 2 * 4096
    forward = weights + states + 8192 + 3 * 16384 + 512
    assert named(found.phases, "init").a_bytes == weights
    assert named(found.phases, "forward").a_bytes == forward
    assert named(found.phases, "optimizer_step").a_bytes == weights + states + 8192 + 512 + 3 * 4096 + 12288
    assert [pair.name for pair in found.phases] == [
        "init",
        "forward",
        "backward",
        "optimizer_step",
        "zero_grad",
        "other",
    ]


def test_a_phase_that_one_does_not_have():
    story = training_story()
    story.span("evaluation", 2)
    story.free(story.alloc(512))

    found = compare(training_story().run(), story.run())

    assert named(found.phases, "evaluation").a_bytes is None
    assert named(found.phases, "evaluation").change_bytes is None


def test_modules_of_full_and_lora():
    """What peft wraps is the module that it wraps; its adapters come beside."""
    found = compare(full(), lora())

    (whole,) = found.modules
    blocks = module(found, "h.0")
    assert whole.path == ""
    assert (blocks.copies, blocks.last) == (LAYERS, "h.2")
    assert blocks.a == Held(LAYERS * 4 * MIB, *[LAYERS * 4 * WIDTH] * 2, LAYERS * 8 * WIDTH)
    assert blocks.b == Held(LAYERS * 5 * MIB, LAYERS * 4 * WIDTH + ADAPTERS, ADAPTERS, 2 * ADAPTERS)
    assert module(found, "h.0.mlp.lora_A").a is None
    assert module(found, "lm_head").changes == (0, 0, -4 * WIDTH, -8 * WIDTH)
    assert whole.changes[0] == LAYERS * MIB


def test_layers_that_changed_differently_are_told_apart():
    one, other = Story().span("init"), Story().span("init")
    for story, sizes in ((one, (512, 512, 512)), (other, (512, 512, 4096))):
        story.module("Net", "Net")
        for number, size in enumerate(sizes):
            story.alloc(size, "parameter", module=f"Net.h.{number}")

    found = compare(one.run(), other.run())

    (whole,) = found.modules
    assert [(each.path, each.last, each.copies) for each in whole.children[0].children] == [
        ("h.0", "h.1", 2),
        ("h.2", "", 1),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("a a.b a.c", "a a.b a.c", {}),
        (
            "h h.0 h.1 norm",
            "model model.h model.h.0 model.h.1 model.norm",
            {"model": "", "model.norm": "norm"},
        ),
        ("bert bert.h bert.h.0 bert.h.1 bert.norm", "h h.0 h.1 norm", {"": "bert", "h.0": "bert.h.0"}),
        ("h h.0 fc", "wrap wrap.h wrap.h.0 wrap.fc extra", {"wrap.fc": "fc", "extra": "extra"}),
        (
            "encoder encoder.h encoder.h.attn head",
            "body body.h body.h.attn head tail tail.more",
            {"body.h.attn": "encoder.h.attn", "body": "body"},
        ),
        ("one one.a.b two two.a.b", "left left.a.b right right.a.b", {"left.a.b": "left.a.b"}),
    ],
)
def test_matching(ours: str, theirs: str, expected: dict[str, str]):
    found = matched(_paths(ours), _paths(theirs))

    told = {".".join(path): ".".join(found.get(path, path)) for path in _paths(theirs)}
    assert {path: told[path] for path in expected} == expected
    if not expected:
        assert all(path == other for path, other in told.items())


def _paths(words: str) -> list[Path]:
    return [(), *(tuple(word.split(".")) for word in words.split())]


def test_wrappers_that_hold_one_module_are_that_module():
    one, other = Story().span("init"), Story().span("init")
    one.alloc(512, "parameter", module="Net.a.linear")
    other.alloc(2048, "parameter", module="DistributedDataParallel.module._orig_mod.a.linear")

    found = compare(one.run(), other.run())

    assert module(found, "a.linear").changes == (0, 1536, 0, 0)


def test_models_side_by_side_keep_their_names():
    one, other = Story().span("init"), Story().span("init")
    for story, size in ((one, 512), (other, 1024)):
        story.alloc(512, "parameter", module="Critic.fc")
        story.alloc(size, "parameter", module="Actor.fc")

    found = compare(one.run(), other.run())

    assert module(found, "Actor.fc").changes == (0, 512, 0, 0)
    assert module(found, "Critic.fc").changes == (0, 0, 0, 0)


def test_no_modules_are_known_of_a_snapshot():
    bare = Story().span("other")
    bare.alloc(512)

    assert compare(bare.run(), full()).modules == ()


def test_modules_that_hold_nothing_are_none():
    idle = Story().span("other")
    idle.module("GELU", "GELU")

    assert compare(idle.run(), full()).modules == compare(full(), idle.run()).modules == ()


def test_reasons_of_full_and_lora():
    found = compare(full(), lora())

    trainable = "49,152 instead of 4.2 M trainable parameters"
    assert reason(found, "gradient") == f"gradients fell by 15.8 MiB: {trainable}"
    assert reason(found, "optimizer_state") == f"optimizer states fell by 31.6 MiB: {trainable}"
    assert reason(found, "temporary").endswith(f"the optimizer's step makes them, for {trainable}")
    assert reason(found, "activation").startswith(
        "activations rose by 3.00 MiB: layers that are frozen still run forward, and keep what backward through "
        "them needs; modules that only B has (lora_A, lora_B) keep 3.00 MiB"
    )
    assert [abs(each.change_bytes or 0) for each in found.reasons[:3]] == sorted(
        (abs(each.change_bytes or 0) for each in found.reasons[:3]), reverse=True
    )


def test_from_lora_to_full_everything_is_the_other_way():
    found = compare(lora(), full())

    assert reason(found, "gradient") == (
        "gradients rose by 15.8 MiB: 4.2 M instead of 49,152 trainable parameters"
    )
    assert "modules that only A has (lora_A, lora_B) keep 3.00 MiB" in reason(found, "activation")


def test_freezing_saves_no_activations():
    story = trained_story()
    frozen = [replace(each, trainable=0, trainable_bytes=0) for each in story.modules]
    trace = story.trace()
    run = replace(full(), traces=(replace(trace, tables=replace(trace.tables, modules=tuple(frozen))),))

    found = compare(full(), run)

    assert reason(found, "activation") == (
        "activations did not change (16.0 MiB): frozen layers still run forward, and backward through them "
        "needs what they keep"
    )


def test_reasons_of_checkpointing_and_a_peak_that_moved():
    found = compare(full(), checkpointed())

    assert reason(found, "activation") == (
        "activations fell by 8.00 MiB: B runs forwards again in backward (checkpointing) and keeps less of them; "
        "2 tensors instead of 4"
    )
    assert reason(found, "peak") == (
        "the peak is in optimizer step instead of backward, so other memory is live at it"
    )


def test_reasons_of_another_optimizer_batch_and_autocast():
    found = compare(full(), autocast())

    assert reason(found, "optimizer_state") == "optimizer states fell by 32.0 MiB: SGD instead of AdamW"
    assert reason(found, "input") == ("inputs rose by 1.00 MiB: they take 2 times as much")
    assert reason(compare(full(), run_of(trained_story(autocast=True), "amp")), "activation") == (
        "activations fell by 8.00 MiB: only B runs under autocast"
    )


def test_another_model_is_not_a_frozen_one():
    """Fewer parameters train, and all of them do."""
    found = compare(full(), replace(full(), traces=(_larger(trained_story(lora=True)),)))

    assert "frozen" not in reason(found, "activation")
    assert "frozen" in reason(compare(full(), lora()), "activation")


def test_inputs_of_another_kind_are_no_larger_batch():
    """Images against token numbers."""
    story = trained_story()
    trace = story.trace()
    chosen = trace.blocks.category == INDEX["input"]
    size = np.where(chosen, 1024, trace.blocks.size_bytes)
    tokens = replace(trace, blocks=replace(trace.blocks, size_bytes=size, requested_bytes=size))

    assert reason(compare(Run(None, traces=(tokens,)), full()), "input") == "inputs rose by 1,023 KiB"


def test_a_run_without_a_complete_step_has_no_states_yet():
    story = trained_story()
    trace = story.trace()
    spans = tuple(
        replace(each, phase="other") if each.phase == "optimizer_step" else each for each in trace.spans
    )
    early = Run(None, traces=(replace(trace, spans=spans[:3], blocks=_without_states(trace.blocks)),))

    found = compare(early, full())

    assert reason(found, "optimizer_state") == (
        "optimizer states rose by 32.0 MiB: A has no complete step, in which its optimizer would make them"
    )


def test_half_the_width():
    """The same model in another type."""
    story = trained_story()
    run = run_of(story, "half")
    trace = story.trace()
    chosen = trace.blocks.category == 0
    size = trace.blocks.size_bytes.copy()
    size[chosen] //= 2
    half = replace(
        run, traces=(replace(trace, blocks=replace(trace.blocks, size_bytes=size, requested_bytes=size)),)
    )

    assert reason(compare(full(), half), "parameter") == (
        "parameters fell by 8.00 MiB: 2.0 instead of 4.0 bytes a parameter"
    )


def test_residuals():
    found = compare(full(), measured())

    total = named(found.totals, "process total")
    assert found.is_residual
    assert found.residual_bytes(total) == 73 * MIB
    assert found.residual_share(total) == pytest.approx(73 / 318)
    assert reason(found, "versions") == "cuDNN is not the same, and what it asks for may differ with it"
    assert reason(found, "outside") == (
        "outside is 70.0 MiB more than the model has it, within its interval of 120 MiB to 320 MiB: context, "
        "loaded kernels and libraries"
    )
    assert reason(found, "workspace") == (
        "workspaces are 2.00 MiB more when measured: cuBLAS and cuDNN choose their work spaces on the card"
    )


def test_residuals_are_the_same_in_the_other_order():
    found = compare(measured(), full())

    total = named(found.totals, "process total")
    assert total.change_bytes == -73 * MIB
    assert found.residual_bytes(total) == 73 * MIB
    assert found.residual_share(total) == pytest.approx(73 / 318)
    assert {each.sentence for each in found.reasons} == {
        each.sentence for each in compare(full(), measured()).reasons
    }


def test_what_else_explains_a_residual():
    real = measured()
    assert real.report is not None
    report = replace(
        real.report,
        retries=(Retry(0, 2, "backward", 3),),
        card=replace(real.report.card, name="NVIDIA L4"),
        versions=replace(real.report.versions, allocator="expandable_segments:True"),
        outside=replace(real.report.outside, bytes=500 * MIB),
    )
    shorter = trained_story(steps=1)

    found = compare(full(), Run(report, traces=(shorter.trace(),), origin=MEASURED))

    assert reason(found, "retries").startswith(
        "the allocator gave its cache back 3 times when measured and 0 times"
    )
    assert reason(found, "card").startswith("the cards are not the same")
    assert reason(found, "settings").startswith("allocator is not the same")
    assert reason(found, "steps").startswith("not as many steps were run")
    assert "outside of its interval of 120 MiB to 320 MiB" in reason(found, "outside")


def test_a_prediction_that_is_exact_needs_no_reason():
    found = compare(full(), replace(full(), origin=MEASURED))

    assert found.is_residual
    assert found.reasons == ()
    assert all(found.residual_bytes(pair) == 0 for pair in found.totals)


def test_what_was_not_the_same():
    real = measured()

    found = compare(full(), real)

    assert [(each.name, each.a, each.b) for each in found.conditions] == [("cuDNN", "9.24.0", "9.10.2")]


def test_settings_of_the_allocator_one_by_one():
    one, other = (
        replace(training_story().trace(), settings={"expandable_segments": on, "roundup": 1, mine: 3})
        for on, mine in ((False, "a"), (True, "b"))
    )

    found = compare(Run(None, traces=(one,)), Run(None, traces=(other,)))

    assert [(each.name, each.a, each.b) for each in found.conditions] == [
        ("expandable_segments", "False", "True")
    ]


def test_one_that_ran_out_of_memory():
    found = compare(full(), cut_off())

    assert found.a.ended is None
    assert found.b.ended == "out of memory"
    assert ("ended", "as it should", "out of memory") in [
        (each.name, each.a, each.b) for each in found.conditions
    ]


def test_one_without_a_history():
    found = compare(without_history(), full())

    assert not found.a.has_history
    assert found.a.steps == 3
    assert (found.a.peak_phase, found.a.peak_step) == ("backward", 2)
    assert named(found.totals, "peak allocated").a_bytes == trained().peaks.allocated_bytes
    assert {pair.a_bytes for pair in (*found.categories, *found.highest, *found.phases)} == {None}
    assert found.reasons == found.modules == ()


def test_one_that_was_imported():
    found = compare(imported(), full())

    held = 3 * 4096 + 6 * 4096 + 8192 + 3 * 16384 + 512
    assert named(found.totals, "peak allocated").a_bytes == held + 2048 + 4096
    assert named(found.totals, "process total").a_bytes is None


def test_nothing_at_all():
    found = compare(empty(), Run(None, traces=(Story().trace(),)))

    assert {pair.a_bytes for pair in found.totals} == {None}
    assert found.categories == found.phases == found.reasons == ()
    assert found.b.steps == 0


def test_what_was_there_before_the_history_counts():
    story = Story()
    trace = story.trace()
    kept = training_story().trace()
    before = replace(
        trace,
        blocks=_rows(kept.blocks, 3, born=-1, freed=0, returned=0),
        segments=_rows(kept.segments, 3, born=-1, freed=0),
        tables=kept.tables,
    )

    found = compare(Run(None, traces=(before,)), training_story().run())

    assert named(found.highest, "parameter") == Pair("parameter", 3 * 4096, 3 * 4096)
    assert named(found.phases, "other").a_bytes == 3 * 4096


@pytest.mark.parametrize("name", PAIRS)
def test_the_runs_add_up(name: str):
    assert all(run().check() == () for run in PAIRS[name])


def _without_states(blocks):
    kept = blocks.category != INDEX["optimizer_state"]
    return replace(blocks, **{each.name: getattr(blocks, each.name)[kept] for each in fields(blocks)})


def _larger(story: Story) -> Trace:
    """Its model has three times as many parameters."""
    trace = story.trace()
    modules = tuple(replace(each, parameters=3 * each.parameters) for each in trace.tables.modules)
    return replace(trace, tables=replace(trace.tables, modules=modules))


def _rows(table, count: int, **values: int):
    found = {each.name: getattr(table, each.name)[:count].copy() for each in fields(table)}
    for name, value in values.items():
        found[name][:] = value
    return replace(table, **found)


def test_modules_are_matched_by_their_end_when_the_root_class_differs():
    one, other = Story().span("init"), Story().span("init")
    for story, root in ((one, "BertModel"), (other, "BertForSequenceClassification.bert")):
        story.modules += [Module(f"{root}.encoder.{n}.dense", "Linear") for n in range(4)]
        story.alloc(512, "parameter", module=f"{root}.encoder.2.dense")
    other.alloc(1024, "parameter", module="BertForSequenceClassification.classifier")

    found = compare(one.run(), other.run())

    assert module(found, "encoder.2.dense").changes == (0, 0, 0, 0)
    assert module(found, "classifier").b == Held(parameter_bytes=1024)
    assert module(found, "classifier").a is None


def test_a_million_events():
    run = million_run()
    begun = time.process_time()

    found = compare(run, run)

    assert time.process_time() - begun < 2
    assert found.reasons == ()


def test_spans_alone_are_no_history():
    trace = replace(Story().trace(), spans=(Span(0, "init"),))

    assert not compare(Run(None, traces=(trace,)), empty()).a.has_history


def stepping(*, lora: bool = False, **how: bool) -> Run:
    """A run whose optimizer steps in some way."""
    story = trained_story(lora=lora)
    story.optimizers = [replace(each, **how) for each in story.optimizers]
    return run_of(story, "stepping")


def test_another_way_of_stepping():
    found = compare(stepping(), stepping(lora=True, fused=True))

    assert reason(found, "temporary").endswith("; the optimizer steps by fused kernels instead of foreach")


@pytest.mark.parametrize("category", ["communication", "kv_cache", "autocast_cache"])
def test_a_category_that_one_has_none_of(category: str):
    story = training_story()
    story.span("forward", 3)
    story.free(story.alloc(1 << 20, category))

    found = compare(training_story().run(), story.run())

    words = category.replace("_", " ").replace("kv", "KV")
    assert reason(found, category) == f"{words} rose by 1.00 MiB: A has none"


def test_work_spaces_of_another_card():
    run = full()
    assert run.report is not None
    report = replace(run.report, card=replace(run.report.card, name="NVIDIA L4"))
    larger = trained_story()
    larger.span("forward", 2)
    larger.free(larger.alloc(8 << 20, "workspace"))

    found = compare(run, replace(run, report=report, traces=(larger.trace(),)))

    assert reason(found, "workspace").endswith("cuBLAS and cuDNN choose by card, which differ")
