"""A sympy expression as mathematics: `logsigmoid(g[t,m])/16`, `1 - 2^(-h - 5)`.

Symbols are spelled by the caller, so the same printer serves a spec's own expressions, the steps of an unrolled
recurrence and the elementwise operations of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy
from sympy.core.relational import Relational

from ..activations import SafeExp
from ..stabiliser import Relative
from ..widths import Largest, Total, Wide
from .notation import Piece, Style

Spelling = Callable[[sympy.Symbol], Piece]

NUMBERS = {sympy.I: ("i", "i"), sympy.pi: ("π", r"\pi"), sympy.E: ("e", "e"), sympy.oo: ("∞", r"\infty")}
RELATION_WORDS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def written(
    expr: sympy.Expr,
    style: Style,
    spell: Spelling | Mapping[sympy.Symbol, Piece] | None = None,
    vector: Spelling | None = None,
) -> Piece:
    """The expression in a style. `spell` says how a symbol is written; without it, by its own name.

    vector: how a symbol is written inside a function of the whole width, of whose result element m is meant.
    """
    if spell is None:
        return _Writer(style, lambda s: style.indexed(s.name, ())).piece(expr)
    return _Writer(style, spell.__getitem__ if isinstance(spell, Mapping) else spell, vector).piece(expr)


class _Writer:
    """One walk over an expression."""

    def __init__(self, style: Style, spell: Spelling, vector: Spelling | None = None) -> None:
        self.style = style
        self.spell = spell
        self.vector = vector

    def piece(self, e: sympy.Basic) -> Piece:
        if isinstance(e, sympy.Basic) and e.has(Relative):
            e = e.replace(Relative, lambda x, m: x - m)
        style = self.style
        if isinstance(e, Wide) and self.vector is not None:
            whole = _Writer(style, self.vector).piece(e)
            return whole if isinstance(e, Total | Largest) else style.element(whole, "m")
        if isinstance(e, sympy.Symbol):
            return self.spell(e)
        if isinstance(e, sympy.Float):
            return style.number(float(e))
        if isinstance(e, sympy.Integer):
            return style.number(int(e))
        if isinstance(e, sympy.Rational):
            return style.number(float(e)) if _decimal(e) else self._product(e)
        if isinstance(e, sympy.Add):
            return self._sum(e)
        if isinstance(e, sympy.Mul):
            return self._product(e)
        if isinstance(e, (sympy.exp, SafeExp)):
            return style.exp(self.piece(e.args[0]))
        if isinstance(e, sympy.Pow):
            return self._power(e)
        if isinstance(e, sympy.Piecewise):
            return style.cases([(self.piece(v), None if c == True else self._condition(c)) for v, c in e.args])  # noqa: E712
        if isinstance(e, sympy.Abs):
            return Piece(style.absolute(self.piece(e.args[0]).text))
        if isinstance(e, (sympy.Max, sympy.Min)):
            return style.call(type(e).__name__.lower(), [self.piece(a) for a in sorted(e.args, key=_numbers_last)])
        if isinstance(e, sympy.Function):
            name = getattr(e, "spelled", "") or type(e).__name__.lower()
            return style.call(name, [self.piece(a) for a in e.args])
        if e.is_number:
            return Piece(NUMBERS[e][style.column])
        raise TypeError(f"no notation for {type(e).__name__} in {e}")

    def _condition(self, c: sympy.Basic) -> str:
        if isinstance(c, Relational):
            left, right = self.piece(c.lhs), self.piece(c.rhs)
            return f"{left} {self.style.relation(RELATION_WORDS[c.rel_op])} {right}"
        joiner = {sympy.And: " and ", sympy.Or: " or "}[type(c)]
        return self.style.words(joiner).join(self._condition(a) for a in c.args)

    def _sum(self, e: sympy.Add) -> Piece:
        terms = [self.piece(a) for a in e.as_ordered_terms()]
        return self.style.total(sorted(terms, key=lambda p: p.negative))  # a positive term in front, where there is one

    def _power(self, e: sympy.Pow) -> Piece:
        base, exponent = e.args
        if exponent == sympy.Rational(1, 2):
            return self.style.sqrt(self.piece(base))
        if exponent.is_Integer and exponent < 0:
            return self._product(e)
        return self.style.power(self.piece(base), self.piece(exponent))

    def _product(self, e: sympy.Expr) -> Piece:
        """A product or quotient: an optional sign, what is above the line, what is below it."""
        coefficient, rest = e.as_coeff_Mul()
        size = abs(coefficient)
        over: list[Piece] = []
        under: list[Piece] = []
        if size.is_Rational and not _decimal(size):
            over += [self.piece(sympy.Integer(size.p))] if size.p != 1 else []
            under += [self.piece(sympy.Integer(size.q))] if size.q != 1 else []
        elif float(size) != 1:
            over.append(self.piece(size))
        constant: list[Piece] = []
        varying: list[Piece] = []
        for f in _factors(rest):
            if f.is_Pow and not isinstance(f, sympy.exp) and f.exp.is_Integer and f.exp < 0:
                under.append(self.piece(f.base**-f.exp))
            else:
                piece = self.piece(f)
                (constant if f.is_Symbol and not piece.varies else varying).append(piece)
        over += constant + varying
        top = self.style.product(over) if over else self.style.number(1)
        whole = self.style.fraction(top, self.style.product(under)) if under else top
        return self.style.minus(whole) if coefficient < 0 else whole


def _factors(e: sympy.Expr) -> list[sympy.Expr]:
    return [] if e == 1 else e.as_ordered_factors() if e.is_Mul else [e]


def _decimal(e: sympy.Rational) -> bool:
    """Whether a fraction was written as a decimal: 1/1000000 is 1e-6, 1/16 stays."""
    return bool(e.q >= 1000 and sympy.Rational(repr(float(e))) == e)


def _numbers_last(e: sympy.Expr) -> tuple[bool, object]:
    return e.is_number, e.sort_key()
