"""The graph that builds a program's nodes: it checks axes and levels, and gives every node its name.

Nodes are interned: building the same operation twice gives the same node, so identity is equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import sympy

from recgen.algebra.operations import (
    Accumulate,
    Add,
    Between,
    Cast,
    Concat,
    Contract,
    Count,
    EveryToken,
    Flatten,
    Largest,
    Leaf,
    Map,
    Mask,
    Op,
    Rectangle,
    Reduce,
    Rename,
    Row,
    Rows,
    Segment,
    Slice,
    Swap,
    Unflatten,
    Unrow,
    Unrows,
    Wave,
    placeholder,
)
from recgen.algebra.program import LEVELS, Carry, Node, ordered

COUNTED = {"each": "t", "through": "t", "earlier": "t", "later": "t", "total": "", "between": "ti", "inside": "ti"}


class Graph:
    """Builds interned nodes. Each method checks axes and levels, so a malformed program cannot be built."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Op, tuple[int, ...]], Node] = {}
        self._names: set[str] = set()

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def _intern(self, op: Op, args: tuple[Node, ...], axes: Iterable[str], level: str, name: str) -> Node:
        key = (op, tuple(map(id, args)))
        found = self._nodes.get(key)
        if found is None:
            found = Node(op, args, ordered(axes), level, self._unique(name))
            self._nodes[key] = found
        return found

    def _unique(self, name: str) -> str:
        if not name:
            return ""
        unique, n = name, 1
        while unique in self._names:
            unique, n = f"{name}_{n + 1}", n + 1
        self._names.add(unique)
        return unique

    def label(self, x: Node, name: str) -> Node:
        """Name a node that has no name yet. What a token hands back is called what it is inside."""
        if isinstance(x.op, Row | Unrow):
            self.label(x.args[0], name)
        elif name and not x.name:
            x.name = self._unique(name)
        return x

    def replace(self, x: Node, mapping: Mapping[Node, Node]) -> Node:
        """The node with some of what it depends on replaced. Rebuilt nodes keep their names."""
        done = dict(mapping)

        def rebuilt(n: Node) -> Node:
            if n not in done:
                args = tuple(map(rebuilt, n.args))
                same = all(a is b for a, b in zip(args, n.args, strict=True))
                done[n] = (
                    n
                    if same
                    else self._nodes.setdefault((n.op, tuple(map(id, args))), Node(n.op, args, n.axes, n.level, n.name))
                )
            return done[n]

        return rebuilt(x)

    def leaf(self, name: str, kind: str, axes: Iterable[str], level: str) -> Node:
        return self._intern(Leaf(name, kind), (), axes, level, name)

    def map(self, expr: sympy.Expr, args: Mapping[sympy.Symbol, Node], name: str = "") -> Node:
        """Elementwise `expr`, its symbols bound to nodes. Unused bindings are dropped."""
        used = [s for s in args if s in expr.free_symbols]
        if not used:  # a constant is the same for every head
            return self._intern(Map(expr), (), (), "head", name)
        if len(used) == 1 and expr == used[0]:
            return args[used[0]]
        unique = list(dict.fromkeys(args[s] for s in used))
        expr = expr.xreplace({s: placeholder(unique.index(args[s])) for s in used})
        axes = [a for n in unique for a in n.axes]
        level = max((n.level for n in unique), key=LEVELS.index)
        return self._intern(Map(expr), tuple(unique), axes, level, name)

    def mul(self, *nodes: Node, name: str = "") -> Node:
        """The product; a single factor is itself."""
        symbols = [sympy.Symbol(f"_f{k}", real=True) for k in range(len(nodes))]
        return self.map(sympy.Mul(*symbols), dict(zip(symbols, nodes, strict=True)), name)

    def exp(self, x: Node, name: str = "") -> Node:
        return self.map(sympy.exp(placeholder(0)), {placeholder(0): x}, name)

    def neg(self, x: Node, name: str = "") -> Node:
        return self.map(-placeholder(0), {placeholder(0): x}, name)

    def add(self, *nodes: Node, name: str = "") -> Node:
        """The sum, flattened; a single term is itself."""
        terms: list[Node] = []
        for n in nodes:
            terms.extend(n.args if isinstance(n.op, Add) and not n.name else (n,))
        if len(terms) == 1:
            return terms[0]
        axes = [a for n in terms for a in n.axes]
        return self._intern(Add(), tuple(terms), axes, max((n.level for n in terms), key=LEVELS.index), name)

    def rows(self, x: Node, name: str = "") -> Node:
        if x.level == "head":
            raise ValueError(f"{x} does not vary in time")
        return self._intern(Rows(), (x,), x.axes, "chunk", name or (x.name and f"{x.name}_rows"))

    def unrows(self, x: Node, name: str = "") -> Node:
        if isinstance(x.op, Rows):
            return x.args[0]
        return self._intern(Unrows(), (x,), x.axes, "token", name)

    def row(self, x: Node, name: str = "") -> Node:
        if x.level == "chunk":
            raise ValueError(f"{x} is inside a chunk already")
        return self._intern(Row(), (x,), [a for a in x.axes if a != "t"], "chunk", name)

    def unrow(self, x: Node, name: str = "") -> Node:
        if isinstance(x.op, Row) and x.args[0].level == "token":
            return x.args[0]
        return self._intern(Unrow(), (x,), ("t", *x.axes), "token", name)

    def columns(self, x: Node) -> Node:
        return self.rename(x, "t", "i")

    def rename(self, x: Node, source: str, target: str) -> Node:
        if isinstance(x.op, Rename) and x.op == Rename(target, source):
            return x.args[0]
        if source not in x.axes or target in x.axes:
            raise ValueError(f"cannot rename {source} to {target} in {x}")
        axes = [target if a == source else a for a in x.axes]
        return self._intern(Rename(source, target), (x,), axes, x.level, "")

    def count(self, kind: str, block: str, name: str = "") -> Node:
        axes = COUNTED[kind] + ("s" if block == "level" else "")
        return self._intern(Count(kind, block), (), axes, "chunk", name or f"rows_{kind}")

    def segment(self, x: Node, kind: str, block: str, name: str = "") -> Node:
        if "t" not in x.axes or "i" in x.axes:
            raise ValueError(f"a segment sum needs rows, {x} has {x.axes}")
        return self._intern(Segment(kind, block), (x,), x.axes + (("s",) if block == "level" else ()), "chunk", name)

    def between(self, x: Node, inside: bool = False, name: str = "") -> Node:
        if x.axes != ("t",):
            raise ValueError(f"Between takes one value per row, {x} has {x.axes}")
        return self._intern(Between(inside), (x,), ("t", "i"), "chunk", name)

    def rectangle(self, x: Node, inside: bool = False, name: str = "") -> Node:
        if x.axes != ("t", "i"):
            raise ValueError(f"Rectangle takes pairs, {x} has {x.axes}")
        return self._intern(Rectangle(inside), (x,), ("t",), "chunk", name)

    def mask(self, x: Node, kind: str, name: str = "") -> Node:
        if not {"t", "i"} & set(x.axes):
            raise ValueError(f"a mask keeps pairs, {x} has {x.axes}")
        return self._intern(Mask(kind), (x,), [*x.axes, *"ti", *("s" if kind == "siblings" else "")], x.level, name)

    def contract(self, a: Node, b: Node, over: str, name: str = "") -> Node:
        shared = (set(a.axes) & set(b.axes)) - {"s"}
        if shared != {over}:
            raise ValueError(f"{a} and {b} share {sorted(shared)}, contracted over {over!r}")
        level = max(a.level, b.level, key=LEVELS.index)
        if level == "token" and over == "t":  # over all tokens
            level = "head"
        return self._intern(Contract(over), (a, b), (set(a.axes) | set(b.axes)) - {over}, level, name)

    def reduce(self, x: Node, over: str, name: str = "") -> Node:
        if over not in x.axes:
            raise ValueError(f"{x} has no axis {over!r}")
        return self._intern(Reduce(over), (x,), [a for a in x.axes if a != over], x.level, name)

    def largest(self, x: Node, over: str) -> Node:
        return self._intern(Largest(over), (x,), [a for a in x.axes if a != over], x.level, "")

    def concat(self, op: Concat, args: Iterable[Node], name: str = "") -> Node:
        args = tuple(args)
        axes = [a for n, part in zip(args, op.parts, strict=True) for a in n.axes if a != part]
        return self._intern(op, args, [*axes, op.target], max((n.level for n in args), key=LEVELS.index), name)

    def slice(self, op: Slice, x: Node) -> Node:
        axes = [op.part if a == op.concat.target else a for a in x.axes]
        return self._intern(op, (x,), [a for a in axes if a], x.level, "")

    def swap(self, x: Node, axis: str) -> Node:
        return self._intern(Swap(axis), (x,), x.axes, x.level, "")

    def cast(self, x: Node, double: bool) -> Node:
        return self._intern(Cast(double), (x,), x.axes, x.level, "")

    def every_token(self, x: Node) -> Node:
        if x.level != "head":
            raise ValueError(f"{x} has a value of its own at every token")
        return self._intern(EveryToken(), (x,), ("t", *x.axes), "token", "")

    def wave(self, kind: str, position: Node, rate: Node) -> Node:
        axes = (*position.axes, *rate.axes)
        return self._intern(Wave(kind), (position, rate), axes, max(position.level, rate.level, key=LEVELS.index), "")

    def flatten(self, op: Flatten, x: Node) -> Node:
        return self._intern(op, (x,), [a for a in x.axes if a not in op.source] + [op.target], x.level, "")

    def unflatten(self, op: Unflatten, x: Node) -> Node:
        axes = [a for a in x.axes if a != op.flatten.target]
        return self._intern(op, (x,), [*axes, *op.flatten.source], x.level, "")

    def advanced(self, c: Carry, name: str = "") -> Node:
        """The value that a carry hands on."""
        return self.add(c.start if c.decay is None else self.mul(c.decay, c.start), c.write, name=name)

    def accumulate(self, x: Node, name: str = "") -> Node:
        return self._intern(Accumulate(), (x,), [a for a in x.axes if a not in "ti"], "head", name)
