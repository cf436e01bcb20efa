"""Order: which statements compute a set of nodes, and which of them stand in the loop over the pair tree's levels.

The level axis `s` is never materialised. A node that varies along it is computed inside a loop, and `Reduce("s")` is
the accumulator that the loop leaves behind. A loop that needs the result of an earlier loop comes after it and computes
again what the two share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from recgen.algebra.operations import Leaf, Reduce
from recgen.algebra.program import Node, topological


@dataclass(frozen=True)
class Compute:
    """One statement: the node's variable gets its value."""

    node: Node


@dataclass(frozen=True)
class LevelLoop:
    """For each level of the tree: compute the body, then add each source to its accumulator."""

    body: tuple[Node, ...]
    sums: tuple[Node, ...]


Statement = Compute | LevelLoop


SIZES = {"t": 1, "i": 1, "m": 4, "v": 4}  # of a tile's axes, in relation to each other


def frugal(roots: Iterable[Node], known: Iterable[Node] = ()) -> list[Node]:
    """The nodes below the roots, arguments first, and of two arguments the one first whose own computation holds more.

    What is computed first is held while the other is computed; so large intermediate values come before large results.
    """
    have = set(known)
    need: dict[Node, int] = {}
    ranked: dict[Node, list[Node]] = {}

    def size(n: Node) -> int:
        return math.prod(SIZES.get(a, 1) for a in n.axes) if n.level == "chunk" or n.level == "token" else 0

    for n in topological(roots, have):
        args = list(dict.fromkeys(n.args)) if n not in have else []
        ranked[n] = sorted(args, key=lambda a: size(a) - need[a])
        held, most = 0, size(n)
        for a in ranked[n]:
            most = max(most, held + need[a])
            held += size(a)
        need[n] = max(most, held + size(n))
    order: dict[Node, None] = {}

    def visit(n: Node) -> None:
        if n not in order:
            for a in ranked[n]:
                visit(a)
            order[n] = None

    for r in roots:
        visit(r)
    return list(order)


def statements(roots: Iterable[Node], known: Iterable[Node] = ()) -> list[Statement]:
    """Statements that compute the roots from leaves and from the nodes already known, each before its use."""
    have = set(known)
    nodes = [n for n in frugal(list(roots), have) if n not in have and not isinstance(n.op, Leaf)]
    depth: dict[Node, int] = {}
    for n in nodes:
        inner = max((depth.get(a, 0) for a in n.args), default=0)
        depth[n] = inner + (1 if _is_sum(n) else 0)
    out: list[Statement] = []
    for level in range(max(depth.values(), default=0) + 1):
        sums = tuple(n for n in nodes if depth[n] == level and _is_sum(n))
        if sums:
            outside = have | {n for n in nodes if "s" not in n.axes}
            body = tuple(n for n in topological([s.args[0] for s in sums], outside) if "s" in n.axes)
            out.append(LevelLoop(body, sums))
        out.extend(Compute(n) for n in nodes if depth[n] == level and not _is_sum(n) and "s" not in n.axes)
    return out


def _is_sum(node: Node) -> bool:
    return isinstance(node.op, Reduce) and node.op.over == "s"
