"""What the modules tell: checkpoints, logits, freezes, LoRA, parameters without gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asking import MIB, ask, facts, figures, the_answer
from traces import Story
from vramscope.analysis.explain.checkpointing import checkpointing_covers_nothing, checkpointing_remedies
from vramscope.analysis.explain.finding import ESTIMATE, RECORDED, WRONG
from vramscope.analysis.explain.frozen import freeze_freezes_nothing
from vramscope.analysis.explain.inference import forward_without_backward
from vramscope.analysis.explain.logits import large_logits
from vramscope.analysis.explain.lora import lora_base_trains
from vramscope.analysis.explain.parts import part_numbers, repeated_blocks
from vramscope.analysis.explain.unused import optimizer_holds_frozen, trainable_without_gradient
from vramscope.run.trace import BACKWARD, EVALUATION, GRAD, RECOMPUTE, Module, Optimizer


def modules(*paths: str, kind: str = "Block") -> tuple[Module, ...]:
    return tuple(
        Module(path, kind if path.rpartition(".")[2].isdigit() else "Linear") for path in ("", *paths)
    )


def test_repeated_blocks():
    transformer = modules("M", "M.h", "M.h.0", "M.h.0.mlp", "M.h.0.mlp.0", "M.h.1", "M.h.1.mlp", "M.head")

    assert repeated_blocks(transformer) == ("M.h.0", "M.h.1")


def test_blocks_that_are_no_repetition():
    assert repeated_blocks(modules("M.0", "M.1")) == ()  # leaves
    different = (Module(""), Module("M.0", "Stem"), Module("M.0.a"), Module("M.1", "Head"), Module("M.1.a"))
    assert repeated_blocks(different) == ()


def test_the_outermost_of_nested_blocks():
    nested = modules(
        "M.l.0", "M.l.0.b", "M.l.0.b.0", "M.l.0.b.0.x", "M.l.0.b.1", "M.l.0.b.1.x", "M.l.1", "M.l.1.y"
    )

    assert repeated_blocks(nested) == ("M.l.0", "M.l.1")
    assert part_numbers(nested, ("M.l.0", "M.l.1")).tolist() == [-1, 0, 0, 0, 0, 0, 0, 1, 1]


def transformer(flags: int = GRAD, notes: tuple[str, ...] = (), layers: int = 4) -> Story:
    """Layers that keep 10 + 40 MiB and give on 10; backward makes 5 MiB in each."""
    story = Story()
    story.module("M", "Model")
    story.modules.append(Module("M.h", "ModuleList", notes=notes))
    kept: list[tuple[str, list[int]]] = []
    story.span("forward", 1)
    for layer in range(layers):
        path = f"M.h.{layer}"
        story.module(path, "Block")
        inside = [
            story.alloc(size * MIB, "activation", module=f"{path}.mlp", flags=GRAD) for size in (10, 40)
        ]
        kept.append((path, [*inside, story.alloc(10 * MIB, "activation", module=path, flags=GRAD)]))
    story.span("backward", 1)
    for path, rows in reversed(kept):
        story.free(story.alloc(5 * MIB, "temporary", module=f"{path}.mlp", flags=flags | BACKWARD))
        for row in rows:
            story.free(row)
    return story


def test_checkpointing_keeps_one_block_and_the_outputs():
    """Of 4 × 60 MiB and 5 of backward there remain 4 outputs, one block's 50, and 5."""
    remedy = the_answer(checkpointing_remedies, transformer())

    assert remedy.change == "gradient checkpointing of M.h.0 to 3"
    assert (remedy.saved_bytes, remedy.known) == ((245 - (40 + 50 + 5)) * MIB, ESTIMATE)
    assert remedy.note == "keeps the inputs of 4 blocks, and runs each forward again in backward"


def test_the_blocks_of_several_models():
    story = transformer()
    story.span("forward", 2)
    for path in ("N.h.0", "N.h.1", "Unused.h.0", "Unused.h.1"):
        story.module(path, "Block")
        story.module(f"{path}.mlp")
        if path.startswith("N"):
            for size in (2, 1):
                story.alloc(size * MIB, "activation", module=f"{path}.mlp", flags=GRAD)

    assert the_answer(checkpointing_remedies, story).change == "gradient checkpointing of the blocks of M, N"


def test_what_is_checkpointed_already():
    assert ask(checkpointing_remedies, transformer(GRAD | RECOMPUTE)) == []


def test_a_model_without_blocks():
    story = Story().span("forward", 1)
    story.alloc(MIB, "activation", module="Net.a", flags=GRAD)

    assert ask(checkpointing_remedies, story) == []


def test_checkpointing_that_covers_nothing():
    found = the_answer(checkpointing_covers_nothing, transformer(notes=("gradient_checkpointing",)))

    assert found.question == "Why does gradient checkpointing save nothing?"
    assert found.severity == WRONG
    assert figures(found) == {"activations": 240 * MIB}
    assert found.where == ("M.h",)
    assert [each.saved_bytes for each in found.remedies] == [150 * MIB]


def test_checkpointing_is_not_advised_where_it_is_switched_on():
    assert ask(checkpointing_remedies, transformer(notes=("gradient_checkpointing",))) == []


def test_checkpointing_that_works():
    story = transformer(GRAD | RECOMPUTE, ("gradient_checkpointing",))

    assert ask(checkpointing_covers_nothing, story) == []


def test_checkpointing_that_nobody_asked_for():
    assert ask(checkpointing_covers_nothing, transformer()) == []


TOKENS, WORDS, WIDTH = 1024, 32768, 256


def language_model(
    head: str = "M.lm_head", kind: str = "Linear", tokens: int = TOKENS, own: int = WORDS * WIDTH
) -> Story:
    """Logits of 128 MiB, their log-softmax, and both gradients; a hidden state of 1 MiB."""
    story = Story()
    story.modules += [Module("M", "Model"), Module("M.emb", "Embedding", WORDS * WIDTH, WORDS * WIDTH * 4)]
    story.modules.append(Module(head, kind, own, own * 4))
    story.span("forward", 1)
    story.alloc(tokens * WIDTH * 4, "activation", module="M.emb")
    logits = [story.alloc(tokens * WORDS * 4, "activation", module=each) for each in (head, "M")]
    story.span("backward", 1)
    gradients = [story.alloc(tokens * WORDS * 4, "temporary") for _ in range(2)]
    for row in (*gradients, *logits):
        story.free(row)
    return story


def test_logits():
    found = the_answer(large_logits, language_model())
    size = TOKENS * WORDS * 4

    assert found.question == "Why do the logits take 512 MiB?"
    assert "4 blocks of that shape are there at the peak, in fp32." in found.answer
    assert sum(each.size_bytes for each in found.evidence) == 4 * size
    assert found.where == ("M.lm_head",)
    (remedy,) = found.remedies
    assert (remedy.saved_bytes, remedy.known) == (4 * (size - size // 8), RECORDED)


def test_a_head_that_shares_the_embedding_s_weight():
    assert the_answer(large_logits, language_model(own=0)) == the_answer(large_logits, language_model())


def test_a_head_with_a_bias():
    biased = the_answer(large_logits, language_model(own=WORDS * WIDTH + WORDS))

    assert biased == the_answer(large_logits, language_model())


def test_a_linear_layer_of_another_size_is_no_head():
    assert ask(large_logits, language_model(own=WORDS * WIDTH // 2)) == []


def test_a_wrapper_without_parameters_is_no_head():
    """peft's Linear holds the layer that it wraps."""
    story = language_model(own=0)
    story.module("M.lm_head.base_layer")

    assert ask(large_logits, story) == []


def test_copies_in_two_widths():
    """bf16 logits under autocast, cast to fp32 by the loss."""
    story = Story()
    story.modules += [Module("M", "Model"), Module("M.emb", "Embedding", WORDS * WIDTH, WORDS * WIDTH * 4)]
    story.modules.append(Module("M.head", "Linear", WORDS * WIDTH, WORDS * WIDTH * 4))
    story.span("forward", 1)
    story.alloc(TOKENS * WORDS * 2, "activation", module="M.head", flags=1)
    story.alloc(TOKENS * WORDS * 4, "activation")

    assert (
        "2 blocks of that shape are there at the peak, 1 of them in fp32."
        in the_answer(large_logits, story).answer
    )


def test_a_copy_without_the_last_token():
    story = language_model()
    story.span("forward", 2)
    for _ in range(5):
        story.alloc((TOKENS - 16) * WORDS * 4, "activation")

    assert the_answer(large_logits, story).stake_bytes == 5 * (TOKENS - 16) * WORDS * 4


def test_blocks_of_the_same_size_elsewhere_in_the_model():
    story = language_model()
    story.alloc(TOKENS * WORDS * 4, "activation", module="M.h.0.mlp")

    assert the_answer(large_logits, story).stake_bytes == 4 * TOKENS * WORDS * 4


def test_logits_that_do_not_matter():
    story = language_model(tokens=8)
    story.alloc(512 * MIB, "parameter")

    assert ask(large_logits, story) == []


@pytest.mark.parametrize("kind", ["Conv2d", "LayerNorm"])
def test_a_model_without_a_head(kind: str):
    assert ask(large_logits, language_model(kind=kind)) == []


def frozen(notes: tuple[str, ...], trainable: int) -> Story:
    """A backbone that should be frozen, and a head; 30 MiB and 2 MiB of gradients and twice that of states."""
    story = Story()
    story.modules.append(Module("Net", "Net", notes=()))
    story.modules.append(Module("Net.body", "Sequential", notes=notes))
    story.modules.append(Module("Net.body.0", "Linear", 30 * MIB // 4, 30 * MIB, trainable, 4 * trainable))
    story.modules.append(Module("Net.head", "Linear", 2 * MIB // 4, 2 * MIB, 2 * MIB // 4, 2 * MIB))
    story.optimizers.append(Optimizer("Adam", 8 * MIB))
    for step in (1, 2):
        story.span("forward", step)
        kept = story.alloc(50 * MIB, "activation", module="Net.body.0", flags=GRAD)
        out = story.alloc(1 * MIB, "activation", module="Net.head", flags=GRAD)
        story.span("backward", step)
        rows = [story.alloc(2 * MIB, "gradient", module="Net.head", name="Net.head.weight", flags=BACKWARD)]
        story.free(out)
        if trainable:
            rows.append(
                story.alloc(
                    30 * MIB, "gradient", module="Net.body.0", name="Net.body.0.weight", flags=BACKWARD
                )
            )
        story.free(kept)
        story.span("optimizer_step", step)
        if step == 1:
            for size, module in ((60, "Net.body.0"), (4, "Net.head")):
                if trainable or module == "Net.head":
                    story.alloc(size * MIB, "optimizer_state", module=module, name=f"{module}.weight exp_avg")
        for row in [story.alloc(size * MIB, "temporary") for size in (30, 2) if trainable or size == 2]:
            story.free(row)
        for row in rows:
            story.free(row)
    return story


def test_a_freeze_that_freezes_nothing():
    found = the_answer(freeze_freezes_nothing, frozen(("requires_grad attribute",), 30 * MIB // 4))

    assert found.question == "Why do 7,864,320 parameters still train after requires_grad = False?"
    assert found.severity == WRONG
    assert figures(found) == {"gradients": 30 * MIB, "optimizer states": 60 * MIB}
    assert found.stake_bytes == 90 * MIB
    assert found.where == ("Net.body",)


def test_what_a_freeze_would_save():
    """The body's gradients, its states and its share of the temporaries; its output stays, the head needs it."""
    (remedy,) = the_answer(
        freeze_freezes_nothing, frozen(("requires_grad attribute",), 30 * MIB // 4)
    ).remedies

    assert remedy.known == ESTIMATE
    found = facts(frozen(("requires_grad attribute",), 30 * MIB // 4))
    assert found.peak_bytes == (64 + 50 + 2 + 30) * MIB
    assert remedy.saved_bytes == found.peak_bytes - (4 + 50 + 1 + 2) * MIB


def test_a_freeze_that_works():
    assert ask(freeze_freezes_nothing, frozen(("requires_grad attribute",), 0)) == []
    assert ask(freeze_freezes_nothing, frozen((), 30 * MIB // 4)) == []


def test_a_freeze_in_a_run_without_steps():
    story = Story().span("forward", 1)
    story.modules.append(Module("Net", "Linear", 4, 16, 4, 16, notes=("requires_grad attribute",)))
    story.alloc(512)

    assert ask(freeze_freezes_nothing, story) == []


def lora(base_trains: bool, *, named: str = "lora_A.default") -> Story:
    """A base of 100 MiB with LoRA of 1 MiB beside it."""
    story = Story().span("init", 1)
    path, beside = "Peft.base_model.q.base_layer", f"Peft.base_model.q.{named}"
    trainable = 100 * MIB // 4 if base_trains else 0
    story.modules.append(Module(path, "Linear", 100 * MIB // 4, 100 * MIB, trainable, 4 * trainable))
    story.modules.append(Module(beside, "Linear", MIB // 4, MIB, MIB // 4, MIB))
    story.alloc(100 * MIB, "parameter", module=path, name=f"{path}.weight")
    story.alloc(MIB, "parameter", module=beside, name=f"{beside}.weight")
    for step in (1, 2):
        story.span("backward", step)
        rows = [story.alloc(MIB, "gradient", module=beside, name=f"{beside}.weight")]
        if base_trains:
            rows.append(story.alloc(100 * MIB, "gradient", module=path, name=f"{path}.weight"))
        story.span("optimizer_step", step)
        if step == 1 and base_trains:
            story.alloc(200 * MIB, "optimizer_state", module=path, name=f"{path}.weight exp_avg")
        story.free(story.alloc(512, "unknown"))
        for row in rows:
            story.free(row)
    return story


def test_a_lora_whose_base_trains():
    found = the_answer(lora_base_trains, lora(True))

    assert found.severity == WRONG
    assert "parameters of 100 MiB are there, and gradients of 100 MiB for them" in found.answer
    assert figures(found) == {"gradients": 100 * MIB, "optimizer states": 200 * MIB}
    assert found.where == ("Peft.base_model.q.base_layer",)
    (remedy,) = found.remedies
    assert (remedy.saved_bytes, remedy.at_least) == (300 * MIB, True)


def test_a_lora_as_it_should_be():
    assert ask(lora_base_trains, lora(False)) == []


def test_a_model_without_lora_trains_its_base():
    assert ask(lora_base_trains, lora(True, named="extra")) == []


def test_what_peft_trains_beside_lora():
    story = lora(False)
    path = "Peft.base_model.head.modules_to_save.default"
    story.modules.append(Module(path, "Linear", 400 * MIB // 4, 400 * MIB, 400 * MIB // 4, 400 * MIB))
    story.alloc(400 * MIB, "gradient", module=path, name=f"{path}.weight")

    assert ask(lora_base_trains, story) == []


def test_lora_s_own_parameters_in_the_layer_itself():
    """A layer that holds weight, lora_A and lora_B alike: only LoRA's have gradients."""
    story = Story().span("init", 1)
    story.modules.append(Module("Net.q", "LoRALinear", 26 * MIB, 101 * MIB, MIB // 4, MIB))
    story.alloc(100 * MIB, "parameter", module="Net.q", name="Net.q.weight")
    story.alloc(MIB, "parameter", module="Net.q", name="Net.q.lora_A")
    story.span("backward", 1)
    story.alloc(MIB, "gradient", module="Net.q", name="Net.q.lora_A")
    story.span("optimizer_step", 1)
    story.alloc(2 * MIB, "optimizer_state", module="Net.q", name="Net.q.lora_A exp_avg")
    assert ask(lora_base_trains, story) == []

    story.alloc(100 * MIB, "gradient", module="Net.q", name="Net.q.weight")
    assert figures(the_answer(lora_base_trains, story)) == {"gradients": 100 * MIB}


def test_a_base_that_was_trained_at_another_time():
    """First the whole model, then a LoRA of it."""
    story = lora(False)
    path = "Peft.base_model.q.base_layer"
    story.span("backward", 3)
    row = story.alloc(100 * MIB, "gradient", module=path, name=f"{path}.weight")
    story.span("optimizer_step", 3)
    story.free(row)

    assert ask(lora_base_trains, story) == []


def two_heads(with_gradient: bool, *, shared: bool = False) -> Story:
    story = Story().span("init", 1)
    for name, size in (("a", 10), ("b", 20)):
        story.modules.append(Module(f"Net.{name}", "Linear", size, 4 * size, size, 4 * size))
        story.alloc(size * MIB, "parameter", module=f"Net.{name}", name=f"Net.{name}.weight")
    if shared:
        story.modules.append(Module("Net.tied", "Linear", 20, 80, 20, 80))
    story.span("backward", 1)
    for name in "ab" if with_gradient else "a":
        story.alloc(10 * MIB, "gradient", module=f"Net.{name}", name=f"Net.{name}.weight")
    if shared:
        story.alloc(20 * MIB, "gradient", module="Net.tied", name="Net.tied.weight")
    story.span("optimizer_step", 1)
    story.free(story.alloc(512))
    return story


def test_parameters_that_no_backward_reaches():
    found = the_answer(trainable_without_gradient, two_heads(False))

    assert found.question == "Why do 20 trainable parameters never get a gradient?"
    assert found.severity == WRONG
    assert figures(found) == {"parameters": 20 * MIB}
    assert found.where == ("Net.b",)


def test_parameters_that_all_get_gradients():
    assert ask(trainable_without_gradient, two_heads(True)) == []


def test_a_weight_that_two_modules_share_has_one_gradient():
    assert ask(trainable_without_gradient, two_heads(False, shared=True)) == []


def test_gradients_in_buckets_have_no_blocks_of_their_own():
    story = two_heads(False)
    story.alloc(MIB, "communication")

    assert ask(trainable_without_gradient, story) == []


def test_an_optimizer_that_holds_what_cannot_train():
    story = frozen((), 0)
    story.optimizers[:] = [Optimizer("Adam", 32 * MIB // 4)]

    found = the_answer(optimizer_holds_frozen, story)

    assert "7,864,320 parameters" in found.question
    assert found.stake_bytes == 0


def test_a_constant_among_an_optimizer_s_parameters():
    story = frozen((), 30 * MIB // 4)
    story.modules.append(Module("Net.anchors", "Anchors", 64, 256))
    story.optimizers[:] = [Optimizer("Adam", 32 * MIB // 4 + 64)]

    assert ask(optimizer_holds_frozen, story) == []


def test_an_optimizer_that_holds_what_trains():
    story = frozen((), 0)
    story.optimizers[:] = [Optimizer("Adam", 2 * MIB // 4)]

    assert ask(optimizer_holds_frozen, story) == []


def inferring(flags: int, *, phase: str = "forward", backward: bool = False, calls: int = 2) -> Story:
    """Calls of a model of three layers, each of which makes 20 MiB; all of it is given up at the end of a call."""
    story = Story()
    for name in "abc":
        story.module(f"Net.{name}")
    for call in range(calls):
        story.span(phase, call + 1)
        rows = [story.alloc(20 * MIB, "temporary", module=f"Net.{name}", flags=flags) for name in "abc"]
        if backward:
            story.span("backward", call + 1)
        for row in rows:
            story.free(row)
        story.span("other", call + 1)
        story.free(story.alloc(512))
    return story


def test_a_forward_that_no_backward_follows():
    """Each layer's output goes when the next one has run: two of three are there at once."""
    found = the_answer(forward_without_backward, inferring(GRAD))

    assert found.question == "Why are 60.0 MiB of activations kept that no backward uses?"
    assert found.answer.startswith("The forward ran with gradients recorded")
    (remedy,) = found.remedies
    assert (remedy.saved_bytes, remedy.known) == (20 * MIB, ESTIMATE)


def test_a_forward_that_records_nothing():
    assert ask(forward_without_backward, inferring(0)) == []


def test_a_forward_that_a_backward_follows():
    assert ask(forward_without_backward, inferring(GRAD, backward=True)) == []


def test_a_forward_that_the_end_of_the_recording_cut_off():
    import builders
    from vramscope.run.run import Run

    story = inferring(GRAD, backward=True)
    story.span("forward", 3)
    story.alloc(80 * MIB, "activation", module="Net.a", flags=GRAD)

    run = Run(builders.trained(), traces=(story.trace(),))  # stopped after its steps
    assert list(forward_without_backward(facts(story, run=run))) == []
    assert ask(forward_without_backward, story) != []


def test_an_evaluation_right_before_a_training_forward():
    """No boundary lies between the two; what ran in eval mode is told by its flag."""
    story = inferring(GRAD, backward=True)
    story.span("forward", 3)
    rows = [story.alloc(80 * MIB, "temporary", module="Net.a", flags=GRAD | EVALUATION)]
    rows.append(story.alloc(20 * MIB, "activation", module="Net.a", flags=GRAD))
    story.span("backward", 3)
    for row in rows:
        story.free(row)

    assert the_answer(forward_without_backward, story).question.startswith("Why are 80.0 MiB")


def test_a_model_that_trains_in_eval_mode():
    assert ask(forward_without_backward, inferring(GRAD | EVALUATION, backward=True)) == []


def test_modules_are_found_again_by_their_paths():
    story = inferring(GRAD)
    trace = story.trace()
    twice = replace(trace, tables=replace(trace.tables, modules=(*trace.tables.modules, Module("Net.a"))))

    assert ask(forward_without_backward, twice) == ask(forward_without_backward, trace)
