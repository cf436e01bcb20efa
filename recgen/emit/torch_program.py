"""Program → torch text, batched over chunks.

Layouts: a chunk value is [batch, head, chunk, *axes], with the batch or chunk axis missing or 1 where it is constant;
a token value is [batch, time, head, *axes]; a head value is [head, *axes]. Axes stand in canonical order (t, i, m, v).
"""

from __future__ import annotations

from functools import singledispatchmethod

import sympy

from recgen.algebra.operations import (
    Accumulate,
    Add,
    Between,
    Cast,
    Concat,
    Contract,
    Count,
    EveryToken,
    Flatten,
    Largest,
    Leaf,
    Map,
    Mask,
    Op,
    Rectangle,
    Reduce,
    Rename,
    Rows,
    Segment,
    Slice,
    Swap,
    Unflatten,
    Unrows,
    Wave,
    placeholder,
)
from recgen.algebra.program import Node

from .naming import Names, atom, inside, is_constant, is_uniform, operand
from .python_expr import PythonPrinter
from .torch_expr import TorchPrinter

# How many rows of the sequence lie in a segment: `row` is a row's index in its chunk, `length` each chunk's rows.
COUNTS = {
    ("each", "chunk"): "(row < length[:, None]).to(row.dtype)",
    ("through", "chunk"): "torch.minimum(row + 1, length[:, None])",
    ("earlier", "chunk"): "torch.minimum(row, length[:, None])",
    ("later", "chunk"): "(length[:, None] - 1 - row).clamp(min=0)",
    ("total", "chunk"): "length",
    ("between", "chunk"): "(row[:, None] - row).clamp(min=0)",
    ("inside", "chunk"): "(row[:, None] - row - 1).clamp(min=0)",
    ("through", "level"): "(row % half + 1)",
    ("earlier", "level"): "(row % half)",
    ("later", "level"): "(half - 1 - row % half)",
}


class TorchText:
    """Prints the right-hand side of each statement; collects the helper functions that the text calls."""

    def __init__(self, names: Names, like: str) -> None:
        self.names = names
        self.like = like  # a tensor whose device and dtype new tensors take
        self.helpers: set[str] = set()

    def use(self, node: Node) -> str:
        """A node as an operand: its variable, or its expression."""
        if isinstance(node.op, Leaf):
            return node.op.name
        return self.names[node] if node in self.names else self.value(node)

    def value(self, node: Node) -> str:
        """The expression that computes a node."""
        return self._text(node.op, node)

    def aligned(self, node: Node, like: Node) -> str:
        """A node as an operand of an elementwise operation with the axes of `like`."""
        text = self.use(node)
        if is_scalar(node):
            return text
        hidden = "s" if like.level == "chunk" else "st"
        own, target = ([a for a in n.axes if a not in hidden] for n in (node, like))
        tail = "".join(", :" if a in own else ", None" for a in target)
        if node.level == "head" and like.level == "chunk":
            return f"{atom(text)}[:, None{tail}]"
        if is_position(node):
            return f"{text}[..., None{tail}]"
        return text if own == target else f"{atom(text)}[...{tail}]"

    @singledispatchmethod
    def _text(self, op: Op, node: Node) -> str:
        raise TypeError(f"no torch text for {type(op).__name__}")

    @_text.register
    def _(self, op: Map, node: Node) -> str:
        symbols = list(map(placeholder, range(len(node.args))))
        scalars = {placeholder(k) for k, a in enumerate(node.args) if is_scalar(a)}
        printer = TorchPrinter(
            {s: inside(op.expr, s, self.aligned(a, node)) for s, a in zip(symbols, node.args, strict=True)}, scalars
        )
        text = printer.text(op.expr)
        self.helpers |= printer.helpers
        return f"torch.full_like(h, {text})" if is_uniform(node) else text

    @_text.register
    def _(self, op: Add, node: Node) -> str:
        return " + ".join(self.aligned(a, node) for a in node.args)

    @_text.register
    def _(self, op: Rows, node: Node) -> str:
        return f"_rows({self.use(node.args[0])}, size)"

    @_text.register
    def _(self, op: Unrows, node: Node) -> str:
        return f"_unrows({self.use(node.args[0])}, T)"

    @_text.register
    def _(self, op: Rename, node: Node) -> str:
        return self.use(node.args[0])

    @_text.register
    def _(self, op: Count, node: Node) -> str:
        self.helpers.add("row" if op.kind in ("between", "inside") or op.block == "level" else "length")
        return COUNTS[op.kind, op.block]

    @_text.register
    def _(self, op: Segment, node: Node) -> str:
        self.helpers.add(f"_{op.kind}")
        axes = [a for a in node.args[0].axes if a != "s"]
        dim = axes.index("t") - len(axes)
        return f"_{op.kind}({self.use(node.args[0])}, {'half' if op.block == 'level' else 'size'}, dim={dim})"

    @_text.register
    def _(self, op: Between, node: Node) -> str:
        name = "_inside" if op.inside else "_between"
        self.helpers.add(name)
        return f"{name}({self.use(node.args[0])})"

    @_text.register
    def _(self, op: Rectangle, node: Node) -> str:
        name = "_around" if op.inside else "_rectangle"
        self.helpers.add(name)
        return f"{name}({self.use(node.args[0])})"

    @_text.register
    def _(self, op: Mask, node: Node) -> str:
        x, axes = self.use(node.args[0]), [a for a in node.args[0].axes if a != "s"]
        if op.kind == "siblings":
            return f"torch.where(siblings, {_expand(x, axes, ['t', 'i'])}, 0)"
        if axes == ["t", "i"]:
            return f"{atom(x)}.tril({'-1' if op.kind == 'strict' else ''})"
        self.helpers.add("row")
        relation = ">" if op.kind == "strict" else ">="
        return f"torch.where(row[:, None] {relation} row, {_expand(x, axes, ['t', 'i'])}, 0)"

    @_text.register
    def _(self, op: Contract, node: Node) -> str:
        if node.level != "chunk":
            return self._over_features(op, node)
        a, b = ([x for x in n.axes if x != "s"] for n in node.args)
        x, y = map(self.use, node.args)
        if len(a) == 2 and len(b) == 2:
            return _matmul(atom(x), a, atom(y), b, op.over)
        axes = [axis for axis in "timv" if axis in {*a, *b}]
        return f"({_expand(x, a, axes)} * {_expand(y, b, axes)}).sum({axes.index(op.over) - len(axes)})"

    @_text.register
    def _(self, op: Reduce, node: Node) -> str:
        axes = [a for a in node.args[0].axes if a != "s"]
        return f"{atom(self.use(node.args[0]))}.sum({axes.index(op.over) - len(axes)})"

    def _over_features(self, op: Contract, node: Node) -> str:
        """A contraction of token values: over their features, or over all tokens."""
        lead = {"token": "bth", "head": "h"} if op.over == "t" else {"token": "...h", "head": "h"}

        def letters(n: Node) -> str:
            return lead[n.level] + "".join(a for a in n.axes if a != "t")

        x, y = map(self.use, node.args)
        subscripts = f"{','.join(map(letters, node.args))}->{letters(node)}"
        return f'torch.einsum("{subscripts}", {x}, {y})'

    @_text.register
    def _(self, op: Largest, node: Node) -> str:
        axes = [a for a in node.args[0].axes if a != "s"]
        return f"{atom(self.use(node.args[0]))}.amax({axes.index(op.over) - len(axes)})"

    @_text.register
    def _(self, op: Concat, node: Node) -> str:
        like = next(atom(self.use(a)) for a, part in zip(node.args, op.parts, strict=True) if part)

        def column(arg: Node, part: str) -> str:
            if part:
                return self.use(arg)
            if is_constant(arg):
                assert isinstance(arg.op, Map)
                return f"torch.full_like({like}[..., :1], {float(arg.op.expr)})"
            return f"{atom(self.use(arg))}[..., None]"

        return f"torch.cat(({', '.join(map(column, node.args, op.parts))}), -1)"

    @_text.register
    def _(self, op: Slice, node: Node) -> str:
        x, start = atom(self.use(node.args[0])), _size(op.start)
        if not op.part:
            return f"{x}[..., {start}]"
        return f"{x}.narrow(-1, {start}, {_size(op.concat.widths[op.index])})"

    @_text.register
    def _(self, op: Swap, node: Node) -> str:
        self.helpers.add("_swap")
        return f"_swap({self.use(node.args[0])})"

    @_text.register
    def _(self, op: Cast, node: Node) -> str:
        x = atom(self.use(node.args[0]))
        return f"{x}.double()" if op.double else f"{x}.to({self.like}.dtype)"

    @_text.register
    def _(self, op: EveryToken, node: Node) -> str:
        x = atom(self.use(node.args[0]))
        return f"{x}.expand(*{self.like}.shape[:2], *{x}.shape)"

    @_text.register
    def _(self, op: Wave, node: Node) -> str:
        self.helpers.add("_wave")
        position, rate = map(self.use, node.args)
        position += f"[..., {', '.join(['None'] * len(node.axes))}]"  # before the axes of the head and of the pairs
        return f"_wave(torch.{op.kind}, {position}, {rate}, {self.like}.dtype)"

    @_text.register
    def _(self, op: Flatten, node: Node) -> str:
        return f"{atom(self.use(node.args[0]))}.flatten(-2)"

    @_text.register
    def _(self, op: Unflatten, node: Node) -> str:
        return f"{atom(self.use(node.args[0]))}.unflatten(-1, ({', '.join(map(_size, op.flatten.widths))}))"

    @_text.register
    def _(self, op: Accumulate, node: Node) -> str:
        arg = node.args[0]
        if arg.level == "token":
            return f"{atom(self.use(arg))}.sum((0, 1))"
        dims = (0, 2, 3) if "t" in arg.axes else (0, 2)
        return f"{atom(self.use(arg))}.sum({dims})"


def _size(expr: sympy.Expr) -> str:
    """A width as Python arithmetic on the sizes."""
    return PythonPrinter({s: s.name for s in expr.free_symbols}).text(expr)


def is_position(node: Node) -> bool:
    """Whether the node is the position of each token, which is the same for all heads and has no axis for them."""
    return isinstance(node.op, Leaf) and node.op.kind == "position"


def is_scalar(node: Node) -> bool:
    """Whether the node is a plain number at run time: the scale, or a size."""
    return isinstance(node.op, Leaf) and node.op.kind == "scalar"


def _matmul(x: str, a: list[str], y: str, b: list[str], over: str) -> str:
    """x @ y with the result's axes in canonical order."""
    out = [axis for axis in "timv" if axis in {*a, *b} and axis != over]
    if out[0] in b:
        x, a, y, b = y, b, x, a
    left = x if a.index(over) == 1 else f"{x}.mT"
    right = y if b.index(over) == 0 else f"{y}.mT"
    return f"{left} @ {right}"


def _expand(text: str, own: list[str], axes: list[str]) -> str:
    if own == axes:
        return operand(text)
    return f"{atom(text)}[..., {', '.join(':' if a in own else 'None' for a in axes)}]"
