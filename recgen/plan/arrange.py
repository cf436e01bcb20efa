"""Arrangements: a kernel's statements in an order that was found by compiling it.

Which order keeps a kernel in registers cannot be read off the statements: `recgen.verify.orders` tries orders, and the
finds stand beside the tiles, as the names of the variables in the order of their computation. A sum of which the name
stands there more than once begins with its first term and has another one added at each further place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from recgen.algebra.operations import Add, Contract, Map, Rename
from recgen.algebra.program import Node, topological

from .order import Compute, LevelLoop, Statement


@dataclass(frozen=True)
class Part:
    """Some terms of a sum, added to its variable. The first ones make it; after the last it is complete."""

    node: Node
    terms: tuple[Node, ...]

    @property
    def first(self) -> bool:
        return self.terms[0] is self.node.args[0]

    @property
    def last(self) -> bool:
        return self.terms[-1] is self.node.args[-1]


def in_parts(node: Node) -> bool:
    """Whether a tile is a sum that can begin before all of its terms are known."""
    wide = len(set(node.axes) - {"s"}) == 2 and node.level == "chunk"
    return wide and isinstance(node.op, Add) and all(isinstance(a.op, (Contract, Map, Rename)) for a in node.args)


def arranged(
    statements: Iterable[Statement], order: Sequence[str], name: Callable[[Node], str], known: Iterable[Node]
) -> list[Statement | Part]:
    """The statements in the given order as far as each comes after what it needs.

    order: names of variables; what it does not have comes as soon as it can. name: of a node's variable, "" for what
    is written into its use. known: what stands before the loop.
    """
    waiting = list(_ranked(statements, order, name))
    made = {n for _, s in waiting for n in _made(s)}
    missing, named = made - set(known), made | set(known)
    out: list[Statement | Part] = []
    while waiting:
        ready = (k for k, (_, s) in enumerate(waiting) if _ready(s, waiting, missing, named))
        _, s = waiting.pop(min(ready, key=lambda k: waiting[k][0]))
        if not isinstance(s, Part) or s.last:
            missing.difference_update(_made(s))
        out.append(s)
    return _joined(out)


def words(statements: Iterable[Statement | Part], name: Callable[[Node], str]) -> list[str]:
    """The order that an arrangement has; a sum that can be computed in parts stands there once for each term."""
    found: list[str] = []
    for s in statements:
        word = name(_made(s)[0])
        split = not isinstance(s, LevelLoop) and in_parts(s.node)
        found += [word] * (len(_needs(s)) if split else 1) if word else []
    return found


def _ranked(
    statements: Iterable[Statement], order: Sequence[str], name: Callable[[Node], str]
) -> Iterator[tuple[int, Statement | Part]]:
    """What is to be placed, each with its place in the order: -1 for what the order does not have."""
    for s in statements:
        word = name(_made(s)[0])
        places = [k for k, other in enumerate(order) if other == word] or [-1]
        if isinstance(s, LevelLoop) or (word and not (len(places) > 1 and in_parts(s.node))):
            yield places[0], s
        elif word:
            cuts = pairwise([*range(len(places)), len(s.node.args)])
            yield from ((k, Part(s.node, s.node.args[a:b])) for k, (a, b) in zip(places, cuts, strict=True))


def _made(s: Statement | Part) -> tuple[Node, ...]:
    return s.sums if isinstance(s, LevelLoop) else (s.node,)


def _needs(s: Statement | Part) -> tuple[Node, ...]:
    if isinstance(s, LevelLoop):
        return (*s.body, *s.sums)
    return s.terms if isinstance(s, Part) else s.node.args


def _ready(
    s: Statement | Part, waiting: Iterable[tuple[int, Statement | Part]], missing: set[Node], named: set[Node]
) -> bool:
    """Whether all that a statement needs is there, the terms before it included. named: all that has a variable."""
    first = next(other for _, other in waiting if _made(other) == _made(s))
    return first is s and not (missing - set(_made(s))) & set(topological(_needs(s), named))


def _joined(found: list[Statement | Part]) -> list[Statement | Part]:
    """Terms that follow each other are added in one statement."""
    out: list[Statement | Part] = []
    for s in found:
        before = out[-1] if out else None
        if isinstance(s, Part) and isinstance(before, Part) and before.node is s.node:
            s = Part(s.node, (*before.terms, *s.terms))
            out.pop()
        out.append(Compute(s.node) if isinstance(s, Part) and s.first and s.last else s)
    return out
