"""Random expression trees over the whole language, and points to evaluate them at.

`x` and `y` are real, `p` and `q` positive. Arguments of functions with a limited domain, or that grow fast, are wrapped
so that every tree has a moderate value at every point: what is tested is the tree's meaning, not rounding.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from sympy import Expr, Float, Piecewise, Rational, S, Symbol, cos, exp, log, sin, sqrt, tanh

from recgen.algebra.functions import COMPARISONS, LANGUAGE

x, y = Symbol("x", real=True), Symbol("y", real=True)
p, q = Symbol("p", real=True, positive=True), Symbol("q", real=True, positive=True)
SYMBOLS = (x, y, p, q)
NUMBERS = (S(2), S(-1), S(3), Rational(1, 3), Rational(1, 10), Rational(-5, 7), S.Half, Rational(1, 16), S(1))

f = {name: function.build for name, function in LANGUAGE.items()}

UNARY: tuple[Callable[[Expr], Expr], ...] = (
    *(f[name] for name in ("abs", "sin", "cos", "tanh", "sigmoid", "logsigmoid", "softplus", "relu", "elu", "silu")),
    lambda a: f["exp"](tanh(a)),
    lambda a: f["exp"](-(a**2)),
    lambda a: f["log"](Rational(1, 4) + a**2),
    lambda a: f["log1p"](sin(a) / 2),
    lambda a: f["expm1"](sin(a)),
    lambda a: 1 - f["exp"](f["logsigmoid"](a) / 16),
    lambda a: f["elu"](a) + 1,
    lambda a: f["sqrt"](1 + a**2),
    lambda a: f["sqrt"](f["softplus"](a)),
    lambda a: 2 ** cos(a),
    lambda a: Rational(1, 3) ** tanh(a),
    lambda a: (-a) ** 2,
    lambda a: -(a**2),
    lambda a: tanh(a) ** 3,
    lambda a: sin(a) ** 4,
    lambda a: 1 / (1 + a**2),
    lambda a: (1 + a**2) ** -2,
    lambda a: (1 + a**2) ** Rational(-1, 2),
    lambda a: (1 + f["abs"](a)) ** Rational(1, 3),
    lambda a: (1 + f["abs"](a)) ** Rational(-3, 4),
    lambda a: a ** ((-1) ** 2),
)
BINARY: tuple[Callable[[Expr, Expr], Expr], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a - 2 * b,
    lambda a, b: a / (p * (1 + b**2)),
    lambda a, b: a / p / q * tanh(b),
    lambda a, b: (1 + f["abs"](a)) ** tanh(b),
    lambda a, b: -2 * f["mod"](a, p),
    lambda a, b: f["mod"](a, -1 - f["abs"](b)),
    f["min"],
    f["max"],
    lambda a, b: f["max"](a, b, Rational(1, 10)),
    lambda a, b: f["max"](S(-1), f["min"](a, S(1))) * b,
    *(lambda a, b, holds=holds: f["where"](holds(a, b), a, 2 * b) for holds in COMPARISONS.values()),
    lambda a, b: f["where"](a > 0, Rational(1, 10), Rational(1, 3)) * b,
)


NAMED_CASES: tuple[Expr, ...] = (
    -2 * f["mod"](p, q),
    x / (p * q),
    -(x**2),
    (-x) ** 2,
    x ** ((-1) ** 2),
    Rational(1, 3),
    x * Rational(1, 3),
    x - (y - p),
    x - 2 * (y - p),
    x / p / q,
    x / (p / q),
    (x + 1) / (p + 1),
    -(x + 1) * y,
    p**-x,
    p ** (x * y),
    (p**x) ** 2,
    (x * y) ** 5,
    p ** Rational(-3, 2),
    sqrt(p) / sqrt(2),
    log(2) * x - exp(1) * y,
    Float(0.1) * x + Float(1e-20),
    f["mod"](x, -p) ** 2,
    Piecewise((Rational(1, 10), x > y), (Rational(1, 3), x > 0), (p, True)),
    Piecewise((1, x > 0), (-1, x < 0), (0, True)),
    exp(log(1 + exp(x)) * 2) - 3 * exp(y) + 3,
)


def random_expression(draw: random.Random, depth: int = 3) -> Expr:
    """A random tree of at most this depth of calls and operators."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice(NUMBERS) if draw.random() < 0.2 else draw.choice(SYMBOLS)
    if draw.random() < 0.5:
        return draw.choice(UNARY)(random_expression(draw, depth - 1))
    return draw.choice(BINARY)(random_expression(draw, depth - 1), random_expression(draw, depth - 1))


def random_point(draw: random.Random) -> dict[Symbol, float]:
    """A value for each symbol: x and y within (-3, 3), p and q within (0.5, 2)."""
    return {x: draw.uniform(-3, 3), y: draw.uniform(-3, 3), p: draw.uniform(0.5, 2), q: draw.uniform(0.5, 2)}
