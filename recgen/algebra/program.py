"""The tensor program: a DAG over named axes that the algebra derives and every reader shares.

Axes are single letters: `t` rows of a chunk, `i` the same rows seen as columns, `m` features, `v` values, `k` what a
feature map starts from and other letters what it passes through, and `s` the levels of the pair tree (block sizes 1, 2,
4, … up to half a chunk; never materialised, printers loop over it).
A node lives on one of three levels:

    head    one value per head, constant in time: parameters and what follows from them
    token   one value per token, before the sequence is cut into chunks: inputs, gates, feature maps
    chunk   inside a chunk: what the program is about
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recgen.algebra.operations import Leaf, Op

if TYPE_CHECKING:
    from recgen.algebra.graph import Graph

AXES = "stiabcdkefgjlnopqruwxyzABCDEFGIJLNOPQRSUWXYZmv"  # canonical order
LEVELS = ("head", "token", "chunk")


def ordered(axes: Iterable[str]) -> tuple[str, ...]:
    """The axes without repetition, in canonical order."""
    return tuple(sorted(set(axes), key=AXES.index))


@dataclass(eq=False, slots=True)
class Node:
    """One operation of a program. `name` is the variable it becomes in emitted text, when the graph gives it one."""

    op: Op
    args: tuple[Node, ...]
    axes: tuple[str, ...]
    level: str
    name: str = ""

    @property
    def leaf(self) -> Leaf:
        """The operation of a node that is known to be a leaf."""
        assert isinstance(self.op, Leaf), self
        return self.op

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

    @property
    def hand_over(self) -> tuple[Node, ...]:
        """What makes the end of the start: the decay, where there is one, and the write."""
        return (self.write,) if self.decay is None else (self.decay, self.write)


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
        ends = [n for c in self.carries for n in c.hand_over]
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
