"""From a sympy tree to the text of an expression: precedence, order of terms, numbers. Common to all targets.

A printer for one target subclasses `ExpressionPrinter` and says how its functions, powers, selections and comparisons
are spelled. Each node becomes a `Text`, which knows how tightly it binds, so that brackets appear where they are needed
and nowhere else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from sympy import Add, And, Basic, Expr, Float, Integer, Mul, Not, Number, Or, Piecewise, Pow, Rational, Rel, S, Symbol

from recgen.algebra.activations import Activation
from recgen.algebra.stable import printable


class Level(IntEnum):
    """How tightly a piece of text binds, as Python's grammar has it."""

    CHOICE = 0  # a if c else b
    COMPARISON = 1
    SUM = 2
    PRODUCT = 3  # also with a minus sign in front
    POWER = 4
    ATOM = 5


class Text(NamedTuple):
    """A piece of text and how tightly it binds."""

    text: str
    level: Level

    def within(self, level: Level) -> str:
        """The text as an operand of an operator of this level: bracketed if it binds less tightly."""
        return self.text if self.level >= level else f"({self.text})"


class ExpressionPrinter:
    """Prints expressions for one target. `names` gives the text of each symbol, such as `b_g[:, None]`."""

    functions: Mapping[type, str | Callable[..., Text]] = {}

    def __init__(self, names: Mapping[Symbol, str]) -> None:
        self.names = dict(names)

    def text(self, expr: Expr) -> str:
        """The expression as text that means exactly the tree.

        Raises KeyError for a symbol without a name, NotImplementedError for a function the target does not have.
        """
        return self.print(printable(expr)).text

    def print(self, node: Basic) -> Text:
        """The text of one node of a tree that is in printable form already."""
        if isinstance(node, Symbol):
            return self._name(node)
        if isinstance(node, Number):
            return number(node)
        if isinstance(node, Add):
            return self._sum(node)
        if isinstance(node, Mul):
            return self._product(node)
        if isinstance(node, Pow):
            return self._product(node) if self._is_divisor(node) else self.power(node.base, node.exp)
        if isinstance(node, Piecewise):
            return self.where(node)
        if isinstance(node, Rel | And | Or | Not) or node in (S.true, S.false):
            return self._condition(node)
        spelling = next((self.functions[kind] for kind in type(node).__mro__ if kind in self.functions), None)
        if spelling is None and isinstance(node, Activation):
            return self.print(node.elementary(*node.args))
        if spelling is None:
            raise NotImplementedError(f"{type(self).__name__} cannot print {type(node).__name__}, in {node}")
        return self.call(spelling, *node.args) if isinstance(spelling, str) else spelling(self, *node.args)

    def call(self, function: str, *args: Basic, **options: str) -> Text:
        """A call of a named function."""
        texts = [self.print(arg).text for arg in args] + [f"{name}={value}" for name, value in options.items()]
        return Text(f"{function}({', '.join(texts)})", Level.ATOM)

    def power(self, base: Expr, power: Expr) -> Text:
        """base ** power, of which a target may have special cases."""
        below, above = self.print(base).within(Level.ATOM), self.print(power)
        minus_atom = above.text.startswith("-") and self.print(-power).level == Level.ATOM
        return Text(f"{below} ** {above.text if minus_atom else above.within(Level.ATOM)}", Level.POWER)

    def where(self, node: Piecewise) -> Text:
        """A choice between expressions."""
        raise NotImplementedError

    def joined_conditions(self, node: And | Or | Not) -> Text:
        """Conditions joined by and, or, not; as tensors have it."""
        texts = [self.print(arg).within(Level.ATOM) for arg in node.args]
        if isinstance(node, Not):
            return Text(f"~{texts[0]}", Level.ATOM)
        return Text((" & " if isinstance(node, And) else " | ").join(texts), Level.COMPARISON)

    def is_number(self, node: Basic) -> bool:
        """Whether the node is a plain number of the target's language, not a tensor."""
        return bool(node.is_number)

    def _is_divisor(self, factor: Expr) -> bool:
        """Whether a factor goes below the line: 1/x and x ** -1.5 do, 1/sqrt(x) and K ** -0.25 of a number do not."""
        if not (isinstance(factor, Pow) and factor.exp.is_Rational and factor.exp < 0):
            return False
        return factor.exp.is_Integer or not (factor.exp == Rational(-1, 2) or self.is_number(factor))

    def _name(self, symbol: Symbol) -> Text:
        text = self.names[symbol]
        body = ast.parse(text, mode="eval").body
        atomic = isinstance(body, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant)
        return Text(text, Level.ATOM if atomic else Level.CHOICE)

    def _condition(self, node: Basic) -> Text:
        if not isinstance(node, Rel):
            return Text(str(node), Level.ATOM) if node in (S.true, S.false) else self.joined_conditions(node)
        left, right = (self.print(side).within(Level.SUM) for side in node.args)
        return Text(f"{left} {node.rel_op} {right}", Level.COMPARISON)

    def _sum(self, node: Add) -> Text:
        first, *others = _ordered_terms(node)
        text = self.print(first).within(Level.SUM)
        for term in others:
            sign, size = _signed(term)
            text += f" {'-' if sign < 0 else '+'} {self.print(size).within(Level.PRODUCT)}"
        return Text(text, Level.SUM)

    def _product(self, node: Expr) -> Text:
        """A product or reciprocal as one quotient: a number, plain numbers, the rest, over what divides."""
        coefficient, factors = _primitive(node)
        minus, coefficient = ("-", -coefficient) if coefficient < 0 else ("", coefficient)
        over, under = _quotient(coefficient)
        above = [factor for factor in factors if not self._is_divisor(factor)]
        below = [Pow(factor.base, -factor.exp) for factor in factors if self._is_divisor(factor)]
        above.sort(key=lambda factor: not self.is_number(factor))
        above = above if over == 1 and above else [over, *above]
        below = below if under == 1 else [under, *below]
        if not below and not minus and len(above) == 1:
            return self.print(above[0])
        first, *others = [self.print(factor) for factor in above]
        text = " * ".join(
            [minus + first.within(Level.ATOM if minus else Level.PRODUCT)]
            + [other.within(Level.POWER) for other in others]
        )
        divisors = [self.print(factor).within(Level.POWER) for factor in below]
        if divisors:
            text += f" / {divisors[0]}" if len(divisors) == 1 else f" / ({' * '.join(divisors)})"
        return Text(text, Level.PRODUCT)


def number(value: Number) -> Text:
    """A number as the shortest literal, or quotient of literals, that is exact in float64."""
    if value in (S.Infinity, S.NegativeInfinity):
        return Text(f'float("{"-" if value < 0 else ""}inf")', Level.ATOM)
    if value < 0:
        return Text(f"-{number(-value).text}", Level.PRODUCT)
    if isinstance(value, Integer) and value < 2**31:
        return Text(str(value), Level.ATOM)
    if isinstance(value, Rational) and not _is_short_decimal(value) and max(value.p, value.q) < 2**31:
        return Text(f"{value.p} / {value.q}", Level.PRODUCT)
    return Text(literal(float(value)), Level.ATOM)


def literal(value: float) -> str:
    """repr of a float, with 1e-06 written 1e-6."""
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def _quotient(coefficient: Number) -> tuple[Number, Number]:
    """A positive number as what to multiply by and what to divide by: 0.75 is (0.75, 1), 1/16 is (1, 16)."""
    if not isinstance(coefficient, Rational):
        return coefficient, S.One
    decimal = coefficient.p != 1 or coefficient.q % 5 == 0
    if decimal and _is_short_decimal(coefficient):
        return coefficient, S.One
    return Integer(coefficient.p), Integer(coefficient.q)


def _is_short_decimal(value: Number) -> bool:
    if isinstance(value, Float):
        return True
    text = repr(float(value))
    return Rational(text) == value and len(text.partition("e")[0].replace(".", "").strip("-0")) <= 6


def _signed(term: Expr) -> tuple[int, Expr]:
    """The sign of a term's number, and the term without it."""
    coefficient = term.as_coeff_Mul()[0]
    if coefficient < 0:
        factors = [factor for factor in Mul.make_args(term) if not factor.is_Number]
        return -1, Mul(-coefficient, *factors, evaluate=coefficient == -1 or not factors)
    return 1, term


def _primitive(node: Expr) -> tuple[Number, list[Expr]]:
    """The number of a product and its other factors, with what is common to the terms of a sum taken out of it."""
    coefficient, factors = S.One, []
    for factor in node.as_ordered_factors():
        if factor.is_Number:
            coefficient *= factor
            continue
        if isinstance(factor, Add) and isinstance(node, Mul):
            common, factor = factor.primitive()
            if all(_signed(term)[0] < 0 for term in factor.args):
                common, factor = -common, Add(*(-term for term in factor.args))
            coefficient *= common
        factors.append(factor)
    return coefficient, factors


def _ordered_terms(node: Add) -> list[Expr]:
    """Terms as a person writes them: a positive one first if there is one, the number last."""
    terms = node.as_ordered_terms()
    numbers = [term for term in terms if term.is_Number]
    terms = [term for term in terms if not term.is_Number] + numbers
    first = next((term for term in terms if _signed(term)[0] > 0), terms[0])
    return [first, *(term for term in terms if term is not first)]
