"""The adjoint of a program, as a program: one transpose per operation, carried values running backwards.

Given cotangents of the outputs and of the carried values at the end of the chunk, the adjoint yields the gradient of
every input and parameter, and hands the gradient of the carried values to the chunk before. Nothing here knows which
operator it differentiates.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, singledispatch

import sympy

from .calculus import derivative
from .choice import where
from .graph import Graph
from .operations import (
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
from .program import Carry, Node, Program


def adjoint(program: Program) -> Program:
    """The program of the gradients.

    Outputs are named `d_<input>`; carries keep their name and hold the gradient of the value at the chunk's start. What
    is read as the sum over all chunks has as its gradient the sum of what all chunks send back, and each write gets it.
    """
    g = program.graph
    cotangents: dict[Node, list[Node]] = {}
    for name, out in program.outputs.items():
        cotangents[out] = [g.leaf(f"d_{name}", "cotangent", out.axes, "token")]
    ends = {c.name: g.leaf(f"d_{c.name}", "carry", c.axes, "chunk") for c in program.carries}
    read_ends = {c.end: c for c in program.carries if c.end is not None}

    def hand_over(c: Carry, end: Node) -> None:
        cotangents.setdefault(c.write, []).append(end)
        if c.decay is not None and varies(c.decay):
            cotangents.setdefault(c.decay, []).extend(_decay_cotangent(g, c, end))

    for c in program.carries:
        if c.end is None:
            hand_over(c, ends[c.name])
    for node in reversed(program.nodes()):
        if node in read_ends:
            c, read = read_ends[node], g.label(g.add(*cotangents[node]), f"d_{node.name}_read")
            hand_over(c, g.add(ends[c.name], read, name=f"d_{node.name}"))
            cotangents.setdefault(c.start, []).append(read if c.decay is None else g.mul(c.decay, read))
        elif node in cotangents and not isinstance(node.op, Leaf):
            total = g.label(g.add(*cotangents[node]), node.name and f"d_{node.name}")
            for arg, part in transpose(node.op, g, node, total):
                if varies(arg):
                    pairs = isinstance(part.op, Reduce) and part.op.over == "s"
                    cotangents.setdefault(arg, []).append(g.label(part, f"d_{arg.name}_pairs") if pairs else part)
    for c in program.carries:
        if c.start not in cotangents:
            raise ValueError(f"nothing reads the carried value {c.name}")
    outputs: dict[str, Node] = {}
    starts = {c.start: c for c in program.carries}
    carries = []
    for node in program.leaves():
        parts = cotangents.get(node, [])
        if node in starts:
            c = starts[node]
            carries.append(Carry(c.name, ends[c.name], c.decay, g.label(g.add(*parts), f"d_{c.name}_read")))
        elif node.leaf.kind in ("input", "param") and parts:
            outputs[f"d_{node.leaf.name}"] = g.label(g.add(*parts), f"d_{node.leaf.name}")
    return Program(outputs, tuple(carries), g, program.total)


@cache
def varies(node: Node) -> bool:
    """Whether a gradient can flow into the node: it depends on an input, a parameter or a carried value."""
    if isinstance(node.op, Leaf):
        return node.op.kind in ("input", "param", "carry")
    return not isinstance(node.op, Count) and any(varies(a) for a in node.args)


def _decay_cotangent(g: Graph, carry: Carry, end: Node) -> Iterable[Node]:
    """∂(decay · start)/∂decay against the cotangent of the end: the one term that needs both carried values."""
    assert carry.decay is not None
    extra = [a for a in carry.axes if a not in carry.decay.axes]
    part = g.mul(end, carry.start)
    for axis in extra:
        part = g.reduce(part, axis)
    return [part]


def _fit(g: Graph, x: Node, node: Node, arg: Node) -> Node:
    """Sum a cotangent of `node` over the axes along which `arg` was broadcast, and over time for a head's constant.

    A cotangent may lack an axis of its node, along which it is constant; summing over such an axis is not needed by
    any operation here, and refused rather than forgotten.
    """
    for axis in node.axes:
        if axis not in arg.axes and axis not in x.axes:
            raise ValueError(f"the cotangent of {node} is constant along {axis!r}, over which {arg} was broadcast")
    to_head = arg.level == "head" and x.level != "head"
    for axis in x.axes:
        if axis not in arg.axes and not (to_head and axis == "t"):
            x = g.reduce(x, axis)
    return g.accumulate(x) if to_head else x


Transposed = Iterable[tuple[Node, Node]]


@singledispatch
def transpose(op: Op, g: Graph, node: Node, cotangent: Node) -> Transposed:
    """Pairs (argument, its part of the gradient), given the cotangent of the node."""
    raise TypeError(f"no transpose for {type(op).__name__}")


@transpose.register
def _(op: Map, g: Graph, node: Node, cotangent: Node) -> Transposed:
    for k, arg in enumerate(node.args):
        slope = derivative(op.expr, placeholder(k)) if varies(arg) else 0
        if slope != 0:
            yield arg, _fit(g, _chain(g, op, node, slope, cotangent), node, arg)


def _chain(g: Graph, op: Map, node: Node, slope: sympy.Expr, cotangent: Node) -> Node:
    """cotangent · slope, written through the node's own value where that needs fewer arguments."""
    own, cot = sympy.Symbol("_out", real=True), sympy.Symbol("_cot", real=True)
    slope = _through_value(op.expr, slope, own, len(node.args))
    bindings = {placeholder(j): a for j, a in enumerate(node.args)} | {own: node, cot: cotangent}
    return g.map(cot * slope, bindings)


def _through_value(expr: sympy.Expr, slope: sympy.Expr, own: sympy.Symbol, arity: int) -> sympy.Expr:
    """Rewrite a slope with the node's value where that replaces an argument: exp(x) → out, −a/b² → −out/b."""
    slope = _factored(slope.xreplace({expr: own}), expr, own)
    for a in map(placeholder, range(arity)):
        factor = expr.diff(a)
        if len(slope.free_symbols) > 1 and slope.has(a) and not factor.has(a) and sympy.expand(expr - factor * a) == 0:
            through = slope.subs(a, own / factor)
            shorter = sympy.count_ops(through) <= sympy.count_ops(slope)
            if shorter and _divides_no_more(through, slope):
                return through
    return slope


def _divides_no_more(new: sympy.Expr, old: sympy.Expr) -> bool:
    """Whether nothing is divided by to a higher power: x / y² may underflow where x / y does not."""

    def divisors(expr: sympy.Expr) -> dict[sympy.Expr, sympy.Expr]:
        below = [p for p in expr.atoms(sympy.Pow) if p.exp.is_Rational and p.exp < 0]
        return {p.base: max(-q.exp for q in below if q.base == p.base) for p in below}

    before = divisors(old)
    return all(power <= before.get(base, 0) for base, power in divisors(new).items())


def _factored(slope: sympy.Expr, expr: sympy.Expr, own: sympy.Symbol) -> sympy.Expr:
    """c · exp(x) · x' as out · x': a slope of which the value itself is a factor."""
    rest = list(sympy.Mul.make_args(slope))
    factors = sympy.Mul.make_args(expr)
    if not any(isinstance(f, sympy.exp) for f in factors) or any(f not in rest for f in factors):
        return slope
    for f in factors:
        rest.remove(f)
    return own * sympy.Mul(*rest)


@transpose.register
def _(op: Add, g: Graph, node: Node, cotangent: Node) -> Transposed:
    for arg in node.args:
        yield arg, _fit(g, cotangent, node, arg)


@transpose.register
def _(op: Rows, g: Graph, node: Node, cotangent: Node) -> Transposed:
    if "t" not in cotangent.axes:  # the same for every row
        cotangent = g.mul(g.count("each", "chunk"), cotangent)
    yield node.args[0], g.unrows(cotangent)


@transpose.register
def _(op: Unrows, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.rows(cotangent)


@transpose.register
def _(op: Row, g: Graph, node: Node, cotangent: Node) -> Transposed:
    (arg,) = node.args
    yield arg, g.accumulate(cotangent) if arg.level == "head" else g.unrow(cotangent)


@transpose.register
def _(op: Unrow, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.row(cotangent)


@transpose.register
def _(op: Rename, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.rename(cotangent, op.target, op.source)


@transpose.register
def _(op: Segment, g: Graph, node: Node, cotangent: Node) -> Transposed:
    opposite = {"earlier": "later", "later": "earlier"}[op.kind]
    yield node.args[0], _fit(g, g.segment(cotangent, opposite, op.block), node, node.args[0])


@transpose.register
def _(op: Between, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.rectangle(cotangent, op.inside)


@transpose.register
def _(op: Mask, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], _fit(g, g.mask(cotangent, op.kind), node, node.args[0])


@transpose.register
def _(op: Contract, g: Graph, node: Node, cotangent: Node) -> Transposed:
    for arg, other in (node.args, node.args[::-1]):
        own = [x for x in other.axes if x not in arg.axes and x != "s"]
        part = g.contract(cotangent, other, own[0]) if own else g.mul(cotangent, other)
        yield arg, _fit(g, part, part, arg)


@transpose.register
def _(op: Reduce, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], cotangent


@transpose.register
def _(op: Largest, g: Graph, node: Node, cotangent: Node) -> Transposed:
    (arg,) = node.args
    x, largest, d = map(placeholder, range(3))
    yield arg, g.map(d * where(sympy.Eq(x, largest), 1, 0), {x: arg, largest: node, d: cotangent})


@transpose.register
def _(op: Concat, g: Graph, node: Node, cotangent: Node) -> Transposed:
    for k, arg in enumerate(node.args):
        if varies(arg):
            part = g.slice(Slice(op, k), cotangent)
            yield arg, _fit(g, part, part, arg)


@transpose.register
def _(op: Flatten, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.unflatten(Unflatten(op), cotangent)


@transpose.register
def _(op: Swap, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.neg(g.swap(cotangent, op.axis))


@transpose.register
def _(op: Cast, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.cast(cotangent, not op.double)


@transpose.register
def _(op: EveryToken, g: Graph, node: Node, cotangent: Node) -> Transposed:
    yield node.args[0], g.accumulate(cotangent)


@transpose.register
def _(op: Wave, g: Graph, node: Node, cotangent: Node) -> Transposed:
    position, rate = node.args
    if varies(rate):
        slope = g.wave("sin" if op.kind == "cos" else "cos", position, rate)
        part = g.mul(cotangent, position, g.neg(slope) if op.kind == "cos" else slope)
        yield rate, _fit(g, part, part, rate)
