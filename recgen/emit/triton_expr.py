"""Expressions of Triton tensors, printed as the body of a kernel.

Only functions that Triton's language has on every target are called; the rest are small helpers, whose text an emitted
module carries. Numbers take the dtype of the tensors they meet, so a float32 kernel stays in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sympy import (
    Abs,
    Basic,
    Expr,
    Integer,
    Max,
    Min,
    Mod,
    Number,
    Piecewise,
    Rational,
    S,
    Symbol,
    cos,
    exp,
    log,
    sin,
    tanh,
)

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus
from recgen.algebra.stable import Expm1, Log1p
from recgen.emit.expression import ExpressionPrinter, Level, Text, literal
from recgen.emit.triton_helpers import TRITON_HELPERS, with_dependencies

__all__ = ["TRITON_HELPERS", "TritonPrinter"]


class TritonPrinter(ExpressionPrinter):
    """Prints expressions of tensors inside a kernel. The text of each name must be a floating-point value.

    `helpers` names the functions of TRITON_HELPERS that the printed text calls, with those they call in turn.
    """

    def __init__(self, names: Mapping[Symbol, str]) -> None:
        super().__init__(names)
        self.helpers: set[str] = set()

    def print(self, node: Basic) -> Text:
        if isinstance(node, Expr) and node.is_number and not isinstance(node, Number):
            value = float(node)
            return Text(literal(value), Level.PRODUCT if value < 0 else Level.ATOM)
        return super().print(node)

    def call(self, function: str, *args: Basic, **options: str) -> Text:
        if function in TRITON_HELPERS:
            self.helpers |= with_dependencies(function)
        return super().call(function, *args, **options)

    def power(self, base: Expr, power: Expr) -> Text:
        if power.is_Integer:
            return self._whole_power(self.print(base), int(power))
        if power in (Rational(1, 2), Rational(-1, 2)):
            return self.call("tl.sqrt" if power > 0 else "tl.rsqrt", base)
        if power.is_Rational and power.q in (2, 4):
            root = self.call("tl.sqrt", base if power.q == 2 else base**S.Half)
            return self._whole_power(root, int(power.p))
        if power.is_integer and not base.is_nonnegative:
            odd_sign = 1 - 2 * Mod(power, 2)
            sign = odd_sign if base.is_negative else Piecewise((odd_sign, base < 0), (1, True))
            if base == -1:
                return self.print(sign)
            size = self._real_power(Abs(base), power)
            return Text(f"{self.print(sign).within(Level.POWER)} * {size.text}", Level.PRODUCT)
        return self._real_power(base, power)

    def _whole_power(self, base: Text, n: int) -> Text:
        if n == 1:
            return base
        if n <= 3 and base.text.isidentifier():
            return Text(" * ".join([base.text] * n), Level.PRODUCT)
        self.helpers |= with_dependencies("_power")
        return Text(f"_power({base.text}, {n})", Level.ATOM)

    def _real_power(self, base: Expr, power: Expr) -> Text:
        if base == 2:
            return self.call("tl.exp2", power)
        logarithm = literal(math.log2(base)) if base.is_number else self.call("tl.log2", base).text
        return Text(f"tl.exp2({self.print(power).within(Level.PRODUCT)} * {logarithm})", Level.ATOM)

    def where(self, node: Piecewise) -> Text:
        (branch, condition), *others = node.args
        if not others or condition == S.true:
            return self.print(branch)
        otherwise = others[0][0] if others[0][1] == S.true else Piecewise(*others, evaluate=False)
        then = self._branch(branch)
        if branch.is_number and otherwise.is_number and not (_is_float32(branch) and _is_float32(otherwise)):
            like = self.names[min(condition.free_symbols, key=str)]
            then = f"tl.full({like}.shape, {then}, {like}.dtype)"
        return Text(f"tl.where({self.print(condition).text}, {then}, {self._branch(otherwise)})", Level.ATOM)

    def _branch(self, node: Expr) -> str:
        return str(float(node)) if isinstance(node, Integer) else self.print(node).text

    def _nested(self, function: str, args: tuple[Expr, ...]) -> Text:
        first, *others = sorted(args, key=lambda arg: arg.is_number)
        text = self.print(first).text
        self.helpers |= with_dependencies(function)
        for other in others:
            text = f"{function}({text}, {self._branch(other)})"
        return Text(text, Level.ATOM)

    functions = {
        exp: "tl.exp",
        log: "tl.log",
        Log1p: "_log1p",
        Expm1: "_expm1",
        sin: "tl.sin",
        cos: "tl.cos",
        tanh: "_tanh",
        Abs: "tl.abs",
        Min: lambda self, *args: self._nested("_minimum", args),
        Max: lambda self, *args: self._nested("_maximum", args),
        Mod: "_mod",
        Relu: lambda self, x: self._nested("_maximum", (x, S.Zero)),
        Elu: "_elu",
        Sigmoid: "tl.sigmoid",
        Silu: "_silu",
        Softplus: "_softplus",
        LogSigmoid: "_logsigmoid",
    }


def _is_float32(value: Expr) -> bool:
    """Whether a number is exact in float32."""
    mantissa, _ = math.frexp(float(value))
    return (mantissa * 2**24).is_integer()
