"""ZeRO and FSDP: what a rank of many holds."""

from __future__ import annotations

from vramscope.errors import UsageError
from vramscope.theory.formula import Formula
from vramscope.theory.schemes import Scheme

_ZERO = "Rajbhandari et al. 2020, ZeRO, section 5"
_BESIDE = "Communication buffers, buckets and activations are not in it."


def sharded(parameters: int, ranks: int, scheme: Scheme, state: float | None) -> tuple[Formula, ...]:
    """Bytes of weights, gradients, copies and states on each of so many ranks; `state`: the states of one parameter."""
    if ranks < 1:
        raise UsageError(f"{ranks} ranks cannot be: at least one")
    weights, gradients = scheme.weight, scheme.gradient + scheme.master_gradient
    rest = None if state is None else scheme.master + state

    def per_rank(whole: float, split: float | None) -> int | None:
        return None if split is None else round(parameters * (whole + split / ranks))

    rows = (
        ("DDP", "W + G + O", weights + gradients + (rest or 0), 0 if rest is not None else None),
        ("ZeRO-1", "W + G + O/N", weights + gradients, rest),
        ("ZeRO-2", "W + (G + O)/N", weights, None if rest is None else gradients + rest),
        (
            "ZeRO-3, FSDP",
            "(W + G + O)/N",
            0,
            None if rest is None else weights + gradients + rest,
        ),
    )
    given = {"parameters": parameters, "ranks": ranks, "scheme": scheme.name}
    return tuple(
        Formula(
            name,
            expression,
            {"rank_bytes": per_rank(whole, split)},
            _ASSUMED[name],
            _ZERO if name != "DDP" else "torch/nn/parallel/distributed.py",
            given,
        )
        for name, expression, whole, split in rows
    )


_ASSUMED = {
    "DDP": f"Every rank has all of it; buckets are a second set of gradients unless gradient_as_bucket_view. {_BESIDE}",
    "ZeRO-1": f"States, and a master copy, are split evenly. {_BESIDE}",
    "ZeRO-2": f"A gradient is given up as soon as its owner has it. {_BESIDE}",
    "ZeRO-3, FSDP": "Whole weights of the layer at work, and of the next one that is fetched ahead, come and go beside "
    f"it. {_BESIDE}",
}
