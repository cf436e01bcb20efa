"""The operations of a tensor program: what a node does to its arguments.

`Rows` carries a token value into the chunk, with zeros beyond the end of the sequence; `Unrows` carries it back. A
program of one token has no row axes: `Row` and `Unrow` take and hand back the token's own value. The axes are those of
`program`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import sympy


@dataclass(frozen=True)
class Op:
    """Base of the operations. Subclasses hold their attributes; the node holds arguments and axes."""


@dataclass(frozen=True)
class Leaf(Op):
    """A value from outside. kind: input, param, index (of the head), scalar, carry, cotangent, position (of the token,
    from 0), track (a maximum that others are relative to), pair (index of the pair that a feature belongs to), or kept
    (a value that an earlier kernel stored)."""

    name: str
    kind: str


@dataclass(frozen=True)
class Map(Op):
    """An elementwise expression in the placeholders a0, a1, … of its arguments, broadcast over the union of axes."""

    expr: sympy.Expr


@dataclass(frozen=True)
class Add(Op):
    """The sum of its arguments, broadcast over the union of axes."""


@dataclass(frozen=True)
class Rows(Op):
    """Token → chunk; rows beyond the end of the sequence are zero."""


@dataclass(frozen=True)
class Unrows(Op):
    """Chunk → token, the transpose of Rows."""


@dataclass(frozen=True)
class Row(Op):
    """Token → chunk of one token: the token's value, without a row axis. A head's value is the same at every token."""


@dataclass(frozen=True)
class Unrow(Op):
    """Chunk of one token → token, the transpose of Row."""


@dataclass(frozen=True)
class Rename(Op):
    """The same rows under the other row axis: t → i (columns) or i → t."""

    source: str
    target: str


@dataclass(frozen=True)
class Count(Op):
    """How many rows of the sequence lie in a segment. kind: each (j = t), through (j ≤ t), earlier (j < t), later
    (j > t), total, between (i < j ≤ t, so none where i ≥ t), or inside (i < j < t).

    block is "chunk", or "level" for the blocks of the tree's current level.
    """

    kind: str
    block: str


@dataclass(frozen=True)
class Segment(Op):
    """Sum over the rows of the same block strictly `earlier` or `later` than t. Each is the other's transpose."""

    kind: str
    block: str


@dataclass(frozen=True)
class Between(Op):
    """x[t] → Σ_{i<j≤t} x[j] on (t, i), or Σ_{i<j<t} if `inside`: zero on and above the diagonal. A masked sum, nothing
    is subtracted."""

    inside: bool = False


@dataclass(frozen=True)
class Rectangle(Op):
    """G[t,i] → Σ_{t≥j, i<j} G[t,i] on rows j, or t>j if `inside`: the transpose of Between."""

    inside: bool = False


@dataclass(frozen=True)
class Mask(Op):
    """Keep the pairs (t, i) of one relation; what varies along one of the two alone is the same for all of the other.

    kind: causal (i ≤ t), strict (i < t), or siblings: i in the lower and t in the upper half of one block of two halves
    of the tree's current level.
    """

    kind: str


@dataclass(frozen=True)
class Contract(Op):
    """Σ over one axis of the product of two operands that share only that axis: a matrix product."""

    over: str


@dataclass(frozen=True)
class Reduce(Op):
    """Σ over one axis."""

    over: str


@dataclass(frozen=True)
class Largest(Op):
    """The largest over one axis. Where several are, each has the whole slope: how they share it may not matter."""

    over: str


@dataclass(frozen=True)
class Concat(Op):
    """Vectors one after the other along a new axis; an argument without the axis in `parts` is one element."""

    parts: tuple[str, ...]
    widths: tuple[sympy.Expr, ...]
    target: str


@dataclass(frozen=True)
class Slice(Op):
    """The elements that one argument of a Concat has become, along its own axis: `part`, or "" for one element."""

    concat: Concat
    index: int

    @property
    def start(self) -> sympy.Expr:
        return sympy.Add(*self.concat.widths[: self.index])

    @property
    def part(self) -> str:
        return self.concat.parts[self.index]


@dataclass(frozen=True)
class Flatten(Op):
    """Two axes as one, the second one running fastest. `widths` are theirs."""

    source: tuple[str, str]
    widths: tuple[sympy.Expr, sympy.Expr]
    target: str


@dataclass(frozen=True)
class Unflatten(Op):
    """The transpose of Flatten."""

    flatten: Flatten


@dataclass(frozen=True)
class Swap(Op):
    """Pairs (a, b) of neighbours become (−b, a), a quarter turn; an element without a partner becomes 0."""

    axis: str


@dataclass(frozen=True)
class Wave(Op):
    """cos or sin of position · rate, with as many digits as the result can hold: arguments position, rate."""

    kind: str


@dataclass(frozen=True)
class Cast(Op):
    """The same value in float64 where `double`, else in the dtype that all values have. Each transposes the other."""

    double: bool


@dataclass(frozen=True)
class EveryToken(Op):
    """Head → token: the head's value at every token."""


@dataclass(frozen=True)
class Accumulate(Op):
    """Token or chunk → head: the sum over all rows of all chunks of all sequences."""


@cache
def placeholder(k: int) -> sympy.Symbol:
    """The symbol that stands for argument k in a Map."""
    return sympy.Symbol(f"a{k}", real=True)
