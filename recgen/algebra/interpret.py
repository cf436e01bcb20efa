"""A program run over a sequence cut into chunks, exactly: carried values are handed from chunk to chunk.

The adjoint runs over the same chunks backwards. Where chunks read totals, what all of them write is summed before any
of them is run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from recgen.algebra.exact import Domain, NotExact
from recgen.algebra.meaning import Chunk, meaning
from recgen.algebra.operations import Leaf, Map, Row, Rows, placeholder
from recgen.algebra.program import Carry, Node, Program, topological
from recgen.algebra.tokens import Array, Draw, TokenStage, spread


@dataclass(frozen=True)
class Cut:
    """A sequence cut into chunks of `size` rows, of which the first `rows[c]` are tokens in chunk c."""

    size: int
    rows: tuple[int, ...]

    @property
    def length(self) -> int:
        return sum(self.rows)

    def __str__(self) -> str:
        return f"T={self.length} as {'+'.join(map(str, self.rows))} in chunks of {self.size}"


@dataclass(frozen=True)
class Run:
    """What a program gave: its outputs, the carried values that each chunk read, and those after the last.

    What is a total belongs to no place in the sequence: nothing is left after the last chunk.
    """

    outputs: Mapping[str, Array]
    starts: Mapping[str, Sequence[Array]]
    ends: Mapping[str, Array]


def run(
    program: Program,
    draw: Draw,
    domain: Domain,
    cut: Cut,
    carried: Mapping[str, Array],
    given: Mapping[str, Sequence[Array]] | None = None,
) -> Run:
    """Run a program over the chunks of a sequence.

    carried: the carried values before the first chunk that is run.
    given: for an adjoint, what its program carried into each chunk, by name. It runs backwards, then.
    Raises NotExact when an operation has no exact meaning.
    """
    nodes = program.nodes()
    stage = TokenStage(nodes, draw, domain, cut.length)
    formal = exponents(nodes)
    count = len(cut.rows)
    values: list[Mapping[Node, Array]] = [{}] * count
    starts: dict[str, list[Array]] = {c.name: [np.empty(0)] * count for c in program.carries}
    state = dict(carried)

    ends = {n for carry in program.carries for n in carry.hand_over}

    def computed(c: int, wanted: Sequence[Node], known: Mapping[Node, Array]) -> dict[Node, Array]:
        """The values of nodes in chunk c, given those of this program's carries."""
        first = sum(cut.rows[:c])
        chunk = Chunk(cut.size, range(first, first + cut.rows[c]), domain)
        leaves = dict(known)
        for node in wanted:
            if isinstance(node.op, Leaf) and node.op.kind == "carry" and node not in leaves:
                leaves[node] = _given(node, given or {})[c]
        return run_chunk(wanted, leaves, chunk, stage, formal, ends)

    if program.total:
        writes = [computed(c, topological(carry.write for carry in program.carries), {}) for c in range(count)]
        state = {carry.name: _summed(carry, writes, draw) for carry in program.carries}
    for c in range(count) if given is None else reversed(range(count)):
        values[c] = computed(c, nodes, {carry.start: state[carry.name] for carry in program.carries})
        for name, value in state.items():
            starts[name][c] = value
        if not program.total:
            state = {
                carry.name: _handed_on(carry.start, carry.decay, carry.write, values[c]) for carry in program.carries
            }
    stage.finish(values, cut.rows)
    outputs = {name: stage.exact(node) for name, node in program.outputs.items()}
    return Run(outputs, starts, {} if program.total else state)


def _summed(carry: Carry, chunks: Sequence[Mapping[Node, Array]], draw: Draw) -> Array:
    """What all chunks write, from nothing."""
    nothing = np.full([draw.widths[a] for a in carry.axes], 0, dtype=object)
    return sum((spread(values[carry.write], carry.write.axes, carry.axes) for values in chunks), nothing)


def _given(node: Node, given: Mapping[str, Sequence[Array]]) -> Sequence[Array]:
    if node.leaf.name not in given:
        raise NotExact(f"nothing carries {node.leaf.name}")
    return given[node.leaf.name]


def _handed_on(start: Node, decay: Node | None, write: Node, values: Mapping[Node, Array]) -> Array:
    """decay · start + write."""
    kept = values[start] if decay is None else values[start] * spread(values[decay], decay.axes, start.axes)
    handed_on: Array = kept + spread(values[write], write.axes, start.axes)
    return handed_on


def exponents(nodes: Iterable[Node]) -> frozenset[Node]:
    """The nodes whose values are sums of log-decays: those that an exponential in a chunk is taken of."""
    found: set[Node] = set()

    def mark(node: Node) -> None:
        if node not in found:
            found.add(node)
            for a in node.args if node.level == "chunk" else ():
                mark(a)

    for node in nodes:
        if node.level == "chunk" and isinstance(node.op, Map):
            inside = {s for e in node.op.expr.atoms(sympy.exp) for s in e.free_symbols}
            for k, a in enumerate(node.args):
                if placeholder(k) in inside:
                    mark(a)
    return frozenset(found)


def run_chunk(
    nodes: Iterable[Node],
    leaves: Mapping[Node, Array],
    chunk: Chunk,
    stage: TokenStage,
    formal: frozenset[Node],
    ends: Collection[Node],
) -> dict[Node, Array]:
    """The values of all nodes inside one chunk. ends: what carried values are handed on with, which a head may have."""
    values = dict(leaves)
    for node in nodes:
        if node in ends and node.level == "head":
            values[node] = stage.atoms(node, chunk.tokens, node in formal)
        if node.level != "chunk" or node in values:
            continue
        if isinstance(node.op, Row):
            values[node] = _only_row(stage.atoms(node.args[0], chunk.tokens, node in formal), node.args[0])
        elif isinstance(node.op, Rows):
            values[node] = _padded(stage.atoms(node.args[0], chunk.tokens, node in formal), chunk.size)
        else:
            for a in node.args:
                if a.level == "head" and a not in values:
                    values[a] = stage.atoms(a, chunk.tokens, a in formal)
            values[node] = meaning(node.op, node, [values[a] for a in node.args], chunk)
    return values


def _only_row(x: Array, source: Node) -> Array:
    """The values of the chunk's one token, or those of the head."""
    if "t" not in source.axes:
        return x
    if len(x) != 1:
        raise NotExact(f"{source} enters a program of one token, and the chunk has {len(x)}")
    return x.reshape(x.shape[1:])


def _padded(x: Array, size: int) -> Array:
    """Zeros in the rows beyond the end of the sequence."""
    zeros = np.full((size - len(x), *x.shape[1:]), 0, dtype=object)
    return np.concatenate([x, zeros])
