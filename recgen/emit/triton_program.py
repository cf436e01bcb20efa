"""Program → Triton text, one tile per program.

A value with axes is a tile: t and i have CHUNK rows, m has BM features, v has BV channels. Row counts, masks and
addresses use
the names that the kernel template defines: `row`, `time`, `rows_here`, `valid`, `feature`, `channel`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatchmethod

import sympy

from recgen.algebra.calculus import is_zero_at_zero
from recgen.algebra.operations import (
    Accumulate,
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
    Unrow,
    Unrows,
    placeholder,
)
from recgen.algebra.program import Node

from .naming import Names, atom, operand
from .naming import inside as beside
from .triton_expr import TritonPrinter

EXTENT = {"t": "CHUNK", "i": "CHUNK", "m": "BM", "v": "BV"}
COLUMN = {"m": "feature", "v": "channel"}
COUNTS = {
    ("each", "chunk"): "valid.to(tl.float32)",
    ("through", "chunk"): "tl.minimum(row + 1, rows_here).to(tl.float32)",
    ("earlier", "chunk"): "tl.minimum(row, rows_here).to(tl.float32)",
    ("later", "chunk"): "tl.maximum(rows_here - 1 - row, 0).to(tl.float32)",
    ("total", "chunk"): "rows_here.to(tl.float32)",
    ("between", "chunk"): "tl.maximum(row[:, None] - row[None, :], 0).to(tl.float32)",
    ("inside", "chunk"): "tl.maximum(row[:, None] - row[None, :] - 1, 0).to(tl.float32)",
    ("earlier", "level"): "(row % 2**level).to(tl.float32)",
    ("through", "level"): "(row % 2**level + 1).to(tl.float32)",
    ("later", "level"): "(2**level - 1 - row % 2**level).to(tl.float32)",
}


def tile_axes(node: Node, hidden: str = "s") -> list[str]:
    """The axes of a node's tile; the tree's levels are a loop, and so is time where there are no chunks."""
    return [a for a in node.axes if a not in hidden]


def broadcast(text: str, own: list[str], axes: list[str]) -> str:
    """A tile as an operand of a tile with more axes."""
    if own == axes or not own:
        return text
    return f"{atom(text)}[{', '.join(':' if a in own else 'None' for a in axes)}]"


class TritonText:
    """Prints the right-hand side of each statement; collects the helper functions that the text calls."""

    def __init__(self, names: Names, hidden: str = "s") -> None:
        self.names = names
        self.hidden = hidden
        self.helpers: set[str] = set()
        self.summed: dict[Node, str] = {}  # sums that a loop has accumulated as a whole

    def use(self, node: Node) -> str:
        """A node as an operand: its variable, or its expression."""
        return self.names[node] if node in self.names else self.value(node)

    def value(self, node: Node) -> str:
        """The expression that computes a node."""
        return self.summed[node] if node in self.summed else self._text(node.op, node)

    def _aligned(self, node: Node, like: Node) -> str:
        return broadcast(self.use(node), tile_axes(node, self.hidden), tile_axes(like, self.hidden))

    @singledispatchmethod
    def _text(self, op: Op, node: Node) -> str:
        raise TypeError(f"no Triton text for {type(op).__name__}")

    @_text.register
    def _(self, op: Map, node: Node) -> str:
        symbols = map(placeholder, range(len(node.args)))
        texts = {s: beside(op.expr, s, self._aligned(a, node)) for s, a in zip(symbols, node.args, strict=True)}
        printer = TritonPrinter(texts)
        text = printer.text(op.expr)
        self.helpers |= printer.helpers
        return text

    @_text.register
    def _(self, op: Add, node: Node) -> str:
        return self.sum(node.args, node)

    def sum(self, terms: Iterable[Node], like: Node) -> str:
        """The sum of terms. A row and the rows of its block before or after it are one sum, which includes the row."""
        terms = list(terms)
        beside = {a.args[0]: a for a in terms if self._joins(a, terms)}
        texts = [
            self._inclusive(beside[a]) if a in beside else self._aligned(a, like)
            for a in terms
            if a not in beside.values()
        ]
        return " + ".join(texts)

    def _joins(self, node: Node, terms: list[Node]) -> bool:
        rows = isinstance(node.op, Segment) and len(tile_axes(node, self.hidden)) == 2
        return rows and node not in self.names and node.args[0] in terms

    def _inclusive(self, node: Node) -> str:
        assert isinstance(node.op, Segment)
        name = {"earlier": "_tile_through", "later": "_tile_onward"}[node.op.kind]
        self.helpers.add(name)
        size = "2**level" if node.op.block == "level" else "CHUNK"
        return f"{name}({self.use(node.args[0])}, {size}, CHUNK, {EXTENT[tile_axes(node, self.hidden)[1]]})"

    @_text.register
    def _(self, op: Rows, node: Node) -> str:
        """Loads are zero beyond the end; only a value that is not zero at zero inputs has to be cut off again."""
        return self.padded(node.args[0])

    def padded(self, node: Node) -> str:
        """A token value, zero outside of what exists."""
        text = self.use(node)
        axes = tile_axes(node, self.hidden)
        return text if zero_when_padded(node) or not axes else f"tl.where({inside(axes)}, {text}, 0.0)"

    @_text.register
    def _(self, op: Unrows, node: Node) -> str:
        return self.use(node.args[0])

    @_text.register
    def _(self, op: Row, node: Node) -> str:
        return self.use(node.args[0])

    @_text.register
    def _(self, op: Unrow, node: Node) -> str:
        return self.use(node.args[0])

    @_text.register
    def _(self, op: Rename, node: Node) -> str:
        return self.use(node.args[0])

    @_text.register
    def _(self, op: Count, node: Node) -> str:
        return COUNTS[op.kind, op.block]

    @_text.register
    def _(self, op: Segment, node: Node) -> str:
        x, size = self.use(node.args[0]), "2**level" if op.block == "level" else "CHUNK"
        if tile_axes(node) == ["t"] and op.block == "chunk":
            self.helpers.add(f"_tile_{op.kind}_rows")
            return f"_tile_{op.kind}_rows({x}, time)"
        self.helpers.add(f"_tile_{op.kind}")
        return f"_tile_{op.kind}({x}, row, {size}, CHUNK, {EXTENT[tile_axes(node)[1]]})"

    @_text.register
    def _(self, op: Between, node: Node) -> str:
        name = "_tile_inside" if op.inside else "_tile_between"
        self.helpers.add(name)
        return f"{name}({self.use(node.args[0])}, {'row' if op.inside else 'time'})"

    @_text.register
    def _(self, op: Rectangle, node: Node) -> str:
        name = "_tile_around" if op.inside else "_tile_rectangle"
        self.helpers.add(name)
        return f"{name}({self.use(node.args[0])}, {'row' if op.inside else 'time'})"

    @_text.register
    def _(self, op: Mask, node: Node) -> str:
        relation = {"causal": ">=", "strict": ">"}
        keep = "siblings" if op.kind == "siblings" else f"time[:, None] {relation[op.kind]} time[None, :]"
        x = broadcast(self.use(node.args[0]), tile_axes(node.args[0], self.hidden), ["t", "i"])
        return f"tl.where({keep}, {x}, 0.0)"

    @_text.register
    def _(self, op: Contract, node: Node) -> str:
        a, b = (tile_axes(n, self.hidden) for n in node.args)
        x, y = map(self.use, node.args)
        if len(a) == 2 and len(b) == 2:
            return self._dot(x, a, y, b, op.over)
        product, axes = self._product(node)
        return f"tl.sum({product}, {axes.index(op.over)})"

    def _dot(self, x: str, a: list[str], y: str, b: list[str], over: str) -> str:
        """A matrix product with the result's axes in canonical order, so that at most one operand is transposed.

        It is the narrow tile that is transposed, and not the one in float32: that one Triton transposes in registers.
        """
        out = [axis for axis in "timv" if axis in {*a, *b} and axis != over]
        if out[0] in b:
            x, a, y, b = y, b, x, a
        name = {(1, 0): "_dot", (1, 1): "_dot_nt", (0, 0): "_dot_tn"}[a.index(over), b.index(over)]
        self.helpers.add(name)
        return f"{name}({x}, {y}, DOT, PRECISION)"

    def _product(self, node: Node) -> tuple[str, list[str]]:
        """What a contraction that is no matrix product sums, and its axes."""
        a, b = (tile_axes(n, self.hidden) for n in node.args)
        x, y = map(self.use, node.args)
        axes = [axis for axis in "timv" if axis in {*a, *b}]
        return f"{operand(broadcast(x, a, axes))} * {operand(broadcast(y, b, axes))}", axes

    @_text.register
    def _(self, op: Reduce, node: Node) -> str:
        whole = self._whole(node.args[0])
        if whole:
            return f"tl.sum({whole})"
        (x,) = node.args
        text = self.padded(x) if x.level == "token" else self.use(x)
        return f"tl.sum({text}, {tile_axes(x, self.hidden).index(op.over)})"

    def _whole(self, node: Node) -> str:
        """The tile that is summed to this row or column on the way to one number, or nothing.

        One sum over all of it says the same, and Triton 3.6 does not compile the sum of a sum of what comes out of a
        matrix product for sm_100.
        """
        if node in self.names or len(tile_axes(node, self.hidden)) != 1:
            return ""
        if isinstance(node.op, Contract):
            return self._product(node)[0]
        return self.use(node.args[0]) if isinstance(node.op, Reduce) else ""

    @_text.register
    def _(self, op: Accumulate, node: Node) -> str:
        arg = node.args[0]
        axes = tile_axes(arg, self.hidden)
        text = self.use(arg)
        if arg.level == "token" and axes:
            text = f"tl.where({inside(axes)}, {text}, 0.0)"
        if "t" not in axes:
            return text
        whole = self._whole(arg) if arg.level == "chunk" else ""
        return f"tl.sum({whole})" if whole else f"tl.sum({text}, {axes.index('t')})"


def zero_when_padded(node: Node) -> bool:
    """Whether a token value is zero beyond the end of each of its axes, where what is loaded along that axis is zero.

    What lacks the axis is not: beyond the last feature a number per token is still that token's.
    """
    return node.level == "token" and all(_zero_beyond(node, axis) for axis in tile_axes(node))


def _zero_beyond(node: Node, axis: str) -> bool:
    if axis not in node.axes:
        return False
    if not isinstance(node.op, Map):
        return isinstance(node.op, Leaf)
    tracks = [a for a in node.args if isinstance(a.op, Leaf) and a.op.kind == "track"]
    if tracks and node.op.expr.has(sympy.exp):
        return False  # 0 times the exponential of what lacks its maximum, and so may be infinite
    symbols = [placeholder(k) for k, a in enumerate(node.args) if _zero_beyond(a, axis)]
    return bool(symbols) and is_zero_at_zero(node.op.expr, symbols)


def inside(axes: list[str]) -> str:
    """The mask of the elements of a tile that exist."""
    parts = {"t": "valid", "m": "feature_valid", "v": "channel_valid"}
    if len(axes) == 1:
        return parts[axes[0]]
    return " & ".join(f"{parts[a]}[{', '.join(':' if a == b else 'None' for b in axes)}]" for a in axes)
