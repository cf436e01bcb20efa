"""The proof that what is carried relative to a maximum is the recurrence as the spec states it.

With all maxima 0 a stabilised recurrence is the statement itself: weight w_t, constants as they stand. So the claim is
that the maxima do not matter: for any numbers b (before a token), a (after it) and r (of what it reads), a step from
S' = e^{−b} S ends in e^{−a} times the end of the step from S, reads e^{−r} times as much, and gives the same output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import mpmath
import sympy

from recgen.algebra import precise
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.stabiliser import TRACKS
from recgen.algebra.widths import is_wide
from recgen.errors import ProofError

BEFORE, AFTER, READ = sympy.symbols("_before _after _read", real=True)
POINTS = 6


def relative_steps(rec: Recurrence) -> Iterator[str]:
    """The claims that were shown. Raises ProofError at the first that does not hold."""
    if rec.stabiliser is None:
        return
    read_from = BEFORE if rec.stabiliser.before else AFTER
    same = not (rec.stabiliser.shifts_read or rec.stabiliser.before)
    read = AFTER if same else READ if rec.stabiliser.shifts_read else BEFORE
    stated = _WrittenOut(rec, dict.fromkeys(TRACKS, sympy.S.Zero))
    held = _WrittenOut(rec, rec.stabiliser.tracks(BEFORE, AFTER, read))
    reads = {sympy.Symbol(rule.read_name, real=True): sympy.exp(-read) for rule in rec.states}
    for rule in rec.states:
        start = {rule.symbol: sympy.exp(-BEFORE) * rule.symbol}
        end = sympy.exp(AFTER) * held(rule.update).xreplace(start)
        _equal(f"the step of {rule.name}", end, stated(rule.update))
        source = {rule.symbol: sympy.exp(-read_from) * rule.symbol}
        _equal(f"the read of {rule.name}", sympy.exp(read) * held(rule.read).xreplace(source), stated(rule.read))
        _equal(f"a token's own share of {rule.read_name}", sympy.exp(read) * held(rule.own), stated(rule.own))
    scaled = {s: e * s for s, e in reads.items()}
    _equal("the output", held(rec.output).xreplace(scaled), stated(rec.output))
    names = " and ".join(rule.name for rule in rec.states)
    yield f"{names} relative to any maxima, and what is read of them, are the recurrence's; the outputs are the same"


class _WrittenOut:
    """Expressions of quantities with these as expressions of inputs, the maxima replaced by what they stand for."""

    def __init__(self, rec: Recurrence, maxima: Mapping[sympy.Symbol, sympy.Expr]) -> None:
        self.exprs = {q.symbol: _leaving_maps(q.expr, q.name).xreplace(dict(maxima)) for q in rec.quantities.values()}

    def __call__(self, expr: sympy.Expr) -> sympy.Expr:
        return expr.xreplace(self.exprs)


def _leaving_maps(expr: sympy.Expr, name: str) -> sympy.Expr:
    """Of a map of a token's whole vector nothing matters here but that it is the same."""
    if not is_wide(expr):
        return expr
    held = sympy.Mul(*(f for f in sympy.Mul.make_args(expr) if f.free_symbols & set(TRACKS)))
    return held * sympy.Symbol(f"_{name}_map", real=True) if not is_wide(held) else expr


def _equal(what: str, given: sympy.Expr, needed: sympy.Expr) -> None:
    for seed in range(POINTS):
        at = precise.point(given.free_symbols | needed.free_symbols, (0.5, 3.0, 20.0)[seed % 3], seed)
        found, wanted = precise.value(given, at), precise.value(needed, at)
        if abs(found - wanted) > mpmath.mpf(10) ** -60 * (1 + abs(wanted)):
            raise ProofError(
                f"{what} depends on the maximum it is relative to: it is {float(found):.15g} instead of "
                f"{float(wanted):.15g}"
            )
