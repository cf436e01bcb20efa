"""Exact domains in which a program and its recurrence are compared.

What enters a chunk are *atoms*: independent numbers that the token stage hands over. A log-decay atom ℓ is never a
number. It occurs in formal sums Σ cⱼ ℓⱼ with whole cⱼ, and exp(Σ cⱼ ℓⱼ) is the monomial Π aⱼ^cⱼ with aⱼ = exp(ℓⱼ): a
homomorphism from sums to products, which is all that the algebra uses of the exponential.

    Symbols    Laurent polynomials over the rationals in the atoms and the aⱼ (module `laurent`). The reciprocal of
               anything but a monomial is a new generator, one per divisor. What is equal there is equal everywhere
    Residues   whole numbers modulo the prime 2^127 − 1, every atom and every aⱼ at a random value. Reduction modulo a
               prime respects sums, products and quotients, so what is equal stays equal; two rational functions of
               degree d that differ agree at a point drawn from N values with probability at most d / N
               (Schwartz–Zippel), and N is at least 10^30 here

An atom is known by its value to 50 decimals: the same value is the same atom, wherever it is computed.
"""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

import mpmath
import numpy as np
import sympy

DECIMALS = 50
UNIT: int = 10**DECIMALS
LARGE = mpmath.mpf(10) ** 20
PRIME = 2**127 - 1


class NotExact(ValueError):
    """An operation that the exact domains do not have, such as the exponential of something not a log-decay."""


class Sum:
    """A formal sum of log-decays with whole coefficients: Σ cⱼ ℓⱼ."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[int, int]) -> None:
        self.terms = {atom: c for atom, c in terms.items() if c}

    def __add__(self, other: Sum | int) -> Sum:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, Sum):
            raise NotExact("a log-decay is added to something that is not one")
        terms = dict(self.terms)
        for atom, c in other.terms.items():
            terms[atom] = terms.get(atom, 0) + c
        return Sum(terms)

    def __mul__(self, factor: int) -> Sum:
        if isinstance(factor, np.ndarray):
            return NotImplemented
        if not isinstance(factor, int):
            raise NotExact("a log-decay is multiplied by something that is not a whole number")
        return Sum({atom: c * factor for atom, c in self.terms.items()})

    __radd__, __rmul__ = __add__, __mul__


class Arithmetic(Protocol):
    """What an expression needs of a domain. Elements know +, · and ==."""

    def constant(self, value: Fraction) -> Any:
        """The rational number."""

    def exp(self, exponent: Any) -> Any:
        """The exponential of a sum of log-decays; 0 is the empty sum."""

    def reciprocal(self, x: Any) -> Any:
        """1 / x. Raises NotExact when x is 0."""

    def function(self, node: sympy.Expr, args: Sequence[Any]) -> Any:
        """A function that is only known by its name: the same atom for the same arguments. `node`: of symbols."""


class Domain(Arithmetic, Protocol):
    """What the interpreter and the unrolled recurrence need of a domain."""

    def atom(self, value: mpmath.mpf, label: str = "") -> Any:
        """The atom with this value; a whole number is itself."""


def known(value: mpmath.mpf) -> int:
    """The value in units of 10^−50, by which an atom is known. Real and imaginary parts are kept apart.

    Of a large value the first 70 digits count: a slope is right to some 85.
    """
    if isinstance(value, mpmath.mpc):
        return known(value.real) + (known(value.imag) << 1024)
    with mpmath.workdps(3 * DECIMALS):
        if abs(value) < LARGE:
            return int(mpmath.nint(value * UNIT))
        beyond: int = int(mpmath.log10(abs(value) / LARGE))
        unit: int = 10**beyond
        return int(mpmath.nint(value * UNIT / mpmath.mpf(unit))) * unit


def log_decays(exponent: Sum | int) -> Iterator[tuple[int, int]]:
    """The log-decays of an exponent and how often each occurs."""
    if isinstance(exponent, Sum):
        yield from exponent.terms.items()
    elif not isinstance(exponent, int) or exponent != 0:
        raise NotExact("the exponential of something that is not a log-decay")


def spelled(node: sympy.Expr, args: Sequence[Any]) -> tuple[Any, ...]:
    """A function of some arguments as a key; the order of the arguments of min and max does not matter."""
    known_args = sorted(args, key=str) if isinstance(node, sympy.Max | sympy.Min) else args
    return (node.func.__name__, *known_args)


def evaluate(expr: sympy.Expr, at: Mapping[sympy.Symbol, Any], domain: Arithmetic) -> Any:
    """The expression's value in the domain: rational operations, exponentials of log-decays, and functions by name."""
    if isinstance(expr, sympy.Symbol):
        return at[expr]
    if isinstance(expr, sympy.Integer):
        return int(expr)
    if isinstance(expr, sympy.Rational | sympy.Float):
        return domain.constant(Fraction(str(expr)) if expr.is_Rational else Fraction(repr(float(expr))))
    if isinstance(expr, sympy.Add | sympy.Mul):
        combine = operator.add if isinstance(expr, sympy.Add) else operator.mul
        return functools.reduce(combine, [evaluate(arg, at, domain) for arg in expr.args])
    if isinstance(expr, sympy.exp):
        return domain.exp(evaluate(expr.args[0], at, domain))
    if isinstance(expr, sympy.Pow) and isinstance(expr.exp, sympy.Integer):
        base = evaluate(expr.base, at, domain)
        base = domain.reciprocal(base) if expr.exp < 0 else base
        return functools.reduce(operator.mul, [base] * abs(int(expr.exp)))
    if isinstance(expr, sympy.Piecewise):
        return _chosen(expr.args, at, domain)
    if isinstance(expr, OPAQUE):
        symbols = [a if a.is_Number else sympy.Dummy(f"x{k}", real=True) for k, a in enumerate(expr.args)]
        return domain.function(expr.func(*symbols), [evaluate(a, at, domain) for a in expr.args])
    raise NotExact(f"{expr} has no exact value inside a chunk")


Branches = Sequence[tuple[sympy.Expr, sympy.Basic]]


def _chosen(branches: Branches, at: Mapping[sympy.Symbol, Any], domain: Arithmetic) -> Any:
    """The first branch whose condition holds; each condition an atom c of its own: c · branch + (1 − c) · the rest."""
    (branch, condition), *rest = branches
    value = evaluate(branch, at, domain)
    if condition == sympy.true:
        return value
    holds = evaluate(_as_function(condition), at, domain)
    return holds * value + (1 + -1 * holds) * _chosen(rest, at, domain)


class Holds(sympy.Function):  # type: ignore[misc]  # sympy says nothing of its types
    """1 where the comparison of two arguments holds, else 0. The third argument tells which: see `_as_function`."""


def _as_function(condition: sympy.Basic) -> sympy.Expr:
    if isinstance(condition, sympy.StrictGreaterThan | sympy.GreaterThan):
        condition = condition.reversed
    kinds = {sympy.StrictLessThan: 1, sympy.LessThan: 2, sympy.Equality: 3, sympy.Unequality: 4}
    if type(condition) not in kinds:
        raise NotExact(f"{condition} has no exact value inside a chunk")
    return Holds(*condition.args, sympy.Integer(kinds[type(condition)]))


OPAQUE = (sympy.Abs, sympy.Max, sympy.Min, Holds)
"""Functions that a chunk may use, of whose values the proof knows only that equal arguments give equal ones."""


class Arrays:
    """A domain whose elements are arrays of another domain's elements."""

    def __init__(self, domain: Domain) -> None:
        self.constant = domain.constant
        self.domain = domain
        self.exp = np.frompyfunc(domain.exp, 1, 1)
        self.reciprocal = np.frompyfunc(domain.reciprocal, 1, 1)

    def function(self, node: sympy.Expr, args: Sequence[Any]) -> Any:
        return np.frompyfunc(lambda *xs: self.domain.function(node, xs), len(args), 1)(*args)


class Residue:
    """A whole number modulo PRIME."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __add__(self, other: Residue | int) -> Residue:
        if isinstance(other, Residue):
            return Residue((self.value + other.value) % PRIME)
        return Residue((self.value + other) % PRIME) if isinstance(other, int) else NotImplemented

    def __mul__(self, other: Residue | int) -> Residue:
        if isinstance(other, Residue):
            return Residue(self.value * other.value % PRIME)
        return Residue(self.value * other % PRIME) if isinstance(other, int) else NotImplemented

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Residue):
            return self.value == other.value
        return self.value == other % PRIME if isinstance(other, int) else NotImplemented

    def __str__(self) -> str:
        return f"{self.value} mod 2^127-1"


class Residues:
    """The domain of residues. An atom is the residue of its 50 decimals; the aⱼ are drawn from the seed."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._powers: dict[tuple[int, int], int] = {}

    def atom(self, value: mpmath.mpf, label: str = "") -> Residue:
        return Residue(known(value) * pow(UNIT, -1, PRIME) % PRIME)

    def constant(self, value: Fraction) -> Residue:
        return Residue(value.numerator * pow(value.denominator, -1, PRIME) % PRIME)

    def exp(self, exponent: Sum | int) -> Residue:
        product = 1
        for atom, c in log_decays(exponent):
            if (atom, c) not in self._powers:
                base = random.Random(f"{self.seed} {atom}").randrange(2, PRIME)
                self._powers[atom, c] = pow(base, c, PRIME)
            product = product * self._powers[atom, c] % PRIME
        return Residue(product)

    def reciprocal(self, x: Residue | int) -> Residue:
        value = x % PRIME if isinstance(x, int) else x.value
        if value == 0:
            raise NotExact("division by zero")
        return Residue(pow(value, -1, PRIME))

    def function(self, node: sympy.Expr, args: Sequence[Residue | int]) -> Residue:
        values = [x.value if isinstance(x, Residue) else x % PRIME for x in args]
        return Residue(random.Random(f"{self.seed} {spelled(node, values)}").randrange(2, PRIME))
