"""Weights given by their logarithm: kept within range by a running maximum, whatever finite number the logarithm is.

    m_t = max(ℓ_t + m_{t-1}, log w_t)        S_t = e^{m_t} S'_t,  and the normalizer's sums likewise

What is carried is S', and every exponential becomes one of a number that is at most 0:

    the decay        e^{ℓ_t + m_{t-1} − m_t}
    the weight       e^{log w_t − m_t}
    the read         e^{m − r_t}, with r_t the largest that the token reads: over the features, and over its own share
    a constant that the denominator is compared with or added to is e^{−r_t} times as large, and at least e^{−60} times

The maxima follow from the inputs before anything else is computed, so that a form sees nothing but a recurrence with
another decay and another weight. What they are does not matter, only that all of it is relative to the same ones: the
proof takes any numbers for them, and no gradient flows through them.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import sympy

from .activations import Activation
from .choice import where

SHIFT = sympy.Symbol("shift", real=True)
"""m_{t-1} − m_t, by which the decay's exponent is shifted."""

MAXIMUM = sympy.Symbol("maximum", real=True)
"""m_t."""

READ_MAXIMUM = sympy.Symbol("read_maximum", real=True)
"""r_t, where it is not m_t itself."""

READ_SHIFT = sympy.Symbol("read_shift", real=True)
"""The maximum of the state that is read, minus r_t."""

TRACKS = (SHIFT, MAXIMUM, READ_MAXIMUM, READ_SHIFT)

SMALLEST_UNIT = -60
"""The logarithm that a unit has at least: a denominator of exactly 0 is no less than e^{−60} of the largest weight."""


class Relative(Activation):
    """relative(x, m): x − m, taken before anything else is added, which large numbers would swallow.

    x is held within ±10⁹, where a maximum in float32 is off by no more than an exponential can bear; beyond it has no
    slope.
    """

    nargs = 2
    MOST = 10**9

    @staticmethod
    def value(x: mpmath.mpf, m: mpmath.mpf) -> mpmath.mpf:
        """What it stands for: x − m."""
        return x - m

    @staticmethod
    def elementary(x: sympy.Expr, m: sympy.Expr) -> sympy.Expr:
        return sympy.Max(sympy.Min(x, Relative.MOST), -Relative.MOST) - m

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return where(abs(self.args[0]) <= Relative.MOST, sympy.S.One, sympy.S.Zero) if argindex == 1 else -sympy.S.One


@dataclass(frozen=True)
class Stabiliser:
    """Where the running maximum comes from: what decays it, what enters it, and what is read beside the state.

    log_bonus: the logarithm of what a token's own share is weighed with beside w_t, None where it has none; own_factor:
    what else it is multiplied with. `axes`: along which the maximum varies. `before`: a token reads the state of its
    predecessor.
    """

    log_decay: sympy.Expr
    log_weight: sympy.Expr
    log_bonus: sympy.Expr | None
    own_factor: sympy.Expr
    axes: str
    before: bool

    @property
    def shifts_read(self) -> bool:
        """Whether what is read goes by another maximum than the state it is read from."""
        return "m" in self.axes or self.log_bonus is not None

    def tracks(self, before: sympy.Expr, after: sympy.Expr, read: sympy.Expr) -> dict[sympy.Symbol, sympy.Expr]:
        """What the tracks are for a token, from the maxima before it, after it, and of what it reads."""
        source = before if self.before else after
        return {MAXIMUM: after, SHIFT: before - after, READ_MAXIMUM: read, READ_SHIFT: source - read}

    @property
    def read_axes(self) -> str:
        """The axes of r_t: it is the same for all features."""
        return self.axes.replace("m", "")

    @property
    def entering(self) -> sympy.Expr:
        """What enters the maximum."""
        return Relative(self.log_weight, sympy.S.Zero)

    @property
    def log_own(self) -> sympy.Expr | None:
        """The logarithm of the weight of a token's own share."""
        return None if self.log_bonus is None else self.entering + self.log_bonus

    @property
    def weight(self) -> sympy.Expr:
        """e^{log w − m_t}."""
        return sympy.exp(Relative(self.log_weight, MAXIMUM))

    @property
    def own_weight(self) -> sympy.Expr:
        """The weight of a token's own share, relative to r_t."""
        return self.own_factor * sympy.exp(Relative(self.log_weight, READ_MAXIMUM) + self.log_bonus)

    @property
    def log_unit(self) -> sympy.Expr:
        """The logarithm of what 1 is, relative to r_t."""
        return sympy.Max(-(READ_MAXIMUM if self.shifts_read or self.before else MAXIMUM), SMALLEST_UNIT)

    def axes_of(self, track: sympy.Symbol) -> str:
        return self.read_axes if track == READ_MAXIMUM else self.axes


def log_factors(expr: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """A product as (the logarithm of its exponentials, its other factors)."""
    factors = sympy.Mul.make_args(expr)
    powers = [f for f in factors if isinstance(f, sympy.exp)]
    return sympy.Add(*(f.args[0] for f in powers)), sympy.Mul(*(f for f in factors if f not in powers))
