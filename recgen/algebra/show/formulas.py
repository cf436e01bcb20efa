"""The right side of a node's equation, from its operation and arguments.

Rows are t, columns i, features m, value channels c, levels of the pair tree s; a sum over rows inside a formula that
already speaks of t runs over j.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Protocol

from ..operations import (
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
from ..program import Node
from .expressions import written
from .notation import Piece, Style

OWN = {"s": "s", "t": "tjrp", "i": "ijrp", "m": "mn", "v": "cd"}
"""The letters an axis may be written with, the first one that is free. Value channels are c: v is a tensor's name."""

PASSED = "klefgabnpquwxyz"
"""The letters of what a feature map passes through; its own is the first where it has one."""

DUMMIES = "jrpl"
"""Letters of rows that only a sum knows."""

NOTES = {
    "input": "an input",
    "param": "a parameter",
    "index": "the head, from 0",
    "scalar": "a number",
    "position": "the token, from 0",
    "pair": "the pair a feature belongs to, from 0",
    "carry": "carried from chunk to chunk",
    "cotangent": "the gradient that comes in",
    "kept": "stored by the forward pass",
}

Scope = Mapping[str, str]  # axis → letter


class Referring(Protocol):
    """Refers to a node inside the formula of another."""

    @property
    def style(self) -> Style: ...

    def refer(self, node: Node, scope: Scope) -> Piece: ...


def letters(axis: str) -> str:
    """The letters an axis may be written with."""
    if axis in OWN:
        return OWN[axis]
    first = axis if axis in PASSED else PASSED[sum(map(ord, axis)) % len(PASSED)]
    return first + PASSED.replace(first, "")


def free(node: Node) -> dict[str, str]:
    """The scope of an equation: every axis of the node under a letter of its own."""
    scope: dict[str, str] = {}
    for a in node.axes:
        scope[a] = fresh(letters(a), scope)
    return scope


def fresh(candidates: str, scope: Scope) -> str:
    """The first of the letters that the scope does not use; primes when all are taken."""
    used = set(scope.values())
    return next((x for x in candidates if x not in used), candidates[0] + "'" * (1 + len(used)))


def bound(axis: str, scope: Scope) -> tuple[str, dict[str, str]]:
    """A letter for an axis that a formula sums over, and the scope inside: the letter that it had stays taken."""
    letter = fresh(letters(axis), scope)
    return letter, _with(scope, axis, letter)


def _with(scope: Scope, axis: str, letter: str) -> dict[str, str]:
    hidden = {f"{axis} of {scope[axis]}": scope[axis]} if scope.get(axis, letter) != letter else {}
    return {**scope, **hidden, axis: letter}


@singledispatch
def formula(op: Op, w: Referring, node: Node, scope: Scope) -> Piece:
    """The right side of a node's equation."""
    raise TypeError(f"no notation for {type(op).__name__}")


@formula.register
def _(op: Leaf, w: Referring, node: Node, scope: Scope) -> Piece:
    return Piece(w.style.words(NOTES[op.kind]))


@formula.register
def _(op: Map, w: Referring, node: Node, scope: Scope) -> Piece:
    return written(op.expr, w.style, {placeholder(k): w.refer(a, scope) for k, a in enumerate(node.args)})


@formula.register
def _(op: Add, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.style.total([w.refer(a, scope) for a in node.args])


@formula.register
def _(op: Rows, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Unrows, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Row, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], {"t": "t", **scope})


@formula.register
def _(op: Unrow, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Rename, w: Referring, node: Node, scope: Scope) -> Piece:
    rest = {a: letter for a, letter in scope.items() if a != op.target}
    return w.refer(node.args[0], _with(rest, op.source, scope[op.target]))


@formula.register
def _(op: Count, w: Referring, node: Node, scope: Scope) -> Piece:
    j, t, i = fresh(DUMMIES, scope), scope.get("t", ""), scope.get("i", "")
    conditions = {
        "each": f"{j} = {t}",
        "through": f"{j} <= {t}",
        "earlier": f"{j} < {t}",
        "later": f"{j} > {t}",
        "total": "t",
        "between": f"{i} < {j} <= {t}",
        "inside": f"{i} < {j} < {t}",
    }
    return w.style.count(conditions[op.kind] + _same_block(w.style, op.block, j, scope))


@formula.register
def _(op: Segment, w: Referring, node: Node, scope: Scope) -> Piece:
    j, t = fresh(DUMMIES, scope), scope["t"]
    under = f"{j} {'<' if op.kind == 'earlier' else '>'} {t}" + _same_block(w.style, op.block, j, scope)
    return w.style.summed(under, w.refer(node.args[0], {**scope, "t": j}))


@formula.register
def _(op: Between, w: Referring, node: Node, scope: Scope) -> Piece:
    j = fresh(DUMMIES, scope)
    through = "<" if op.inside else "<="
    return w.style.summed(f"{scope['i']} < {j} {through} {scope['t']}", w.refer(node.args[0], {"t": j}))


@formula.register
def _(op: Rectangle, w: Referring, node: Node, scope: Scope) -> Piece:
    row = fresh(DUMMIES, scope)
    column = fresh(letters("i"), {**scope, "row": row})
    above = ">" if op.inside else ">="
    return w.style.summed(f"{row} {above} {scope['t']} > {column}", w.refer(node.args[0], {"t": row, "i": column}))


@formula.register
def _(op: Mask, w: Referring, node: Node, scope: Scope) -> Piece:
    t, i = scope["t"], scope["i"]
    if op.kind != "siblings":
        condition = w.style.relation(f"{i} {'<=' if op.kind == 'causal' else '<'} {t}")
    else:
        lower, upper = w.style.block(i, scope["s"]), w.style.block(t, scope["s"])
        condition = lower + w.style.words(" is the sibling before ") + upper
    return w.style.restricted(w.refer(node.args[0], scope), condition)


@formula.register
def _(op: Contract, w: Referring, node: Node, scope: Scope) -> Piece:
    letter, inner = bound(op.over, scope)
    return w.style.summed(letter, w.style.product([w.refer(a, inner) for a in node.args]))


@formula.register
def _(op: Reduce, w: Referring, node: Node, scope: Scope) -> Piece:
    letter, inner = bound(op.over, scope)
    return w.style.summed(letter, w.refer(node.args[0], inner))


@formula.register
def _(op: Largest, w: Referring, node: Node, scope: Scope) -> Piece:
    letter, inner = bound(op.over, scope)
    return w.style.largest(letter, w.refer(node.args[0], inner))


@formula.register
def _(op: Concat, w: Referring, node: Node, scope: Scope) -> Piece:
    """concat_e(a[e], b[e])[m]: e runs over each part in turn."""
    letter = fresh(letters(next(filter(None, op.parts))), scope)
    parts = [
        w.refer(a, _with(scope, part, letter) if part else scope) for a, part in zip(node.args, op.parts, strict=True)
    ]
    return w.style.element(w.style.running("concat", [letter], parts), scope[op.target])


@formula.register
def _(op: Flatten, w: Referring, node: Node, scope: Scope) -> Piece:
    """flatten_{k,e}(a[k,e])[m]: the last of the two runs fastest."""
    first, inner = bound(op.source[0], scope)
    second, inner = bound(op.source[1], inner)
    whole = w.style.running("flatten", [first, second], [w.refer(node.args[0], inner)])
    return w.style.element(whole, scope[op.target])


@formula.register
def _(op: Slice, w: Referring, node: Node, scope: Scope) -> Piece:
    """The transpose of concat: the whole at the place of a part."""
    place = [
        *([] if op.start == 0 and op.part else [written(op.start, w.style)]),
        *([Piece(scope[op.part])] if op.part else []),
    ]
    return w.refer(node.args[0], _with(scope, op.concat.target, str(w.style.total(place))))


@formula.register
def _(op: Unflatten, w: Referring, node: Node, scope: Scope) -> Piece:
    """The transpose of flatten."""
    first, second = (Piece(scope[a]) for a in op.flatten.source)
    place = w.style.total([w.style.product([written(op.flatten.widths[1], w.style), first]), second])
    return w.refer(node.args[0], _with(scope, op.flatten.target, str(place)))


@formula.register
def _(op: Cast | EveryToken, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Swap, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.style.call("swap", [w.refer(node.args[0], scope)])


@formula.register
def _(op: Wave, w: Referring, node: Node, scope: Scope) -> Piece:
    return w.style.call(op.kind, [w.style.product([w.refer(a, scope) for a in node.args])])


@formula.register
def _(op: Accumulate, w: Referring, node: Node, scope: Scope) -> Piece:
    (x,) = node.args
    inner = dict(scope)
    for axis in (a for a in x.axes if a in "ti"):
        inner[axis] = fresh(letters(axis), inner)
    return w.style.summed("tokens" if "t" in x.axes else "chunks", w.refer(x, inner))


def _same_block(style: Style, block: str, row: str, scope: Scope) -> str:
    return "" if block == "chunk" else f", {row} in {style.block(scope['t'], scope['s'])}"
