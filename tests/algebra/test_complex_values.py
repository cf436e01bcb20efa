"""Real and imaginary parts: equal to complex arithmetic, and as accurate as float32 can be where it would cancel."""

from __future__ import annotations

import mpmath
import pytest
import torch
from sympy import I, Symbol, conjugate, exp, pi, sin, tanh

from recgen.algebra import precise
from recgen.algebra.complex_values import is_complex, split
from recgen.emit.torch_expr import TorchPrinter

x, y, t = (Symbol(name, real=True) for name in "xyt")
z = x + I * y
EXPRESSIONS = [
    z,
    -z,
    I * z,
    I,
    3 * I * x,
    z + 2,
    z * (t + I * x),
    z**2,
    z**5,
    1 / z,
    z**-3,
    t / (I * x),
    exp(z),
    exp(I * x),
    exp(z) - 1,
    1 - exp(z),
    3 * exp(z * t) - 3,
    exp(I * y) - 1,
    2**z,
    exp(z) / (1 + exp(z)),
    (exp(t * z) - 1) / z,
    tanh(x) * z + I * sin(t),
    conjugate(z * exp(z)),
    exp(I * pi * x),
    z * conjugate(z),
    t * (x * exp(z) - x),
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_the_parts_are_those_of_complex_arithmetic(expr: object) -> None:
    re, im = split(expr)
    assert not is_complex(re) and not is_complex(im)
    for seed in range(3):
        at = precise.point((x, y, t), 1.5, seed)
        with mpmath.workdps(precise.DIGITS):
            whole, parts = precise.value(expr, at), mpmath.mpc(precise.value(re, at), precise.value(im, at))
            assert abs(whole - parts) < mpmath.mpf(10) ** -100 * (1 + abs(whole))


def test_a_real_expression_is_its_real_part() -> None:
    assert split(x * exp(y)) == (x * exp(y), 0)


@pytest.mark.parametrize("expr", [abs(x) * exp(z) ** (y / 2), sin(z), z ** (x + 1), (x - y) ** z], ids=str)
def test_what_has_no_parts_is_refused(expr: object) -> None:
    with pytest.raises(ValueError, match=r"real values|several branches|may be negative"):
        split(expr)


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e-6, 1e-3, 0.1, 3.0])
@pytest.mark.parametrize("direction", [(-1, 0), (0, 1), (-1, 1), (-1e-3, 1)], ids=str)
def test_the_hold_is_accurate_in_float32(size: float, direction: tuple[float, float]) -> None:
    """(e^z − 1)/z is 1 at 0: a difference of numbers near 1 would leave no digit of its numerator."""
    numbers = {s: torch.tensor(size * d, dtype=torch.float32) for s, d in zip((x, y), direction, strict=True)}
    found = []
    for part in split(exp(z) - 1):
        namespace = {"torch": torch, "x": numbers[x], "y": numbers[y]}
        found.append(eval(TorchPrinter({x: "x", y: "y"}).text(part), namespace))  # noqa: S307  (printed by us)
    with mpmath.workdps(60):
        exact = mpmath.expm1(mpmath.mpc(*(float(numbers[s]) for s in (x, y))))
        error = abs(mpmath.mpc(*map(float, found)) - exact) / abs(exact)
    assert error < 5e-7
