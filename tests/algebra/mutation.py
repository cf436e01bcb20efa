"""Every small way to get a program wrong: one node changed, everything else as it was.

A mutant keeps the axes and the level of the node it changes, so that it is a legal program of the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import sympy

from recgen.algebra.graph import Graph
from recgen.algebra.operations import Add, Between, Count, Leaf, Map, Mask, Op, Rectangle, Segment, placeholder
from recgen.algebra.program import LEVELS, Carry, Node, Program, ordered

Change = Callable[[Graph, Node], Node]
A = placeholder(0)


@dataclass(frozen=True)
class Mutant:
    """A program with one change, and what it is."""

    what: str
    program: Program


def mutants(program: Program) -> Iterator[Mutant]:
    """All mutants of a program: of its nodes, and of how it hands on what it carries."""
    for node in program.nodes():
        for what, change in changes(node):
            yield Mutant(f"{describe(node)}: {what}", rebuilt(program, {node: change}))
    for carry in program.carries:
        if carry.decay is not None:
            yield Mutant(f"carry {carry.name}: not decayed", carried(program, carry, decay=None))
            yield Mutant(
                f"carry {carry.name}: decayed twice",
                carried(program, carry, decay=program.graph.mul(carry.decay, carry.decay)),
            )
    for name in program.outputs:
        rest = {n: out for n, out in program.outputs.items() if n != name}
        yield Mutant(f"output {name}: missing", replace(program, outputs=rest))


def changes(node: Node) -> Iterator[tuple[str, Change]]:
    """What can be done to a node."""
    op = node.op
    if isinstance(op, Leaf):
        if op.kind == "carry":
            yield "dropped", scaled(0)
        return
    yield "doubled", scaled(2)
    yield "negated", scaled(-1)
    yield "dropped", scaled(0)
    if isinstance(op, Segment):
        yield "earlier and later swapped", with_op(Segment({"earlier": "later", "later": "earlier"}[op.kind], op.block))
        if "s" not in node.axes or "s" in node.args[0].axes:
            yield "includes its own row", lambda g, n: legal(g, Add(), (n, n.args[0]), n)
    if isinstance(op, Between):
        yield "includes its first row", lambda g, n: legal(g, Add(), (n, g.columns(n.args[0])), n)
    if isinstance(op, Rectangle):
        yield "includes its first column", lambda g, n: legal(g, Add(), (n, g.reduce(n.args[0], "i")), n)
    if isinstance(op, Count):
        yield "one more", mapped(A + 1)
        if op.kind in ("through", "later"):
            other = {"through": "later", "later": "through"}[op.kind]
            yield "through and later swapped", with_op(Count(other, op.block))
    if isinstance(op, Mask) and node.args[0].axes == node.axes:
        yield "removed", lambda g, n: n.args[0]
    if isinstance(op, Add):
        for k, kept in enumerate(without(node.args, k) for k in range(len(node.args))):
            if ordered(a for n in kept for a in n.axes) == node.axes and max_level(kept) == node.level:
                yield f"term {k} dropped", lambda g, n, k=k: legal(g, Add(), without(n.args, k), n)
    if isinstance(op, Map):
        yield from ((f"becomes {expr}", with_op(Map(expr))) for expr in other_expressions(op.expr, len(node.args)))


def other_expressions(expr: sympy.Expr, arity: int) -> Iterator[sympy.Expr]:
    """The expression with an argument squared, and with its own slope in its place, where these differ from it."""
    for k in range(arity):
        a = placeholder(k)
        other = expr.xreplace({a: a**2})
        if other != expr and not expr.has(sympy.exp):
            yield other
    if isinstance(expr, sympy.exp):
        yield 1 + expr.args[0]


def scaled(factor: int) -> Change:
    return mapped(factor * A, evaluate=factor != 0)


def mapped(expr: sympy.Expr, evaluate: bool = True) -> Change:
    """An elementwise function of the node; multiplication by 0 stays written down."""
    expr = expr if evaluate else sympy.Mul(0, A, evaluate=False)
    return lambda g, n: legal(g, Map(expr), (n,), n)


def with_op(op: Op) -> Change:
    return lambda g, n: legal(g, op, n.args, n)


def legal(graph: Graph, op: Op, args: tuple[Node, ...], like: Node) -> Node:
    """A node of its own, not interned, with the axes and the level of another."""
    return Node(op, args, like.axes, like.level, like.name)


def rebuilt(program: Program, changed: dict[Node, Change]) -> Program:
    """The program with changes applied; nodes that do not depend on them are shared."""
    done: dict[Node, Node] = {}
    for node in program.nodes():
        args = tuple(done[a] for a in node.args)
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        copy = node if same else Node(node.op, args, node.axes, node.level, node.name)
        done[node] = changed[node](program.graph, copy) if node in changed else copy
    carries = tuple(Carry(c.name, c.start, c.decay and done[c.decay], done[c.write]) for c in program.carries)
    return replace(program, outputs={name: done[out] for name, out in program.outputs.items()}, carries=carries)


def carried(program: Program, carry: Carry, decay: Node | None) -> Program:
    return replace(program, carries=tuple(replace(c, decay=decay) if c is carry else c for c in program.carries))


def without(args: tuple[Node, ...], k: int) -> tuple[Node, ...]:
    return args[:k] + args[k + 1 :]


def max_level(nodes: tuple[Node, ...]) -> str:
    return max((n.level for n in nodes), key=LEVELS.index, default="head")


def describe(node: Node) -> str:
    """The node in words that tell it from every other."""
    inner = ", ".join(a.name or type(a.op).__name__ for a in node.args)
    return f"{node.name or ''}[{''.join(node.axes)}] = {node.op}({inner})"
