"""Limits on expressions that sympy would take long to build: it compares, divides and multiplies out as it goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy

from recgen.spec.syntax import Call, Node
from recgen.spec.tokens import ExpressionError

MAX_EXPONENT = 128
MAX_COMPARED = 12
MAX_REMAINDER = 24
MAX_REMAINDER_POWER = 8


def check_effort(parts: Iterable[Node]) -> list[ExpressionError]:
    """Refuses too many values to compare with each other. `parts` is every node of a tree."""
    calls = [part for part in parts if isinstance(part, Call)]
    compared = 0
    for call in calls:
        compared += {"min": len(call.arguments), "max": len(call.arguments), "where": 2}.get(call.function, 0)
        if compared > MAX_COMPARED:
            reason = f"more than {MAX_COMPARED} values are compared by min, max and where"
            return [ExpressionError(call.start, call.end, reason, "compare fewer")]
    return []


def degree(value: sympy.Basic) -> sympy.Expr:
    """The largest power that multiplying out powers of sums and products could reach; a function counts as a name."""
    if value.is_Pow and value.exp.is_number:
        return abs(value.exp) * degree(value.base)
    parts = [degree(part) for part in value.args] if value.is_Add or value.is_Mul else []
    if not parts:
        return sympy.S.Zero if value.is_number else sympy.S.One
    return sympy.Add(*parts) if value.is_Mul else sympy.Max(*parts)


def check_arguments(call: Call, values: Sequence[sympy.Basic]) -> None:
    """Refuses arguments with which a function would not come to an end. Raises ExpressionError."""
    if call.function == "mod":
        _check_remainder(call, values)
    if call.function in ("exp", "expm1"):
        _check_exponential(call, values[0])


def _check_remainder(call: Call, values: Sequence[sympy.Basic]) -> None:
    """sympy divides polynomials to simplify a remainder."""
    for value, node in zip(values, call.arguments, strict=True):
        if value.is_number and not value.is_Rational:
            raise ExpressionError(node.start, node.end, "mod takes no irrational number", "write a decimal number")
        powers = [power.exp for power in value.atoms(sympy.Pow)]
        large = any(not exponent.is_number or abs(exponent) > MAX_REMAINDER_POWER for exponent in powers)
        if large or sum(1 for _ in sympy.preorder_traversal(value)) > MAX_REMAINDER:
            fix = f"use a few names and numbers, with powers up to {MAX_REMAINDER_POWER}"
            raise ExpressionError(node.start, node.end, "this argument of mod is too large", fix)


def _check_exponential(call: Call, value: sympy.Basic) -> None:
    """sympy writes exp(c * log(a)) as a**c, and multiplies it out when a and c are numbers."""
    for product in value.atoms(sympy.Mul):
        factor, rest = product.as_coeff_Mul()
        if rest.has(sympy.log) and abs(factor) > MAX_EXPONENT:
            reason = f"a logarithm is multiplied by more than {MAX_EXPONENT} under an exponential"
            raise ExpressionError(call.start, call.end, reason, "write a smaller factor")
