"""Names and inlining: which nodes become variables of the emitted text, and what they are called.

A node that the algebra named is a variable. One without a name is written into its only use, or, when it is used more
than once, gets the name of what it feeds on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

import sympy

from recgen.algebra.operations import Accumulate, Leaf, Map, Mask, Reduce, Rename, Rows, Unrows
from recgen.algebra.program import Node

_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)


def atom(text: str) -> str:
    """The text, in parentheses unless it can take a suffix such as `[..., None]` or `.mT` as it stands."""
    tree = ast.parse(text, mode="eval").body
    return text if isinstance(tree, _ATOMS) and not text.lstrip().startswith("-") else f"({text})"


def operand(text: str) -> str:
    """The text, in parentheses if it would not survive as an operand of a product."""
    tree = ast.parse(text, mode="eval").body
    product = isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.MatMult))
    return text if isinstance(tree, _ATOMS) or product else f"({text})"


def inside(expr: sympy.Expr, symbol: sympy.Symbol, text: str) -> str:
    """The text of a symbol of an expression, bracketed if it stands beside an operator there."""
    beside = any(
        isinstance(e, sympy.Add | sympy.Mul | sympy.Pow) and symbol in e.args for e in sympy.preorder_traversal(expr)
    )
    return operand(text) if beside else text


Alias = Callable[[Node], bool]


def is_constant(node: Node) -> bool:
    """A number, the same for every head."""
    return isinstance(node.op, Map) and not node.args


def is_uniform(node: Node) -> bool:
    """A number or an expression of sizes: the same for every head, and no tensor by itself."""
    return isinstance(node.op, Map) and all(isinstance(a.op, Leaf) and a.op.kind == "scalar" for a in node.args)


def renamed(node: Node) -> bool:
    """Renamed rows are the rows themselves, unless they have a name of their own."""
    return isinstance(node.op, Rename) and not node.name


class Names:
    """Variable names of the nodes that are statements; every other node is inlined into its only use."""

    def __init__(
        self, nodes: Iterable[Node], keep: Iterable[Node] = (), taken: Iterable[str] = (), alias: Alias = renamed
    ) -> None:
        """`keep` get a name in any case; an `alias` is another word for its argument and never gets one."""
        nodes = list(nodes)
        uses: dict[Node, int] = {}
        crossing = set(keep)  # computed outside a loop, used inside it
        for n in nodes:
            if alias(n):
                continue
            for a in n.args:
                while alias(a):
                    a = a.args[0]
                uses[a] = uses.get(a, 0) + 1
                if "s" in n.axes and "s" not in a.axes:
                    crossing.add(a)
        self._names: dict[Node, str] = {}
        used = set(taken)
        for n in nodes:
            if isinstance(n.op, Leaf):
                self._names[n] = n.op.name
                used.add(n.op.name)
        for n in nodes:
            if isinstance(n.op, Leaf) or alias(n):
                continue
            accumulates = isinstance(n.op, Reduce) and n.op.over == "s"
            if is_constant(n) and not n.name:
                continue
            if n.name or n in crossing or accumulates or uses.get(n, 0) > 1:
                self._names[n] = _free(n.name or _descriptive(n), used)

    def set(self, names: dict[Node, str]) -> None:
        """Names that are given from outside."""
        self._names.update(names)

    def __contains__(self, node: Node) -> bool:
        return node in self._names

    def get(self, node: Node) -> str:
        """The node's variable, or nothing."""
        return self._names.get(node, "")

    def __getitem__(self, node: Node) -> str:
        return self._names[node]


def _free(name: str, taken: set[str]) -> str:
    k, candidate = 2, name
    while candidate in taken:
        candidate, k = f"{name}_{k}", k + 1
    taken.add(candidate)
    return candidate


def _descriptive(node: Node) -> str:
    """A name for a node that has none: what is done to the first named value below it."""
    below = node
    while not below.name and below.args:
        below = below.args[0]
    prefix = {Mask: "masked", Rows: "rows_of", Unrows: "tokens_of", Accumulate: "sum_of", Reduce: "sum_of"}.get(
        type(node.op), "part_of"
    )
    return (
        f"{prefix}_{below.name}" if below.name and not isinstance(below.op, Leaf) else f"{prefix}_{below.name or 'x'}"
    )
