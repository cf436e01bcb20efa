"""Expressions of torch tensors, printed as torch code.

The text uses the names `torch`, `math` and `F` (torch.nn.functional). Every function it calls is accurate over the
whole range, -inf included where the limit is finite, in float32 and float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sympy import Abs, Basic, Expr, Max, Min, Mod, Piecewise, Rational, Rel, S, Symbol, cos, exp, log, sin, tanh

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus
from recgen.algebra.stable import Expm1, Log1p
from recgen.emit.expression import ExpressionPrinter, Level, Text
from recgen.emit.python_expr import PythonPrinter

TORCH_HELPERS: dict[str, str] = {}


class TorchPrinter(ExpressionPrinter):
    """Prints expressions whose symbols are tensors, but for those in `scalars`, which are Python numbers.

    A part of an expression without tensors is printed as Python arithmetic, with `math` for its functions.
    `helpers` names the functions of TORCH_HELPERS that were used; torch has all it takes, so there are none.
    """

    def __init__(self, names: Mapping[Symbol, str], scalars: Iterable[Symbol] = ()) -> None:
        super().__init__(names)
        self.scalars = frozenset(scalars)
        self.helpers: set[str] = set()
        self._python = PythonPrinter(names)

    def print(self, node: Basic) -> Text:
        return self._python.print(node) if self.is_number(node) else super().print(node)

    def is_number(self, node: Basic) -> bool:
        return bool(node.free_symbols <= self.scalars)

    def power(self, base: Expr, power: Expr) -> Text:
        if base == 2:
            return self.call("torch.exp2", power)
        if power in (S.Half, Rational(-1, 2)):
            return self.call("torch.sqrt" if power == S.Half else "torch.rsqrt", base)
        return super().power(base, power)

    def where(self, node: Piecewise) -> Text:
        (branch, condition), *others = node.args
        if not others or condition == S.true:
            return self.print(branch)
        otherwise = others[0][0] if others[0][1] == S.true else Piecewise(*others, evaluate=False)
        if self.is_number(condition):
            text = f"{self._branch(branch)} if {self.print(condition).text} else {self._branch(otherwise)}"
            return Text(text, Level.CHOICE)
        if (x := _sign_argument(node)) is not None:
            return self.call("torch.sign", x)
        then, rest = self._branch(branch), self._branch(otherwise)
        if self.is_number(branch) and self.is_number(otherwise):
            like = self.names[min(condition.free_symbols - self.scalars, key=str)]
            if (branch, otherwise) == (1, 0):
                return Text(f"({self.print(condition).text}).to({like}.dtype)", Level.ATOM)
            then = f"torch.full_like({like}, {then})"
        return Text(f"torch.where({self.print(condition).text}, {then}, {rest})", Level.ATOM)

    def _branch(self, node: Expr) -> str:
        return str(float(node)) if node.is_Integer else self.print(node).text

    def _extreme(self, kind: type, args: tuple[Expr, ...]) -> Text:
        if (ends := _clamp_ends(kind, args)) is not None:
            x, lo, hi = (self.print(end) for end in ends)
            return Text(f"{x.within(Level.ATOM)}.clamp({lo.text}, {hi.text})", Level.ATOM)
        function, limit = ("torch.maximum", "min") if kind is Max else ("torch.minimum", "max")
        numbers = [arg for arg in args if self.is_number(arg)]
        tensors = [arg for arg in args if not self.is_number(arg)]
        text = self.print(tensors[0])
        for tensor in tensors[1:]:
            text = Text(f"{function}({text.text}, {self.print(tensor).text})", Level.ATOM)
        if numbers:
            text = Text(f"{text.within(Level.ATOM)}.clamp({limit}={self.print(kind(*numbers)).text})", Level.ATOM)
        return text

    functions = {
        exp: "torch.exp",
        log: "torch.log",
        Log1p: "torch.log1p",
        Expm1: "torch.expm1",
        sin: "torch.sin",
        cos: "torch.cos",
        tanh: "torch.tanh",
        Abs: "torch.abs",
        Min: lambda self, *args: self._extreme(Min, args),
        Max: lambda self, *args: self._extreme(Max, args),
        Mod: "torch.remainder",
        Relu: "torch.relu",
        Elu: "F.elu",
        Sigmoid: "torch.sigmoid",
        Silu: "F.silu",
        Softplus: lambda self, x: self.call("F.softplus", x, threshold="40"),
        LogSigmoid: "F.logsigmoid",
    }


def _clamp_ends(kind: type, args: tuple[Expr, ...]) -> tuple[Expr, Expr, Expr] | None:
    """(x, lo, hi) where the node is x held between two numbers lo < hi, else None."""
    inner_kind = Min if kind is Max else Max
    if len(args) != 2 or not args[0].is_number or not isinstance(args[1], inner_kind):
        return None
    outer, inner = args[0], args[1].args
    if len(inner) != 2 or not inner[0].is_number:
        return None
    lo, hi = (outer, inner[0]) if kind is Max else (inner[0], outer)
    return (inner[1], lo, hi) if lo < hi else None


def _sign_argument(node: Piecewise) -> Expr | None:
    """x where the node is the sign of x, else None."""
    condition = node.args[0][1]
    x = condition.args[0] if isinstance(condition, Rel) else S.Zero
    return x if node == Piecewise((1, x > 0), (-1, x < 0), (0, True)) else None
