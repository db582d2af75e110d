"""Holds formulas against a run on the virtual card: it is run twice, as it is and watched."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from vramscope.analysis.compare.side import Side, side_of
from vramscope.cards import find_card
from vramscope.errors import RecipeError, UsageError
from vramscope.jobs.facts import DETECTION
from vramscope.jobs.work import Work
from vramscope.planning.points import Request, cell_of, why_not
from vramscope.planning.result import FAILED, Outcome
from vramscope.planning.running import run_cell
from vramscope.run.categories import (
    ACTIVATION,
    AUTOCAST_CACHE,
    BUFFER,
    GRADIENT,
    INPUT,
    KV_CACHE,
    OPTIMIZER_STATE,
    PARAMETER,
    TEMPORARY,
    UNKNOWN,
    WORKSPACE,
)
from vramscope.run.store import run_from_bytes
from vramscope.theory import rates
from vramscope.theory.adapters import lora, nf4_bytes
from vramscope.theory.blocks import activations as transformer_activations
from vramscope.theory.blocks import kv_cache, step_flops
from vramscope.theory.claims import CLAIMS
from vramscope.theory.formula import Formula
from vramscope.theory.held import ClaimHeld, Held, Row
from vramscope.theory.operations import backward_flops, forward_flops, miscounted_flops
from vramscope.theory.saving import activations, cast_bytes, rounded
from vramscope.theory.schemes import scheme_of
from vramscope.theory.seen import Parameter, Seen
from vramscope.theory.states import states_of
from vramscope.theory.watched import seen_of
from vramscope.units import format_bytes


def held(work: Work, card: str) -> Held:
    """Runs the workload twice, as it is and watched, and holds the formulas against it.

    RecipeError if it cannot run; a run that does not fit is taken as it is on memory without end."""
    if sentence := why_not(work) or _unwatchable(work):
        raise RecipeError(sentence)
    outcome = run_cell(cell_of(work, card, Request(work.source, cards=(card,))))
    if outcome.result.verdict == FAILED:
        raise RecipeError(f"{work.source.text} cannot be run: {outcome.result.why}")
    return Holding(work, card, outcome, seen_of(work, card)).result()


def _unwatchable(work: Work) -> str | None:
    if work.task == DETECTION:
        return (
            f"task={DETECTION}: its shapes follow from values that a watched run lacks; take task=inference"
        )
    if work.recipe["compile"] == "off":
        return None
    return (
        f"compile={work.recipe['compile']}: compiled code has no layers that formulas could be held against"
    )


class Holding:
    """One comparison in the making."""

    def __init__(self, work: Work, card: str, outcome: Outcome, seen: Seen) -> None:
        self.work, self.card, self.seen, self.outcome = work, card, seen, outcome
        run = outcome.unlimited or outcome.run
        assert run is not None  # history was asked for
        self.side: Side = side_of(run_from_bytes(run))
        self.activation_bytes, self.layers = activations(seen)
        self.trained = [each for each in seen.parameters if each.trained and self.work.trains]

    def result(self) -> Held:
        """The comparison."""
        rows = tuple(self._rows())
        counted = sum(math.prod(each.shape) for each in self.seen.parameters)
        return Held(
            self.work.source.text,
            self.work.facts.kind,
            self.card,
            self._positions(),
            counted,
            sum(math.prod(each.shape) for each in self.trained),
            rows,
            self.layers,
            tuple(self._others()),
            tuple(self._claims(counted)) if self.work.trains else (),
            self._unsaved(),
            self.outcome.result,
            self._flops(),
            self.seen.flops,
            self._flops_why(),
            tuple(self._speed()),
            self.outcome.result.notes,
        )

    def _positions(self) -> dict[str, str]:
        names = ("task", "batch", "seq", "image", "new-tokens", "precision")
        training = ("tune", "optimizer") if self.work.trains else ()
        found = {name: self.work.recipe[name] for name in (*names, *training)} | self.work.recipe.turned()
        return {name: position for name, position in found.items() if position != "auto"}

    def _rows(self) -> Iterator[Row]:
        copied = _EMA_WHY if self.work.trains and self.work.recipe["ema"] != "off" else ""
        yield self._row(PARAMETER, self._weights(), copied)
        yield self._row(BUFFER, self._buffers(), copied)
        if self.work.trains:
            freed = _IN_BACKWARD_WHY if self._steps_in_backward() else ""
            yield self._row(GRADIENT, self._gradients(), freed or _GRADIENT_WHY)
            yield self._row(OPTIMIZER_STATE, self._states(), *self._states_why())
        if self.side.highest.get(AUTOCAST_CACHE) or cast_bytes(self.seen):
            yield self._row(AUTOCAST_CACHE, self._casts(), _CASTS_WHY)
        frozen = self.work.trains and len(self.trained) < len(self.seen.parameters)
        yield self._row(INPUT, self._inputs(), _INPUT_WHY, _FROZEN_WHY if frozen else "")
        if self.work.trains:
            yield self._row(ACTIVATION, self._activations(), *self._unexplained())
        if self.side.highest.get(KV_CACHE):
            yield self._row(KV_CACHE, self._kv_cache(), *self._cache_why())
        for category, why in _NO_FORMULA.items():
            if self.side.highest.get(category):
                yield self._row(category, None, why)

    def _row(self, category: str, formula: Formula | None, *why: str) -> Row:
        size, asked, rounding = 0, 0, 0
        if self.side.trace is not None and self.side.highest.get(category):
            rows, blocks = self.side.live(category), self.side.trace.blocks
            size = int(blocks.size_bytes[rows].sum())
            asked = int(blocks.requested_bytes[rows].sum())
            rounding = sum(rounded(each) for each in blocks.requested_bytes[rows].tolist()) - asked
        told = None if formula is None else next(iter(formula.values.values()))
        sentences = tuple(each for each in why if each) if told != asked else ()
        if told != asked and formula is not None and not sentences:
            sentences = (_NOBODY_SAYS,)
        return Row(
            category,
            formula,
            None if told is None else int(told),
            size,
            asked,
            rounding,
            size - asked - rounding,
            sentences,
        )

    def _weights(self) -> Formula:
        sizes = [
            nf4_bytes(math.prod(each.shape), self._default_width())
            if each.packed
            else math.prod(each.shape) * each.width
            for each in self.seen.parameters
        ]
        return Formula(
            "parameters",
            "Σ elements · bytes",
            {"parameter_bytes": sum(sizes)},
            "Shared parameters once; weights in 4 bits with their scales and tables.",
            "torch.nn.Module.parameters",
        )

    def _default_width(self) -> int:
        """Bytes of an element of the type that the program makes tensors of."""
        return scheme_of(self.work.recipe["precision"]).weight

    def _buffers(self) -> Formula:
        return Formula(
            "buffers",
            "Σ elements · bytes",
            {"buffer_bytes": self.seen.buffer_bytes},
            "Running means and deviations, counts, tables of positions: no formula per parameter has them.",
            "torch.nn.Module.buffers",
        )

    def _gradients(self) -> Formula:
        size = sum(math.prod(each.shape) * each.width for each in self.trained)
        return Formula(
            "gradients",
            "Σ trained elements · bytes",
            {"gradient_bytes": size},
            "One per trained parameter, in its type, from its backward to zero_grad.",
            scheme_of("fp32").source,
        )

    def _states(self) -> Formula | None:
        owned = [(self._optimizer(each), each) for each in self.trained]
        try:
            named = {name: states_of(name) for name, _ in owned if name}
        except UsageError:
            return None
        size = sum(named[name].of_shape(each.shape, each.width) for name, each in owned if name)
        chosen = tuple(named.values())
        return Formula(
            " and ".join(named),
            "; ".join(each.expression for each in chosen),
            {"state_bytes": size + sum(each.once for each in chosen)},
            " ".join(each.assumption for each in chosen),
            "; ".join(each.source for each in chosen),
        )

    def _optimizer(self, each: Parameter) -> str:
        """The knob's word for the one that has it; "" is none."""
        return self.work.recipe["optimizer"] if self._steps_in_backward() else each.optimizer

    def _steps_in_backward(self) -> bool:
        """Each parameter has an optimizer of its own, which steps as soon as its gradient is there."""
        return self.work.recipe["optimizer-in-backward"] == "on"

    def _states_why(self) -> Iterator[str]:
        if self.work.recipe["optimizer-impl"] == "fused":
            yield _FUSED_WHY
        if "paged" in self.work.recipe["optimizer"]:
            yield _PAGED_WHY

    def _casts(self) -> Formula:
        scheme = scheme_of("amp")
        return Formula(
            "casts",
            "2 · weights of products and convolutions",
            {"cast_bytes": cast_bytes(self.seen)},
            "Casts of weights and biases that train are cached until the forward ends, and saved for backward; that of "
            "a frozen weight is saved only where the gradient goes on through it.",
            scheme.source,
        )

    def _inputs(self) -> Formula:
        sizes = {each.storage: each.storage_bytes for each in self.seen.batch}
        return Formula(
            "data",
            "Σ elements · bytes",
            {"input_bytes": sum(sizes.values())},
            "One batch; the next one may be made before the last one is gone.",
            "the program's batch()",
        )

    def _activations(self) -> Formula:
        return Formula(
            "activations",
            "Σ over layers, equal memory once",
            {"saved_bytes": self.activation_bytes},
            "Only layers with a formula (below); what other code saves is not in it.",
            "vramscope/theory/saving.py, from each layer's formula",
        )

    def _unsaved(self) -> int:
        """Of the activations that are alive when they are most."""
        if self.side.trace is None or not self.side.highest.get(ACTIVATION):
            return 0
        alive = self.side.trace.blocks.requested_bytes[self.side.live(ACTIVATION)]
        return int(alive.sum()) - sum(each.seen_bytes for each in self.layers)

    def _unexplained(self) -> Iterator[str]:
        """What kinds of code saved beyond their formula, the largest first; what nobody saved but something holds."""
        beyond = sorted(
            ((row.seen_bytes - row.saved_bytes, row.kind) for row in self.layers), key=lambda each: -each[0]
        )
        known = {row.kind for row in self.layers if row.calls}
        for size, kind in [each for each in beyond if each[0] > 0][:6]:
            yield f"{_owner(kind, known)} {format_bytes(size)} more"
        for size, kind in [each for each in reversed(beyond) if each[0] < 0][:3]:
            yield f"{kind} saves {format_bytes(-size)} less: other code had saved it before"
        if any(not layer.saves for layer in self.seen.layers):
            yield _DROPPED_WHY
        if unsaved := self._unsaved():
            yield (
                f"{format_bytes(unsaved)} are alive that nothing saved: the loss, and results that are still in use"
                if unsaved > 0
                else f"{format_bytes(-unsaved)} of what was saved are gone when activations are most"
            )

    def _kv_cache(self) -> Formula | None:
        config = self.seen.config
        if not {"layers", "heads", "hidden"} <= set(config):
            return None
        recipe = self.work.recipe
        width = max((each.width for each in self.seen.parameters), default=2)
        tokens = int(recipe["seq"]) + (int(recipe["new-tokens"]) if self.work.task == "generate" else 0)
        return kv_cache(
            layers=config["layers"],
            batch=int(recipe["batch"]),
            seq=tokens,
            head=config.get("head") or config["hidden"] // config["heads"],
            heads=config["heads"],
            kv_heads=config.get("kv_heads", 0),
            window=config.get("window", 0),
            bytes=width,
        )

    def _cache_why(self) -> Iterator[str]:
        yield "the cache grows by joining: old and new keys of a layer are there at once; the last token has none"

    def _others(self) -> Iterator[tuple[Formula, int | None]]:
        config, recipe = self.seen.config, self.work.recipe
        if self.work.trains and {"layers", "hidden", "heads"} <= set(config) and recipe["seq"] != "auto":
            formula = transformer_activations(
                layers=config["layers"],
                batch=int(recipe["batch"]),
                seq=int(recipe["seq"]),
                hidden=config["hidden"],
                heads=config["heads"],
            )
            yield formula, self.side.highest.get(ACTIVATION)
        if adapters := [*self._adapters()]:
            count = sum(int(each.values["parameters"] or 0) for each in adapters)
            yield (
                Formula(
                    f"LoRA beside {len(adapters)} layers",
                    adapters[0].expression,
                    {"parameters": count},
                    adapters[0].assumption,
                    adapters[0].source,
                ),
                self.outcome.result.trained,
            )

    def _adapters(self) -> Iterator[Formula]:
        """Of each layer that has one, from its own weight's shape."""
        by_name = {each.name: each for each in self.seen.parameters}
        for name, each in by_name.items():
            base, mark, _ = name.partition(".lora_A.")
            weight = by_name.get(f"{base}.base_layer.weight")
            if mark and weight is not None:
                outputs, inputs, *kernel = weight.shape
                yield lora(
                    inputs=inputs,
                    outputs=outputs,
                    rank=each.shape[0],
                    kernel=kernel[0] if kernel else 1,
                    bytes=each.width,
                )

    def _claims(self, parameters: int) -> Iterator[ClaimHeld]:
        kept = sum(self.side.highest.get(name, 0) for name in (PARAMETER, GRADIENT, OPTIMIZER_STATE))
        for claim in CLAIMS[:5]:
            size = parameters * claim.per_parameter
            yield ClaimHeld(claim.name, claim.said, claim.per_parameter, size, kept, claim.why)

    def _flops(self) -> int | None:
        total = sum(forward_flops(layer) + backward_flops(layer) for layer in self.seen.layers)
        return total * self.seen.batches or None

    def _miscounted(self) -> int:
        return sum(miscounted_flops(layer) for layer in self.seen.layers) * self.seen.batches

    def _flops_why(self) -> str:
        beyond = (self.seen.flops or 0) - (self._flops() or 0)
        kinds = {miscounted_flops(layer) > 0 for layer in self.seen.layers if miscounted_flops(layer)}
        reasons = [_COUNTER_WHY[kind] for kind in sorted(kinds)]
        if beyond != self._miscounted():
            reasons.append(_PRODUCTS_WHY)
        return "; ".join(reasons)

    def _speed(self) -> Iterator[Formula]:
        card, precision = find_card(self.card), self.work.recipe["precision"]
        kinds = [rates.FP32, rates.TF32, *([precision.removeprefix("amp-")] if "16" in precision else [])]
        yield from (rates.rate(card, kind) for kind in kinds)
        if self.work.recipe["seq"] != "auto" and self.work.trains:
            tokens = int(self.work.recipe["batch"]) * int(self.work.recipe["seq"])
            if len(self.trained) == len(self.seen.parameters):
                yield step_flops(sum(math.prod(each.shape) for each in self.trained), tokens)
        if self.seen.flops:
            grouped = sum(max(miscounted_flops(layer), 0) for layer in self.seen.layers) * self.seen.batches
            convolutions = self.seen.convolution_flops - grouped
            yield rates.shortest_step(card, precision, self.seen.flops - self._miscounted(), convolutions)


def _owner(kind: str, known: Collection[str]) -> str:
    """Whose code it is, with its verb."""
    if kind in known:
        return f"{kind} saves"
    return f"the code of {kind or 'the program itself'}, which has no formula, saves"


_COUNTER_WHY = {
    True: "the counter takes the gradient of a grouped convolution's weight for that of an ungrouped one",
    False: "the counter does not see the forward of 4-bit layers, whose product is a kernel of bitsandbytes",
}
"""By whether it counts too many."""
_PRODUCTS_WHY = (
    "products that none of these layers makes, as attention that is written out or an optimizer's own"
)
_INPUT_WHY = "the next batch is made before the last one is gone"
_FROZEN_WHY = "what frozen layers in front make of the data has no gradient either, and counts as data"
_EMA_WHY = "the average of the weights is a second model"
_IN_BACKWARD_WHY = "a gradient is freed as soon as its parameter has been stepped, within backward"
_PAGED_WHY = (
    "a paged optimizer keeps the states of large parameters where the driver can move them from the card"
)
_GRADIENT_WHY = "a gradient of a tensor that is no parameter, or two of one while they are added"
_FUSED_WHY = "a fused optimizer keeps its count of steps on the card: 4 bytes a parameter"
_NOBODY_SAYS = "nothing here explains it"
_DROPPED_WHY = (
    "what layers within a checkpoint or an offload save is dropped or moved: the formula leaves them out, the run "
    "holds their blocks' inputs, and the inside of a block at a time"
)
_CASTS_WHY = (
    "biases and weights that nothing multiplied, or a cast that is freed once its backward has used it"
)
_NO_FORMULA = {
    TEMPORARY: "comes and goes within a layer or a step of the optimizer: follows from kernels, not from shapes alone",
    WORKSPACE: "cuDNN's and cuBLAS's scratch memory: their choice of algorithm for this card",
    UNKNOWN: "tensors that the program holds and no part of the model names",
}
