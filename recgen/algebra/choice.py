"""A choice between expressions, every condition of which is one plain comparison."""

from __future__ import annotations

from sympy import Basic, Expr, Piecewise, S, default_sort_key


def where(condition: Basic, then: Expr, otherwise: Expr) -> Expr:
    """`then` where the condition holds, `otherwise` elsewhere."""
    return choose((then, condition), (otherwise, S.true))


def choose(*branches: tuple[Expr, Basic]) -> Expr:
    """The first branch whose condition holds; the last condition is true.

    A choice inside a condition is taken first, so that every condition in a tree is one plain comparison.
    """
    inside = {choice for _, condition in branches for choice in condition.atoms(Piecewise)}
    if not inside:
        return Piecewise(*branches)
    outer = max(inside, key=lambda choice: (choice.count_ops(), default_sort_key(choice)))

    def taken(value: Expr) -> Expr:
        return choose(*((branch, condition.xreplace({outer: value})) for branch, condition in branches))

    return Piecewise(*((taken(value), condition) for value, condition in outer.args))
