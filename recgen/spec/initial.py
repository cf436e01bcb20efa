"""Random initial values of parameters: functions that only an `init` expression may use, once.

An emitter recognises a draw by its class (`isinstance(node, Draw)`) and reads `node.args`, which are expressions in the
head index and the sizes.
"""

from __future__ import annotations

from typing import Any

from sympy import Dummy, Expr, Function

from recgen.algebra.functions import LANGUAGE, Fn
from recgen.algebra.interval import Interval


class Draw(Function):  # type: ignore[misc]  # sympy says nothing of its types
    """An independent random number for each element of the parameter."""

    nargs = 2
    is_commutative = True
    is_real = True

    def _sympystr(self, printer: Any) -> str:
        """sympy's printer would take a class called Uniform for one of its own."""
        return f"{type(self).__name__}({', '.join(map(printer.doprint, self.args))})"


class Uniform(Draw):
    """uniform(lo, hi): uniform on [lo, hi)."""


class Normal(Draw):
    """normal(mean, std): Gaussian."""


class Orthogonal(Draw):
    """orthogonal(std): Gaussian rows that are orthogonal to each other, in blocks of as many as a row is long."""

    nargs = 1


class LogUniform(Draw):
    """loguniform(lo, hi): exp of uniform(log(lo), log(hi)), with 0 < lo < hi."""

    is_positive = True


def _checked(kind: type[Draw], name: str, rule: str) -> Fn:
    def build(first: Expr, second: Expr) -> Expr:
        _check_constant(name, first, second)
        if first.is_number and second.is_number and not _possible(kind, first, second):
            raise ValueError(f"{name}({first}, {second}) is empty: {rule}")
        return kind(first, second)

    return Fn(name, (2, 2), build, (kind.__doc__ or "").rstrip("."))


def _possible(kind: type[Draw], first: Expr, second: Expr) -> bool:
    if kind is Normal:
        return bool(second >= 0)
    return bool(first < second) and (kind is Uniform or bool(first > 0))


def _orthogonal(std: Expr) -> Expr:
    _check_constant("orthogonal", std)
    return Orthogonal(std)


def _check_constant(name: str, *numbers: Expr) -> None:
    """Refuses numbers that differ from element to element: an index in them, which a small letter names."""
    index = next((s for number in numbers for s in number.free_symbols if s.name.islower()), None)
    if index is not None:
        example = f"can only stand beside it, as in (1 + {index}) * normal(0, 1)"
        raise ValueError(f"{name} draws all elements with the same numbers: {index} {example}")


DRAWS: dict[str, Fn] = {
    "uniform": _checked(Uniform, "uniform", "the first number must be below the second"),
    "normal": _checked(Normal, "normal", "the standard deviation must not be negative"),
    "loguniform": _checked(LogUniform, "loguniform", "it needs 0 < lo < hi"),
}

DRAWS["orthogonal"] = Fn("orthogonal", (1, 1), _orthogonal, (Orthogonal.__doc__ or "").rstrip("."))

INITIAL: dict[str, Fn] = {**LANGUAGE, **DRAWS}
"""The functions an `init` expression may use."""


def without_draws(tree: Expr) -> tuple[Expr, dict[Dummy, Interval]]:
    """The initial value with a symbol for each draw, and the ranges of these as far as they are numbers."""
    symbols = {d: Dummy("draw", real=True, positive=d.is_positive) for d in tree.atoms(Draw)}
    ranges = {
        s: Interval(*map(float, d.args))
        for d, s in symbols.items()
        if isinstance(d, Uniform | LogUniform) and all(a.is_number for a in d.args)
    }
    return tree.xreplace(symbols), ranges


def drawn_from(tree: Expr) -> list[Expr]:
    """The numbers that the draws of an initial value are made with."""
    return [number for draw in tree.atoms(Draw) for number in draw.args]


def is_random(tree: Expr) -> bool:
    """Whether the initial value is drawn, and so differs from one construction to the next."""
    return bool(tree.has(Draw))
