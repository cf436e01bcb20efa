"""Values and slopes of expressions to many decimals: how the proof reads the token stage.

A slope is a central difference with step 10^−45 at 160 digits, so it is right to some 90 decimals without any rule of
differentiation: an independent check of every derivative that the adjoint uses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import mpmath
import sympy
from sympy.core.relational import Relational

from recgen.algebra.activations import Activation

DIGITS = 160
MOST_BITS = 1 << 16  # numbers above 2 to this power are infinite: their exponentials take as many digits as they are

_FUNCTIONS: dict[type, Callable[..., mpmath.mpf]] = {
    sympy.exp: mpmath.exp,
    sympy.log: mpmath.log,
    sympy.Abs: abs,
    sympy.sin: mpmath.sin,
    sympy.cos: mpmath.cos,
    sympy.tanh: mpmath.tanh,
    sympy.Min: min,
    sympy.Max: max,
    sympy.Mod: lambda a, b: a - b * mpmath.floor(a / b),
    sympy.Add: lambda *terms: mpmath.fsum(terms),
    sympy.Mul: lambda *factors: mpmath.fprod(factors),
    sympy.Pow: lambda base, power: base**power,
    sympy.StrictLessThan: lambda a, b: a < b,
    sympy.LessThan: lambda a, b: a <= b,
    sympy.StrictGreaterThan: lambda a, b: a > b,
    sympy.GreaterThan: lambda a, b: a >= b,
    sympy.Equality: lambda a, b: a == b,
    sympy.Unequality: lambda a, b: a != b,
}

Point = Mapping[sympy.Symbol, mpmath.mpf]


def value(expr: sympy.Basic, at: Point) -> mpmath.mpf:
    """The expression's value. Raises NotImplementedError for a function it does not know."""
    with mpmath.workdps(DIGITS):
        return +_value(expr, at, {})


def slope(expr: sympy.Expr, symbol: sympy.Symbol, at: Point) -> mpmath.mpf:
    """∂expr/∂symbol by a central difference."""
    if symbol not in expr.free_symbols:
        return mpmath.mpf(0)
    with mpmath.workdps(DIGITS):
        step = mpmath.mpf(10) ** -45
        above, below = (_value(expr, {**at, symbol: at[symbol] + d}, {}) for d in (step, -step))
        return (above - below) / (2 * step)


def point(symbols: Iterable[sympy.Symbol], size: float, seed: int) -> dict[sympy.Symbol, mpmath.mpf]:
    """Random numbers for symbols: real ones of about the given size, and small whole ones where the symbol is whole."""

    def number(s: sympy.Symbol) -> mpmath.mpf:
        draw = random.Random(f"{seed} {s}")
        return mpmath.mpf(draw.randint(1, 9) if s.is_integer else draw.choice((-1, 1)) * draw.uniform(0.5, 1) * size)

    return {s: number(s) for s in sorted(symbols, key=str)}


Found = dict[sympy.Basic, mpmath.mpf]  # the values of parts of an expression at one point


def _value(expr: sympy.Basic, at: Point, found: Found) -> mpmath.mpf:
    """The value of a part, computed once where it occurs more often."""
    if isinstance(expr, sympy.Symbol):
        return mpmath.mpmathify(at[expr])
    if expr not in found:
        found[expr] = _computed(expr, at, found)
    return found[expr]


def _computed(expr: sympy.Basic, at: Point, found: Found) -> mpmath.mpf:
    if expr is sympy.I:
        return mpmath.mpc(0, 1)
    if isinstance(expr, sympy.Float):
        return mpmath.mpf(repr(float(expr)))
    if isinstance(expr, sympy.Rational):
        return mpmath.mpf(expr.p) / expr.q
    if isinstance(expr, sympy.NumberSymbol):
        return expr.evalf(DIGITS)._to_mpmath(mpmath.mp.prec)
    if isinstance(expr, sympy.Piecewise):
        return _value(next(branch for branch, condition in expr.args if _holds(condition, at, found)), at, found)
    args = [limited(_value(arg, at, found)) for arg in expr.args]
    if isinstance(expr, Activation):
        return expr.value(*args)
    if expr.func not in _FUNCTIONS:
        raise NotImplementedError(f"no value is known for {expr.func.__name__}, in {expr}")
    return _FUNCTIONS[expr.func](*args)


def limited(x: Any) -> Any:
    """The number, or infinity where it is so large that nothing tells it from infinity but the time it takes."""
    if not isinstance(x, mpmath.mpf) or x.exp + x.bc <= MOST_BITS or not x.man:
        return x
    return mpmath.inf if x > 0 else -mpmath.inf


def _holds(condition: sympy.Basic, at: Point, found: Found) -> bool:
    if isinstance(condition, Relational):
        return bool(_value(condition, at, found))
    if isinstance(condition, sympy.And | sympy.Or):
        return (all if isinstance(condition, sympy.And) else any)(_holds(part, at, found) for part in condition.args)
    if isinstance(condition, sympy.Not):
        return not _holds(condition.args[0], at, found)
    return bool(condition)
