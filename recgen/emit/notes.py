"""What is noted beside emitted lines: in a comment, the equation of the node that a statement computes."""

from __future__ import annotations

from recgen.algebra.mathtext import equation_lines, shared_names
from recgen.algebra.operations import Add, Between, Contract, Count, Map, Mask, Rectangle, Reduce, Rename, Segment
from recgen.algebra.program import Carry, Node
from recgen.plan.kernels import Plan

from .naming import Names

WIDTH = 116
Origin = Node | Carry | str
"""What a line comes from: a node that it computes, a carried value that it hands on, or an equation in words."""


class Note:
    """Notes nothing. Every emitted line that does mathematics passes through here on its way."""

    def __call__(self, statement: str, node: Node, names: Names) -> list[str]:
        """The lines to write for a statement that computes a node."""
        return [self.mark(statement, node)]

    def mark(self, line: str, origin: Origin) -> str:
        """Any other line that comes from the algebra."""
        return line


class Unsaid(Note):
    """Writes no comments, and marks lines as another one does."""

    def __init__(self, other: Note) -> None:
        self.other = other

    def mark(self, line: str, origin: Origin) -> str:
        return self.other.mark(line, origin)


class Notes(Note):
    """Adds an equation where the operation says more than the code: sums, masks, products over an axis."""

    def __init__(self, plan: Plan) -> None:
        self.names = shared_names([*plan.program.nodes(), *plan.adjoint.nodes()])

    def __call__(self, statement: str, node: Node, names: Names) -> list[str]:
        lines = self._said(statement, node)
        return [*lines[:-1], self.mark(lines[-1], node)]

    def _said(self, statement: str, node: Node) -> list[str]:
        if not _worth_saying(node):
            return [statement]
        indent = statement[: len(statement) - len(statement.lstrip())]
        lines = equation_lines(node, names=self.names, width=WIDTH - 6)
        if max(map(len, lines)) + len(indent) > WIDTH:
            return [statement]  # an equation that fits no line explains nothing
        if len(lines) == 1 and len(statement) + len(lines[0]) + 4 <= WIDTH:
            return [f"{statement}  # {lines[0]}"]
        return [*(f"{indent}# {line}" for line in lines), statement]


def _worth_saying(node: Node) -> bool:
    """A sum, a mask or a product over an axis somewhere in the statement."""
    if isinstance(node.op, (Segment, Between, Rectangle, Contract, Reduce, Mask, Count)):
        return True
    return isinstance(node.op, (Map, Add, Rename)) and any(_worth_saying(a) for a in node.args if not a.name)
