"""A program sorted for reading: which nodes a chunk computes on its own, from the carried state, and to hand on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..operations import Add, Leaf
from ..program import Node, Program, topological
from .layout import Equation
from .nodes import Writer


@dataclass(frozen=True)
class Part:
    """Named nodes under a heading, in the program's order."""

    title: str
    nodes: tuple[Node, ...]


TOKENS = "Before the sequence is cut"
WITHIN = "Within the chunk"
CARRIED = "From the carried state"
TOGETHER = "Together"
HANDED_ON = "Handed on to the next chunk"
HANDED_BACK = "Handed on to the chunk before"
ADDED = "Added to the sum over all chunks"


def forward_parts(program: Program, writer: Writer) -> list[Part]:
    """The program of a chunk in five parts. A node that two parts need stands in the first."""
    order = [n for n in program.nodes() if not isinstance(n.op, Leaf)]
    tokens = [n for n in order if n.level != "chunk" and n not in program.outputs.values()]
    starts = {c.start for c in program.carries}
    within: list[Node] = []
    carried: list[Node] = []
    for n in topological(program.outputs.values()):
        if isinstance(n.op, Add):
            alone = [a for a in n.args if not starts & set(topological([a]))]
            if 0 < len(alone) < len(n.args):
                within += alone
                carried += [a for a in n.args if a not in alone]
    named = [
        (TOKENS, tokens),
        (WITHIN, topological(within)),
        (CARRIED, topological(carried)),
        (TOGETHER, topological(program.outputs.values())),
        (
            ADDED if program.total else HANDED_ON,
            topological(x for c in program.carries for x in c.hand_over),
        ),
    ]
    return _listed(named, writer, set())


def backward_parts(program: Program, forward: Program, writer: Writer) -> list[Part]:
    """The adjoint, one part per gradient in the order in which each can be had, then what is handed on."""
    known = set(forward.nodes())
    named = [
        (f"Gradient of {writer.style.inline(writer.style.symbol(name.removeprefix('d_')))}", topological([out]))
        for name, out in program.outputs.items()
    ]
    named.append((ADDED if program.total else HANDED_BACK, topological(c.write for c in program.carries)))
    return _listed(named, writer, known)


def _listed(named: Iterable[tuple[str, list[Node]]], writer: Writer, seen: set[Node]) -> list[Part]:
    parts = []
    for title, nodes in named:
        new = [n for n in nodes if n not in seen and writer.name(n) and not isinstance(n.op, Leaf)]
        seen |= set(new)
        new = [n for n in new if not _repeats(n, writer)]
        if new:
            parts.append(Part(title, tuple(new)))
    return parts


def _repeats(node: Node, writer: Writer) -> bool:
    """Whether the equation would say that a value is itself: the same value per token and per row."""
    return len(node.args) == 1 and node.axes == node.args[0].axes and writer.name(node.args[0]) == writer.name(node)


@dataclass(frozen=True)
class Origin:
    """What a term of a sum comes from: a carried value that it reads, or the chunk alone."""

    carried: frozenset[Node]
    backward: frozenset[Node]
    known: frozenset[Node]
    total: bool = False

    @classmethod
    def of(cls, program: Program, forward: Program | None = None) -> Origin:
        own = frozenset(c.start for c in program.carries)
        if forward is None:
            return cls(own, frozenset(), frozenset(), program.total)
        states = frozenset(c.start for c in forward.carries)
        return cls(states, own, frozenset(n for n in forward.nodes() if n not in states), program.total)

    def words(self, term: Node) -> str:
        """Where the term comes from. Values of the forward pass are known, so what they read does not count."""
        below = set(topological([term], self.known))
        found = [("what is sent back" if self.total else "the chunks after")] if below & self.backward else []
        found += [("the sum" if self.total else "the carried state")] if below & self.carried else []
        return f"from {' and '.join(found)}" if found else "within the chunk"

    def equation(self, node: Node, writer: Writer) -> Equation:
        """The node's equation, its terms with their origin where they differ in it."""
        notes = [self.words(a) for a in node.args] if isinstance(node.op, Add) else []
        return writer.equation(node, notes if len(set(notes)) > 1 else ())
