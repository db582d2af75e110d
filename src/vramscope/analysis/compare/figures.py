"""What a comparison consists of: figures of two runs side by side, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of both runs, in bytes."""

    name: str
    a_bytes: int | None
    """None: not known, or it has no such phase."""
    b_bytes: int | None

    @property
    def change_bytes(self) -> int | None:
        """B minus A; None unless both are known."""
        return None if self.a_bytes is None or self.b_bytes is None else self.b_bytes - self.a_bytes


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that the two runs were made under and that is not the same."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a figure changed, or why it did not, as a sentence without a full stop."""

    about: str
    """The category or figure: gradient, peak, reserved, outside …"""
    sentence: str
    change_bytes: int | None
    """B minus A; None where it is not about bytes."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a module and all below it hold, each category when all modules together hold most of it."""

    activation_bytes: int = 0
    """Saved for backward."""
    parameter_bytes: int = 0
    gradient_bytes: int = 0
    optimizer_state_bytes: int = 0

    def __add__(self, other: Held) -> Held:
        """The figures of both."""
        return Held(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Held)))

    @property
    def total_bytes(self) -> int:
        """All four."""
        return sum(self.figures())

    def figures(self) -> tuple[int, int, int, int]:
        """The four, in order."""
        return (
            self.activation_bytes,
            self.parameter_bytes,
            self.gradient_bytes,
            self.optimizer_state_bytes,
        )


@dataclass(frozen=True, slots=True)
class ModulePair:
    """A module of both runs, with what is below it."""

    path: str
    """As A has it, else as B does, without the outermost class."""
    a: Held | None
    """None: it has no such module."""
    b: Held | None
    children: tuple[ModulePair, ...] = ()
    copies: int = 1
    """So many numbered siblings that changed alike are told together, their figures summed."""
    last: str = ""
    """The path of the last of them."""

    @property
    def changes(self) -> tuple[int, int, int, int]:
        """B minus A of activations, parameters, gradients, optimizer states; no such module counts as 0."""
        pairs = zip((self.a or Held()).figures(), (self.b or Held()).figures(), strict=True)
        activation, parameter, gradient, state = (after - before for before, after in pairs)
        return activation, parameter, gradient, state

    @property
    def moved_bytes(self) -> int:
        """How much changed, up or down."""
        return sum(map(abs, self.changes))


@dataclass(frozen=True, slots=True)
class About:
    """One of the two runs."""

    name: str
    origin: str
    """predicted, measured or imported"""
    has_report: bool
    has_history: bool
    """Without one there is nothing but the report's figures, if that."""
    steps: int
    """Complete optimizer steps."""
    ended: str | None
    """How it ended, if it did not come to its end; its figures are then lower bounds."""
    peak_phase: str | None
    """Where allocated peaked."""
    peak_step: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side."""

    a: About
    b: About
    is_residual: bool
    """One is predicted and the other measured: changes are residuals, measured − predicted."""
    conditions: tuple[Condition, ...]
    totals: tuple[Pair, ...]
    """Peak allocated, peak reserved, process total, outside."""
    categories: tuple[Pair, ...]
    """At each one's own allocated peak: they sum to allocated there."""
    highest: tuple[Pair, ...]
    """The most that each category ever held, at whatever moment."""
    phases: tuple[Pair, ...]
    """Peak allocated within each phase of the steady step, and of what came before the first step."""
    modules: tuple[ModulePair, ...]
    """Trees from the outermost modules; empty unless both runs know modules."""
    reasons: tuple[Reason, ...]
    """The weightiest first."""

    @property
    def direction(self) -> int:
        """What changes are multiplied with: −1 where A is measured and B predicted, so that they are residuals."""
        return -1 if self.is_residual and self.a.origin == "measured" else 1

    def residual_bytes(self, pair: Pair) -> int | None:
        """Measured minus predicted; None where a figure is not known, or where this compares something else."""
        change = pair.change_bytes
        return None if not self.is_residual or change is None else self.direction * change

    def residual_share(self, pair: Pair) -> float | None:
        """The residual as a share of the predicted figure."""
        residual = self.residual_bytes(pair)
        predicted = pair.a_bytes if self.direction > 0 else pair.b_bytes
        return residual / predicted if residual is not None and predicted else None
