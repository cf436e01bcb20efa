"""Interval analysis encloses every value, and is exact where decays need it to be."""

from __future__ import annotations

import math
import random

import pytest
from sympy import Expr, Rational, S, Symbol, cos, exp, gamma, log, sin, sqrt, symbols, tanh

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus
from recgen.algebra.bounds import REAL_LINE, Interval, bounds
from recgen.algebra.functions import LANGUAGE
from recgen.algebra.precise import value
from tests.algebra.expressions import SYMBOLS, p, q, random_expression, x, y

INF = math.inf
h = Symbol("h", integer=True, nonnegative=True)
H = Symbol("H", integer=True, positive=True)
g, r, w, lam, A_log, dt, dt_bias = symbols("g r w lam A_log dt dt_bias", real=True)
f = {name: function.build for name, function in LANGUAGE.items()}


@pytest.mark.parametrize(
    ("log_decay", "lo", "hi"),
    [
        (S.Zero, 0.0, 0.0),
        (log(1 - 2 ** (-5 - h)), math.log(31 / 32), 0.0),
        (-(2 ** (-8 * (h + 1) / H)), -1.0, 0.0),
        (-exp(w), -INF, 0.0),
        (LogSigmoid(g), -INF, 0.0),
        (LogSigmoid(g) / 16, -INF, 0.0),
        (LogSigmoid(g) / 16 + LogSigmoid(r) / 16, -INF, 0.0),
        (log(Sigmoid(g)), -INF, 0.0),
        (-exp(A_log) * Softplus(dt + dt_bias), -INF, 0.0),
        (-8 * Softplus(lam) * Sigmoid(r), -INF, 0.0),
        (-Sigmoid(g) / 10, -0.1, 0.0),
        (-(g**2), -INF, 0.0),
        (-f["abs"](g), -INF, 0.0),
        (-Relu(g), -INF, 0.0),
        (f["max"](-exp(g), S(-5)), -5.0, 0.0),
        (f["where"](g > 0, -g, g), -INF, 0.0),
        (log(Rational(9, 10)), math.log(0.9), math.log(0.9)),
        (log((1 + tanh(g)) / 2), -INF, 0.0),
    ],
    ids=str,
)
def test_log_decays_end_at_exactly_zero(log_decay: Expr, lo: float, hi: float) -> None:
    found = bounds(log_decay)
    assert found.hi == (hi if hi == 0 else pytest.approx(hi, rel=1e-15))
    assert found.lo == pytest.approx(lo, rel=1e-15)


@pytest.mark.parametrize(
    ("tree", "ranges", "lo", "hi"),
    [
        (Elu(x) + 1, {}, 0.0, INF),
        (Elu(x), {}, -1.0, INF),
        (Silu(x), {x: Interval(-3, -2)}, -2 / (1 + math.exp(2)), -3 / (1 + math.exp(3))),
        (exp(x), {x: Interval(-INF, 0)}, 0.0, 1.0),
        (x**2, {x: Interval(-2, 1)}, 0.0, 4.0),
        (x**3, {x: Interval(-2, 1)}, -8.0, 1.0),
        (1 / x, {x: Interval(0, 4)}, 0.25, INF),
        (1 / x, {x: Interval(-1, 1)}, -INF, INF),
        (x**-2, {x: Interval(-2, 4)}, 1 / 16, INF),
        (sqrt(x), {x: Interval(0, 9)}, 0.0, 3.0),
        (sin(x), {x: Interval(0, 2)}, 0.0, 1.0),
        (cos(x), {x: Interval(3, 7)}, -1.0, 1.0),
        (f["mod"](x, S(3)), {}, 0.0, 3.0),
        (f["mod"](x, S(3)), {x: Interval(1, 2)}, 1.0, 2.0),
        (f["min"](x, S(1)), {x: Interval(0, 5)}, 0.0, 1.0),
        (x * (1 - y), {x: Interval(0, 2), y: Interval(0, 1)}, 0.0, 2.0),
        (f["where"](x > 1, x, S(1)), {x: Interval(-5, 3)}, 1.0, 3.0),
        (f["where"](x > 1, S(7), S(5)), {x: Interval(-5, 1)}, 5.0, 5.0),
    ],
    ids=str,
)
def test_bounds_are_exact(tree: Expr, ranges: dict[Symbol, Interval], lo: float, hi: float) -> None:
    found = bounds(tree, ranges)
    assert (found.lo, found.hi) == (pytest.approx(lo, rel=1e-15), pytest.approx(hi, rel=1e-15))


def test_a_symbol_that_occurs_twice_is_fixed_where_the_expression_is_monotone() -> None:
    assert bounds(x**3 - x, {x: Interval(1, 2)}) == Interval(0, 6)
    assert bounds(x - Softplus(x), {x: Interval(0, 1)}).hi < 0


def test_a_pole_or_a_jump_is_not_mistaken_for_monotone() -> None:
    assert bounds(x / (1 + x), {x: Interval(-3, 2)}) == REAL_LINE
    assert 0.5 in bounds(f["where"](x > 1, x - 1, x) + x, {x: Interval(0, 2)})


def test_symbols_without_a_range_run_over_what_they_may_be() -> None:
    assert bounds(x) == REAL_LINE
    assert bounds(h) == Interval(0, INF)
    assert bounds(H) == Interval(1, INF)
    assert bounds(p) == Interval(0, INF)


def test_what_has_no_real_value_is_refused() -> None:
    for tree in (log(-1 - x**2), sqrt(-1 - f["abs"](x)), sqrt(S(-2))):
        with pytest.raises(ValueError):
            bounds(tree)
    with pytest.raises(NotImplementedError, match="gamma"):
        bounds(gamma(x))


def test_an_interval_needs_its_ends_in_order() -> None:
    with pytest.raises(ValueError, match="lo <= hi"):
        Interval(1, 0)
    with pytest.raises(ValueError, match="lo <= hi"):
        Interval(math.nan, 0)
    assert str(Interval(-INF, 0)) == "(-inf, 0]"
    assert math.copysign(1, Interval(-1, -0.0).hi) == 1


def test_every_value_of_a_random_expression_lies_within_its_bounds() -> None:
    draw = random.Random(3)
    for _ in range(150):
        tree = random_expression(draw)
        ranges = {}
        for symbol in SYMBOLS:
            least = 0.25 if symbol in (p, q) else -3.0
            ends = sorted((draw.uniform(least, 3), draw.uniform(least, 3)))
            ranges[symbol] = Interval(*ends)
        found = bounds(tree, ranges)
        slack = 1e-12 * max(1.0, abs(found.lo) if found.lo > -INF else 0, abs(found.hi) if found.hi < INF else 0)
        for _ in range(6):
            point = {s: draw.choice([draw.uniform(i.lo, i.hi), i.lo, i.hi]) for s, i in ranges.items()}
            exact = float(value(tree, point))
            assert found.lo - slack <= exact <= found.hi + slack, f"{tree} is {exact} at {point}, outside {found}"
