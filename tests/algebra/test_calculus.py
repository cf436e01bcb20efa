"""Derivatives of user expressions are exact, stay in the language and keep stable forms."""

from __future__ import annotations

import random

import mpmath
import pytest
from sympy import (
    Derivative,
    DiracDelta,
    Expr,
    Heaviside,
    Min,
    Piecewise,
    Rational,
    S,
    Subs,
    exp,
    gamma,
    log,
    sign,
    sqrt,
    symbols,
    tanh,
)

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus
from recgen.algebra.calculus import derivative, is_zero_at_zero
from recgen.algebra.functions import LANGUAGE
from recgen.algebra.precise import slope, value
from tests.algebra.expressions import SYMBOLS, p, random_expression, random_point, x, y

g, w, dt, bias = symbols("g w dt bias", real=True)
f = {name: function.build for name, function in LANGUAGE.items()}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (LogSigmoid(g) / 16, Sigmoid(-g) / 16),
        (Softplus(g), Sigmoid(g)),
        (Sigmoid(g), Sigmoid(g) * Sigmoid(-g)),
        (Elu(g) + 1, exp(Min(g, 0))),
        (Relu(g), Piecewise((1, g > 0), (0, True))),
        (f["abs"](g), Piecewise((1, g > 0), (-1, g < 0), (0, True))),
        (Silu(g), Sigmoid(g) * (1 + g * Sigmoid(-g))),
        (tanh(g), 4 * Sigmoid(2 * g) * Sigmoid(-2 * g)),
        (-exp(g), -exp(g)),
        (-exp(w) * Softplus(g + bias), -exp(w) * Sigmoid(bias + g)),
        (sqrt(g), 1 / (2 * sqrt(g))),
        (g**3, 3 * g**2),
        (2**g, log(2) * 2**g),
        (f["max"](g, S(2)), Piecewise((0, g < 2), (1, True))),
        (f["where"](g > 0, g**2, w), Piecewise((2 * g, g > 0), (0, True))),
        (log(Sigmoid(g)), Sigmoid(-g)),
        (log(1 + exp(g)), Sigmoid(g)),
        (1 / (1 + exp(-g)), Sigmoid(g) * Sigmoid(-g)),
        (1 - exp(LogSigmoid(g)), -Sigmoid(g) * Sigmoid(-g)),
        (w + 3, S.Zero),
        (g, S.One),
    ],
    ids=str,
)
def test_derivatives_have_their_stable_form(tree: Expr, expected: Expr) -> None:
    assert derivative(tree, g) == expected


def test_random_expressions_have_their_derivative() -> None:
    draw = random.Random(7)
    checked = 0
    while checked < 60:
        tree = random_expression(draw, depth=2)
        for symbol in sorted(tree.free_symbols, key=str):
            found = derivative(tree, symbol)
            assert not found.has(Heaviside, Derivative, Subs, DiracDelta, sign)
            for _ in range(2):
                point = {s: mpmath.mpf(v) for s, v in random_point(draw).items()}
                exact = slope(tree, symbol, point)
                assert abs(value(found, point) - exact) <= 1e-25 * max(1, abs(exact)), f"d/d{symbol} of {tree}: {found}"
            checked += 1


def test_the_derivative_of_the_larger_of_several_is_shared_by_those_that_tie() -> None:
    tree = f["max"](x, y)
    assert derivative(tree, x).subs({x: 2, y: 1}) == 1
    assert derivative(tree, x).subs({x: 1, y: 2}) == 0
    assert derivative(tree, x).subs({x: 1, y: 1}) == Rational(1, 2)
    assert sum(derivative(f["min"](x, y, p), s).subs({x: 1, y: 2, p: 3}) for s in (x, y, p)) == 1


def test_a_remainder_changes_with_both_its_arguments() -> None:
    tree = f["mod"](x, y)
    assert derivative(tree, x) == 1
    assert derivative(tree, y).subs({x: 7, y: 3}) == -2


def test_a_function_outside_the_language_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="gamma"):
        derivative(gamma(x), x)


@pytest.mark.parametrize(
    "tree", [x, x * y, Elu(x), exp(x) - 1, x * exp(y), Silu(x) / 2, f["max"](x, S(0)), tanh(x) ** 2]
)
def test_expressions_that_are_zero_at_zero(tree: Expr) -> None:
    assert is_zero_at_zero(tree, [x])


@pytest.mark.parametrize("tree", [y, Elu(x) + 1, exp(x), LogSigmoid(x), 1 / x, x / x**2, x + y, Sigmoid(x)], ids=str)
def test_expressions_that_are_not_zero_at_zero(tree: Expr) -> None:
    assert not is_zero_at_zero(tree, [x])


def test_all_given_symbols_are_zero_together() -> None:
    assert is_zero_at_zero(x + y, [x, y])
    assert set(SYMBOLS) >= {x, y}
