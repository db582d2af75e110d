"""Formulas beside a run that nobody made, for the views."""

from __future__ import annotations

from dataclasses import replace

from vramscope.cards import find_card
from vramscope.planning.result import DOES_NOT_FIT, FITS, Result
from vramscope.run.categories import ACTIVATION, GRADIENT, INPUT, OPTIMIZER_STATE, PARAMETER, TEMPORARY
from vramscope.theory import rates
from vramscope.theory.adapters import lora
from vramscope.theory.claims import CLAIMS
from vramscope.theory.formula import Formula
from vramscope.theory.held import ClaimHeld, Held, Row
from vramscope.theory.saving import Layerwise
from vramscope.units import GIB, MIB

WEIGHTS = 46_758_048


def held(**changes: object) -> Held:
    """A ResNet-18 on a card."""
    card = find_card("rtx-3060")
    sizes = WEIGHTS + 52_064, WEIGHTS + 3_459_936, 2 * WEIGHTS + 104_128
    claims = [ClaimHeld(each.name, each.said, each.per_parameter, each.per_parameter * 11_689_512, sum(sizes), each.why) for each in CLAIMS[:4]]  # fmt: skip
    found = Held(
        source="timm/resnet18",
        model="ResNet",
        card=card.id,
        positions={
            "task": "image-classification",
            "batch": "4",
            "image": "64",
            "precision": "fp32",
            "optimizer": "adam",
        },
        parameters=11_689_512,
        trained=11_689_512,
        rows=(
            Row(PARAMETER, said("parameters", WEIGHTS), WEIGHTS, sizes[0], WEIGHTS, 2912, 49_152),
            Row(GRADIENT, said("gradients", WEIGHTS), WEIGHTS, sizes[1], WEIGHTS, 2912, 3_457_024),
            Row(OPTIMIZER_STATE, said("adam", 2 * WEIGHTS), 2 * WEIGHTS, sizes[2], 2 * WEIGHTS, 5824, 98_304),
            Row(
                INPUT, said("data", 196_640), 196_640, 393_728, 393_248, 480, 0, ("the next batch is there",)
            ),
            Row(
                ACTIVATION,
                said("activations", 7 * MIB),
                7 * MIB,
                6 * MIB,
                6 * MIB,
                0,
                0,
                ("ReLU saves 1.00 MiB less",),
            ),
            Row(TEMPORARY, None, None, 46 * MIB, 46 * MIB - 512, 512, 0, ("comes and goes",)),
        ),
        layers=(
            Layerwise("Conv2d", 20, 1_184_366_592, 3 * MIB, 3 * MIB),
            Layerwise("ReLU", 17, 0, 4 * MIB, 2 * MIB),
            Layerwise("", 0, 0, 0, MIB),
        ),
        others=((lora(inputs=64, outputs=32, rank=4), None),),
        claims=tuple(claims),
        unsaved_bytes=0,
        result=Result(FITS, 12 * GIB, "", 244 * MIB, 262 * MIB, 416 * MIB),
        flops_formula=3_488_317_440,
        flops_counted=3_488_317_440,
        flops_why="",
        speed=(rates.rate(card, "fp32"), rates.shortest_step(card, "fp32", 3_488_317_440, 3_000_000_000)),
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def said(name: str, size: int) -> Formula:
    return Formula(name, "Σ elements · bytes", {"size_bytes": size}, f"All {name} are there.", "torch")


def inference() -> Held:
    """Nothing trains, it does not fit, the counter counts otherwise, and nothing is known of the card's speed."""
    return held(
        trained=0,
        claims=(),
        others=(),
        speed=(),
        result=Result(DOES_NOT_FIT, GIB, "", 2 * GIB, None, None),
        flops_counted=3_000_000_000,
        flops_why="the counter does not see it",
        notes=("assumed: choice",),
    )
