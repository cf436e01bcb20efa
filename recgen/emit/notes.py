"""The comment beside a statement: the equation of the node it computes."""

from __future__ import annotations

from collections.abc import Callable

from recgen.algebra.mathtext import equation_lines, shared_names
from recgen.algebra.operations import Add, Between, Contract, Count, Map, Mask, Rectangle, Reduce, Rename, Segment
from recgen.algebra.program import Node
from recgen.plan.kernels import Plan

from .naming import Names

WIDTH = 116
Note = Callable[[str, Node, Names], list[str]]  # statement, its node, names in scope → the lines to write


class Notes:
    """Adds an equation where the operation says more than the code: sums, masks, products over an axis."""

    def __init__(self, plan: Plan) -> None:
        self._names = shared_names([*plan.program.nodes(), *plan.adjoint.nodes()])

    def __call__(self, statement: str, node: Node, names: Names) -> list[str]:
        if not _worth_saying(node):
            return [statement]
        indent = statement[: len(statement) - len(statement.lstrip())]
        lines = equation_lines(node, names=self._names, width=WIDTH - 6)
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
