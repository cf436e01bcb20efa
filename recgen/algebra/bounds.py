"""Interval analysis: the least and greatest value an expression can take.

Every node is evaluated on the intervals of its arguments. A symbol that occurs more than once would lose precision
that way; where the expression only rises or only falls in it, it is fixed at its ends instead. A `where` narrows the
ranges inside its branches by its condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from sympy import (
    Abs,
    Add,
    And,
    Basic,
    Dummy,
    Eq,
    Expr,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mod,
    Mul,
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

from recgen.algebra.activations import Elu, LogSigmoid, Relu, SafeExp, Sigmoid, Silu, Softplus
from recgen.algebra.calculus import derivative
from recgen.algebra.interval import (
    REAL_LINE,
    Interval,
    absolute,
    logarithm,
    positive_power,
    product,
    remainder,
    rising,
    sigmoid,
    silu,
    softplus,
    total,
    wave,
    whole_power,
)
from recgen.algebra.stable import Expm1, Log1p, printable

__all__ = ["REAL_LINE", "Interval", "Ranges", "bounds"]

Ranges = Mapping[Symbol, Interval]


def bounds(expr: Expr, ranges: Ranges | None = None) -> Interval:
    """The interval of values of `expr` when each symbol runs over its range.

    A symbol without a range runs over what its assumptions allow: a positive integer over [1, ∞), a real number over
    the real line. Raises ValueError for an expression that has no real value anywhere, such as log(-1 - x**2), and
    NotImplementedError for a function that is not in the language.
    """
    tree = printable(expr)
    known = {symbol: (ranges or {}).get(symbol, _assumed(symbol)) for symbol in tree.free_symbols}
    return _by_monotony(tree, known, _natural(tree, known))


def _assumed(symbol: Symbol) -> Interval:
    if symbol.is_nonnegative:
        return Interval(1.0 if symbol.is_integer and symbol.is_positive else 0.0, math.inf)
    return Interval(-math.inf, 0.0) if symbol.is_nonpositive else REAL_LINE


def _by_monotony(tree: Expr, ranges: Ranges, natural: Interval) -> Interval:
    """Narrow an interval by fixing symbols that occur more than once, where the tree rises or falls in them."""
    if _may_jump(tree, ranges):
        return natural
    lowest = highest = tree
    for symbol in sorted(tree.free_symbols, key=str):
        if tree.count(symbol) < 2:
            continue
        slope = _natural(printable(derivative(tree, symbol)), ranges)
        ends = (ranges[symbol].lo, ranges[symbol].hi)
        if slope.lo >= 0 or slope.hi <= 0:
            low, high = ends if slope.lo >= 0 else ends[::-1]
            lowest = lowest if math.isinf(low) else lowest.subs(symbol, S(low))
            highest = highest if math.isinf(high) else highest.subs(symbol, S(high))
    if lowest.has(S.NaN, S.ComplexInfinity) or highest.has(S.NaN, S.ComplexInfinity):
        return natural
    below, above = _natural(lowest, ranges), _natural(highest, ranges)
    return Interval(max(natural.lo, below.lo), min(natural.hi, above.hi))


def _may_jump(tree: Expr, ranges: Ranges) -> bool:
    """Whether the tree may be discontinuous inside the ranges, so that the sign of its slope says nothing."""

    def has_pole(power: Pow) -> bool:
        base = _natural(power.base, ranges)
        return not power.exp.is_nonnegative and base.lo < 0 < base.hi

    return tree.has(Piecewise, Mod) or any(has_pole(power) for power in tree.atoms(Pow))


def _natural(tree: Expr, ranges: Ranges) -> Interval:
    """The interval found by evaluating each node on the intervals of its arguments."""
    if tree.is_Symbol:
        return ranges[tree]
    if tree.is_number:
        if not tree.is_extended_real:
            raise ValueError(f"{tree} is not a real number")
        return Interval(float(tree), float(tree))
    if isinstance(tree, Piecewise):
        return _where(tree, dict(ranges))
    args = [_natural(arg, ranges) for arg in tree.args]
    if isinstance(tree, Pow):
        return _power(tree, *args)
    rule = _RULES.get(tree.func)
    if rule is None:
        raise NotImplementedError(f"no bounds are known for {tree.func.__name__}, in {tree}")
    return rule(*args)


def _power(tree: Pow, base: Interval, power: Interval) -> Interval:
    n = tree.exp
    if n.is_Integer:
        return whole_power(base, int(n))
    if n.is_integer and base.lo < 0:
        size = positive_power(absolute(base), power)
        return Interval(-size.hi, size.hi)
    if base.hi < 0:
        raise ValueError(f"the power {n} of a number that is negative everywhere")
    return positive_power(Interval(max(base.lo, 0.0), base.hi), power)


def _where(tree: Piecewise, ranges: dict[Symbol, Interval]) -> Interval:
    """The union over branches that can be taken, each with the range its conditions leave to a compared symbol."""
    found: Interval | None = None
    for branch, condition in tree.args:
        here = _narrowed(ranges, condition)
        if here is not None:
            value = _natural(branch, here)
            found = value if found is None else found.union(value)
        rest = _narrowed(ranges, ~condition)
        if rest is None:
            break
        ranges = rest
    if found is None:
        raise ValueError(f"no branch of {tree} can be taken")
    return found


def undefined(tree: Expr, ranges: Ranges | None = None) -> str:
    """Why an expression has no value for some real inputs: a logarithm or root of what can be negative; or nothing.

    Branches of a choice are trusted, because its condition may keep them away from there; what sizes and indices alone
    decide is judged in `defined`.
    """
    if isinstance(tree, Piecewise) or all(s.is_integer for s in tree.free_symbols):
        return ""
    below = next(filter(None, (undefined(arg, ranges) for arg in tree.args)), "")
    base = tree.args[0] if isinstance(tree, log) or isinstance(tree, Pow) and not tree.exp.is_integer else None
    if below or base is None:
        return below
    kind = "logarithm" if isinstance(tree, log) else "power"
    try:
        found = bounds(base, ranges)
    except (ValueError, NotImplementedError):
        return ""
    return f"it takes the {kind} of {_plain(base)}, which can be negative" if found.lo < -1e-12 else ""


def _plain(tree: Expr) -> Expr:
    """With symbols by their names alone."""
    return tree.xreplace({s: Symbol(s.name) for s in tree.atoms(Dummy)})


def _narrowed(ranges: dict[Symbol, Interval], condition: Basic) -> dict[Symbol, Interval] | None:
    """The ranges where the condition holds, None if it holds nowhere. What it cannot use, it ignores."""
    if condition == S.true or condition == S.false:
        return ranges if condition == S.true else None
    if isinstance(condition, And):
        within: dict[Symbol, Interval] | None = ranges
        for part in condition.args:
            within = _narrowed(within, part) if within is not None else None
        return within
    if not isinstance(condition, Lt | Le | Gt | Ge | Eq):
        return ranges
    left, right = condition.args
    a, b = _natural(printable(left), ranges), _natural(printable(right), ranges)
    below = Interval(-math.inf, b.hi) if isinstance(condition, Lt | Le | Eq) else REAL_LINE
    above = Interval(b.lo, math.inf) if isinstance(condition, Gt | Ge | Eq) else REAL_LINE
    allowed = below.intersection(above)
    remaining = a.intersection(allowed) if allowed is not None else None
    strict = isinstance(condition, Lt) and a.lo >= b.hi or isinstance(condition, Gt) and a.hi <= b.lo
    if remaining is None or strict:
        return None
    return {**ranges, left: remaining} if left.is_Symbol else ranges


_RULES: dict[type, Callable[..., Interval]] = {
    Add: total,
    Mul: product,
    exp: rising(math.exp),
    Expm1: rising(math.expm1),
    log: logarithm(math.log, 0.0),
    Log1p: logarithm(math.log1p, -1.0),
    Abs: absolute,
    sin: wave(math.sin, math.pi / 2),
    cos: wave(math.cos, 0.0),
    tanh: rising(math.tanh),
    SafeExp: rising(lambda x: math.exp(min(x, SafeExp.MOST))),
    Sigmoid: rising(sigmoid),
    LogSigmoid: rising(lambda x: -softplus(-x)),
    Softplus: rising(softplus),
    Relu: rising(lambda x: max(x, 0.0)),
    Elu: rising(lambda x: x if x > 0 else math.expm1(x)),
    Silu: silu,
    Min: lambda *args: Interval(min(arg.lo for arg in args), min(arg.hi for arg in args)),
    Max: lambda *args: Interval(max(arg.lo for arg in args), max(arg.hi for arg in args)),
    Mod: remainder,
}
