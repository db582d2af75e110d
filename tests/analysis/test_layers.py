from __future__ import annotations

from dataclasses import replace

import pytest

from traces import Story, training_story
from vramscope.analysis.folding import fold
from vramscope.analysis.layers import Layer, Layers, Sizes, every_layer, layers


def by_path(found: Layers) -> dict[str, Layer]:
    return {layer.path: layer for layer in every_layer(found.roots)}


def story() -> Story:
    """A linear layer below a model that has a parameter of its own; one step of it."""
    made = Story().span("init", 1)
    made.module("Net", "Net", parameters=10, parameter_bytes=40, trainable=10, trainable_bytes=40)
    made.module("Net.low.fc", "Linear", parameters=100, parameter_bytes=400, buffer_bytes=8)
    home = made.segment(1 << 20)
    made.alloc(512, "parameter", module="Net", segment=home)
    made.alloc(1024, "parameter", module="Net.low.fc", segment=home)
    made.span("forward", 1)
    kept = [made.alloc(size, "activation", module="Net.low.fc", segment=home) for size in (2048, 512)]
    made.alloc(256, "activation", segment=home)
    made.span("backward", 1)
    scratch = made.alloc(4096, "workspace", module="Net.low.fc", segment=home)
    made.alloc(512, "gradient", module="Net", segment=home)
    made.free(scratch)
    for block in kept:
        made.free(block)
    made.span("optimizer_step", 1)
    made.alloc(1024, "optimizer_state", module="Net", segment=home)
    return made


def test_own_and_total():
    found = by_path(layers(story().trace()))

    assert list(found) == ["Net", "Net.low", "Net.low.fc"]
    net, low, linear = found.values()
    assert (net.own.parameters, net.total.parameters, net.total.trainable) == (10, 110, 10)
    assert (net.total.parameter_bytes, net.total.trainable_bytes, net.total.buffer_bytes) == (440, 40, 8)
    assert (net.kind, low.kind, linear.kind, linear.name) == ("Net", "", "Linear", "fc")
    assert (net.own.weight_bytes, net.total.weight_bytes) == (512, 1536)
    assert (net.total.gradient_bytes, net.total.optimizer_state_bytes) == (512, 1024)
    assert low.own == Sizes()
    assert low.total == linear.total


def test_activations_are_those_at_their_highest_point():
    found = layers(story().trace())

    assert by_path(found)["Net.low.fc"].own.activation_bytes == 2560
    assert found.elsewhere.activation_bytes == 256
    assert found.total.activation_bytes == 2816


def test_the_shares_of_the_peak_sum_to_allocated():
    found = layers(story().trace())

    assert found.allocated_bytes == 512 + 1024 + 2048 + 512 + 256 + 4096 + 512
    assert found.roots[0].total.peak_bytes == found.allocated_bytes - 256
    assert found.elsewhere.peak_bytes == 256
    assert found.check() == ()
    assert replace(found, allocated_bytes=1).check() == (
        f"the layers sum to {found.allocated_bytes} at the peak, allocated is 1",
    )


def test_scratch_of_layers_that_need_it_one_after_the_other_is_no_sum():
    made = Story().span("forward", 1)
    for name, sizes in (("Net.a", (1024, 512)), ("Net.b", (2048,))):
        blocks = [made.alloc(size, "temporary", module=name) for size in sizes]
        for block in blocks:
            made.free(block)
    over = made.alloc(4096, "workspace", module="Net")
    within = made.alloc(512, "temporary", module="Net.a")
    made.free(over)
    made.free(within)

    found = by_path(layers(made.trace()))

    assert found["Net.a"].own.scratch_peak_bytes == 1536
    assert found["Net.b"].total.scratch_peak_bytes == 2048
    assert (found["Net"].own.scratch_peak_bytes, found["Net"].total.scratch_peak_bytes) == (4096, 4608)


def test_only_the_steady_step_counts():
    made = Story()
    for step, size in ((1, 8192), (2, 1024)):
        made.span("forward", step)
        kept = made.alloc(size, "activation", module="Net")
        scratch = made.alloc(size, "temporary", module="Net")
        made.free(scratch)
        made.span("optimizer_step", step)
        made.free(kept)

    found = layers(made.trace()).roots[0].total

    assert (found.activation_bytes, found.scratch_peak_bytes) == (1024, 1024)
    assert found.peak_bytes == 16384


def test_scratch_from_before_the_steady_step_counts_while_it_lives():
    made = Story().span("forward", 1)
    early = made.alloc(2048, "workspace", module="Net")
    made.span("optimizer_step", 1).span("forward", 2)
    late = made.alloc(512, "temporary", module="Net")
    made.free(early)
    made.free(late)
    made.span("optimizer_step", 2)

    assert layers(made.trace()).roots[0].total.scratch_peak_bytes == 2560


def test_two_models_of_one_class_are_one():
    made = Story().span("init")
    made.alloc(512, "parameter", module="Net")
    made.modules.append(replace(made.modules[-1], parameters=3))
    made.alloc(512, "parameter")
    made.blocks[-1]["module"] = 2

    found = layers(made.trace())

    assert len(found.roots) == 1
    assert (found.roots[0].total.weight_bytes, found.roots[0].total.parameters) == (1024, 3)


def test_a_path_that_is_absurdly_deep():
    made = Story().span("init")
    made.alloc(512, "parameter", module=".".join("a" * 5000))

    found = layers(made.trace())

    assert found.roots[0].total.weight_bytes == 512
    assert len(list(every_layer(found.roots))) == 100


def test_no_modules():
    made = Story().span("other")
    made.alloc(512)

    found = layers(made.trace())

    assert found.roots == ()
    assert found.elsewhere.peak_bytes == found.total.peak_bytes == 512


def test_no_events():
    found = layers(Story().trace())

    assert found.roots == ()
    assert found.allocated_bytes == 0
    assert found.check() == ()


def test_the_shared_story():
    found = layers(training_story().trace())
    net = found.roots[0]

    assert [child.name for child in net.children] == ["a", "b", "c"]
    assert net.total.activation_bytes == 3 * 16384
    assert (net.total.weight_bytes, net.total.gradient_bytes, net.total.optimizer_state_bytes) == (
        3 * 4096,
        3 * 4096,
        6 * 4096,
    )


def layer(
    path: str, kind: str = "Block", *children: Layer, parameters: int = 10, activations: int = 100
) -> Layer:
    own = Sizes(parameters=parameters, activation_bytes=activations, scratch_peak_bytes=activations)
    total = own
    for child in children:
        total = total + child.total
    return Layer(path, kind, own, total, children)


def test_layers_of_one_build_are_told_once():
    (found,) = fold([layer(f"h.{n}", "Block", layer(f"h.{n}.fc")) for n in range(12)])

    assert (found.path, found.last, found.copies) == ("h.0", "h.11", 12)
    assert (found.total.parameters, found.total.activation_bytes) == (240, 2400)
    assert found.total.scratch_peak_bytes == 100
    assert [(child.path, child.copies, child.total.parameters) for child in found.children] == [
        ("h.0.fc", 12, 120)
    ]


def test_lists_within_lists():
    blocks = [layer(f"h.{n}", "Block", *(layer(f"h.{n}.{m}") for m in range(3))) for n in range(2)]

    (found,) = fold(blocks)

    assert [(child.path, child.last, child.copies) for child in found.children] == [("h.0.0", "h.1.2", 6)]


@pytest.mark.parametrize(
    "other",
    [
        layer("h.2"),
        layer("h.x"),
        layer("h.1", "Other"),
        layer("h.1", parameters=11),
        layer("h.1", activations=50),
        layer("h.1", "Block", layer("h.1.fc", parameters=0, activations=0)),
        replace(layer("h.1"), notes=("requires_grad attribute",)),
    ],
)
def test_layers_that_differ_are_told_apart(other: Layer):
    assert [each.copies for each in fold([layer("h.0"), other])] == [1, 1]


def test_layers_that_differ_by_little_are_told_together():
    assert [each.copies for each in fold([layer("h.0"), layer("h.1", activations=99)])] == [2]


def test_below_what_differs_it_goes_on():
    first = layer("a", "A", *(layer(f"a.{n}") for n in range(2)))

    (found,) = fold([first])

    assert [child.copies for child in found.children] == [2]
