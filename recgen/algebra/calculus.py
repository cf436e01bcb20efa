"""Exact derivatives of user expressions, in the language itself and in stable forms.

At a tie the derivative is what torch's autograd takes: relu has 0 at 0, abs has 0 at 0, max(x, c) and min(x, c) with a
number c have 1 at x = c, and two expressions that tie in min or max get half each. A condition has derivative 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sympy import (
    Abs,
    Add,
    Basic,
    Eq,
    Expr,
    Gt,
    Lt,
    Max,
    Min,
    Mod,
    Mul,
    Number,
    Piecewise,
    Pow,
    S,
    Symbol,
    cos,
    exp,
    log,
    sin,
    tanh,
)

from recgen.algebra.activations import Activation, Sigmoid
from recgen.algebra.choice import choose, where
from recgen.algebra.stable import guarded, stable


def derivative(expr: Expr, symbol: Symbol) -> Expr:
    """d expr / d symbol, free of Derivative, Subs, Heaviside and DiracDelta.

    Raises NotImplementedError for a function that is not in the language.
    """
    return guarded(stable(_derivative(stable(expr), symbol)))


def is_zero_at_zero(expr: Expr, symbols: Iterable[Symbol]) -> bool:
    """Whether the expression is exactly 0 when all the given symbols are 0, whatever the others are.

    True is certain; an expression that is 0 only after simplification gives False.
    """
    return expr.subs(dict.fromkeys(symbols, S.Zero), simultaneous=True) is S.Zero


def _derivative(expr: Expr, symbol: Symbol) -> Expr:
    if symbol not in expr.free_symbols:
        return S.Zero
    if expr == symbol:
        return S.One
    if isinstance(expr, Piecewise):
        return Piecewise(*((_derivative(branch, symbol), condition) for branch, condition in expr.args))
    if isinstance(expr, Max | Min) and len(expr.args) > 2:
        expr = _nested(expr)
        return _chain(expr, symbol, _RULES[expr.func](*expr.args))
    if isinstance(expr, Activation):
        return _chain(expr, symbol, [expr.fdiff(k + 1) for k in range(len(expr.args))])
    rule = _RULES.get(expr.func)
    if rule is None:
        raise NotImplementedError(f"no derivative is known for {expr.func.__name__}, in {expr}")
    return _chain(expr, symbol, rule(*expr.args))


def _chain(expr: Expr, symbol: Symbol, partials: Iterable[Expr]) -> Expr:
    inner = (_derivative(arg, symbol) for arg in expr.args)
    return Add(*(partial * slope for partial, slope in zip(partials, inner, strict=True) if slope != 0))


def _nested(expr: Max | Min) -> Expr:
    """max(a, b, c) as max(max(a, b), c), numbers last: the order in which printers nest it."""
    numbers = [arg for arg in expr.args if isinstance(arg, Number)]
    first, *others = [arg for arg in expr.args if not isinstance(arg, Number)] + numbers
    for other in others:
        first = expr.func(first, other, evaluate=False)
    return first


def _product(*factors: Expr) -> list[Expr]:
    return [Mul(*factors[:i], *factors[i + 1 :]) for i in range(len(factors))]


def _power(base: Expr, power: Expr) -> list[Expr]:
    return [power * base ** (power - 1), base**power * log(base) if power.free_symbols else S.Zero]


def _sign(x: Expr) -> list[Expr]:
    return [choose((S.One, x > 0), (S.NegativeOne, x < 0), (S.Zero, S.true))]


def _select(wins: Callable[[Expr, Expr], Basic]) -> Callable[[Expr, Expr], list[Expr]]:
    """The partials of min or max: 1 where an argument wins, 0 where it loses."""

    def partials(a: Expr, b: Expr) -> list[Expr]:
        if isinstance(a, Number) or isinstance(b, Number):
            number, other = (a, b) if isinstance(a, Number) else (b, a)
            share = where(wins(number, other), S.Zero, S.One)
            return [S.Zero, share] if number is a else [share, S.Zero]
        first = choose((S.One, wins(a, b)), (S.Half, Eq(a, b)), (S.Zero, S.true))
        second = choose((S.One, wins(b, a)), (S.Half, Eq(a, b)), (S.Zero, S.true))
        return [first, second]

    return partials


def _remainder(a: Expr, b: Expr) -> list[Expr]:
    return [S.One, -(a - Mod(a, b)) / b]


_RULES: dict[type, Callable[..., list[Expr]]] = {
    Add: lambda *terms: [S.One] * len(terms),
    Mul: _product,
    Pow: _power,
    exp: lambda x: [exp(x)],
    log: lambda x: [1 / x],
    sin: lambda x: [cos(x)],
    cos: lambda x: [-sin(x)],
    tanh: lambda x: [4 * Sigmoid(2 * x) * Sigmoid(-2 * x)],
    Abs: _sign,
    Max: _select(Gt),
    Min: _select(Lt),
    Mod: _remainder,
}
