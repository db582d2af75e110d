"""Why a category takes more or less: what the two runs' models, optimizers, inputs and flags say about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vramscope.analysis.compare.figures import Comparison, ModulePair
from vramscope.analysis.compare.side import Side
from vramscope.analysis.explain.places import count
from vramscope.run.categories import (
    ACTIVATION,
    AUTOCAST_CACHE,
    COMMUNICATION,
    GRADIENT,
    INPUT,
    KV_CACHE,
    OPTIMIZER_STATE,
    PARAMETER,
    TEMPORARY,
    WORKSPACE,
)
from vramscope.run.trace import AUTOCAST, RECOMPUTE
from vramscope.units import format_bytes

_DIFFERS = 1.02
"""Two figures are different from this ratio on."""
_SAME_MODEL = 1.2
"""Up to this ratio of their parameters two models are one, with adapters or without."""
_ALIKE_INPUTS = 256
"""Beyond this ratio the inputs are of another kind, images and numbers of tokens, and say nothing of a batch."""


def why(category: str, a: Side, b: Side, found: Comparison) -> Iterator[str]:
    """What explains a change of this category, in parts of a sentence; nothing where nothing is known to."""
    if category == PARAMETER:
        yield from _elements("parameters", a.sizes.parameters, b.sizes.parameters)
        yield from _widths("parameter", a, b, PARAMETER, (a.sizes.parameters, b.sizes.parameters))
    elif category == GRADIENT:
        yield from _trained("gradient", a, b, GRADIENT)
    elif category == OPTIMIZER_STATE:
        yield from _optimizers(a, b)
        yield from _trained("optimizer state", a, b, OPTIMIZER_STATE)
    elif category == ACTIVATION:
        yield from _activations(a, b, found.modules)
    elif category == INPUT:
        yield from _times("they take", a.highest[INPUT], b.highest[INPUT])
    elif category in (AUTOCAST_CACHE, COMMUNICATION, KV_CACHE):
        yield from _only_one_has(category, a, b)
    elif category in (TEMPORARY, WORKSPACE):
        yield from _scratch(category, a, b, found)


def _only_one_has(category: str, a: Side, b: Side) -> Iterator[str]:
    if not a.highest[category] or not b.highest[category]:
        yield f"{'A' if b.highest[category] else 'B'} has none"
    elif category == KV_CACHE:
        yield from _times("inputs take", a.highest[INPUT], b.highest[INPUT])
        yield from _autocast(a, b)


def _elements(what: str, a: int, b: int) -> Iterator[str]:
    if a and b and _differ(a, b):
        yield f"{_millions(b)} instead of {_millions(a)} {what}"


def _widths(what: str, a: Side, b: Side, category: str, elements: tuple[int, int]) -> Iterator[str]:
    """Bytes for each of them, where that differs."""
    if not all(elements):
        return
    one, other = (side.highest[category] / each for side, each in zip((a, b), elements, strict=True))
    if one and other and _differ(one, other):
        yield f"{other:.1f} instead of {one:.1f} bytes a {what}"


def _trained(what: str, a: Side, b: Side, category: str) -> Iterator[str]:
    trainable = a.trainable, b.trainable
    if category == OPTIMIZER_STATE and bool(a.steps) != bool(b.steps):
        yield f"{'A' if b.steps else 'B'} has no complete step, in which its optimizer would make them"
        return
    if _trains_other(a, b):
        yield f"{_millions(trainable[1])} instead of {_millions(trainable[0])} trainable parameters"
    yield from _widths(f"trainable parameter of {what}", a, b, category, trainable)


def _optimizers(a: Side, b: Side) -> Iterator[str]:
    one, other = _kinds(a), _kinds(b)
    if one and other and one != other:
        yield f"{other} instead of {one}"


def _kinds(side: Side) -> str:
    assert side.trace is not None
    return " and ".join(dict.fromkeys(each.kind for each in side.trace.tables.optimizers))


def _activations(a: Side, b: Side, modules: Sequence[ModulePair]) -> Iterator[str]:
    yield from _times("inputs take", a.highest[INPUT], b.highest[INPUT])
    recomputing = a.has_flag(RECOMPUTE), b.has_flag(RECOMPUTE)
    if recomputing[0] != recomputing[1]:
        yield f"{'B' if recomputing[1] else 'A'} runs forwards again in backward (checkpointing) and keeps less of them"
    yield from _autocast(a, b)
    if one_froze(a, b):
        yield _of_frozen(a, b)
    yield from _only_in("B", [each for each in _topmost(modules, "a") if each.b is not None])
    yield from _only_in("A", [each for each in _topmost(modules, "b") if each.a is not None])
    blocks = len(a.live(ACTIVATION)), len(b.live(ACTIVATION))
    if all(blocks) and _differ(*blocks):
        yield f"{count(blocks[1], 'tensor')} instead of {blocks[0]:,}"


def _of_frozen(a: Side, b: Side) -> str:
    """What freezing does to activations: little, unless nothing below trains either."""
    if a.highest[ACTIVATION] < b.highest[ACTIVATION]:
        return "layers that are frozen still run forward, and keep what backward through them needs"
    name, stay = ("B", b) if b.trainable < a.trainable else ("A", a)
    kept = format_bytes(stay.highest[ACTIVATION])
    return f"layers that are frozen in {name} do not keep what only their own gradients need; {kept} stay"


def _topmost(modules: Sequence[ModulePair], side: str) -> Iterator[ModulePair]:
    """The modules that a run does not have; not those within another of them."""
    for each in modules:
        if getattr(each, side) is None:
            yield each
        else:
            yield from _topmost(each.children, side)


def _only_in(name: str, modules: Sequence[ModulePair]) -> Iterator[str]:
    by_name: dict[str, int] = {}
    for each in modules:
        held, label = each.a or each.b, each.path.rpartition(".")[2]
        by_name[label] = by_name.get(label, 0) + (held.activation_bytes if held else 0)
    kept = sum(by_name.values())
    if kept:
        top = sorted(by_name, key=lambda label: -by_name[label])[:3]
        yield f"modules that only {name} has ({', '.join(top)}) keep {format_bytes(kept)}"


def _autocast(a: Side, b: Side) -> Iterator[str]:
    shares = a.flagged(ACTIVATION, AUTOCAST), b.flagged(ACTIVATION, AUTOCAST)
    if min(shares) < 0.1 and max(shares) > 0.5:
        yield f"only {'B' if shares[1] > shares[0] else 'A'} runs under autocast"


def _scratch(category: str, a: Side, b: Side, found: Comparison) -> Iterator[str]:
    one, other = a.phase(category), b.phase(category)
    if one != other and one and other:
        yield f"most are there in {phase_words(other)} instead of {phase_words(one)}"
    elif one == "optimizer_step" and _trains_other(a, b):
        trainable = f"{_millions(b.trainable)} instead of {_millions(a.trainable)}"
        yield f"the optimizer's step makes them, for {trainable} trainable parameters"
    elif one != "optimizer_step":
        yield from _times("inputs take", a.highest[INPUT], b.highest[INPUT])
    if category == TEMPORARY and "optimizer_step" in (one, other):
        yield from _steps_otherwise(_ways(a), _ways(b))
    chosen_by = [each.name for each in found.conditions if each.name in ("card", "torch", "cuDNN", "CUDA")]
    if category == WORKSPACE and chosen_by:
        yield f"cuBLAS and cuDNN choose by {' and '.join(chosen_by)}, which differ"


def _ways(side: Side) -> str:
    assert side.trace is not None
    ways = {
        "fused kernels" if each.fused else "a loop" if each.foreach is False else "foreach"
        for each in side.trace.tables.optimizers
    }
    return " and ".join(sorted(ways))


def _steps_otherwise(a: str, b: str) -> Iterator[str]:
    if a and b and a != b:
        yield f"the optimizer steps by {b} instead of {a}"


def _trains_other(a: Side, b: Side) -> bool:
    """Whether they train another number of parameters, as far as both are known."""
    known = a.sizes.parameters and b.sizes.parameters
    return bool(known) and _differ(a.trainable, b.trainable)


def _times(what: str, a: int, b: int) -> Iterator[str]:
    if a and b and _differ(a, b) and max(a, b) <= _ALIKE_INPUTS * min(a, b):
        yield f"{what} {b / a:.3g} times as much"


def one_froze(a: Side, b: Side) -> bool:
    """Whether they are of one model, of which one trains a part and the other more."""
    known = a.sizes.parameters, b.sizes.parameters
    if not all(known) or max(known) > _SAME_MODEL * min(known) or not _trains_other(a, b):
        return False
    fewer = a if a.trainable < b.trainable else b
    return _differ(fewer.sizes.trainable, fewer.sizes.parameters)


def _differ(a: float, b: float) -> bool:
    return max(a, b) > _DIFFERS * min(a, b)


def phase_words(name: str) -> str:
    """A phase as a word."""
    return name.replace("_", " ")


def _millions(number: int) -> str:
    if number < 100_000:
        return f"{number:,}"
    millions = number / 1e6
    return f"{millions:,.0f} M" if millions >= 100 else f"{millions:.1f} M"
