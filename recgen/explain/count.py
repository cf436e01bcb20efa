"""Arithmetic operations of a tensor program, counted node by node, as expressions of the sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import sympy

from recgen.algebra.operations import (
    Accumulate,
    Add,
    Between,
    Concat,
    Contract,
    Flatten,
    Largest,
    Leaf,
    Map,
    Rectangle,
    Reduce,
    Rename,
    Segment,
    Slice,
    Unflatten,
    Wave,
    placeholder,
)
from recgen.algebra.program import Carry, Node
from recgen.spec.model import SIZES, Tensor

C, T = (sympy.Symbol(name, integer=True, positive=True) for name in "CT")
LEVELS, ALL_LEVELS = sympy.symbols("log2_C log2_T", positive=True)
"""Levels of the pair tree of a chunk, and of one of all T tokens."""


@dataclass(frozen=True)
class Count:
    """Additions, multiplications and calls of functions: those of matrix products, and all others."""

    products: sympy.Expr = sympy.S.Zero
    others: sympy.Expr = sympy.S.Zero

    def __add__(self, other: Count) -> Count:
        return Count(self.products + other.products, self.others + other.others)

    def per(self, tokens: sympy.Expr) -> Count:
        return Count(sympy.expand(self.products / tokens), sympy.expand(self.others / tokens))

    def at(self, rows: sympy.Expr) -> Count:
        """The same for chunks of that many rows."""
        found = {C: rows, LEVELS: ALL_LEVELS if rows == T else sympy.log(rows, 2)}
        return Count(self.products.xreplace(found), self.others.xreplace(found))


class Sizes:
    """How long the axes of a program's nodes are. `features` is the width M of the features."""

    def __init__(
        self, tensors: Mapping[str, Tensor], features: sympy.Expr, values: sympy.Expr, rows: sympy.Expr
    ) -> None:
        self.tensors = tensors
        self.fixed = {"t": rows, "i": rows, "s": LEVELS, "m": features, "v": values}
        self._known: dict[tuple[Node, str], sympy.Expr] = {}

    def of(self, node: Node, *more: str) -> sympy.Expr:
        """How many numbers a node has, along its own axes and others."""
        return math.prod((self.axis(node, a) for a in dict.fromkeys((*node.axes, *more))), start=sympy.S.One)

    def axis(self, node: Node, axis: str) -> sympy.Expr:
        if axis in self.fixed:
            return self.fixed[axis]
        if (node, axis) not in self._known:
            self._known[node, axis] = self._found(node, axis)
        return self._known[node, axis]

    def _found(self, node: Node, axis: str) -> sympy.Expr:
        op = node.op
        if isinstance(op, Leaf):
            return self._of_leaf(op.name, node, axis)
        if isinstance(op, Concat) and axis == op.target:
            return sympy.Add(*op.widths)
        if isinstance(op, Flatten) and axis == op.target:
            return sympy.Mul(*op.widths)
        if isinstance(op, Unflatten) and axis in op.flatten.source:
            return op.flatten.widths[op.flatten.source.index(axis)]
        if isinstance(op, Slice) and axis == op.part:
            return op.concat.widths[op.index]
        if isinstance(op, Rename) and axis == op.target:
            return self.axis(node.args[0], op.source)
        return next(self.axis(a, axis) for a in node.args if axis in a.axes)

    def _of_leaf(self, name: str, node: Node, axis: str) -> sympy.Expr:
        tensor = self.tensors.get(name)
        if tensor is None:
            return SIZES["K"]
        own = [a for a in tensor.axes if a not in "BTH"]
        return SIZES[own[[a for a in node.axes if a != "t"].index(axis)]]


def count(nodes: Iterable[Node], carries: Iterable[Carry], sizes: Sizes) -> Count:
    """The operations of one chunk. Values of a head, computed once for all tokens, are left out."""
    total = Count()
    for n in nodes:
        if n.level != "head" or isinstance(n.op, Accumulate):
            total += _of(n, sizes)
    for c in carries:
        total += Count(others=sizes.of(c.start) * (1 if c.decay is None else 2))
    return total


def _of(n: Node, sizes: Sizes) -> Count:
    op = n.op
    if isinstance(op, Contract):
        total = 2 * _joined(n, op.over, sizes)
        matrices = all(len([a for a in x.axes if a != "s"]) > 1 for x in n.args)
        return Count(products=total) if matrices else Count(others=total)
    if isinstance(op, Reduce | Largest | Accumulate | Segment):
        return Count(others=sizes.of(n.args[0]))
    if isinstance(op, Add):
        return Count(others=(len(n.args) - 1) * sizes.of(n))
    if isinstance(op, Map):
        along = {placeholder(k): a.axes for k, a in enumerate(n.args)}
        return Count(others=operations(op.expr, along, lambda axis: sizes.axis(n, axis)))
    if isinstance(op, Between | Rectangle):
        return Count(others=sizes.of(n, "t", "i"))
    if isinstance(op, Wave):
        return Count(others=2 * sizes.of(n))
    return Count()


def operations(
    expr: sympy.Expr, along: Mapping[sympy.Symbol, Iterable[str]], length: Callable[[str], sympy.Expr]
) -> sympy.Expr:
    """Operations of an expression, each on the axes of what it joins: what varies least is joined first."""

    def numbers(e: sympy.Basic) -> sympy.Expr:
        axes = dict.fromkeys(a for s in sorted(e.free_symbols, key=str) for a in along.get(s, ()))
        return sympy.Mul(*map(length, axes))

    if not expr.args:
        return sympy.S.Zero
    below = sympy.Add(*(operations(e, along, length) for e in expr.args))
    if isinstance(expr, sympy.Tuple):  # a value with its condition: both are counted
        return below
    whole = numbers(expr)
    if not isinstance(expr, sympy.Add | sympy.Mul):
        return below + whole
    own = sorted(map(numbers, expr.args), key=lambda n: len(sympy.Mul.make_args(n)))
    least = [n for n in own if n != whole]
    return below + sympy.Add(*least[1:]) + whole * (len(own) - max(1, len(least)))


def _joined(n: Node, over: str, sizes: Sizes) -> sympy.Expr:
    """The numbers that a contraction multiplies: its own axes and the one it sums over."""
    (holder, *_) = [a for a in n.args if over in a.axes]
    return sizes.of(n) * sizes.axis(holder, over)
