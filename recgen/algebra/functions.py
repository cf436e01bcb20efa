"""The functions of the expression language: a name, how many arguments, and the sympy tree it builds.

Activations are sympy functions of their own, so that no rewriting undoes their stable form: `LogSigmoid(x)` stays what
it is and never becomes log(1/(1 + exp(-x))). Everything sympy already has (exp, log, sin, …) is sympy's. `log1p` and
`expm1` are built as log(1 + x) and exp(x) - 1; `recgen.algebra.stable` finds these patterns again before printing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
from sympy import (
    Abs,
    Basic,
    Eq,
    Expr,
    Function,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mod,
    Ne,
    Piecewise,
    S,
    cos,
    default_sort_key,
    exp,
    log,
    sin,
    sqrt,
    tanh,
)


class Activation(Function):
    """A real function of one real argument, with an exact derivative and a value at any precision.

    A subclass gives `value` (its mpmath value), `fdiff` (its derivative, in a form that neither overflows nor
    cancels) and `elementary` (the same function in exp, log and Piecewise).
    """

    nargs = 1

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        """The function at the number x, to mpmath's working precision."""
        raise NotImplementedError

    @staticmethod
    def elementary(x: Expr) -> Expr:
        """The function written in exp, log and Piecewise."""
        raise NotImplementedError

    def _eval_evalf(self, prec: int) -> Expr | None:
        x = self.args[0].evalf(mpmath.libmp.prec_to_dps(prec) + 5)
        if not x.is_Float and not x.is_Rational:
            return None
        with mpmath.workprec(prec + 10):
            return Expr._from_mpmath(self.value(x._to_mpmath(prec + 10)), prec)

    def _eval_is_real(self) -> bool | None:
        return True if self.args[0].is_real else None


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
        return self.args[0].is_real


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
        return self.args[0].is_real


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
        return self.args[0].is_real


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
        return self.args[0].is_real


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
        return self.args[0].is_real


@dataclass(frozen=True)
class Fn:
    """One function of the language.

    `arity` is (least, most) number of arguments, most None for any number. `build` takes that many sympy arguments
    and returns the tree; it raises ValueError when the result is not a finite real number, such as log(0).
    """

    name: str
    arity: tuple[int, int | None]
    build: Callable[..., Expr]
    doc: str


def where(condition: Basic, then: Expr, otherwise: Expr) -> Expr:
    """`then` where the condition holds, `otherwise` elsewhere."""
    return choose((then, condition), (otherwise, S.true))


def choose(*branches: tuple[Expr, Basic]) -> Expr:
    """The first branch whose condition holds; the last condition is true.

    A choice inside a condition is taken first, so that every condition in a tree is one plain comparison.
    """
    inside = {choice for _, condition in branches for choice in condition.atoms(Piecewise)}
    if not inside:
        return Piecewise(*branches)
    outer = max(inside, key=lambda choice: (choice.count_ops(), default_sort_key(choice)))

    def taken(value: Expr) -> Expr:
        return choose(*((branch, condition.xreplace({outer: value})) for branch, condition in branches))

    return Piecewise(*((taken(value), condition) for value, condition in outer.args))


def _fn(name: str, least: int, most: int | None, build: Callable[..., Expr], doc: str) -> Fn:
    def checked(*args: Expr) -> Expr:
        tree = build(*args)
        if tree.has(S.ImaginaryUnit, S.ComplexInfinity, S.NaN, S.Infinity, S.NegativeInfinity):
            raise ValueError(f"{name}({', '.join(map(str, args))}) is not a finite real number")
        return tree

    return Fn(name, (least, most), checked, doc)


LANGUAGE: dict[str, Fn] = {
    fn.name: fn
    for fn in (
        _fn("exp", 1, 1, exp, "exp(x): the exponential"),
        _fn("log", 1, 1, log, "log(x): the natural logarithm"),
        _fn("log1p", 1, 1, lambda x: log(1 + x), "log1p(x): log(1 + x), exact for small x"),
        _fn("expm1", 1, 1, lambda x: exp(x) - 1, "expm1(x): exp(x) - 1, exact for small x"),
        _fn("sqrt", 1, 1, sqrt, "sqrt(x): the square root"),
        _fn("abs", 1, 1, Abs, "abs(x): the absolute value"),
        _fn("sin", 1, 1, sin, "sin(x), x in radians"),
        _fn("cos", 1, 1, cos, "cos(x), x in radians"),
        _fn("tanh", 1, 1, tanh, "tanh(x): the hyperbolic tangent"),
        _fn("sigmoid", 1, 1, Sigmoid, "sigmoid(x): 1 / (1 + exp(-x))"),
        _fn("logsigmoid", 1, 1, LogSigmoid, "logsigmoid(x): log(sigmoid(x))"),
        _fn("softplus", 1, 1, Softplus, "softplus(x): log(1 + exp(x))"),
        _fn("relu", 1, 1, Relu, "relu(x): max(x, 0)"),
        _fn("elu", 1, 1, Elu, "elu(x): x where x > 0, exp(x) - 1 elsewhere"),
        _fn("silu", 1, 1, Silu, "silu(x): x * sigmoid(x)"),
        _fn("min", 2, None, Min, "min(a, b, ...): the smallest"),
        _fn("max", 2, None, Max, "max(a, b, ...): the largest"),
        _fn("mod", 2, 2, Mod, "mod(a, b): the remainder a - b * floor(a / b), with the sign of b"),
        _fn("where", 3, 3, where, "where(condition, a, b): a where the condition holds, b elsewhere"),
    )
}

COMPARISONS: dict[str, Callable[[Expr, Expr], Basic]] = {
    "<": Lt,
    "<=": Le,
    ">": Gt,
    ">=": Ge,
    "==": Eq,
    "!=": Ne,
}


def elementary(expr: Expr) -> Expr:
    """The same expression with every activation written in exp, log and Piecewise."""
    return expr.replace(lambda node: isinstance(node, Activation), lambda node: node.elementary(node.args[0]))
