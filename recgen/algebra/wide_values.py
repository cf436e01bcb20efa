"""What the wide operations of a feature map mean, on arrays of numbers or of exact elements with known factors.

Two readings that know nothing of each other: `wide_value` interprets the nodes of a program, `vector_value` the
expression that they were made from.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from recgen.algebra import precise
from recgen.algebra.operations import Cast, Concat, Contract, Flatten, Largest, Rename, Slice, Swap, Unflatten, Wave
from recgen.algebra.program import Node
from recgen.algebra.widths import PAIR, POSITION, Matmul, Outer, Rotate, Softmax, Total, Turn, Twice, Wide, outermost
from recgen.algebra.widths import Concat as Joined

Array = np.ndarray
Sizes = Mapping[str, int]


def size_of(expr: sympy.Expr, sizes: Sizes) -> int:
    """A width as a number; `sizes` are those of K, M, V."""
    return int(expr.subs({s: sizes[s.name] for s in expr.free_symbols}))


def wide_value(node: Node, args: Sequence[Array], sizes: Sizes) -> Array:
    """The value of a node from those of its arguments; dimensions are the nodes' axes, in their order."""
    op = node.op
    x = args[0]
    if isinstance(op, Cast | Rename):
        return x
    if isinstance(op, Swap):
        return _quarter_turn(np.moveaxis(x, node.axes.index(op.axis), -1), node, op.axis)
    if isinstance(op, Wave):
        wave = mpmath.cos if op.kind == "cos" else mpmath.sin
        phase = x.reshape([*x.shape, *[1] * args[1].ndim]) * args[1]
        waves: Array = np.frompyfunc(wave, 1, 1)(phase)
        return waves
    if isinstance(op, Largest):
        return np.asarray(np.max(x, axis=node.args[0].axes.index(op.over)), dtype=object)
    if isinstance(op, Contract):
        return _contracted(node, args)
    if isinstance(op, Concat):
        lead = [a for a in node.axes if a != op.target]
        triples = zip(args, node.args, op.parts, strict=True)
        parts = [_column(v, a.axes, lead, part, node, args) for v, a, part in triples]
        return np.moveaxis(np.concatenate(parts, axis=-1), -1, node.axes.index(op.target))
    if isinstance(op, Slice):
        axis = node.args[0].axes.index(op.concat.target)
        start = size_of(op.start, sizes)
        taken = np.take(x, range(start, start + size_of(op.concat.widths[op.index], sizes)), axis)
        return _moved(taken, axis, node, op.part) if op.part else taken.take(0, axis)
    if isinstance(op, Flatten):
        axes = [a for a in node.args[0].axes if a not in op.source]
        last = _as_last(x, node.args[0].axes, axes, op.source)
        flat = last.reshape(*last.shape[: len(axes)], last.shape[-2] * last.shape[-1])
        return np.moveaxis(flat, -1, node.axes.index(op.target))
    assert isinstance(op, Unflatten)
    axis = node.args[0].axes.index(op.flatten.target)
    last = np.moveaxis(x, axis, -1)
    wide = last.reshape(*last.shape[:-1], *(size_of(w, sizes) for w in op.flatten.widths))
    order = [a for a in node.args[0].axes if a != op.flatten.target] + list(op.flatten.source)
    return wide.transpose([order.index(a) for a in node.axes])


def _as_last(x: Array, own: Sequence[str], lead: Sequence[str], last: Sequence[str]) -> Array:
    return x.transpose([own.index(a) for a in (*lead, *last)])


def _moved(x: Array, axis: int, node: Node, letter: str) -> Array:
    return np.moveaxis(x, axis, node.axes.index(letter))


def _quarter_turn(x: Array, node: Node, axis: str) -> Array:
    out = np.empty_like(x)
    for m in range(x.shape[-1]):
        partner = m + 1 if m % 2 == 0 else m - 1
        for i in np.ndindex(x.shape[:-1]):
            value = x[(*i, partner)] if partner < x.shape[-1] else None
            out[(*i, m)] = _scaled(x[(*i, m)], 0) if value is None else _scaled(value, -1 if m % 2 == 0 else 1)
    return np.moveaxis(out, -1, node.axes.index(axis))


def _scaled(x: Any, factor: int) -> Any:
    return x.scaled(mpmath.mpf(factor)) if hasattr(x, "scaled") else x * factor


def _column(x: Array, own: Sequence[str], lead: Sequence[str], part: str, node: Node, args: Sequence[Array]) -> Array:
    """An argument of a Concat with its elements last, broadcast over the leading axes it lacks."""
    x = np.moveaxis(x, own.index(part), -1) if part else x[..., None]
    rest = [a for a in own if a != part]
    shape = [x.shape[rest.index(a)] if a in rest else _extent(a, node, args) for a in lead]
    return np.broadcast_to(
        x.reshape([x.shape[rest.index(a)] if a in rest else 1 for a in lead] + [x.shape[-1]]), [*shape, x.shape[-1]]
    )


def _extent(axis: str, node: Node, args: Sequence[Array]) -> int:
    return next(int(v.shape[a.axes.index(axis)]) for v, a in zip(args, node.args, strict=True) if axis in a.axes)


def _contracted(node: Node, args: Sequence[Array]) -> Array:
    """Σ over one axis of the product."""
    assert isinstance(node.op, Contract)
    over = node.op.over
    axes = list(dict.fromkeys([a for n in node.args for a in n.axes if a != over])) + [over]
    grids = []
    for x, n in zip(args, node.args, strict=True):
        own = [a for a in axes if a in n.axes]
        moved = x.transpose([n.axes.index(a) for a in own])
        grids.append(moved.reshape([moved.shape[own.index(a)] if a in own else 1 for a in axes]))
    product = _times(*np.broadcast_arrays(*grids))
    total = np.asarray(np.sum(product, axis=-1), dtype=object)
    rest = axes[:-1]
    return total.transpose([rest.index(a) for a in node.axes])


def _times(a: Array, b: Array) -> Array:
    """Products of numbers, or of numbers and of exact elements with factors, which know `scaled`."""
    out = np.empty(a.shape, dtype=object)
    for i in np.ndindex(a.shape):
        x, y = a[i], b[i]
        if hasattr(x, "scaled") or hasattr(y, "scaled"):
            exact, number = (x, y) if hasattr(x, "scaled") else (y, x)
            out[i] = exact.scaled(number)
        else:
            with mpmath.workdps(precise.DIGITS):
                out[i] = x * y
    return out


def vector_value(expr: sympy.Expr, at: Mapping[sympy.Symbol, Any]) -> Any:
    """The value of an expression with wide functions: a number, or a 1-dimensional array along its width.

    at: numbers, vectors (1-dimensional arrays) and matrices by symbol.
    """
    with mpmath.workdps(precise.DIGITS):
        return _vector(expr, at)


def _vector(expr: sympy.Expr, at: Mapping[sympy.Symbol, Any]) -> Any:
    if isinstance(expr, sympy.Symbol):
        return at[expr]
    if not expr.args:
        return precise.value(expr, {})
    if isinstance(expr, Matmul):
        matrix, x = at[expr.args[0]], _vector(expr.args[1], at)
        over = 0 if matrix.shape[0] == len(x) else 1
        return np.array(
            [functools.reduce(operator.add, row * x) for row in (matrix.T if over == 0 else matrix)], dtype=object
        )
    if isinstance(expr, Rotate):
        return _turned(_vector(expr.args[0], at), expr.args[1], at)
    args = [_vector(a, at) for a in expr.args] if isinstance(expr, Wide) else []
    if isinstance(expr, Twice):
        return np.concatenate([args[0], args[0]])
    if isinstance(expr, Turn):
        turned = args[0] * np.frompyfunc(mpmath.expj, 1, 1)(args[1] * args[2])
        return np.array([x.real for x in turned] + [x.imag for x in turned], dtype=object)
    if isinstance(expr, Total):
        return functools.reduce(operator.add, args[0])
    if isinstance(expr, Softmax):
        powers = np.array([mpmath.exp(precise.limited(x)) for x in args[0]], dtype=object)
        return powers / functools.reduce(operator.add, powers)
    if isinstance(expr, Joined):
        return np.concatenate([np.atleast_1d(np.asarray(a, dtype=object)) for a in args])
    if isinstance(expr, Outer):
        return np.outer(args[0], args[1]).ravel()
    assert not isinstance(expr, Wide), expr
    return _elementwise(expr, at)


def _elementwise(expr: sympy.Expr, at: Mapping[sympy.Symbol, Any]) -> Any:
    """Element by element, as `precise` reads one; what is the same for every element is taken as it is."""
    wide = {e: sympy.Dummy(real=True) for e in outermost(expr)}
    rest = expr.xreplace(wide)
    values = {s: _vector(e, at) for e, s in wide.items()}
    values |= {s: at[s] for s in rest.free_symbols if s not in values}
    vectors = [s for s, x in values.items() if np.ndim(x)]
    if not vectors:
        return precise.value(rest, values)
    size = max(len(values[s]) for s in vectors)
    return np.array(
        [precise.value(rest, values | {s: values[s][k] for s in vectors}) for k in range(size)], dtype=object
    )


def _turned(x: Array, rate: sympy.Expr, at: Mapping[sympy.Symbol, Any]) -> Array:
    """Each pair as a complex number, times e^{i position rate}; an element without a partner is a real part alone."""
    out = np.array(x, dtype=object)
    for i in range(0, len(x), 2):
        angle = at[POSITION] * precise.value(rate, {**at, PAIR: mpmath.mpf(i // 2)})
        partner = x[i + 1] if i + 1 < len(x) else mpmath.mpf(0)
        turned = mpmath.mpc(x[i], partner) * mpmath.expj(angle)
        out[i] = turned.real
        if i + 1 < len(x):
            out[i + 1] = turned.imag
    return out
