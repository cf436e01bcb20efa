"""The recurrence of one head, as sympy expressions of one token: the only statement everything else is derived from.

    S ← update(S)        affine in S, the coefficient free of S: S_t = e^{ℓ_t} S_{t-1} + write_t
    y = read(S) + own    linear in S, before or after the update, and the token's own share; summed over the features
    o = output(y, …)

A quantity is a symbol of these expressions: query, key, value, log_decay and what else a spec brings, each with the
axes it varies along (m features, v values) and its own expression in inputs and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy

from recgen.spec.model import Tensor

from .complex_decay import ComplexStep
from .stabiliser import TRACKS, Stabiliser
from .stable import Expm1
from .widths import Rotate, Turn

SCALE = sympy.Symbol("scale", real=True)
ONE = sympy.S.One
AXIS = {"K": "m", "M": "m", "V": "v", "D": "v"}  # the channels of a vector state are its values


@dataclass(frozen=True)
class Quantity:
    """A per-token value: its symbol in the recurrence, the axes it varies along, and its expression."""

    symbol: sympy.Symbol
    axes: str
    expr: sympy.Expr
    decays: bool = False  # a log-decay, or the part of one that varies along these axes
    exponent: bool = False  # another value that an exponential is taken of

    @property
    def name(self) -> str:
        return str(self.symbol.name)


@dataclass(frozen=True)
class StateRule:
    """One carried value: symbol, axes, the update of one token, how the token reads it, and its name in the State.

    `read` is linear in the state, and `own` what a token adds to its own read beside the state. Where `before` holds,
    the token reads the state that its predecessor left.
    """

    symbol: sympy.Symbol
    axes: str
    update: sympy.Expr
    read_name: str
    read: sympy.Expr
    field: str = ""
    own: sympy.Expr = sympy.S.Zero
    before: bool = False

    @property
    def name(self) -> str:
        return str(self.symbol.name)


@dataclass(frozen=True)
class Recurrence:
    """The one-step statement. `output` is an expression in the reads' names and in quantities.

    Where it is not `causal`, every token reads what the states are after the last one, from nothing before the first.
    """

    quantities: Mapping[str, Quantity]
    states: tuple[StateRule, ...]
    output: sympy.Expr
    tensors: Mapping[str, Tensor]
    stabiliser: Stabiliser | None = None
    causal: bool = True
    complex_step: ComplexStep | None = None  # what it was before, where the decay is complex

    @property
    def tracks(self) -> dict[str, str]:
        """The maxima that quantities are relative to, with their axes; they are given with the inputs."""
        used = {s for q in self.quantities.values() for s in q.expr.free_symbols}
        held = self.stabiliser
        return {s.name: held.axes_of(s) for s in TRACKS if s in used} if held is not None else {}

    @property
    def log_decays(self) -> tuple[Quantity, ...]:
        """The log-decay, in parts that each vary along axes of their own."""
        return tuple(q for q in self.quantities.values() if q.decays)

    @property
    def rotates(self) -> bool:
        """Whether a token's position matters, which is then part of the state."""
        return any(q.expr.has(Rotate, Turn) for q in self.quantities.values())

    @property
    def scaled(self) -> bool:
        """Whether the scale matters: it cancels in a ratio of sums."""
        return any(q.expr.has(SCALE) for q in self.quantities.values())

    @property
    def structure(self) -> str:
        """The axes along which the decay varies inside a head: "", "m", "v" or "mv"."""
        return "".join(a for a in "mv" if any(a in q.axes for q in self.log_decays))

    @property
    def scans(self) -> bool:
        """Whether pairs of tokens have no matrix product: a vector state, or a factor along keys and values at once."""
        return any("m" not in r.axes for r in self.states) or any(q.axes == "mv" for q in self.quantities.values())


def real(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, real=True)


def axes_of(expr: sympy.Expr, tensors: Mapping[str, Tensor]) -> str:
    """The axes inside a head, m and v, that the tensors of an expression have."""
    names = {s.name for s in expr.free_symbols if s.is_integer is None}
    letters = {AXIS[a] for name in names & set(tensors) for a in tensors[name].axes if a in AXIS}
    return "".join(a for a in "mv" if a in letters)


@dataclass(frozen=True)
class Affine:
    """state ← e^{log_decay} · state + Π write factors."""

    log_decay: sympy.Expr
    write: tuple[sympy.Expr, ...]


def affine(rule: StateRule) -> Affine:
    """Split an update into its decay and its write. Raises ValueError when it is not affine in the state."""
    write = rule.update.subs(rule.symbol, 0)
    coefficient = sympy.cancel(sympy.expand(rule.update - write) / rule.symbol)
    if coefficient.has(rule.symbol) or write.has(rule.symbol):
        raise ValueError(f"the update {rule.update} is not linear in {rule.symbol}: no closed form across time exists")
    return Affine(sympy.expand_log(sympy.log(coefficient), force=True), sympy.Mul.make_args(write))


def steady_update(rule: StateRule) -> sympy.Expr:
    """The update with e^ℓ S written as S + (e^ℓ − 1) S where the decay is weak.

    The same value, but there the rounding of e^ℓ would compound over time. Where it is strong the sum would cancel.
    """
    step = affine(rule)
    if step.log_decay == 0:
        return rule.update
    state, decay = rule.symbol, step.log_decay
    weak = state + state * Expm1(decay)
    kept = sympy.Piecewise((weak, decay > sympy.Rational(-1, 2)), (state * sympy.exp(decay), True))
    return kept + sympy.Mul(*step.write)


def linear_read(rule: StateRule) -> tuple[sympy.Expr, ...]:
    """The factors that multiply the state in its read. Raises ValueError when the read is not linear in the state."""
    factor = sympy.cancel(rule.read / rule.symbol)
    if factor.has(rule.symbol):
        raise ValueError(f"the read {rule.read} is not linear in {rule.symbol}: no closed form across time exists")
    return tuple(f for f in sympy.Mul.make_args(factor) if f != ONE)
