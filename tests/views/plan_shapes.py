"""Invented plans of every shape."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from vramscope.planning.plan import Budget, Candidate, Cheapest, Fit, Plan, Row, Way
from vramscope.planning.result import CANNOT_RUN, DOES_NOT_FIT, FAILED, FITS, Failure, Result
from vramscope.units import GIB, MIB

HOSTILE = "</style><script>globalThis.hacked=1</script><img src=x onerror=globalThis.hacked=1>\x1b[31m\n"
"""A name that would run, or paint, if it ever got out as it is."""
SHARES = {"activation": 70, "optimizer_state": 12, "parameter": 9, "gradient": 6, "workspace": 3}
CAPACITY = {"rtx-3060": 12_628_000_000, "rtx-4090": 25_383_000_000, "a100-80gb": 85_100_000_000}


def result(total_gib: float, card: str = "rtx-3060", **changes: object) -> Result:
    """One that takes so much; it fits if the card has it."""
    outside, capacity = 170 * MIB, CAPACITY[card]
    total = int(total_gib * GIB)
    allocated = (total - outside) * 9 // 10
    held = {name: allocated * share // 100 for name, share in SHARES.items()}
    held["activation"] += allocated - sum(held.values())
    fits = total <= capacity
    made = Result(
        FITS if fits else DOES_NOT_FIT,
        capacity,
        peak_allocated_bytes=allocated,
        peak_reserved_bytes=total - outside,
        process_total_bytes=total,
        outside_bytes=outside,
        phase="backward",
        step=2,
        module="ResNet.layer1.0.conv1",
        categories=held,
        parameters=11_689_512,
        trained=11_689_512,
        failure=None if fits else out_of_memory(),
        notes=("launch-parameter pools is modelled", "assumed: float is 1.0"),
        seconds=0.4,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def out_of_memory() -> Failure:
    return Failure("forward", 1, "ResNet.layer3.5.conv3", 230 * MIB, "resnet.py:28 in <module>")


def cannot_run(why: str, card: str = "rtx-3060") -> Result:
    return Result(CANNOT_RUN, CAPACITY[card], why)


def row(number: int, turned: dict[str, str], found: Result, card: str = "rtx-3060", **more: object) -> Row:
    return Row(number, turned, card, found, **more)  # type: ignore[arg-type]


def against(baseline: Row, other: Row, why: str, *price: str) -> Row:
    """The other row with what moved."""
    one, two = baseline.result.categories, other.result.categories
    moved = {name: two.get(name, 0) - one[name] for name in ("activation", "optimizer_state")} if two else {}
    return replace(other, changes=moved, why=(why,) if two else (), price=price)


def plan_of(rows: list[Row], varied: tuple[str, ...] = (), **more: object) -> Plan:
    cards = tuple(dict.fromkeys(each.card for each in rows)) or ("rtx-3060",)
    known: dict[str, object] = dict(  # noqa: C408
        source="timm/resnet18",
        model="ResNet",
        parameters=11_689_512,
        task="image-classification",
        fixed={"task": "image-classification", "batch": "90", "image": "224", "optimizer": "adamw"},
        assumed=("task", "optimizer"),
        varied=varied,
        cards=cards,
        used_bytes=0,
        rows=tuple(rows),
        versions={"torch": "2.14.1+cu130", "CUDA": "13.0", "cuDNN": "9.24.0", "timm": "1.0.31"},
        seconds=4.12,
    )
    return Plan(**{**known, **more})  # type: ignore[arg-type]


def one() -> Plan:
    return plan_of([row(1, {}, result(8.17), baseline=True)])


def six() -> Plan:
    """Two precisions by three tunes on a card, all of which fit, one of them just so."""
    cells = list(product(("fp32", "amp-fp16"), ("full", "freeze:0.95", "lora:4")))
    totals = (11.74, 6.2, 6.9, 6.8, 3.3, 3.21)
    rows = [
        row(n, {"precision": p, "tune": t}, result(size))
        for n, ((p, t), size) in enumerate(zip(cells, totals, strict=True), 1)
    ]
    first = replace(rows[0], baseline=True, result=replace(rows[0].result, retries=3))
    why = "activations fell: layers that are frozen do not keep what only their own gradients need"
    return plan_of(
        [first, *(against(first, each, why, *_price(each)) for each in rows[1:])],
        ("precision", "tune"),
        reused=2,
    )


def _price(each: Row) -> tuple[str, ...]:
    half = each.turned["precision"] == "amp-fp16"
    return ("amp-fp16: activations have 11 bits of mantissa and a small range; faster",) if half else ()


def twelve() -> Plan:
    """Three tunes with and without checkpoints on two cards: some do not fit, one technique cannot run."""
    rows: list[Row] = []
    cells = product(("full", "lora:16", "qlora"), ("off", "on"), ("rtx-4090", "a100-80gb"))
    totals = iter((131.2, 132.0, 119.9, 120.6, 40.1, 40.8, 19.2, 19.9))
    for number, (tune, checkpoint, card) in enumerate(cells, 1):
        found = _llama(tune, card, totals)
        rows.append(row(number, {"tune": tune, "checkpoint": checkpoint}, found, card))
    first = {card: next(each for each in rows if each.card == card) for card in ("rtx-4090", "a100-80gb")}
    told = [
        replace(each, baseline=True)
        if each in first.values()
        else against(
            first[each.card], each, "optimizer states fell: 21.0 M instead of 8.03 B trainable parameters"
        )
        for each in rows
    ]
    told[-1] = replace(told[-1], result=Result(FAILED, CAPACITY["a100-80gb"], "RuntimeError: it broke off"))
    return plan_of(
        told,
        ("tune", "checkpoint"),
        source="hf/llama?hidden_size=4096",
        model="LlamaForCausalLM",
        parameters=8_030_261_248,
        task="causal-lm",
        fixed={"batch": "1", "seq": "4096", "precision": "bf16"},
        assumed=("batch", "precision"),
        used_bytes=512 * MIB,
    )


def _llama(tune: str, card: str, totals: object) -> Result:
    if tune == "qlora":
        return cannot_run("tune=qlora needs bitsandbytes: pip install 'vramscope[quantization]'", card)
    return result(next(totals), card, module="LlamaForCausalLM.model.layers.31.mlp.down_proj")  # type: ignore[call-overload]


def fit() -> Plan:
    failed = result(11.9, failure=Failure("backward", 1, "layer1.0.conv1", 196 * MIB, None))
    tried = tuple((batch, FITS if batch <= 176 else DOES_NOT_FIT) for batch in (64, 128, 256, 192, 176, 184))
    found = Fit("batch", "rtx-3060", {}, 176, result(11.6), 184, failed, tried, 8, 256 * MIB)
    return plan_of([], fits=(found,), fixed={"image": "224", "optimizer": "adamw"})


def fit_with_its_row() -> Plan:
    """A search's answer as the only row, at the card's edge."""
    ends = result(11.6, retries=67)
    return replace(fit(), rows=(row(1, {"batch": "176"}, ends, baseline=True),), varied=("batch",))


def fits() -> Plan:
    """Of several rows: one with an end that is no out of memory, one whose search came to its end, one for which nothing fits."""
    wide = ("precision",)
    small = result(3.0)
    found = (
        Fit(
            "seq",
            "rtx-3060",
            {"precision": "fp32"},
            512,
            small,
            513,
            result(3.1, verdict=FAILED, why="IndexError: index out of range"),
        ),
        Fit(
            "seq",
            "rtx-3060",
            {"precision": "bf16"},
            2048,
            small,
            None,
            None,
            note="the model has 2048 positions",
        ),
        Fit("seq", "rtx-3060", {"precision": "fp16"}, None, None, 1, result(13)),
        Fit(
            "seq",
            "rtx-3060",
            {"precision": "tf32"},
            500,
            result(11.0),
            501,
            result(11.1),
            margin_bytes=600 * MIB,
        ),
    )
    return plan_of([], wide, fits=found)


def cheapest() -> Plan:
    small = Candidate(
        "rtx-3070", 8_361_000_000, replace(result(8.32), verdict=DOES_NOT_FIT, capacity_bytes=8_361_000_000)
    )
    enough = Candidate("rtx-3060", CAPACITY["rtx-3060"], result(8.32))
    found = (Cheapest({}, "rtx-3060", (small, enough)), Cheapest({"batch": "900"}, None, (small,)))
    return plan_of([], cheapest=found)


def budget(*, ways: bool = True) -> Plan:
    def within(size: float) -> Result:
        found = replace(result(size), capacity_bytes=10 * GIB)
        return found if size <= 10 else replace(found, verdict=DOES_NOT_FIT, failure=out_of_memory())

    made = [
        Way({"checkpoint": "on"}, within(9.2), 0, 2, ("the forward runs twice, about a third more time",)),
        Way({"checkpoint": "on", "optimizer": "adamw-8bit"}, within(7.8), 2, 5, ("states have 8 bits",)),
        Way({"tune": "lora:8"}, within(6.9), 3, 7, ()),
    ]
    chosen, near = (tuple(made), ()) if ways else ((), (replace(made[0], result=within(12.4)),))
    return plan_of([], budget=Budget(10 * GIB, "rtx-3060", within(18.3), chosen, near, 34))


def hostile() -> Plan:
    """Every text of it is hostile."""
    found = result(8.0, module=HOSTILE, notes=(HOSTILE,), why=HOSTILE)
    failed = result(13.0, module=HOSTILE, failure=Failure(HOSTILE, 1, HOSTILE, 1, HOSTILE))
    rows = [
        row(1, {"precision": HOSTILE, "tune": "full"}, found, baseline=True),
        row(2, {"precision": HOSTILE, "tune": HOSTILE}, failed, why=(HOSTILE,), price=(HOSTILE,)),
        row(3, {"precision": "fp32", "tune": HOSTILE}, cannot_run(HOSTILE)),
    ]
    way = Way({HOSTILE: HOSTILE}, found, 1, 1, (HOSTILE,))
    return plan_of(
        rows,
        ("precision", "tune"),
        source=HOSTILE,
        model=HOSTILE,
        task=HOSTILE,
        fixed={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        fits=(Fit(HOSTILE, "rtx-3060", {HOSTILE: HOSTILE}, 1, found, 2, failed, note=HOSTILE),),
        cheapest=(Cheapest({HOSTILE: HOSTILE}, "rtx-3060", (Candidate("rtx-3060", GIB, found),)),),
        budget=Budget(GIB, "rtx-3060", found, (way,), (way,), 1),
    )


def unfollowed() -> Plan:
    """Rows of which only the figures are known, and one of which nothing is."""
    bare = result(
        4.0, categories={}, module="", phase=None, step=None, parameters=None, trained=None, notes=()
    )
    none = Result(DOES_NOT_FIT, CAPACITY["rtx-3060"])
    return plan_of(
        [row(1, {"batch": "8"}, bare, baseline=True), row(2, {"batch": "999"}, none)],
        ("batch",),
        fixed={},
        assumed=(),
    )


def many() -> Plan:
    """Four varied knobs on three cards."""
    axes = {
        "precision": ("fp32", "amp-fp16", "bf16"),
        "tune": ("full", "lora:8"),
        "checkpoint": ("off", "on"),
        "optimizer": ("adamw", "adamw-8bit"),
    }
    rows: list[Row] = []
    for place, chosen in enumerate(product(*axes.values())):
        for card in CAPACITY:
            size = 40 / (1 + place) + 5
            rows.append(row(len(rows) + 1, dict(zip(axes, chosen, strict=True)), result(size, card), card))
    return plan_of(rows, tuple(axes))


SHAPES = {
    "empty": lambda: plan_of([]),
    "one": one,
    "six": six,
    "twelve": twelve,
    "fit": fit,
    "fit_with_its_row": fit_with_its_row,
    "fits": fits,
    "cheapest": cheapest,
    "budget": budget,
    "no_way": lambda: budget(ways=False),
    "unfollowed": unfollowed,
    "many": many,
    "hostile": hostile,
}
