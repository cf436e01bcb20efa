"""Complex expressions in real arithmetic: their real and imaginary parts, in forms that neither overflow nor cancel.

An expression is complex where sympy's imaginary unit stands in it; everything else is real. The rules are written once,
for two kinds of values: sympy expressions (`split`), and nodes of a program, which `parts` makes through an `Algebra`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, I, Integer, Mul, Pow, S, cos, exp, log, sin

from recgen.algebra.functions import LANGUAGE, Fn
from recgen.algebra.operations import placeholder
from recgen.algebra.stable import Expm1, with_expm1

A, B, C, D = map(placeholder, range(4))
Pair = tuple[Any, Any]  # real and imaginary part; None is 0


COMPLEX_FUNCTIONS: dict[str, Fn] = {
    "exp": Fn("exp", (1, 1), exp, "exp(x): the exponential"),
    "expm1": Fn("expm1", (1, 1), lambda x: exp(x) - 1, "expm1(x): exp(x) - 1, exact for small x"),
}
"""The functions that take complex values, beside + - * / and whole powers."""

COMPLEX_LANGUAGE: dict[str, Fn] = {
    **LANGUAGE,
    **COMPLEX_FUNCTIONS,
    "complex": Fn("complex", (2, 2), lambda re, im: re + I * im, "complex(re, im): re + i im, of two real values"),
}
"""The functions of expressions that may be complex."""


@dataclass(frozen=True)
class Algebra:
    """real: the value of a real expression. make: the value of an expression in placeholders, from theirs. named: the
    value, called by a name where values have names."""

    real: Callable[[Expr], Any]
    make: Callable[..., Any]
    named: Callable[[Any, str], Any] = lambda value, name: value

    def both(self, re: Any, im: Any, name: str) -> Pair:
        """A pair that is called by a name."""
        return self.named(re, f"{name}_real"), self.named(im, f"{name}_imag")


def is_complex(expr: Expr) -> bool:
    return bool(expr.has(I))


def written_out(expr: Expr) -> int:
    """About how many terms the real part of an expression has: with every complex factor they double."""
    if not is_complex(expr) or expr == I:
        return 1
    if isinstance(expr, Add):
        return sum(map(written_out, expr.args))
    if isinstance(expr, Mul):
        factors = [written_out(f) for f in expr.args if is_complex(f) and f != I]
    elif isinstance(expr, Pow) and isinstance(expr.exp, Integer):
        factors = [written_out(expr.base)] * abs(int(expr.exp))
    else:
        return 2 * sum(map(written_out, expr.args))
    return functools.reduce(lambda terms, factor: 2 * (terms + factor), factors) if factors else 1


def split(expr: Expr) -> tuple[Expr, Expr]:
    """Real and imaginary part as expressions."""

    def make(template: Expr, *values: Expr) -> Expr:
        return template.xreplace(dict(zip((A, B, C, D), values, strict=False)))

    re, im = parts(expr, Algebra(lambda e: e, make))
    return S.Zero if re is None else re, S.Zero if im is None else im


def parts(expr: Expr, algebra: Algebra) -> Pair:
    """Real and imaginary part as values. Raises ValueError for a function that has no complex form here."""
    if not is_complex(expr):
        return (None if expr == 0 else algebra.real(expr)), None
    if expr == I:
        return None, algebra.real(S.One)
    if isinstance(expr, Add):
        return _sum(with_expm1(expr), algebra)
    if isinstance(expr, Mul):
        return _product(expr, algebra)
    if isinstance(expr, exp | Expm1):
        return _exponential(expr, algebra)
    if isinstance(expr, Pow):
        return _power(expr, algebra)
    raise ValueError(f"{expr.func.__name__.lower()} takes real values, and {expr.args[0]} is complex")


def _sum(expr: Expr, algebra: Algebra) -> Pair:
    if not isinstance(expr, Add):
        return parts(expr, algebra)
    real = [term for term in expr.args if not is_complex(term)]
    found = [parts(Add(*real), algebra)] if real else []
    found += [parts(term, algebra) for term in expr.args if is_complex(term)]
    return _added([re for re, _ in found], algebra), _added([im for _, im in found], algebra)


def _added(terms: list[Any], algebra: Algebra) -> Any:
    present = [term for term in terms if term is not None]
    if not present:
        return None
    total = present[0]
    for term in present[1:]:
        total = algebra.make(A + B, total, term)
    return total


def _product(expr: Expr, algebra: Algebra) -> Pair:
    """Real factors are taken together, and the imaginary unit only turns the result."""
    real = Mul(*(f for f in expr.args if not is_complex(f)))
    found: Pair = None, None
    for factor in (f for f in expr.args if is_complex(f) and f != I):
        found = _times(found, parts(factor, algebra), algebra) if found != (None, None) else parts(factor, algebra)
    if found == (None, None):
        return None, algebra.real(real)
    if real != 1:
        found = _times((algebra.real(real), None), found, algebra)
    if I in expr.args:
        re, im = found
        return (None if im is None else algebra.make(-A, im)), re
    return found


def _times(x: Pair, y: Pair, algebra: Algebra) -> Pair:
    (a, b), (c, d) = x, y

    def both(template: Expr, *values: Any) -> Any:
        return None if None in values else algebra.make(template, *values)

    if None not in (a, b, c, d):
        return algebra.make(A * C - B * D, a, b, c, d), algebra.make(A * D + B * C, a, b, c, d)
    re = _added([both(A * B, a, c), both(-A * B, b, d)], algebra)
    im = _added([both(A * B, a, d), both(A * B, b, c)], algebra)
    return re, im


def _exponential(expr: Expr, algebra: Algebra) -> Pair:
    """e^a cos b + i e^a sin b; less 1, the real part is expm1(a) cos b − 2 sin²(b/2)."""
    a, b = parts(expr.args[0], algebra)
    less = isinstance(expr, Expm1)
    if b is None:
        return algebra.make(Expm1(A) if less else exp(A), a), None
    b = algebra.named(b, "angle")
    if a is None:
        return algebra.make(-2 * sin(A / 2) ** 2 if less else cos(A), b), algebra.make(sin(A), b)
    a = algebra.named(a, "growth")
    re = Expm1(A) * cos(B) - 2 * sin(B / 2) ** 2 if less else exp(A) * cos(B)
    return algebra.both(algebra.make(re, a, b), algebra.make(exp(A) * sin(B), a, b), "expm1" if less else "exp")


def _power(expr: Expr, algebra: Algebra) -> Pair:
    base, power = expr.args
    if not is_complex(base):
        if not base.is_positive:
            raise ValueError(f"a complex power of {base}, which may be negative")
        return _exponential(exp(power * log(base), evaluate=False), algebra)
    if not isinstance(power, Integer):
        raise ValueError(f"the power {power} of a complex value has several branches")
    value = parts(base, algebra)
    found = value
    for _ in range(abs(int(power)) - 1):
        found = _times(found, value, algebra)
    return _reciprocal(found, algebra) if power < 0 else found


def _reciprocal(x: Pair, algebra: Algebra) -> Pair:
    a, b = x
    if a is None:
        return None, algebra.make(-1 / A, b)
    if b is None:
        return algebra.make(1 / A, a), None
    size = algebra.named(algebra.make(A**2 + B**2, a, b), "modulus_squared")
    return algebra.both(algebra.make(A / B, a, size), algebra.make(-A / B, b, size), "inverse")
