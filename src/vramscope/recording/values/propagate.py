"""Known inputs give known outputs: the same operator, on the host copies.

Which kind an operator is decides what constants do, so that an all-ones mask of any size stays one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from vramscope.recording.values import arithmetic, kernels
from vramscope.recording.values.contents import FLOATS_LIMIT, Scalar
from vramscope.recording.values.inputs import Inputs
from vramscope.recording.values.known import (
    contents_of,
    forget,
    note_constant,
    note_counted,
    note_values,
)
from vramscope.recording.values.numbers import tensor_places, with_tensors

Fold = Callable[["_Results", Inputs, Sequence[Tensor], dict[str, Any]], Scalar | None]
"""fold(results, inputs, outs, kwargs): the one value of the first result; None: not so simple."""
Guess = Callable[[Sequence[Tensor], tuple[Any, ...], dict[str, Any]], None]
"""guess(outs, args, kwargs) notes what is assumed of the results when the inputs are unknown."""

#: Each element of the result comes from the elements at the same place.
POINTWISE = """
    eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar
    gt.Tensor gt.Scalar ge.Tensor ge.Scalar isnan isposinf isneginf
    logical_and logical_or logical_xor logical_not
    bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor bitwise_not
    bitwise_left_shift.Tensor bitwise_right_shift.Tensor
    add.Tensor sub.Tensor mul.Tensor div.Tensor div.Tensor_mode floor_divide rsub.Tensor
    remainder.Tensor fmod.Tensor neg abs sign sgn minimum maximum
    clamp clamp.Tensor where.self floor ceil round trunc reciprocal
""".split()

#: The same, written into the first argument.
POINTWISE_IN_PLACE = """
    eq_.Tensor eq_.Scalar ne_.Tensor ne_.Scalar lt_.Tensor lt_.Scalar gt_.Tensor gt_.Scalar
    le_.Tensor le_.Scalar ge_.Tensor ge_.Scalar logical_and_ logical_or_ logical_not_
    bitwise_and_.Tensor bitwise_or_.Tensor bitwise_xor_.Tensor bitwise_not_
    add_.Tensor sub_.Tensor mul_.Tensor div_.Tensor div_.Tensor_mode floor_divide_.Tensor
    remainder_.Tensor fmod_.Tensor neg_ abs_ clamp_ clamp_.Tensor
    masked_fill_.Scalar masked_fill_.Tensor
""".split()

#: Each element of the first result is one of the first argument's.
PICKING = """
    index.Tensor index_select gather take flip roll max.dim min.dim max min amax amin
    all all.dim all.dims any any.dim any.dims sort.stable topk median median.dim mode kthvalue cummax cummin
""".split()

OTHER = """
    cat tril triu prod prod.dim_int cumsum cumprod count_nonzero.dim_IntList argmax argmin aminmax
    isin.Tensor_Tensor isin.Tensor_Scalar isin.Scalar_Tensor
    searchsorted.Tensor searchsorted.Scalar bucketize.Tensor
    scatter.value scatter.src scatter_add scatter_reduce.two index_add index_copy
""".split()

OTHER_IN_PLACE = """
    scatter_.value scatter_.src scatter_add_ scatter_reduce_.two index_add_ index_copy_
    index_fill_.int_Scalar index_fill_.int_Tensor masked_scatter_ cumsum_ cumprod_ tril_ triu_ put_
""".split()


def install(guesses: dict[str, Guess]) -> None:
    """Replaces the kernels of all operators above; `guesses` says what unknown inputs give."""
    folds = dict.fromkeys(POINTWISE, _same_everywhere) | dict.fromkeys(PICKING, _first_value)
    folds |= dict.fromkeys(OTHER, _no_fold) | {"sum.dim_IntList": _sum, "mean.dim": _first_value}
    for name, fold in folds.items():
        _install(name, fold, guesses.get(name))
    in_place = dict.fromkeys(POINTWISE_IN_PLACE, _same_everywhere) | dict.fromkeys(OTHER_IN_PLACE, _no_fold)
    for name, fold in in_place.items():
        _install_in_place(name, _functional(name), fold)
    _install_in_place("_index_put_impl_", "index_put", _no_fold)


def _functional(name: str) -> str:
    """The operator that returns what `name` writes in place."""
    packet, _, overload = name.partition(".")
    with_overload = f"{packet[:-1]}.{overload}" if overload else packet[:-1]
    return with_overload if kernels.has_operator(with_overload) else packet[:-1]


def _install(name: str, fold: Fold, guess: Guess | None) -> None:
    places, note_results = tensor_places(name), _Results(name, name, fold)

    def make(call: kernels.Call) -> kernels.Kernel:
        def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            out = call(keyset, *with_tensors(args, places), **kwargs)
            outs: Sequence[Tensor] = (out,) if isinstance(out, Tensor) else out
            if outs[0].is_floating_point() and (kernels.in_backward() or _is_hopeless(outs, args)):
                return out
            if not note_results(outs, Inputs(args), kwargs) and guess is not None:
                guess(outs, args, kwargs)
            return out

        return kernel

    kernels.replace(name, make)


def _install_in_place(name: str, functional: str, fold: Fold) -> None:
    # Host copies are shared and never written to, hence the functional form.
    places, note_results = tensor_places(name), _Results(name, functional, fold)

    def make(call: kernels.Call) -> kernels.Kernel:
        def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            this = args[0]
            if this.is_floating_point() and (this.numel() > FLOATS_LIMIT or kernels.in_backward()):
                return call(keyset, *with_tensors(args, places), **kwargs)
            if not kwargs and note_results.count(this, args):
                return call(keyset, *with_tensors(args, places))
            if name.startswith("scatter_.") and contents_of(this) is None and _overwrites(this, args):
                note_constant(this, 0)  # whatever was there, none of it is left
            inputs = Inputs(args)
            out = call(keyset, *with_tensors(args, places), **kwargs)
            if not note_results((this,), inputs, kwargs, in_place=True):
                forget(this)
            return out

        return kernel

    kernels.replace(name, make)


def _overwrites(this: Tensor, args: Sequence[Any]) -> bool:
    """Whether as many places are written as there are: how a permutation is inverted."""
    index = args[2] if len(args) > 2 else None
    return isinstance(index, Tensor) and index.numel() == this.numel() and not this.is_floating_point()


class _Results:
    """Notes the values of an operator's results if those of its inputs are known; says whether they were."""

    __slots__ = ("fold", "on_host", "places", "rule")

    def __init__(self, name: str, functional: str, fold: Fold) -> None:
        self.on_host = kernels.operator(functional)
        self.places = tensor_places(functional)
        self.rule = arithmetic.rule(name)
        self.fold = fold

    def __call__(
        self, outs: Sequence[Tensor], inputs: Inputs, kwargs: dict[str, Any], in_place: bool = False
    ) -> bool:
        if not inputs.views:
            return False
        value = self.fold(self, inputs, outs, kwargs)
        if value is not None:
            note_constant(outs[0], value, inputs.assumed, in_place=in_place)
            if len(outs) == 1:
                return True
        if inputs.unknown or inputs.too_large():
            return False
        self._note_computed(outs, inputs, kwargs, in_place, 0 if value is None else 1)
        return True

    def count(self, this: Tensor, args: Sequence[Any]) -> bool:
        """The short way for `counter += 1`: a constant and a number, in place."""
        if self.rule is None or len(args) != 2 or type(args[1]) is not int:
            return False
        return note_counted(this, self.rule, args[1])

    def computed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The operator's results on host tensors."""
        return self.on_host(*with_tensors(args, self.places), **kwargs)

    def _note_computed(
        self, outs: Sequence[Tensor], inputs: Inputs, kwargs: dict[str, Any], in_place: bool, first: int
    ) -> None:
        results: list[Sequence[Tensor]] = []

        def result(place: int) -> Tensor:
            if not results:
                found = self.computed(inputs.on_host(), kwargs)
                results.append((found,) if isinstance(found, Tensor) else found)
            return results[0][place]

        for place, out in enumerate(outs):
            if place >= first and out.is_cuda:
                note_values(
                    out, partial(result, place), inputs.assumed, depth=inputs.depth, in_place=in_place
                )


def _is_hopeless(outs: Sequence[Tensor], args: tuple[Any, ...]) -> bool:
    """Whether a number that comes out alone, without indices, is surely unknown."""
    if len(outs) != 1:
        return False
    first = args[0]
    return outs[0].numel() > FLOATS_LIMIT or (
        isinstance(first, Tensor) and first.is_floating_point() and first.numel() > FLOATS_LIMIT
    )


def _same_everywhere(
    results: _Results, inputs: Inputs, outs: Sequence[Tensor], kwargs: dict[str, Any]
) -> Scalar | None:
    if inputs.unknown or inputs.varied:
        return None
    if results.rule is not None:
        return results.rule(*inputs.as_scalars(), **kwargs)
    value: Scalar = results.computed(inputs.as_points(), kwargs).item()
    return value


def _first_value(
    results: _Results, inputs: Inputs, outs: Sequence[Tensor], kwargs: dict[str, Any]
) -> Scalar | None:
    first = inputs.first()
    return first.contents.value if first is not None and 0 not in first.size else None


def _sum(results: _Results, inputs: Inputs, outs: Sequence[Tensor], kwargs: dict[str, Any]) -> Scalar | None:
    first = inputs.first()
    if first is None or first.contents.value is None or 0 in first.size:
        return None
    value: Scalar = first.contents.value * (first.numel() // outs[0].numel())
    return value


def _no_fold(
    results: _Results, inputs: Inputs, outs: Sequence[Tensor], kwargs: dict[str, Any]
) -> Scalar | None:
    return None
