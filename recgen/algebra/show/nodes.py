"""A node of a program as an equation, generated from its operation and arguments.

Rows are t, columns i, features m, value channels c, levels of the pair tree s; a sum over rows inside a formula that
already speaks of t runs over j. Nodes without a name are written out inside the node that uses them.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from ..program import Carry, Node
from .expressions import written
from .layout import Equation, terms
from .notation import Piece, Style, style_named

LETTERS = {"s": "s", "t": "tjrp", "i": "ijrp", "m": "mn", "v": "cd",
           "k": "kl", "a": "a", "b": "b", "c": "w", "d": "x", "e": "e", "f": "f", "g": "g"}
"""The letters an axis may be written with, the first one that is free. Value channels are c: v is a tensor's name."""

DUMMIES = "jrpl"
"""Letters of rows that only a sum knows."""

NOTES = {
    "input": "an input", "param": "a parameter", "index": "the head, from 0", "scalar": "a number",
    "position": "the token, from 0", "pair": "the pair a feature belongs to, from 0",
    "carry": "carried from chunk to chunk", "cotangent": "the gradient that comes in",
    "kept": "stored by the forward pass",
}

Scope = Mapping[str, str]  # axis → letter


class Named(Protocol):
    """Names of some nodes: a dict, or what prints a program and knows its variables."""

    def __contains__(self, node: object) -> bool: ...

    def __getitem__(self, node: Node) -> str: ...


@dataclass(frozen=True)
class Writer:
    """Writes nodes in one style. `names` overrules the nodes' own names; "" writes a node out where it is used."""
    style: Style
    names: Named

    def name(self, node: Node) -> str:
        if node in self.names:
            return self.names[node]
        return node.name

    def named(self, node: Node, scope: Scope) -> Piece:
        """The name with its indices."""
        return self.style.indexed(self.name(node), [scope[a] for a in node.axes])

    def refer(self, node: Node, scope: Scope) -> Piece:
        """A node inside the formula of another: its name, or its formula when it has none."""
        if self.name(node):
            return self.named(node, scope)
        return replace(self.formula(node, scope), varies=bool(node.axes))

    def formula(self, node: Node, scope: Scope) -> Piece:
        """What a node is, its free axes spelled as `scope` says."""
        return formula(node.op, self, node, scope)

    def equation(self, node: Node, notes: Sequence[str] = ()) -> Equation:
        """The node's equation; `notes` go with the terms of a sum."""
        scope = free(node)
        pieces = [self.refer(a, scope) for a in node.args] if isinstance(node.op, Add) else [self.formula(node, scope)]
        left = str(self.named(node, scope)) if self.name(node) else ""
        remark = self.style.words(", 0 after the last token") if isinstance(node.op, Rows) else ""
        return Equation(left, ":" if isinstance(node.op, Leaf) else "=", terms(self.style, pieces, notes), remark)

    def handed_on(self, carry: Carry, notes: Sequence[str] = ()) -> Equation:
        """How a carried value becomes that of the next chunk."""
        scope = free(carry.start)
        start, write = self.refer(carry.start, scope), self.refer(carry.write, scope)
        kept = start if carry.decay is None else self.style.product([self.refer(carry.decay, scope), start])
        return Equation(str(start), self.style.arrow, terms(self.style, [kept, write], notes))


def free(node: Node) -> dict[str, str]:
    """The scope of an equation: every axis of the node under its own first letter."""
    return {a: LETTERS[a][0] for a in node.axes}


def equation(node: Node, style: str = "text", names: Named | None = None) -> str:
    """One node as one line, e.g. `scores[t,i] = Σ_m query[t,m] key[i,m]`.

    style: "text" or "latex". names: names to use instead of the nodes' own; "" writes a node out where it is used.
    A node without a name has no left side. Raises ValueError for an unknown style.
    """
    return Writer(style_named(style), names or {}).equation(node).line()


def equation_lines(node: Node, style: str = "text", names: Named | None = None, width: int = 90) -> list[str]:
    """`equation`, a sum broken before + and - where it is wider than `width`; its terms stay aligned behind the =."""
    return Writer(style_named(style), names or {}).equation(node).lines(width)


def carry_equation(carry: Carry, style: str = "text", names: Named | None = None) -> str:
    """How a carried value is handed on: `S[m,c] ← chunk_decay[m] S[m,c] + Σ_t key_decayed[t,m] v[t,c]`."""
    return Writer(style_named(style), names or {}).handed_on(carry).line()


def shared_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """One name for a value per token and the same value as rows of a chunk: query_token and query, d_o and d_o_rows."""
    names: dict[Node, str] = {}
    for n in nodes:
        if isinstance(n.op, Rows | Unrows):
            a, b = sorted((n, n.args[0]), key=lambda x: len(x.name))
            if a.name and b.name in (f"{a.name}_token", f"{a.name}_rows"):
                names[b] = a.name
    return names


def fresh(letters: str, scope: Scope) -> str:
    """The first of the letters that the scope does not use; primes when all are taken."""
    used = set(scope.values())
    return next((x for x in letters if x not in used), letters[0] + "'" * (1 + len(used)))


@singledispatch
def formula(op: Op, w: Writer, node: Node, scope: Scope) -> Piece:
    """The right side of a node's equation."""
    raise TypeError(f"no notation for {type(op).__name__}")


@formula.register
def _(op: Leaf, w: Writer, node: Node, scope: Scope) -> Piece:
    return Piece(w.style.words(NOTES[op.kind]))


@formula.register
def _(op: Map, w: Writer, node: Node, scope: Scope) -> Piece:
    return written(op.expr, w.style, {placeholder(k): w.refer(a, scope) for k, a in enumerate(node.args)})


@formula.register
def _(op: Add, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.style.total([w.refer(a, scope) for a in node.args])


@formula.register
def _(op: Rows, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Unrows, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Row, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], {"t": "t", **scope})


@formula.register
def _(op: Unrow, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Rename, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], {op.source if a == op.target else a: letter for a, letter in scope.items()})


@formula.register
def _(op: Count, w: Writer, node: Node, scope: Scope) -> Piece:
    j, t, i = fresh(DUMMIES, scope), scope.get("t", ""), scope.get("i", "")
    conditions = {
        "through": f"{j} <= {t}", "earlier": f"{j} < {t}", "later": f"{j} > {t}", "total": "t",
        "between": f"{i} < {j} <= {t}", "inside": f"{i} < {j} < {t}",
    }
    return w.style.count(conditions[op.kind] + _same_block(w.style, op.block, j, scope))


@formula.register
def _(op: Segment, w: Writer, node: Node, scope: Scope) -> Piece:
    j, t = fresh(DUMMIES, scope), scope["t"]
    under = f"{j} {'<' if op.kind == 'earlier' else '>'} {t}" + _same_block(w.style, op.block, j, scope)
    return w.style.summed(under, w.refer(node.args[0], {**scope, "t": j}))


@formula.register
def _(op: Between, w: Writer, node: Node, scope: Scope) -> Piece:
    j = fresh(DUMMIES, scope)
    through = "<" if op.inside else "<="
    return w.style.summed(f"{scope['i']} < {j} {through} {scope['t']}", w.refer(node.args[0], {"t": j}))


@formula.register
def _(op: Rectangle, w: Writer, node: Node, scope: Scope) -> Piece:
    row = fresh(DUMMIES, scope)
    column = fresh(LETTERS["i"], {**scope, "row": row})
    above = ">" if op.inside else ">="
    return w.style.summed(f"{row} {above} {scope['t']} > {column}", w.refer(node.args[0], {"t": row, "i": column}))


@formula.register
def _(op: Mask, w: Writer, node: Node, scope: Scope) -> Piece:
    t, i = scope["t"], scope["i"]
    if op.kind != "siblings":
        condition = w.style.relation(f"{i} {'<=' if op.kind == 'causal' else '<'} {t}")
    else:
        lower, upper = w.style.block(i, scope["s"]), w.style.block(t, scope["s"])
        condition = lower + w.style.words(" is the sibling before ") + upper
    return w.style.restricted(w.refer(node.args[0], scope), condition)


@formula.register
def _(op: Contract, w: Writer, node: Node, scope: Scope) -> Piece:
    letter = fresh(LETTERS[op.over], scope)
    inner = {**scope, op.over: letter}
    return w.style.summed(letter, w.style.product([w.refer(a, inner) for a in node.args]))


@formula.register
def _(op: Reduce, w: Writer, node: Node, scope: Scope) -> Piece:
    letter = fresh(LETTERS[op.over], scope)
    return w.style.summed(letter, w.refer(node.args[0], {**scope, op.over: letter}))


@formula.register
def _(op: Largest, w: Writer, node: Node, scope: Scope) -> Piece:
    letter = fresh(LETTERS[op.over], scope)
    return w.style.call("max", [w.refer(node.args[0], {**scope, op.over: letter})])


@formula.register
def _(op: Concat, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.style.call("concat", [w.refer(a, {**free(a), **scope}) for a in node.args])


@formula.register
def _(op: Flatten, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.style.call("flatten", [w.refer(node.args[0], {**free(node.args[0]), **scope})])


@formula.register
def _(op: Slice | Unflatten, w: Writer, node: Node, scope: Scope) -> Piece:
    """The transposes of concat and flatten."""
    kind = "slice" if isinstance(op, Slice) else "unflatten"
    return w.style.call(kind, [w.refer(node.args[0], {**free(node.args[0]), **scope})])


@formula.register
def _(op: Cast | EveryToken, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.refer(node.args[0], scope)


@formula.register
def _(op: Swap, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.style.call("swap", [w.refer(node.args[0], scope)])


@formula.register
def _(op: Wave, w: Writer, node: Node, scope: Scope) -> Piece:
    return w.style.call(op.kind, [w.style.product([w.refer(a, scope) for a in node.args])])


@formula.register
def _(op: Accumulate, w: Writer, node: Node, scope: Scope) -> Piece:
    (x,) = node.args
    inner = dict(scope)
    for axis in (a for a in x.axes if a in "ti"):
        inner[axis] = fresh(LETTERS[axis], inner)
    return w.style.summed("tokens" if "t" in x.axes else "chunks", w.refer(x, inner))


def _same_block(style: Style, block: str, row: str, scope: Scope) -> str:
    return "" if block == "chunk" else f", {row} in {style.block(scope['t'], scope['s'])}"
