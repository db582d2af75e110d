"""What makes a workload fit a budget, with made-up needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from vramscope.jobs.facts import Facts
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.technique import Maths
from vramscope.jobs.work import Work
from vramscope.jobs.write import settled
from vramscope.planning.budget import budget
from vramscope.planning.plan import Budget
from vramscope.planning.result import DOES_NOT_FIT, FAILED, FITS, Result
from vramscope.planning.ways import changes_for, with_changes

LAYERS = {"Conv2d": 1, "Linear": 8, "LayerNorm": 8}
FACTS = Facts(
    tasks=("image-classification", "inference"),
    kind="Net",
    image=224,
    classes=10,
    layers=LAYERS,
    blocks=tuple(f"blocks.{index}" for index in range(8)),
    abilities=("set_grad_checkpointing",),
)
NORMALIZED = Facts(**{**FACTS.to_json(), "layers": {**LAYERS, "BatchNorm2d": 3}})


def work(facts: Facts = FACTS, **positions: str) -> Work:
    return settled(parse_source("timm/net"), recipe_of({"batch": "32", **positions}), facts)


@dataclass
class Needs:
    """Bytes that a workload takes: weights, and activations of its batch, less what positions save of them."""

    activations: Mapping[str, float] = field(default_factory=dict)
    """By position, the share of the activations that stays."""
    weights: Mapping[str, float] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    ran: list[str] = field(default_factory=list)

    def of(self, work: Work) -> int:
        share, weights = work.recipe.number("batch") / 32, 1.0
        for name, position in work.recipe.turned().items():
            share *= self.activations.get(f"{name}={position}", 1.0)
            weights *= self.weights.get(f"{name}={position}", 1.0)
        return int(1000 * share + 1000 * weights)

    def result(self, work: Work, capacity: int) -> Result:
        turned = [f"{name}={position}" for name, position in work.recipe.turned().items()]
        self.ran.append(" ".join(turned))
        if set(turned) & set(self.broken):
            return Result(FAILED, capacity, "it broke off")
        need = self.of(work)
        verdict = FITS if need <= capacity else DOES_NOT_FIT
        return Result(verdict, capacity, peak_allocated_bytes=need, process_total_bytes=need, outside_bytes=0)


def search(asked: Work, needs: Needs, budget_bytes: int) -> Budget:
    return budget(
        asked,
        lambda work: needs.result(work, 1 << 46),
        lambda work, followed: needs.result(work, budget_bytes),
        budget_bytes=budget_bytes,
        card="rtx-3060",
    )


def test_what_fits_as_it_is_needs_no_way():
    found = search(work(), Needs(), 2000)

    assert found.asked.fits
    assert found.ways == ()
    assert found.tried == 1


def test_a_single_change_of_each_level_is_offered_and_the_least_intrusive_comes_first():
    needs = Needs({"checkpoint=on": 0.2, "precision=amp-bf16": 0.5, "tune=freeze:0.5": 0.4})

    found = search(work(), needs, 1600)

    assert {tuple(way.turned.items()) for way in found.ways} == {
        (("batch", "16"), ("accumulate", "2")),
        (("precision", "amp-bf16"),),
        (("checkpoint", "on"),),
        (("tune", "freeze:0.5"),),
    }
    assert [way.intrusion for way in found.ways] == sorted(way.intrusion for way in found.ways)
    assert all(way.result.fits for way in found.ways)


def test_each_way_tells_what_it_does_to_the_maths_and_its_price():
    found = search(work(), Needs({"precision=amp-bf16": 0.4, "checkpoint=on": 0.4}), 1450)

    by_knob = {next(iter(way.turned)): way for way in found.ways}
    assert by_knob["precision"].maths == Maths.ROUNDING
    assert by_knob["precision"].price == (
        "precision amp-bf16: activations have 8 bits of mantissa; faster from Ampere on",
    )
    assert by_knob["checkpoint"].maths == Maths.SAME


def test_several_changes_are_put_together_where_none_is_enough_and_none_is_idle():
    needs = Needs({"checkpoint=on": 0.5}, {"optimizer=sgd": 0.5, "tune=freeze:0.5": 0.97})

    found = search(work(batch="31"), needs, 1020)

    (way,) = found.ways
    assert way.turned == {"checkpoint": "on", "optimizer": "sgd"}
    assert way.maths == Maths.OTHER
    assert len(way.price) == 2


def test_no_change_stands_beside_one_that_is_enough_alone():
    found = search(work(batch="31"), Needs({"checkpoint=on": 0.2, "channels-last=on": 0.98}), 1300)

    assert [way.turned for way in found.ways] == [{"checkpoint": "on"}]


@pytest.mark.parametrize("budget_bytes", range(1020, 1960, 40))
def test_every_way_needs_all_of_its_changes(budget_bytes: int):
    needs = Needs(
        {"checkpoint=on": 0.5, "channels-last=on": 0.9, "precision=bf16": 0.6},
        {"optimizer=sgd": 0.7, "tune=lora:8": 0.6},
    )

    found = search(work(batch="31"), needs, budget_bytes)

    stacks = [set(way.turned.items()) for way in found.ways]
    assert not [one for one in stacks for other in stacks if other < one]


def test_many_small_savings_add_up():
    names = (
        "checkpoint=on",
        "channels-last=on",
        "precision=bf16",
        "optimizer-in-backward=on",
        "tune=freeze:0.5",
    )

    found = search(
        work(batch="31"), Needs(dict.fromkeys(names, 0.6)), 1000 + 1000 * 31 // 32 * 6**5 // 10**5 + 1
    )

    assert set(found.ways[0].turned) == {name.partition("=")[0] for name in names}


def test_micro_batches_are_the_largest_that_do_and_keep_the_samples_of_a_step():
    found = search(work(accumulate="3"), Needs(), 1260)

    (way,) = found.ways
    assert way.turned == {"batch": "8", "accumulate": "12"}
    assert way.maths == Maths.ORDER


def test_micro_batches_are_other_maths_where_batch_norm_sees_them():
    found = search(work(NORMALIZED), Needs(), 1600)

    (way,) = found.ways
    assert way.maths == Maths.OTHER
    assert "batch norm takes its statistics over 16 samples instead of 32" in way.price[0]


def test_a_change_that_breaks_the_program_is_no_way():
    found = search(work(batch="31"), Needs({"checkpoint=on": 0.1}, broken=("checkpoint=on",)), 1500)

    assert found.ways == ()


def test_where_nothing_does_the_nearest_are_told():
    found = search(work(), Needs({"checkpoint=on": 0.5}), 1000)

    assert found.ways == ()
    assert found.nearest
    assert not any(way.result.fits for way in found.nearest)
    assert found.nearest[-1].turned == {"checkpoint": "on", "batch": "2", "accumulate": "16"}


def test_what_fails_for_another_reason_than_memory_is_not_searched():
    found = search(work(), Needs(broken=("batch=32",)), 1000)

    assert found.asked.why == "it broke off"
    assert found.tried == 1


def test_changes_are_those_that_go_with_the_work():
    turned = {name for change in changes_for(work(task="inference")) for name in change.turned}

    assert not turned & {"optimizer", "tune", "checkpoint", "accumulate"}
    assert "precision" in turned


def test_going_back_to_more_bits_is_as_much_other_maths_as_leaving_them():
    back = next(
        change for change in changes_for(work(precision="bf16")) if change.turned == {"precision": "fp32"}
    )

    assert back.maths == Maths.ROUNDING


def test_changes_that_do_not_go_together_are_not_made():
    changes = [
        change
        for change in changes_for(work(batch="32"))
        if change.turned in ({"batch": "16", "accumulate": "2"}, {"optimizer-in-backward": "on"})
    ]

    assert len(changes) == 2
    assert with_changes(work(batch="32"), changes) is None


def test_another_allocator_is_only_tried_where_there_is_room_in_pieces():
    needs = Needs()

    search(work(batch="31"), needs, 1500)
    assert not any("allocator" in ran for ran in needs.ran)

    holes = budget(
        work(batch="31"),
        lambda asked: replace(needs.result(asked, 1 << 46), peak_allocated_bytes=1400),
        lambda asked, followed: needs.result(asked, 1500 if asked.recipe["allocator"] == "default" else 2000),
        budget_bytes=1500,
        card="rtx-3060",
    )
    assert [way.turned for way in holes.ways] == [{"allocator": "expandable"}]


@pytest.mark.parametrize("budget_bytes", [1050, 1100, 1300, 1700])
def test_no_search_takes_long(budget_bytes: int):
    needs = Needs(
        {"checkpoint=on": 0.5, "precision=bf16": 0.5}, {"optimizer=sgd": 0.6, "precision=bf16": 0.5}
    )

    search(work(), needs, budget_bytes)

    assert len(needs.ran) <= 60
