"""Expressions of plain Python numbers, printed with the math module: scale, sizes, constants."""

from __future__ import annotations

from sympy import Abs, And, Basic, E, Expr, Max, Min, Mod, Not, Or, Piecewise, Rational, S, cos, exp, log, pi, sin, tanh

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus
from recgen.algebra.stable import Expm1, Log1p
from recgen.emit.expression import ExpressionPrinter, Level, Text


class PythonPrinter(ExpressionPrinter):
    """Prints expressions whose symbols are Python numbers."""

    def is_number(self, node: Basic) -> bool:
        return True

    def power(self, base: Expr, power: Expr) -> Text:
        if power == S.Half:
            return self.call("math.sqrt", base)
        return super().power(base, power)

    def where(self, node: Piecewise) -> Text:
        (branch, condition), *others = node.args
        if not others or condition == S.true:
            return self.print(branch)
        rest = self.print(others[0][0] if others[0][1] == S.true else Piecewise(*others, evaluate=False))
        then, when = self.print(branch).within(Level.COMPARISON), self.print(condition).within(Level.COMPARISON)
        return Text(f"{then} if {when} else {rest.text}", Level.CHOICE)

    def joined_conditions(self, node: And | Or | Not) -> Text:
        texts = [self.print(arg).within(Level.ATOM) for arg in node.args]
        if isinstance(node, Not):
            return Text(f"not {texts[0]}", Level.COMPARISON)
        return Text((" and " if isinstance(node, And) else " or ").join(texts), Level.CHOICE)

    def _remainder(self, a: Expr, b: Expr) -> Text:
        return Text(f"{self.print(a).within(Level.POWER)} % {self.print(b).within(Level.POWER)}", Level.PRODUCT)

    functions = {
        type(pi): lambda self: Text("math.pi", Level.ATOM),
        type(E): lambda self: Text("math.e", Level.ATOM),
        exp: "math.exp",
        log: "math.log",
        Log1p: "math.log1p",
        Expm1: "math.expm1",
        sin: "math.sin",
        cos: "math.cos",
        tanh: "math.tanh",
        Abs: "abs",
        Min: "min",
        Max: "max",
        Mod: _remainder,
        Relu: lambda self, x: self.call("max", x, S.Zero),
        Elu: lambda self, x: self.print(Piecewise((x, x > 0), (Expm1(x), True))),
        Sigmoid: lambda self, x: self.print(Rational(1, 2) * (1 + tanh(x / 2))),
        Silu: lambda self, x: self.print(x / 2 * (1 + tanh(x / 2))),
        Softplus: lambda self, x: self.print(Max(x, 0) + Log1p(exp(-Abs(x)))),
        LogSigmoid: lambda self, x: self.print(Min(x, 0) - Log1p(exp(-Abs(x)))),
    }
