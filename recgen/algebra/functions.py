"""The functions of the expression language: a name, how many arguments, and the sympy tree it builds.

Everything sympy already has (exp, log, sin, …) is sympy's, the rest is `activations`. `log1p` and `expm1` are built as
log(1 + x) and exp(x) - 1; `recgen.algebra.stable` finds these patterns again before printing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Abs, Basic, Eq, Expr, Ge, Gt, Le, Lt, Max, Min, Mod, Ne, S, cos, exp, log, sin, sqrt, tanh

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus
from recgen.algebra.choice import where


@dataclass(frozen=True)
class Fn:
    """One function of the language.

    `arity` is (least, most) number of arguments, most None for any number. `build` takes that many sympy arguments
    and returns the tree; it raises ValueError when the result is not a finite real number, such as log(0).
    """

    name: str
    arity: tuple[int, int | None]
    build: Callable[..., Expr]
    doc: str


def _fn(name: str, least: int, most: int | None, build: Callable[..., Expr], doc: str) -> Fn:
    def checked(*args: Expr) -> Expr:
        tree = build(*args)
        if tree.has(S.ImaginaryUnit, S.ComplexInfinity, S.NaN, S.Infinity, S.NegativeInfinity):
            raise ValueError(f"{name}({', '.join(map(str, args))}) is not a finite real number")
        return tree

    return Fn(name, (least, most), checked, doc)


LANGUAGE: dict[str, Fn] = {
    fn.name: fn
    for fn in (
        _fn("exp", 1, 1, exp, "exp(x): the exponential"),
        _fn("log", 1, 1, log, "log(x): the natural logarithm"),
        _fn("log1p", 1, 1, lambda x: log(1 + x), "log1p(x): log(1 + x), exact for small x"),
        _fn("expm1", 1, 1, lambda x: exp(x) - 1, "expm1(x): exp(x) - 1, exact for small x"),
        _fn("sqrt", 1, 1, sqrt, "sqrt(x): the square root"),
        _fn("abs", 1, 1, Abs, "abs(x): the absolute value"),
        _fn("sin", 1, 1, sin, "sin(x), x in radians"),
        _fn("cos", 1, 1, cos, "cos(x), x in radians"),
        _fn("tanh", 1, 1, tanh, "tanh(x): the hyperbolic tangent"),
        _fn("sigmoid", 1, 1, Sigmoid, "sigmoid(x): 1 / (1 + exp(-x))"),
        _fn("logsigmoid", 1, 1, LogSigmoid, "logsigmoid(x): log(sigmoid(x))"),
        _fn("softplus", 1, 1, Softplus, "softplus(x): log(1 + exp(x))"),
        _fn("relu", 1, 1, Relu, "relu(x): max(x, 0)"),
        _fn("elu", 1, 1, Elu, "elu(x): x where x > 0, exp(x) - 1 elsewhere"),
        _fn("silu", 1, 1, Silu, "silu(x): x * sigmoid(x)"),
        _fn("min", 2, None, Min, "min(a, b, ...): the smallest"),
        _fn("max", 2, None, Max, "max(a, b, ...): the largest"),
        _fn("mod", 2, 2, Mod, "mod(a, b): the remainder a - b * floor(a / b), with the sign of b"),
        _fn("where", 3, 3, where, "where(condition, a, b): a where the condition holds, b elsewhere"),
    )
}

COMPARISONS: dict[str, Callable[[Expr, Expr], Basic]] = {
    "<": Lt,
    "<=": Le,
    ">": Gt,
    ">=": Ge,
    "==": Eq,
    "!=": Ne,
}
