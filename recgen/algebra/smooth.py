"""Where an expression has a value but no slope: what a gradient cannot go through.

It is looked for where all inputs are 0, as padding and fresh parameters are, and at random points, which find a slope
that is missing on a whole region. Evaluation is exact there (160 digits), so what is infinite divides by 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import mpmath
import sympy

from recgen.algebra import precise
from recgen.algebra.calculus import derivative

SIZES = (0.5, 1.0, 5.0, 40.0)
SMOOTHER = "write what is smooth there, such as sqrt(x + 1e-6) for sqrt(x)"


def without_slope(tree: sympy.Expr) -> str:
    """Why a gradient of the expression does not exist where it has a value; or nothing."""
    variables = sorted((s for s in tree.free_symbols if s.is_integer is None), key=str)
    for at, where in points(tree, variables):
        if not _is_finite(tree, at):
            continue
        for s in variables:
            try:
                missing = not _is_finite(derivative(tree, s), at)
            except NotImplementedError:
                continue
            if missing:
                return f"it has no finite slope in {s} where {where}"
    return ""


def _is_finite(tree: sympy.Expr, at: precise.Point) -> bool:
    """Whether there is a real value. A condition on a root of what is negative has none."""
    try:
        value = precise.value(tree, at)
    except (ArithmeticError, TypeError):
        return False
    return bool(mpmath.isfinite(value))


def points(tree: sympy.Expr, variables: list[sympy.Symbol]) -> Iterator[tuple[precise.Point, str]]:
    """Where all variables are 0, and random points of several sizes, each with its description."""
    for seed, size in enumerate(SIZES):
        found = precise.point(tree.free_symbols, size, seed)
        if seed == 0:
            zero = {**found, **dict.fromkeys(variables, 0)}
            yield zero, " and ".join(f"{s} = 0" for s in variables)
        yield found, ", ".join(f"{s} = {float(found[s].real):.3g}" for s in variables)
