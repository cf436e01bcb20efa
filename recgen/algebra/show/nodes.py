"""A node of a program as an equation: its name with its indices, and its formula.

Nodes without a name are written out inside the node that uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..operations import Add, Leaf, Rows, Unrows
from ..program import Carry, Node
from .formulas import Scope, formula, free
from .layout import Equation, terms
from .notation import Piece, Style, style_named


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
