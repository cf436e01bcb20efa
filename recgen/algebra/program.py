"""The tensor program: a DAG over named axes that the algebra derives and every reader shares.

Axes are single letters: `t` rows of a chunk, `i` the same rows seen as columns, `m` features, `v` values, `k` what a
feature map starts from and a … g what it passes through, and
`s` the levels of the pair tree (block sizes 1, 2, 4, … up to half a chunk; never materialised, printers loop over it).
A node lives on one of three levels:

    head    one value per head, constant in time: parameters and what follows from them
    token   one value per token, before the sequence is cut into chunks: inputs, gates, feature maps
    chunk   inside a chunk: what the program is about

`Rows` carries a token value into the chunk, with zeros beyond the end of the sequence; `Unrows` carries it back. A
program of one token has no row axes: `Row` and `Unrow` take and hand back the token's own value.
Nodes are interned: building the same operation twice gives the same node, so identity is equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import sympy

AXES = "stiabcdkefgmv"  # canonical order
LEVELS = ("head", "token", "chunk")
COUNTED = {"through": "t", "earlier": "t", "later": "t", "total": "", "between": "ti", "inside": "ti"}


def ordered(axes: Iterable[str]) -> tuple[str, ...]:
    """The axes without repetition, in canonical order."""
    return tuple(sorted(set(axes), key=AXES.index))


@dataclass(frozen=True)
class Op:
    """Base of the operations. Subclasses hold their attributes; the node holds arguments and axes."""


@dataclass(frozen=True)
class Leaf(Op):
    """A value from outside. kind: input, param, index (of the head), scalar, carry, cotangent, position (of the token,
    from 0), track (a maximum that others are relative to), pair (index of the pair that a feature belongs to), or kept
    (a value that an earlier kernel stored)."""

    name: str
    kind: str


@dataclass(frozen=True)
class Map(Op):
    """An elementwise expression in the placeholders a0, a1, … of its arguments, broadcast over the union of axes."""

    expr: sympy.Expr


@dataclass(frozen=True)
class Add(Op):
    """The sum of its arguments, broadcast over the union of axes."""


@dataclass(frozen=True)
class Rows(Op):
    """Token → chunk; rows beyond the end of the sequence are zero."""


@dataclass(frozen=True)
class Unrows(Op):
    """Chunk → token, the transpose of Rows."""


@dataclass(frozen=True)
class Row(Op):
    """Token → chunk of one token: the token's value, without a row axis. A head's value is the same at every token."""


@dataclass(frozen=True)
class Unrow(Op):
    """Chunk of one token → token, the transpose of Row."""


@dataclass(frozen=True)
class Rename(Op):
    """The same rows under the other row axis: t → i (columns) or i → t."""

    source: str
    target: str


@dataclass(frozen=True)
class Count(Op):
    """How many rows of the sequence lie in a segment. kind: through (j ≤ t), earlier (j < t), later (j > t), total,
    between (i < j ≤ t, so none where i ≥ t), or inside (i < j < t).

    block is "chunk", or "level" for the blocks of the tree's current level.
    """

    kind: str
    block: str


@dataclass(frozen=True)
class Segment(Op):
    """Sum over the rows of the same block strictly `earlier` or `later` than t. Each is the other's transpose."""

    kind: str
    block: str


@dataclass(frozen=True)
class Between(Op):
    """x[t] → Σ_{i<j≤t} x[j] on (t, i), or Σ_{i<j<t} if `inside`: zero on and above the diagonal. A masked sum, nothing
    is subtracted."""

    inside: bool = False


@dataclass(frozen=True)
class Rectangle(Op):
    """G[t,i] → Σ_{t≥j, i<j} G[t,i] on rows j, or t>j if `inside`: the transpose of Between."""

    inside: bool = False


@dataclass(frozen=True)
class Mask(Op):
    """Keep the pairs (t, i) of one relation; what varies along one of the two alone is the same for all of the other.

    kind: causal (i ≤ t), strict (i < t), or siblings: i in the lower and t in the upper half of one block of two halves
    of the tree's current level.
    """

    kind: str


@dataclass(frozen=True)
class Contract(Op):
    """Σ over one axis of the product of two operands that share only that axis: a matrix product."""

    over: str


@dataclass(frozen=True)
class Reduce(Op):
    """Σ over one axis."""

    over: str


@dataclass(frozen=True)
class Largest(Op):
    """The largest over one axis. Nothing may depend on its slope."""

    over: str


@dataclass(frozen=True)
class Concat(Op):
    """Vectors one after the other along a new axis; an argument without the axis in `parts` is one element."""

    parts: tuple[str, ...]
    widths: tuple[sympy.Expr, ...]
    target: str


@dataclass(frozen=True)
class Slice(Op):
    """The elements that one argument of a Concat has become, along its own axis: `part`, or "" for one element."""

    concat: Concat
    index: int

    @property
    def start(self) -> sympy.Expr:
        return sympy.Add(*self.concat.widths[: self.index])

    @property
    def part(self) -> str:
        return self.concat.parts[self.index]


@dataclass(frozen=True)
class Flatten(Op):
    """Two axes as one, the second one running fastest. `widths` are theirs."""

    source: tuple[str, str]
    widths: tuple[sympy.Expr, sympy.Expr]
    target: str


@dataclass(frozen=True)
class Unflatten(Op):
    """The transpose of Flatten."""

    flatten: Flatten


@dataclass(frozen=True)
class Swap(Op):
    """Pairs (a, b) of neighbours become (−b, a), a quarter turn; an element without a partner becomes 0."""

    axis: str


@dataclass(frozen=True)
class Wave(Op):
    """cos or sin of position · rate, with as many digits as the result can hold: arguments position, rate."""

    kind: str


@dataclass(frozen=True)
class Cast(Op):
    """The same value in float64 where `double`, else in the dtype that all values have. Each transposes the other."""

    double: bool


@dataclass(frozen=True)
class EveryToken(Op):
    """Head → token: the head's value at every token."""


@dataclass(frozen=True)
class Accumulate(Op):
    """Token or chunk → head: the sum over all rows of all chunks of all sequences."""


@dataclass(eq=False, slots=True)
class Node:
    """One operation of a program. `name` is the variable it becomes in emitted text, when the graph gives it one."""

    op: Op
    args: tuple[Node, ...]
    axes: tuple[str, ...]
    level: str
    name: str = ""

    def __repr__(self) -> str:
        return f"<{self.name or type(self.op).__name__}[{','.join(self.axes)}]>"


@dataclass(frozen=True)
class Carry:
    """A value handed from chunk to chunk: end = decay · start + write. `start` is its leaf inside the chunk.

    `end` is the node of the value handed on, where the program itself reads it.
    """

    name: str
    start: Node
    decay: Node | None  # None: 1
    write: Node
    end: Node | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        return self.start.axes


@dataclass(frozen=True)
class Program:
    """A chunk of the recurrence: outputs from inputs and carried values, and how these are handed on.

    `outputs` are per-token or per-head values by name. Where `total` holds, a chunk reads of a carried value what it is
    after the last chunk, the sum of the writes of all chunks, instead of what it is at the chunk's start.
    """

    outputs: Mapping[str, Node]
    carries: tuple[Carry, ...]
    graph: Graph = field(repr=False, compare=False)
    total: bool = False

    def roots(self) -> tuple[Node, ...]:
        ends = [n for c in self.carries for n in (c.decay, c.write) if n is not None]
        return (*self.outputs.values(), *ends)

    def nodes(self) -> list[Node]:
        return topological(self.roots())

    def leaves(self) -> list[Node]:
        return [n for n in self.nodes() if isinstance(n.op, Leaf)]


def topological(roots: Iterable[Node], stop: frozenset[Node] | set[Node] = frozenset()) -> list[Node]:
    """Every node that the roots need, arguments first. Nodes in `stop` are listed, what they need is not."""
    seen: dict[Node, None] = {}

    def visit(n: Node) -> None:
        if n in seen:
            return
        if n not in stop:
            for a in n.args:
                visit(a)
        seen[n] = None

    for r in roots:
        visit(r)
    return list(seen)


@cache
def placeholder(k: int) -> sympy.Symbol:
    """The symbol that stands for argument k in a Map."""
    return sympy.Symbol(f"a{k}", real=True)


class Graph:
    """Builds interned nodes. Each method checks axes and levels, so a malformed program cannot be built."""

    def __init__(self) -> None:
        self._nodes: dict[tuple, Node] = {}
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

    def mul(self, *nodes: Node | None, name: str = "") -> Node | None:
        """The product; None is 1, and the product of nothing is None."""
        real = [n for n in nodes if n is not None]
        if not real:
            return None
        symbols = [sympy.Symbol(f"_f{k}", real=True) for k in range(len(real))]
        return self.map(sympy.Mul(*symbols), dict(zip(symbols, real, strict=True)), name)

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
