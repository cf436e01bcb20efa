"""What a complex log-decay adds to the equations: what turning means, its angle, and complex values that are long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import sympy

from ..recurrence import Recurrence, axes_of
from ..widths import Concat, Turn
from .expressions import written
from .layout import Equation, terms
from .notation import Piece, Style

SHORT = 40  # characters of a complex value that is written where it is used


@dataclass
class ComplexValues:
    """equations: to be put before those of the quantities. inside: what stands for what in these."""

    rec: Recurrence
    style: Style
    tensor: Callable[[sympy.Symbol], Piece]
    vector: Callable[[sympy.Symbol], Piece]
    equations: list[Equation] = field(default_factory=list)
    inside: dict[sympy.Expr, sympy.Expr] = field(default_factory=dict)
    pieces: dict[sympy.Symbol, Piece] = field(default_factory=dict)
    vectors: dict[sympy.Symbol, Piece] = field(default_factory=dict)

    def __post_init__(self) -> None:
        turns = {q.name: turn for q in self.rec.quantities.values() for turn in q.expr.atoms(Turn)}
        if turns:
            self._define_turn()
        angle = None
        for name, turn in turns.items():
            value, rate, position = turn.args
            angle = angle or self._named("angle", -rate)
            short = len(str(written(value, self.style, self.spell_vector))) <= SHORT
            self.inside[turn] = Turn(value if short else self._named(f"complex_{name}", value), -angle, position)

    def spell(self, s: sympy.Symbol) -> Piece:
        return self.pieces[s] if s in self.pieces else self.tensor(s)

    def spell_vector(self, s: sympy.Symbol) -> Piece:
        """The same inside a function of the whole width."""
        return self.vectors[s] if s in self.vectors else self.vector(s)

    def _define_turn(self) -> None:
        z, rate, n = sympy.symbols("z r n", real=True)
        re, im = (sympy.Function(part)(z * sympy.exp(sympy.I * rate * n)) for part in ("Re", "Im"))
        left, right = (written(e, self.style) for e in (Turn(z, rate, n), Concat(re, im)))
        self.equations.append(Equation(str(left), "=", terms(self.style, [right])))

    def _named(self, name: str, expr: sympy.Expr) -> sympy.Symbol:
        """A symbol for an expression, and the equation that says so."""
        inputs = {s for s, t in self.rec.tensors.items() if t.role == "input"}
        letters = ["t"] * any(s.name in inputs for s in expr.free_symbols) + list(axes_of(expr, self.rec.tensors))
        symbol = sympy.Dummy(name, real=True)
        self.pieces[symbol] = self.style.indexed(name, letters)
        self.vectors[symbol] = self.style.indexed(name, [a for a in letters if a == "t"])
        right = written(expr, self.style, self.spell)
        self.equations.append(Equation(str(self.pieces[symbol]), "=", terms(self.style, [right])))
        return symbol
