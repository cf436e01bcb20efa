"""The exact domains: what they can do is exact, what they cannot they refuse."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
import sympy

from recgen.algebra.exact import PRIME, UNIT, Domain, NotExact, Residues, Sum, evaluate, known
from recgen.algebra.laurent import Symbols

x, y, l = sympy.symbols("x y l", real=True)
every_domain = pytest.mark.parametrize("domain", [Symbols(), Residues()], ids=["symbols", "residues"])


def atom(domain: Domain, value: str) -> object:
    return domain.atom(mpmath.mpf(value), value)


@every_domain
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((x + y) ** 3, x**3 + 3 * x**2 * y + 3 * x * y**2 + y**3),
        ((x - y) * (x + y), x**2 - y**2),
        (sympy.Mul(1 / y, x, y, evaluate=False), x),
        ((x * y) ** -2 * x**3, x / y**2),
        (sympy.Mul(sympy.exp(l), sympy.exp(2 * l), evaluate=False), sympy.exp(3 * l)),
        (sympy.Mul(sympy.exp(-l), sympy.exp(l), evaluate=False), sympy.Integer(1)),
        ((x + y) / (x + y) ** 2 * sympy.Rational(1, 3), 1 / (3 * x + 3 * y).factor()),
    ],
)
def test_equal_expressions_are_equal(domain: Domain, left: sympy.Expr, right: sympy.Expr) -> None:
    at = {x: atom(domain, "0.25"), y: atom(domain, "1.5"), l: Sum({7: 1})}
    assert evaluate(left, at, domain) == evaluate(right, at, domain)


@every_domain
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (x, y),
        (x * y, x),
        (x**2, x),
        (sympy.exp(l), sympy.exp(2 * l)),
        (sympy.exp(l), 1 + x),
        (x / y, y / x),
    ],
)
def test_different_expressions_differ(domain: Domain, left: sympy.Expr, right: sympy.Expr) -> None:
    at = {x: atom(domain, "0.3"), y: atom(domain, "1.7"), l: Sum({7: 1})}
    assert evaluate(left, at, domain) != evaluate(right, at, domain)


@every_domain
def test_a_value_is_one_atom_wherever_it_is_computed(domain: Domain) -> None:
    with mpmath.workdps(100):
        third = mpmath.mpf(1) / 3
        assert domain.atom(third) == domain.atom(third + mpmath.mpf(10) ** -80)
        assert domain.atom(third) != domain.atom(third + mpmath.mpf(10) ** -40)


def test_a_whole_number_is_itself() -> None:
    assert Symbols().atom(mpmath.mpf(3)) == 3
    assert Residues().atom(mpmath.mpf(-2)).value == PRIME - 2
    assert known(mpmath.mpf("0.5")) == UNIT // 2


@every_domain
@pytest.mark.parametrize("expr", [sympy.exp(x), sympy.log(x), sympy.sin(x), sympy.sqrt(x), l + x, sympy.exp(l * x)])
def test_what_has_no_exact_value_is_refused(domain: Domain, expr: sympy.Expr) -> None:
    with pytest.raises((NotExact, TypeError)):
        evaluate(expr, {x: atom(domain, "0.3"), l: Sum({7: 1})}, domain)


@every_domain
def test_division_by_zero_is_refused(domain: Domain) -> None:
    with pytest.raises(NotExact, match="division by zero"):
        domain.reciprocal(0)


def test_symbols_remember_what_was_divided_by_but_not_exponentials() -> None:
    domain = Symbols()
    a, b = atom(domain, "0.3"), atom(domain, "0.7")
    domain.reciprocal(domain.exp(Sum({7: 2})))
    assert not domain.divisors
    domain.reciprocal(a)
    domain.reciprocal(a + b)
    domain.reciprocal(b + a)
    assert len(domain.divisors) == 2


def test_polynomials_print_with_the_labels_of_their_atoms() -> None:
    domain = Symbols()
    q, k = domain.atom(mpmath.mpf("0.3"), "q[0]"), domain.atom(mpmath.mpf("0.7"), "k[0]")
    assert domain.show(q * q * k + q * Fraction(1, 2) + -1) == "q[0]^2·k[0] + 1/2·q[0] + -1"
    assert domain.show(q * k * -1 + q * k) == "0"


def test_large_values_are_known_by_as_many_digits_as_slopes_have() -> None:
    with mpmath.workdps(200):
        value = mpmath.mpf(7) ** 90 / 3
        assert known(value) == known(value * (1 + mpmath.mpf(10) ** -80))
        assert known(value) != known(value * (1 + mpmath.mpf(10) ** -60))
        assert known(mpmath.mpf(10) ** 60) == 10**60 * UNIT
