"""A feature map as nodes of a program, at the level of tokens: what the elementwise `Graph.map` cannot say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy

from recgen.algebra.complex_values import Algebra, parts
from recgen.algebra.graph import Graph
from recgen.algebra.operations import Add, Cast, Concat, Flatten, Leaf, Map, placeholder
from recgen.algebra.program import AXES, Node, topological
from recgen.algebra.widths import Concat as Joined
from recgen.algebra.widths import (
    Largest,
    Matmul,
    Outer,
    Rotate,
    Softmax,
    Total,
    Turn,
    Twice,
    Wide,
    matrix_axes,
    outermost,
    width,
)
from recgen.spec.axes import widths_of
from recgen.spec.model import PAIR, Tensor

FEATURE_AXES = frozenset(AXES) - frozenset("stibv")
"""Not b, t and h: einsum texts call batch, time and heads so."""


def feature_value(
    g: Graph,
    expr: sympy.Expr,
    leaves: Mapping[sympy.Symbol, Node],
    tensors: Mapping[str, Tensor],
    start: str,
    name: str,
) -> Node:
    """The node of an expression with wide functions; its width is the axis m. name: what its parts are called after.

    leaves: the elementwise inputs and parameters, whose width is the axis `start`.
    """
    node = _Builder(g, leaves, tensors, start, name).node(expr)
    axis = axis_of(node)
    return node if axis == "m" else g.rename(node, axis, "m")


def axis_of(node: Node) -> str:
    """The axis along which a vector's elements lie; "" for what has no width."""
    return "".join(a for a in node.axes if a in FEATURE_AXES)


class _Builder:
    def __init__(
        self, g: Graph, leaves: Mapping[sympy.Symbol, Node], tensors: Mapping[str, Tensor], start: str, name: str
    ) -> None:
        self.g = g
        self.name = name
        self.leaves = leaves
        self.widths = widths_of(tensors)
        self.used = set(start)
        self.known: dict[sympy.Expr, Node] = {}

    def node(self, expr: sympy.Expr) -> Node:
        if expr not in self.known:
            self.known[expr] = self._wide(expr) if isinstance(expr, Wide) else self._elementwise(expr)
        return self.known[expr]

    def _elementwise(self, expr: sympy.Expr) -> Node:
        """A Map of leaves and of the wide functions in the expression, all along one axis."""
        wide = {e: sympy.Dummy(f"w{k}", real=True) for k, e in enumerate(outermost(expr))}
        bindings = {s: self.node(e) for e, s in wide.items()}
        rest = expr.xreplace(wide)
        bindings |= {s: self.leaves[s] for s in sorted(rest.free_symbols - set(bindings), key=str)}
        axis = next((axis_of(n) for n in bindings.values() if axis_of(n)), "")
        return self.g.map(rest, {s: self._along(n, axis) for s, n in bindings.items()})

    def _along(self, node: Node, axis: str) -> Node:
        own = axis_of(node)
        return node if own in ("", axis) else self.g.rename(node, own, axis)

    def _fresh(self, after: str = "", before: str = "") -> str:
        """A letter for a new axis, after or before another one in the canonical order; "" where there is none."""
        low, high = AXES.index(after) + 1 if after else 0, AXES.index(before) if before else len(AXES)
        found = next((a for a in AXES[low:high] if a in FEATURE_AXES - {"m", "k"} and a not in self.used), "")
        self.used |= {found} - {""}
        return found

    def _before_fresh(self, x: Node) -> tuple[Node, str]:
        """The vector, under another letter if need be, and a new letter that comes after its own."""
        found = self._fresh(after=axis_of(x))
        return (x, found) if found else self._before_fresh(self.g.rename(x, axis_of(x), self._fresh()))

    def _after_fresh(self, x: Node) -> tuple[Node, str]:
        """The same with a new letter that comes before its own."""
        found = self._fresh(before=axis_of(x))
        if found:
            return x, found
        first, second = self._fresh(), self._fresh()
        return self.g.rename(x, axis_of(x), second), first

    def _wide(self, expr: Wide) -> Node:
        g = self.g
        if isinstance(expr, Softmax):
            (x,) = expr.args
            powers = g.label(self.node(sympy.exp(x - Largest(x))), f"{self.name}_powers")
            total = g.reduce(powers, axis_of(powers))
            shares = g.map(placeholder(0) / placeholder(1), {placeholder(0): powers, placeholder(1): total})
            return g.label(shares, f"{self.name}_softmax")
        if isinstance(expr, Matmul):
            return self._product(expr)
        if isinstance(expr, Rotate):
            return self._rotated(expr)
        if isinstance(expr, Turn):
            return self._turned(expr)
        if isinstance(expr, Twice):
            return self._twice(expr)
        args = [self.node(a) for a in expr.args]
        if isinstance(expr, Total):
            return g.reduce(args[0], axis_of(args[0]))
        if isinstance(expr, Largest):
            return g.largest(args[0], axis_of(args[0]))
        sizes = [width(a, self.widths) for a in expr.args]
        if isinstance(expr, Outer):
            first, axis = self._before_fresh(args[0])
            second = g.rename(args[1], axis_of(args[1]), axis)
            product = g.mul(first, second)
            source = (axis_of(first), axis)
            target = self._fresh(after=axis) or self._fresh()
            return g.flatten(Flatten(source, (sizes[0], sizes[1]), target), product)
        assert isinstance(expr, Joined)
        parts = tuple(map(axis_of, args))
        sizes = [sympy.Integer(1) if s is None else s for s in sizes]
        return g.concat(Concat(parts, tuple(sizes), self._fresh()), args)

    def _rotated(self, expr: Rotate) -> Node:
        """x cos φ + swap(x) sin φ with φ = position · rate."""
        g, x = self.g, self.node(expr.args[0])
        axis = axis_of(x)
        pair = g.leaf("pair", "pair", axis, "head")
        rate = g.map(expr.args[1], {**self.leaves, PAIR: pair}, name="rate")
        position = g.leaf("position", "position", "t", "token")
        parts = (x, g.wave("cos", position, rate), g.swap(x, axis), g.wave("sin", position, rate))
        a, b, c, d = map(placeholder, range(4))
        return g.map(a * b + c * d, dict(zip((a, b, c, d), parts, strict=True)))

    def _turned(self, expr: Turn) -> Node:
        """(a + ib)(cos φ + i sin φ) with φ = position · rate."""
        g = self.g
        z, rate, _ = expr.args
        found = parts(z, Algebra(self._real, self._made, self._named))
        re, im = (
            n if n is None else g.label(self._working(n), f"{self.name}_{part}")
            for n, part in zip(found, ("real", "imag"), strict=True)
        )
        turn = g.label(self._real(rate), "rate")
        position = g.leaf("position", "position", "t", "token")
        c, s = (g.label(g.wave(kind, position, turn), name) for kind, name in (("cos", "cosine"), ("sin", "sine")))
        x, y, u, v = map(placeholder, range(4))
        absent = {symbol: 0 for symbol, part in ((x, re), (y, im)) if part is None}
        waves = [(x * u - y * v).xreplace(absent), (x * v + y * u).xreplace(absent)]
        turned = [self._map(wave, {x: re, y: im, u: c, v: s}) for wave in waves]
        size = width(z, self.widths)
        return g.concat(Concat(tuple(map(axis_of, turned)), (size, size), self._fresh()), turned)

    def _real(self, expr: sympy.Expr) -> Node:
        """A real part of a complex expression. What parameters alone determine is computed in float64: it is little,
        and a phase has to be right far along a sequence."""
        leaves = {s: self.leaves[s] for s in sorted(expr.free_symbols, key=str)}
        if all(n.level == "head" for n in leaves.values()):
            leaves = {s: n if n.leaf.kind == "scalar" else self._double(n) for s, n in leaves.items()}
        return self.g.map(expr, leaves)

    def _double(self, leaf: Node) -> Node:
        return self.g.label(self.g.cast(leaf, True), f"{leaf.name}_double")

    def _named(self, node: Node, name: str) -> Node:
        return self.g.label(node, name)

    def _made(self, template: sympy.Expr, *values: Node) -> Node:
        if any(n.level == "token" for n in values):
            values = tuple(map(self._working, values))
        return self._map(template, dict(zip(map(placeholder, range(4)), values, strict=False)))

    def _map(self, template: sympy.Expr, values: Mapping[sympy.Symbol, Node | None]) -> Node:
        """The expression of some nodes; a number is written into it."""
        present = {s: n for s, n in values.items() if n is not None and s in template.free_symbols}
        numbers = {s: n.op.expr for s, n in present.items() if isinstance(n.op, Map) and not n.args}
        return self.g.map(template.xreplace(numbers), {s: n for s, n in present.items() if s not in numbers})

    def _working(self, node: Node) -> Node:
        if node.level == "token" or not node.args:
            return node
        if isinstance(node.op, Map) and node.op.expr == -placeholder(0) and isinstance(node.args[0].op, Cast):
            return self.g.neg(node.args[0].args[0])
        return node.args[0] if isinstance(node.op, Cast) else self.g.cast(node, False)

    def _twice(self, expr: Twice) -> Node:
        (x,) = expr.args
        node, size = self.g.label(self.node(x), f"{self.name}_real"), width(x, self.widths)
        axis = axis_of(node)
        return self.g.concat(Concat((axis, axis), (size, size), self._fresh()), [node, node])

    def _product(self, expr: Matmul) -> Node:
        """A contraction of the matrix with its argument. The matrix's axes keep the order in which it is stored."""
        matrix, x = expr.args[0], self.node(expr.args[1])
        over, _ = matrix_axes(expr, self.widths)
        x, out = self._before_fresh(x) if over == 0 else self._after_fresh(x)
        own = axis_of(x)
        axes = (own, out) if over == 0 else (out, own)
        leaf = self.g.leaf(matrix.name, "param", axes, "head")
        renames = list(zip(leaf.axes, axes, strict=True))  # it may multiply vectors along other axes as well
        upwards = AXES.index(axes[0]) > AXES.index(leaf.axes[0])
        for known, wanted in reversed(renames) if upwards else renames:  # so that the axes never change their order
            leaf = leaf if known == wanted else self.g.rename(leaf, known, wanted)
        return self.g.label(self.g.contract(x, leaf, own), f"{self.name}_projected")


def is_elementwise(node: Node, known: Iterable[Node] = ()) -> bool:
    """Whether a token value needs no wide operation beyond the known ones: a kernel can compute it from its tile."""
    have = set(known)
    return all(n in have or isinstance(n.op, (Add, Leaf, Map)) for n in topological([node], have))
