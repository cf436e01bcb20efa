"""The functions of the expression language: what they mean, at any precision, and that they stay as they are."""

from __future__ import annotations

import mpmath
import pytest
from sympy import Derivative, Eq, Expr, Piecewise, Rational, S, Symbol, diff, exp, log, oo, symbols

from recgen.algebra.activations import Activation, Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus, elementary
from recgen.algebra.functions import COMPARISONS, LANGUAGE

x, y = symbols("x y", real=True)
ACTIVATIONS = (Sigmoid, LogSigmoid, Softplus, Relu, Elu, Silu)
POINTS = (Rational(-40), Rational(-7, 3), Rational(-1, 10**6), Rational(1, 3), Rational(5), Rational(60))


def test_the_language_has_the_documented_functions() -> None:
    unary = {
        *("exp", "log", "log1p", "expm1", "sqrt", "abs", "sin", "cos", "tanh"),
        *("sigmoid", "logsigmoid", "softplus", "relu", "elu", "silu"),
    }
    assert set(LANGUAGE) == {*unary, "min", "max", "mod", "where"}
    assert all(LANGUAGE[name].arity == (1, 1) for name in unary)
    assert LANGUAGE["min"].arity == LANGUAGE["max"].arity == (2, None)
    assert LANGUAGE["mod"].arity == (2, 2)
    assert LANGUAGE["where"].arity == (3, 3)
    assert all(function.name == name and function.doc for name, function in LANGUAGE.items())


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("point", POINTS)
def test_an_activation_has_its_value_to_any_precision(activation: type[Activation], point: Rational) -> None:
    found = activation(x / 2).subs(x, 2 * point).evalf(50)
    exact = elementary(activation(x)).subs(x, point).evalf(50, maxn=400)
    assert abs(found - exact) <= abs(exact) * Rational(1, 10**48)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("point", POINTS)
def test_an_activation_has_its_derivative(activation: type[Activation], point: Rational) -> None:
    slope = diff(activation(x), x)
    assert not slope.has(Derivative)
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -25
        at = mpmath.mpf(point.p) / point.q
        exact = (activation.value(at + step) - activation.value(at - step)) / (2 * step)
        assert mpmath.almosteq(mpmath.mpf(str(slope.subs(x, point).evalf(40))), exact, 1e-20, 1e-20)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_of_a_real_symbol_is_real_and_is_not_rewritten(activation: type[Activation]) -> None:
    tree = activation(x)
    assert tree.is_real
    assert tree.func is activation
    assert tree.args == (x,)


def test_signs_are_known() -> None:
    assert Sigmoid(x).is_positive
    assert Softplus(x).is_positive
    assert LogSigmoid(x).is_negative
    assert Relu(x).is_nonnegative
    assert Silu(x).is_nonnegative is None


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        (Sigmoid(S.Zero), S.Half),
        (LogSigmoid(S.Zero), -log(2)),
        (Softplus(S.Zero), log(2)),
        (Elu(S.Zero), S.Zero),
        (Elu(S(-2)), exp(-2) - 1),
        (Relu(S(-2)), S.Zero),
        (Relu(Rational(1, 3)), Rational(1, 3)),
        (Silu(S.Zero), S.Zero),
        (Sigmoid(-oo), S.Zero),
        (LogSigmoid(oo), S.Zero),
        (LogSigmoid(-oo), -oo),
        (Softplus(-oo), S.Zero),
    ],
)
def test_exact_values(tree: Expr, value: Expr) -> None:
    assert tree == value


def test_log1p_and_expm1_are_written_in_log_and_exp() -> None:
    assert LANGUAGE["log1p"].build(x) == log(1 + x)
    assert LANGUAGE["expm1"].build(x) == exp(x) - 1


def test_where_is_a_choice_between_two_expressions() -> None:
    assert LANGUAGE["where"].build(x > 0, x, y) == Piecewise((x, x > 0), (y, True))
    assert LANGUAGE["where"].build(COMPARISONS["<"](S(1), S(2)), x, y) == x
    assert COMPARISONS["=="](x, y) == Eq(x, y)


def test_a_choice_inside_a_condition_is_taken_first() -> None:
    where = LANGUAGE["where"].build
    tree = where(where(x > 0, y, S(1)) > y / 2, S(3), S(4))
    assert all(
        condition.is_Relational or condition == S.true for node in tree.atoms(Piecewise) for _, condition in node.args
    )
    for at in ({x: 1, y: 1}, {x: 1, y: -1}, {x: -1, y: 3}, {x: -1, y: 1}):
        chosen = at[y] if at[x] > 0 else 1
        assert tree.subs(at) == (3 if chosen > S(at[y]) / 2 else 4)


@pytest.mark.parametrize(("name", "argument"), [("log", S.Zero), ("log", S(-1)), ("sqrt", S(-4)), ("log1p", S(-1))])
def test_what_is_not_a_finite_real_number_is_refused(name: str, argument: Expr) -> None:
    with pytest.raises(ValueError, match=rf"{name}\({argument}\) is not a finite real number"):
        LANGUAGE[name].build(argument)


@pytest.mark.parametrize("name", ["gamma", "beta", "lambda", "S", "E", "I", "N", "pi"])
def test_symbols_mean_themselves_whatever_they_are_called(name: str) -> None:
    symbol = Symbol(name, real=True)
    assert LANGUAGE["sigmoid"].build(symbol).free_symbols == {symbol}
