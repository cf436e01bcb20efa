"""What an operation means: its value over the rows and features of one chunk of one head, in an exact domain.

Values are numpy arrays of objects whose dimensions are the node's axes, in their order.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np

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
    Segment,
    placeholder,
)
from recgen.algebra.program import Node
from recgen.algebra.tokens import Array, filled, spread, total


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
    segments: dict[str, Callable[..., bool]] = {
        "each": lambda j, t, size: j == t,
        "through": lambda j, t, size: j <= t and j // size == t // size,
        "earlier": lambda j, t, size: j < t and j // size == t // size,
        "later": lambda j, t, size: j > t and j // size == t // size,
        "between": lambda j, t, i: i < j <= t,
        "inside": lambda j, t, i: i < j < t,
        "total": lambda j: True,
    }
    inside = segments[op.kind]
    sizes = chunk.levels if op.block == "level" else [chunk.size]
    shape = [{"s": len(sizes)}.get(a, chunk.size) for a in node.axes]

    def counted(index: tuple[int, ...]) -> int:
        at = dict(zip(node.axes, index, strict=True))
        if op.kind in ("each", "through", "earlier", "later"):
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
