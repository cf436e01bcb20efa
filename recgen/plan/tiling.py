"""Tiling: what a kernel can compute when it sees only a tile of one axis.

A value is complete when the tile does not matter (or is its own slice), and partial when it is a sum over the tiled
axis, of which the kernel holds one term. Partial values may go through linear operations and be stored as partial
results. Where one is used otherwise, it must be kept by an earlier kernel that sees the whole axis.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy

from recgen.algebra.operations import Add, Contract, Map, Reduce, placeholder
from recgen.algebra.program import Node, topological


class NotTileable(ValueError):
    """A partial value is used as if it were complete. `needed` are the values to keep instead."""

    def __init__(self, node: Node, needed: list[Node]) -> None:
        super().__init__(f"{node} needs the whole of {needed}")
        self.needed = needed


def partial_values(roots: Iterable[Node], axis: str, kept: Iterable[Node]) -> set[Node]:
    """The partial nodes among what the roots need. Raises NotTileable."""
    kept = set(kept)
    partial: set[Node] = set()
    for n in topological(roots, kept):
        if n in kept or not n.args:
            continue
        inside = [a for a in n.args if a in partial]
        if isinstance(n.op, (Contract, Reduce)) and n.op.over == axis:
            if inside:
                raise NotTileable(n, inside)
            partial.add(n)
        elif inside:
            if axis in n.axes or not _linear(n, partial):
                raise NotTileable(n, inside)
            partial.add(n)
    return partial


def _linear(node: Node, partial: set[Node]) -> bool:
    """Whether the sum over tiles may be taken after the operation instead of before it."""
    if isinstance(node.op, Add):
        return all(a in partial for a in node.args)
    if isinstance(node.op, Contract):
        return sum(a in partial for a in node.args) == 1
    if isinstance(node.op, Map):
        symbols = [placeholder(k) for k, a in enumerate(node.args) if a in partial]
        factor = sympy.Symbol("_factor")
        scaled = node.op.expr.xreplace({s: factor * s for s in symbols})
        return bool(sympy.expand(scaled - factor * node.op.expr) == 0)
    return True
