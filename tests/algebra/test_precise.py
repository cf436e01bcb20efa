"""Values and slopes to many decimals, against sympy's own."""

from __future__ import annotations

import mpmath
import pytest
import sympy
from sympy import Abs, Max, Min, Mod, Piecewise, cos, exp, log, sin, sqrt, tanh

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus, elementary
from recgen.algebra.precise import point, slope, value

x, y = sympy.symbols("x y", real=True)
h = sympy.Symbol("h", integer=True, nonnegative=True)

SMOOTH = [
    Sigmoid(x),
    LogSigmoid(x) / 16,
    Softplus(x * y),
    Silu(x),
    exp(-x) * y,
    log(1 + x**2),
    sqrt(1 + x**2),
    tanh(x),
    sin(x) * cos(y),
    x**3 / 7,
    x / (y + 3),
    sympy.pi * x,
    log(1 - 2 ** (-5 - h)) * x,
]
PIECES = [Relu(x), Elu(x), Abs(x - 2), Max(x, y, 1), Min(x, 0), Mod(x, 3), Piecewise((x**2, x > 0), (-x, True))]


@pytest.mark.parametrize("expr", SMOOTH + PIECES, ids=str)
def test_a_value_is_sympys(expr: sympy.Expr) -> None:
    at = point(expr.free_symbols, 2.0, 1)
    exact = elementary(expr).subs({s: sympy.Rational(str(float(v))) for s, v in at.items()})
    with mpmath.workdps(60):
        near = {s: mpmath.mpf(str(float(v))) for s, v in at.items()}
        assert abs(value(expr, near) - exact.evalf(60)._to_mpmath(200)) < mpmath.mpf(10) ** -45


@pytest.mark.parametrize("expr", SMOOTH, ids=str)
def test_a_slope_is_sympys_derivative(expr: sympy.Expr) -> None:
    at = point({x, y, h}, 2.0, 1)
    assert abs(slope(expr, x, at) - value(elementary(expr).diff(x), at)) < mpmath.mpf(10) ** -60


def test_the_slope_by_what_is_not_there_is_zero() -> None:
    assert slope(exp(y), x, point({x, y}, 1.0, 0)) == 0


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="besselj"):
        value(sympy.besselj(0, x), point({x}, 1.0, 0))


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (exp(exp(exp(exp(x)))), mpmath.inf),
        (-exp(exp(exp(exp(x)))), -mpmath.inf),
        (exp(-exp(exp(exp(exp(x))))), 0),
        (Sigmoid(exp(exp(exp(exp(x))))), 1),
        (tanh(-exp(exp(exp(exp(x))))), -1),
    ],
    ids=str,
)
def test_a_tower_of_exponentials_ends_in_infinity_soon(expr: sympy.Expr, expected: float) -> None:
    assert value(expr, {x: mpmath.mpf(40)}) == expected


def test_a_part_that_occurs_often_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[mpmath.mpf] = []
    monkeypatch.setattr(Softplus, "value", staticmethod(lambda z: calls.append(z) or z))
    deep = x
    for _ in range(10):
        deep = Softplus(deep) * Softplus(Softplus(deep))
    value(deep, {x: mpmath.mpf(1)})
    assert len(calls) == 20
