"""What a program means: each operation written out over the rows and features of one head, in an exact domain.

A program is run over a sequence cut into chunks, carried values handed from chunk to chunk; the adjoint runs over the
same chunks backwards. Where chunks read totals, what all of them write is summed before any of them is run. Values are
numpy arrays of objects whose dimensions are the node's axes, in their order.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np
import sympy

from recgen.algebra.exact import Arrays, Domain, NotExact, evaluate
from recgen.algebra.operations import (
    Add,
    Between,
    Contract,
    Count,
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
    placeholder,
)
from recgen.algebra.program import Carry, Node, Program, topological
from recgen.algebra.tokens import Array, Draw, TokenStage, filled, spread, total


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
class Chunk:
    """`size` rows, of which the first `len(tokens)` are tokens of the sequence."""

    size: int
    tokens: range
    domain: Domain

    @property
    def rows(self) -> int:
        return len(self.tokens)

    @cached_property
    def levels(self) -> list[int]:
        """The block sizes of the pair tree: 1, 2, 4, … up to half the chunk."""
        return [1 << level for level in range(self.size.bit_length() - 1)]


@dataclass(frozen=True)
class Run:
    """What a program gave: its outputs, the carried values that each chunk read, and those after the last.

    What is a total belongs to no place in the sequence: nothing is left after the last chunk.
    """

    outputs: Mapping[str, Array]
    starts: Mapping[str, Sequence[Array]]
    ends: Mapping[str, Array]


def run(program: Program, draw: Draw, domain: Domain, cut: Cut, carried: Mapping[str, Array],
        given: Mapping[str, Sequence[Array]] | None = None) -> Run:
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

    def computed(c: int, wanted: Sequence[Node], known: Mapping[Node, Array]) -> dict[Node, Array]:
        """The values of nodes in chunk c, given those of this program's carries."""
        first = sum(cut.rows[:c])
        chunk = Chunk(cut.size, range(first, first + cut.rows[c]), domain)
        leaves = dict(known)
        for node in wanted:
            if isinstance(node.op, Leaf) and node.op.kind == "carry" and node not in leaves:
                leaves[node] = _given(node, given or {})[c]
        return run_chunk(wanted, leaves, chunk, stage, formal)

    if program.total:
        writes = [computed(c, topological(carry.write for carry in program.carries), {}) for c in range(count)]
        state = {carry.name: _summed(carry, writes, draw) for carry in program.carries}
    for c in range(count) if given is None else reversed(range(count)):
        values[c] = computed(c, nodes, {carry.start: state[carry.name] for carry in program.carries})
        for name, value in state.items():
            starts[name][c] = value
        if not program.total:
            state = {carry.name: _handed_on(carry.start, carry.decay, carry.write, values[c])
                     for carry in program.carries}
    stage.finish(values, cut.rows)
    outputs = {name: stage.exact(node) for name, node in program.outputs.items()}
    return Run(outputs, starts, {} if program.total else state)


def _summed(carry: Carry, chunks: Sequence[Mapping[Node, Array]], draw: Draw) -> Array:
    """What all chunks write, from nothing."""
    nothing = np.full([draw.widths[a] for a in carry.axes], 0, dtype=object)
    return sum((spread(values[carry.write], carry.write.axes, carry.axes) for values in chunks), nothing)


def _given(node: Node, given: Mapping[str, Sequence[Array]]) -> Sequence[Array]:
    if node.op.name not in given:
        raise NotExact(f"nothing carries {node.op.name}")
    return given[node.op.name]


def _handed_on(start: Node, decay: Node | None, write: Node, values: Mapping[Node, Array]) -> Array:
    """decay · start + write."""
    kept = values[start] if decay is None else values[start] * spread(values[decay], decay.axes, start.axes)
    return kept + spread(values[write], write.axes, start.axes)


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


def run_chunk(nodes: Iterable[Node], leaves: Mapping[Node, Array], chunk: Chunk, stage: TokenStage,
              formal: frozenset[Node]) -> dict[Node, Array]:
    """The values of all nodes inside one chunk."""
    values = dict(leaves)
    for node in nodes:
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


@singledispatch
def meaning(op: Op, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    """The value of a node inside a chunk, given those of its arguments."""
    raise NotExact(f"{type(op).__name__} has no meaning inside a chunk")


@meaning.register
def _(op: Leaf, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    raise NotExact(f"{op.name} is used inside a chunk but does not come through Rows")


@meaning.register
def _(op: Map, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    at = {placeholder(k): x for k, x in enumerate(_grids(node, args))}
    return np.asarray(evaluate(op.expr, at, Arrays(chunk.domain)), dtype=object)


@meaning.register
def _(op: Add, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    return np.asarray(functools.reduce(operator.add, _grids(node, args)), dtype=object)


def _grids(node: Node, args: Sequence[Array]) -> list[Array]:
    return [spread(x, a.axes, node.axes) for x, a in zip(args, node.args, strict=True)]


@meaning.register
def _(op: Rename, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    return args[0]


@meaning.register
def _(op: Reduce, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    return total(args[0], node.args[0].axes, op.over)


@meaning.register
def _(op: Contract, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    """Σ over one axis of the product."""
    (x, y), (a, b) = args, node.args
    axes = [k for k in "stimv" if k in a.axes + b.axes]
    return total(spread(x, a.axes, axes) * spread(y, b.axes, axes), axes, op.over)


@meaning.register
def _(op: Count, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    """How many tokens lie in a segment: j ≤ t, j < t or j > t in the block of t, i < j ≤ t, i < j < t, or all."""
    inside = {
        "through": lambda j, t, size: j <= t and j // size == t // size,
        "earlier": lambda j, t, size: j < t and j // size == t // size,
        "later": lambda j, t, size: j > t and j // size == t // size,
        "between": lambda j, t, i: i < j <= t,
        "inside": lambda j, t, i: i < j < t,
        "total": lambda j: True,
    }[op.kind]
    sizes = chunk.levels if op.block == "level" else [chunk.size]
    shape = [{"s": len(sizes)}.get(a, chunk.size) for a in node.axes]

    def counted(index: tuple[int, ...]) -> int:
        at = dict(zip(node.axes, index, strict=True))
        if op.kind in ("through", "earlier", "later"):
            at["s"] = sizes[at.get("s", 0)]
        return sum(inside(j, *(at[a] for a in "tsi" if a in at)) for j in range(chunk.rows))

    return filled(shape, counted)


@meaning.register
def _(op: Segment, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    """Σ over the rows j < t (earlier) or j > t (later) of the block of t."""
    (x,), (source,) = args, node.args

    def rows(t: int, size: int) -> list[int]:
        block = range(t // size * size, t // size * size + size)
        return [j for j in block if (j < t if op.kind == "earlier" else j > t)]

    def summed(x: Array, size: int) -> Array:
        result = np.empty_like(x)
        for t in range(chunk.size):
            result[t] = x[rows(t, size)].sum(axis=0)
        return result

    if op.block == "chunk":
        return np.moveaxis(summed(np.moveaxis(x, k := source.axes.index("t"), 0), chunk.size), 0, k)
    by_level = x if "s" in source.axes else [x] * len(chunk.levels)
    parts = [summed(part, size) for part, size in zip(by_level, chunk.levels, strict=True)]
    return np.stack(parts) if parts else np.empty((0, *x.shape[-len(node.axes) + 1 :]), dtype=object)


@meaning.register
def _(op: Between, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    """Σ over the rows i < j ≤ t, or i < j < t."""
    (x,) = args
    return filled((chunk.size, chunk.size), lambda index: sum(x[index[1] + 1 : index[0] + (0 if op.inside else 1)]))


@meaning.register
def _(op: Rectangle, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    """Σ over the pairs i < j ≤ t, or i < j < t."""
    (x,) = args
    return filled((chunk.size,), lambda index: x[index[0] + (1 if op.inside else 0) :, : index[0]].sum())


@meaning.register
def _(op: Mask, node: Node, args: Sequence[Array], chunk: Chunk) -> Array:
    """Keep i ≤ t, i < t, or the pairs whose blocks are the lower and the upper half of one block twice as large."""
    (x,), (source,) = args, node.args
    rows = np.arange(chunk.size)
    t, i = rows[:, None], rows[None, :]
    if op.kind in ("causal", "strict"):
        return _kept(x, source.axes, i <= t if op.kind == "causal" else i < t, "ti", node.axes)
    keep = [(t // size % 2 == 1) & (i // size == t // size - 1) for size in chunk.levels]
    return _kept(x, source.axes, np.array(keep).reshape(-1, chunk.size, chunk.size), "sti", node.axes)


def _kept(x: Array, axes: Sequence[str], keep: Array, keep_axes: str, target: Sequence[str]) -> Array:
    return np.where(spread(keep, keep_axes, target), spread(x, axes, target), 0)
