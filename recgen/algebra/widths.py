"""Functions of a token's whole feature vector: sums over its width, and maps that change the width.

They stand in feature maps beside the elementwise language. `width` says how wide an expression is, `WIDE` how each is
called. An expression without a width, such as a number, a parameter per head or a sum, is the same for every feature.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Basic, Expr, Function, Integer, Symbol

from recgen.algebra.functions import LANGUAGE, Fn

Widths = Mapping[Symbol, tuple[Expr, ...]]  # symbol → sizes of the axes it has inside a head


class Wide(Function):  # type: ignore[misc]  # sympy says nothing of its types
    """A function that does not act element by element. `spelled` is its name in the language."""

    spelled = ""

    def _eval_is_real(self) -> bool | None:
        return True


class Total(Wide):
    """sum(x): the sum over the width."""

    nargs = 1
    spelled = "sum"


class Largest(Wide):
    """The largest element: what softmax subtracts. Softmax does not change by it, so its gradient is 0, but for what
    rounding leaves; the largest element, where it outweighs all others, has the opposite error, and both are gone."""

    nargs = 1
    spelled = "largest"


class Softmax(Wide):
    """softmax(x): exp(x) over the sum of exp(x)."""

    nargs = 1
    spelled = "softmax"


class Matmul(Wide):
    """matmul(W, x): the sum over the axis of W that is as wide as x, the first of two equal ones.

    W with axes M K gives Σ_k W[m,k] x[k]; with K V or K K, Σ_k W[k,e] x[k].
    """

    nargs = 2
    spelled = "matmul"


class Concat(Wide):
    """concat(a, b, …): one after the other; what has no width becomes one feature."""

    spelled = "concat"


class Outer(Wide):
    """outer(a, b): all products of an element of a and one of b, as one vector."""

    nargs = 2
    spelled = "outer"


POSITION = Symbol("position", integer=True, nonnegative=True)
"""How many tokens came before, those of earlier calls included."""


PAIR = Symbol("i", integer=True, nonnegative=True)
"""The index of a rotated pair of key channels, from 0; only a rotation uses it."""


class Rotate(Wide):
    """rotate(x, rate, position): every pair (2i, 2i+1) of features turned by position · rate(i)."""

    nargs = 3
    spelled = "rotate"


class Twice(Wide):
    """twice(x): all of x, and all of it again."""

    nargs = 1
    spelled = "twice"


class Turn(Wide):
    """turn(z, rate, position): z · e^{i · position · rate} of complex z, all real parts and then all imaginary ones."""

    nargs = 3
    spelled = "turn"


def l2norm(x: Expr) -> Expr:
    """x / sqrt(Σ x² + 1e-6)."""
    return x / (Total(x**2) + Integer(10) ** -6) ** (Integer(1) / 2)


WIDE: dict[str, Fn] = {
    fn.name: fn
    for fn in (
        Fn("sum", (1, 1), Total, "sum(x): the sum over the features"),
        Fn("softmax", (1, 1), Softmax, "softmax(x): exp(x) / sum(exp(x))"),
        Fn("l2norm", (1, 1), l2norm, "l2norm(x): x / sqrt(sum(x ** 2) + 1e-6)"),
        Fn("matmul", (2, 2), Matmul, "matmul(W, x): the sum over the axis of W that is as wide as x"),
        Fn("concat", (2, None), Concat, "concat(a, b, ...): features one after the other"),
        Fn("outer", (2, 2), Outer, "outer(a, b): all products of an element of a and one of b"),
    )
}
FEATURE_LANGUAGE: dict[str, Fn] = {**LANGUAGE, **WIDE}
"""The functions a feature map may use."""


def width(expr: Expr, widths: Widths) -> Expr | None:
    """How wide an expression is; None if it has no width. Raises ValueError, with the reason, where widths differ."""
    if isinstance(expr, Matmul):
        return matrix_axes(expr, widths)[1]
    if isinstance(expr, Symbol):
        axes = widths.get(expr, ())
        if len(axes) > 1:
            raise ValueError(f"{expr} is a matrix, and only matmul({expr}, …) takes one")
        return axes[0] if axes else None
    if isinstance(expr, Rotate):
        return width(expr.args[0], widths)
    if isinstance(expr, Turn | Twice):
        half = width(expr.args[0], widths)
        assert half is not None
        return 2 * half
    below = [width(arg, widths) for arg in expr.args]
    if isinstance(expr, Total | Largest | Softmax | Outer):
        first, last = below[0], below[-1]
        if first is None or last is None:
            raise ValueError(f"{expr.spelled} needs features, and {expr.args[below.index(None)]} is one number")
        return {Total: None, Largest: None, Softmax: first}.get(type(expr), first * last)
    if isinstance(expr, Concat):
        return sum((Integer(1) if w is None else w for w in below), Integer(0))
    wide = [w for w in below if w is not None]
    if any(w != wide[0] for w in wide):
        raise ValueError(f"in {expr}, {wide[0]} features meet {next(w for w in wide if w != wide[0])}")
    return wide[0] if wide else None


def matrix_axes(expr: Matmul, widths: Widths) -> tuple[int, Expr]:
    """Which axis of the matrix is summed over (0 or 1), and how wide the result is."""
    matrix, x = expr.args
    axes, inner = widths.get(matrix, ()), width(x, widths)
    if len(axes) != 2:
        raise ValueError(f"matmul takes a matrix, a parameter with axes such as M K or H K K, and {matrix} is none")
    if inner not in axes:
        raise ValueError(f"{matrix} is {axes[0]} × {axes[1]}, and what it multiplies has {inner or 'no'} features")
    over = axes.index(inner)
    return over, axes[1 - over]


def turned_product(expr: Expr, widths: Widths) -> str:
    """What to write where a product has its matrix last: matmul(W, x) for matmul(x, W); "" where none has."""
    for first, last in (product.args for product in expr.atoms(Matmul)):
        if len(widths.get(last, ())) > 1 and len(widths.get(first, ())) < 2:
            return f"write matmul({last}, {first})"
    return ""


def is_wide(expr: Expr) -> bool:
    return bool(expr.has(Wide))


def outermost(expr: Basic) -> list[Wide]:
    """The wide functions in an expression that stand in no other one, each once, in its order."""
    if isinstance(expr, Wide):
        return [expr]
    return list(dict.fromkeys(e for arg in expr.args for e in outermost(arg)))


def most_features(expr: Basic, widths: Widths, at: Mapping[Symbol, int]) -> int:
    """The largest width inside an expression, where the sizes have these values."""
    found = (width(e, widths) for e in expr.atoms(Wide))
    return max((int(w.subs(at)) for w in found if w is not None), default=0)


def wide_calls(expr: Basic) -> int:
    """How many different wide functions an expression is made of."""
    return len(expr.atoms(Wide))


def changes_width(expr: Expr) -> bool:
    return bool(expr.has(Matmul, Concat, Outer, Turn, Twice))
