"""Activations: sympy functions of their own, so that no rewriting undoes their stable form.

`LogSigmoid(x)` stays what it is and never becomes log(1/(1 + exp(-x))).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import mpmath
from sympy import Expr, Function, Min, Piecewise, S, exp, log

from recgen.algebra.choice import where


class Activation(Function):  # type: ignore[misc]  # sympy says nothing of its types
    """A real function of one real argument, with an exact derivative and a value at any precision.

    A subclass gives `value` (its mpmath value), `fdiff` (its derivative, in a form that neither overflows nor
    cancels) and `elementary` (the same function in exp, log and Piecewise).
    """

    nargs = 1

    value: ClassVar[Callable[..., mpmath.mpf]]
    """The function at a number, to mpmath's working precision."""

    elementary: ClassVar[Callable[..., Expr]]
    """The function written in exp, log and Piecewise."""

    def _eval_evalf(self, prec: int) -> Expr | None:
        x = self.args[0].evalf(mpmath.libmp.prec_to_dps(prec) + 5)
        if not x.is_Float and not x.is_Rational:
            return None
        with mpmath.workprec(prec + 10):
            return Expr._from_mpmath(self.value(x._to_mpmath(prec + 10)), prec)

    def _eval_is_real(self) -> bool | None:
        return True if self._of_real() else None

    def _of_real(self) -> bool | None:
        real: bool | None = self.args[0].is_real
        return real


class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    @classmethod
    def eval(cls, x: Expr) -> Expr | None:
        return {S.Zero: S.Half, S.Infinity: S.One, S.NegativeInfinity: S.Zero}.get(x)

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return 1 / (1 + mpmath.exp(-x))

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return 1 / (1 + exp(-x))

    def fdiff(self, argindex: int = 1) -> Expr:
        (x,) = self.args
        return Sigmoid(x) * Sigmoid(-x)

    def _eval_is_positive(self) -> bool | None:
        return self._of_real()


class LogSigmoid(Activation):
    """log(sigmoid(x)) = -softplus(-x)."""

    @classmethod
    def eval(cls, x: Expr) -> Expr | None:
        return {S.Zero: -log(2), S.Infinity: S.Zero, S.NegativeInfinity: S.NegativeInfinity}.get(x)

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return -Softplus.value(-x)

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return -log(1 + exp(-x))

    def fdiff(self, argindex: int = 1) -> Expr:
        return Sigmoid(-self.args[0])

    def _eval_is_negative(self) -> bool | None:
        return self._of_real()


class Softplus(Activation):
    """log(1 + exp(x))."""

    @classmethod
    def eval(cls, x: Expr) -> Expr | None:
        return {S.Zero: log(2), S.Infinity: S.Infinity, S.NegativeInfinity: S.Zero}.get(x)

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return max(x, mpmath.mpf(0)) + mpmath.log1p(mpmath.exp(-abs(x)))

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return log(1 + exp(x))

    def fdiff(self, argindex: int = 1) -> Expr:
        return Sigmoid(self.args[0])

    def _eval_is_positive(self) -> bool | None:
        return self._of_real()


class Relu(Activation):
    """max(x, 0); its derivative at 0 is 0."""

    @classmethod
    def eval(cls, x: Expr) -> Expr | None:
        if x.is_extended_nonnegative:
            return x
        return S.Zero if x.is_extended_nonpositive else None

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return max(x, mpmath.mpf(0))

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return Piecewise((x, x > 0), (0, True))

    def fdiff(self, argindex: int = 1) -> Expr:
        return where(self.args[0] > 0, S.One, S.Zero)

    def _eval_is_nonnegative(self) -> bool | None:
        return self._of_real()


class Elu(Activation):
    """x where x > 0, exp(x) - 1 elsewhere. Its derivative is exp(min(x, 0)), which overflows on neither side."""

    @classmethod
    def eval(cls, x: Expr) -> Expr | None:
        if x.is_extended_nonnegative:
            return x
        return exp(x) - 1 if x.is_number and x.is_extended_negative else None

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return x if x > 0 else mpmath.expm1(x)

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return Piecewise((x, x > 0), (exp(x) - 1, True))

    def fdiff(self, argindex: int = 1) -> Expr:
        return exp(Min(self.args[0], 0))


class Silu(Activation):
    """x · sigmoid(x)."""

    @classmethod
    def eval(cls, x: Expr) -> Expr | None:
        return {S.Zero: S.Zero, S.Infinity: S.Infinity, S.NegativeInfinity: S.Zero}.get(x)

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return x / (1 + mpmath.exp(-x))

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return x / (1 + exp(-x))

    def fdiff(self, argindex: int = 1) -> Expr:
        (x,) = self.args
        return Sigmoid(x) * (1 + x * Sigmoid(-x))


class SafeExp(Activation):
    """exp(x), held at exp(80), which float32 still has. It is its own derivative.

    Where a decay's rate has grown so far, the decay is 0 in every dtype, and so is whatever multiplies the derivative:
    0 · exp(80) is 0, where 0 · ∞ would be no number.
    """

    MOST = 80

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        """What it stands for: exp(x), whose derivative it is everywhere."""
        return mpmath.exp(x)

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return exp(Min(x, SafeExp.MOST))

    def fdiff(self, argindex: int = 1) -> Expr:
        return self

    def _eval_is_positive(self) -> bool | None:
        return self._of_real()


def elementary(expr: Expr) -> Expr:
    """The same expression with every activation written in exp, log and Piecewise."""
    return expr.replace(lambda node: isinstance(node, Activation), lambda node: node.elementary(node.args[0]))
