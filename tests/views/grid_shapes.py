"""Invented grids of trainings of every shape."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from vramscope.lab.grid import CANNOT_RUN, FAILED, TRAINED, Epoch, Grid, Memory, Reading, Training
from vramscope.units import GIB, MIB

HOSTILE = r"</svg><script>alert(1)</script>$\frac{\bad$ _a_ \x & 'q'" + "\x1b[31m\x00\n"
"""A name that would run, paint or break a formula, if it ever got out as it is."""


def memory(total_gib: float, held_mib: int = 1800) -> Memory:
    """A process of so many GiB, most of its allocated bytes activations."""
    total = round(total_gib * GIB)
    categories = {
        "activation": held_mib * MIB,
        "parameter": 43 * MIB,
        "optimizer_state": 86 * MIB,
        "kv_cache": 0,
    }
    return Memory(sum(categories.values()), total - 154 * MIB, total, categories)


def epochs(number: int, loss: float = 4.7, tested: bool = True) -> tuple[Epoch, ...]:
    """The loss halves in each."""
    return tuple(
        Epoch(each, loss / 2**each, 1 - 0.9**each, loss / 1.5**each if tested else None, 1 - 0.95**each if tested else None, 12.5, 64)
        for each in range(1, number + 1)
    )  # fmt: skip


def cell(precision: str, tune: str, total_gib: float, held_mib: int = 1800, **more: object) -> Training:
    known: dict[str, object] = {
        "parameters": 11_228_838,
        "trainable": 11_228_838,
        "epochs": epochs(1),
        "seconds_per_step": 0.612,
        "samples_per_second": 26.1,
        "predicted": memory(total_gib, held_mib),
        "predicted_fits": True,
    }
    return Training(precision, tune, **{"verdict": TRAINED, **known, **more})  # type: ignore[arg-type]


def grid_of(*cells: Training, **more: object) -> Grid:
    known: dict[str, object] = {
        "model": "resnet18",
        "data": "fake",
        "device": "cpu (Intel Xeon)",
        "batch": 16,
        "image": 64,
        "epochs": max((len(each.epochs) for each in cells), default=1),
        "optimizer": "adam",
        "seed": 0,
        "card": "rtx-3060",
        "predicted_batch": 90,
        "predicted_image": 224,
        "versions": {"torch": "2.14.1", "timm": "1.0.31"},
        "train_images": 64,
        "test_images": 64,
        "kept_in": "train.sqlite",
    }
    return Grid(cells=cells, **{**known, **more})  # type: ignore[arg-type]


def article() -> Grid:
    """The article's six cells with its readings, and the true freeze and LoRA beside them."""
    told = {
        ("fp32", "full"): (3.70, 1800, 5.0),
        ("fp32", "article-freeze"): (3.70, 1800, 5.0),
        ("fp32", "article-lora"): (3.78, 2760, 5.1),
        ("fp32", "freeze:0.95"): (1.07, 0, None),
        ("amp-fp16", "full"): (1.98, 980, 3.0),
        ("amp-fp16", "article-freeze"): (1.98, 980, 3.0),
        ("amp-fp16", "article-lora"): (2.09, 1500, 3.2),
        ("amp-fp16", "lora:4"): (1.93, 1350, None),
    }
    loop = "its loop sets requires_grad on modules, where nothing reads it: all 11,228,838 parameters still train"
    reasons = {
        1800: (),
        0: ("activations fell by 1.81 GiB: what is frozen keeps nothing", "inputs fell by 1 KiB"),
    }
    amp = ("activations fell by 834 MiB: only this runs under autocast", "workspaces rose by 1 MiB")
    return grid_of(
        *(
            cell(
                *name,
                total,
                held,
                why=(loop, "nothing that matters changed")
                if name[1] == "article-freeze"
                else reasons.get(held, amp),
            )
            for name, (total, held, _) in told.items()
        ),
        article=tuple(
            Reading(*name, read, memory(total, held))
            for name, (total, held, read) in told.items()
            if read is not None
        ),
    )


def mixed() -> Grid:
    """One that trained, one that failed, one that cannot run, one that does not fit, one that nothing is known of."""
    return grid_of(
        cell("fp32", "full", 3.70),
        cell(
            "fp32",
            "dora:4",
            3.1,
            verdict=FAILED,
            why_not="out of memory on cuda; try a smaller --batch",
            epochs=(),
        ),
        Training(
            "bf16", "lora:4", CANNOT_RUN, "tune=lora:4 needs peft, which is not installed: pip install peft"
        ),
        cell(
            "amp-bf16",
            "full",
            13.2,
            9000,
            predicted_fits=False,
            samples_per_second=None,
            seconds_per_step=None,
        ),
        Training("amp-bf16", "lora:4", FAILED, "its process was ended by SIGKILL"),
        reused=2,
        notes=("amp-bf16 · lora:4 could not be predicted: ValueError: no",),
    )


def measured() -> Grid:
    """Ten epochs on a card at the sizes of the predictions; the data have no test part."""
    cells = [
        cell(
            precision,
            tune,
            total,
            500,
            measured=memory(total * 1.02, 500),
            epochs=epochs(10, tested=False),
            shortest_step_seconds=0.077 if precision == "fp32" else 0.039,
        )
        for (precision, tune), total in zip(
            product(("fp32", "amp-fp16"), ("full", "lora:4")), (3.7, 2.97, 1.98, 1.93), strict=True
        )
    ]
    return grid_of(
        *cells,
        device="cuda (NVIDIA GeForce RTX 3060)",
        batch=90,
        image=224,
        train_images=1020,
        test_images=None,
    )


def hostile() -> Grid:
    """Names from somewhere else, and a training that diverged."""
    nan = tuple(replace(each, train_loss=float("nan"), test_loss=float("inf")) for each in epochs(3))
    return grid_of(
        cell("fp32", "full", 3.7, epochs=nan, why=(HOSTILE,)),
        cell("fp32", HOSTILE, 3.6, epochs=epochs(3), samples_per_second=0.01),
        Training(HOSTILE, "full", FAILED, HOSTILE),
        model=HOSTILE,
        data=HOSTILE,
        device=HOSTILE,
        card=HOSTILE,
        kept_in=HOSTILE,
        notes=(HOSTILE,),
    )


def many() -> Grid:
    return grid_of(
        *(
            cell(
                precision,
                f"freeze:0.{number:02}",
                3.7 - number / 10,
                1800 - 50 * number,
                why=("activations fell",),
            )
            for precision in ("fp32", "amp-fp16", "amp-bf16", "bf16")
            for number in range(6)
        )
    )


SHAPES = {
    "one": lambda: grid_of(cell("fp32", "full", 3.7)),
    "article": article,
    "mixed": mixed,
    "measured": measured,
    "hostile": hostile,
    "many": many,
    "unpredicted": lambda: grid_of(
        cell("fp32", "full", 3.7, predicted=None, predicted_fits=None),
        notes=("nothing is predicted: the virtual card needs Linux",),
    ),
    "nothing": lambda: grid_of(),
}
