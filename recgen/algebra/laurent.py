"""The exact domain of symbols: Laurent polynomials over the rationals (see `exact`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import mpmath
import sympy

from recgen.algebra.exact import UNIT, NotExact, Sum, known, log_decays, spelled

Coefficient = int | Fraction
Divisor = frozenset[tuple[int, Coefficient]]
DIGIT = 12  # bits per exponent: a monomial is Σ exponent_g · 2^(12 g), so that products of monomials are sums


class Laurent:
    """A Laurent polynomial: coefficient by monomial."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[int, Coefficient]) -> None:
        self.terms = terms

    def __add__(self, other: Laurent | Coefficient) -> Laurent:
        if not isinstance(other, Laurent | Coefficient):
            return NotImplemented
        terms = dict(self.terms)
        for monomial, c in _laurent(other).terms.items():
            total = terms.get(monomial, 0) + c
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
        return Laurent(terms)

    def __mul__(self, other: Laurent | Coefficient) -> Laurent:
        if not isinstance(other, Laurent | Coefficient):
            return NotImplemented
        terms: dict[int, Coefficient] = {}
        factor = _laurent(other).terms
        for m, c in self.terms.items():
            for n, d in factor.items():
                terms[m + n] = terms.get(m + n, 0) + c * d
        return Laurent({monomial: c for monomial, c in terms.items() if c})

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return self.terms == _laurent(other).terms if isinstance(other, Laurent | Coefficient) else NotImplemented


def _laurent(x: Laurent | Coefficient) -> Laurent:
    if isinstance(x, Laurent):
        return x
    return Laurent({0: x} if x else {})


class Symbols:
    """The domain of Laurent polynomials.

    `divisors` collects what was divided by, apart from products of what is never zero: exponentials, max(x, 1).
    `grows` says whether an exponential was taken of a sum that has a log-decay with a negative count, and so may
    exceed 1.
    """

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.divisors: set[Divisor] = set()
        self.grows = False
        self._generators: dict[object, int] = {}
        self._positive: set[int] = set()

    def atom(self, value: mpmath.mpf, label: str = "") -> Laurent | int:
        key = known(value)
        if key % UNIT == 0:
            return key // UNIT
        return Laurent({1 << DIGIT * self._generator(key, label): 1})

    def constant(self, value: Fraction) -> Fraction:
        return value

    def exp(self, exponent: Sum | int) -> Laurent:
        monomial = 0
        for atom, c in log_decays(exponent):
            self.grows |= c < 0
            g = self._generator(("exp", atom), "a")
            self._positive.add(g)
            monomial += c << DIGIT * g
        return Laurent({monomial: 1})

    def reciprocal(self, x: Laurent | Coefficient) -> Laurent:
        terms = _laurent(x).terms
        if not terms:
            raise NotExact("division by zero")
        if len(terms) == 1:
            ((monomial, c),) = terms.items()
            if any(g not in self._positive for g, _ in _factors(monomial)):
                self.divisors.add(frozenset(terms.items()))
            return Laurent({-monomial: Fraction(1, c)})
        key = frozenset(terms.items())
        self.divisors.add(key)
        return Laurent({1 << DIGIT * self._generator(key, "1/(…)"): 1})

    def function(self, node: sympy.Expr, args: Sequence[Laurent | Coefficient]) -> Laurent:
        key = spelled(node, [tuple(sorted(_laurent(x).terms.items())) for x in args])
        g = self._generator(key, f"{node.func.__name__}(…)")
        if isinstance(node, sympy.Max) and any(map(self._is_positive, args)):
            self._positive.add(g)
        return Laurent({1 << DIGIT * g: 1})

    def _is_positive(self, x: Laurent | Coefficient) -> bool:
        """Whether it is a product of a number above 0, exponentials, and maxima with one of these."""
        terms = list(_laurent(x).terms.items())
        return len(terms) == 1 and terms[0][1] > 0 and all(g in self._positive for g, _ in _factors(terms[0][0]))

    def _generator(self, key: object, label: str) -> int:
        if key not in self._generators:
            self._generators[key] = len(self.labels)
            self.labels.append(label or f"x{len(self.labels)}")
        return self._generators[key]

    def show(self, x: Laurent | Coefficient, limit: int = 6) -> str:
        """The polynomial as text, at most `limit` terms of it."""
        terms = list(_laurent(x).terms.items())
        shown = [self._show_term(monomial, c) for monomial, c in terms[:limit]]
        return " + ".join(shown or ["0"]) + (f" + … ({len(terms)} terms)" if len(terms) > limit else "")

    def _show_term(self, monomial: int, c: Coefficient) -> str:
        powers = [self.labels[g] + (f"^{e}" if e != 1 else "") for g, e in _factors(monomial)]
        return "·".join(([str(c)] if c != 1 or not powers else []) + powers)


def _factors(monomial: int) -> Iterator[tuple[int, int]]:
    """The generators of a monomial and their exponents."""
    g, half = 0, 1 << (DIGIT - 1)
    while monomial:
        exponent = (monomial + half) % (1 << DIGIT) - half
        if exponent:
            yield g, exponent
        monomial = (monomial - exponent) >> DIGIT
        g += 1
