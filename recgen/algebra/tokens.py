"""The token stage of a program, to many decimals: what enters the chunks, and what becomes of their results.

Inputs and parameters are drawn at random. Feature maps and gates are computed from them and enter a chunk as atoms.
Gradients come back from the chunks as exact elements; the token stage of an adjoint is linear in them, and keeps the
factor of each element apart, so that nothing exact is rounded.

Values are numpy arrays of objects whose dimensions are the node's axes, in their order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
import sympy

from recgen.algebra import precise
from recgen.algebra.exact import Domain, NotExact, Sum, known
from recgen.algebra.operations import (
    Accumulate,
    Cast,
    Concat,
    Contract,
    EveryToken,
    Flatten,
    Largest,
    Leaf,
    Map,
    Reduce,
    Rename,
    Slice,
    Swap,
    Unflatten,
    Unrow,
    Unrows,
    Wave,
    placeholder,
)
from recgen.algebra.program import Node
from recgen.algebra.wide_values import wide_value

Array = np.ndarray
Index = tuple[int, ...]
HEAD = 2  # the head index at which everything is computed
BEFORE = 5  # how many tokens came before the first one
ONE = mpmath.mpf(1)
MANY = 32  # terms of a sum, from which on equal ones are put together


def filled(shape: Sequence[int], element: Callable[[Index], Any]) -> Array:
    """The array of objects with `element(index)` at each index."""
    array = np.empty(tuple(shape), dtype=object)
    for index in np.ndindex(array.shape):
        array[index] = element(index)
    return array


def spread(x: Array, axes: Sequence[str], target: Sequence[str]) -> Array:
    """The array with dimensions of size 1 for the axes it lacks."""
    sizes = dict(zip(axes, x.shape, strict=True))
    return x.reshape([sizes.get(a, 1) for a in target])


def elementwise(node: Node, args: Sequence[Array], element: Callable[[Sequence[Any]], Any]) -> Array:
    """`element` of the arguments' entries at each index of a node, arguments broadcast over the axes they lack."""
    grids = [spread(x, a.axes, node.axes) for x, a in zip(args, node.args, strict=True)]
    shape = np.broadcast_shapes(*(g.shape for g in grids))
    grids = [np.broadcast_to(g, shape) for g in grids]
    return filled(shape, lambda index: element([g[index] for g in grids]))


def total(x: Array, axes: Sequence[str], over: str) -> Array:
    """The sum over the named axes."""
    drop = tuple(k for k, a in enumerate(axes) if a in over)
    return np.asarray(np.sum(x, axis=drop) if drop else x, dtype=object)


@dataclass(frozen=True)
class Draw:
    """The random point: values of inputs, parameters, carried values and cotangents. `widths` are those of m and v,
    `sizes` those that may not be drawn, by name."""

    seed: int
    widths: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def leaf(self, op: Leaf, axes: Sequence[str], length: int) -> Array:
        """Values of a leaf. A token's value does not depend on how long the sequence is."""
        return filled([length if a == "t" else self.widths[a] for a in axes], lambda index: self._number(op, index))

    def _number(self, op: Leaf, index: Index) -> mpmath.mpf:
        draw = random.Random(f"{self.seed} {op.kind} {op.name} {index}")
        if op.kind == "index":
            return mpmath.mpf(HEAD)
        if op.kind == "position":
            return mpmath.mpf(BEFORE + index[0])
        if op.kind == "pair":
            return mpmath.mpf(index[0] // 2)
        if op.kind == "scalar" and op.name != "scale":
            return mpmath.mpf(self.sizes.get(op.name) or draw.randint(2, 9))
        with mpmath.workdps(precise.DIGITS):
            return mpmath.mpf(2 * draw.randrange(-15 * 10**29, 15 * 10**29) + 1) / 10**30


class AtZero(Draw):
    """The point where every input is 0: what no division survives unless the recurrence itself does."""

    def _number(self, op: Leaf, index: Index) -> mpmath.mpf:
        return mpmath.mpf(0) if op.kind == "input" else super()._number(op, index)


class Linear:
    """Σ factor · element: exact elements with factors that the token stage computed to many decimals."""

    __slots__ = ("terms",)

    def __init__(self, terms: list[tuple[Any, mpmath.mpf]]) -> None:
        self.terms = terms

    def __add__(self, other: Linear | int) -> Linear:
        terms = self.terms + (other.terms if isinstance(other, Linear) else [])
        return Linear(terms if len(terms) < MANY else _collected(terms))

    __radd__ = __add__

    def scaled(self, factor: mpmath.mpf) -> Linear:
        with mpmath.workdps(precise.DIGITS):
            return Linear([(element, factor * f) for element, f in self.terms])

    def exact(self, domain: Domain) -> Any:
        """The sum in the domain, the factor of each element an atom."""
        return sum(domain.atom(factor) * element for element, factor in _collected(self.terms))


def _collected(terms: list[tuple[Any, mpmath.mpf]]) -> list[tuple[Any, mpmath.mpf]]:
    """The terms with one factor for each element."""
    factors: dict[int, tuple[Any, mpmath.mpf]] = {}
    with mpmath.workdps(precise.DIGITS):
        for element, factor in terms:
            before = factors[id(element)][1] if id(element) in factors else 0
            factors[id(element)] = element, before + factor
    return list(factors.values())


class TokenStage:
    """The values of a program's token and head nodes at a point."""

    def __init__(self, nodes: Iterable[Node], draw: Draw, domain: Domain, length: int) -> None:
        self.domain = domain
        self.values: dict[Node, Array] = {}
        self._draw, self._length = draw, length
        self._late: dict[Node, None] = {}
        with mpmath.workdps(precise.DIGITS):
            self._start(nodes)

    def _start(self, nodes: Iterable[Node]) -> None:
        """Compute what does not depend on the chunks."""
        for node in nodes:
            if node.level == "chunk":
                continue
            over_time = isinstance(node.op, Contract) and node.op.over == "t"
            if over_time or isinstance(node.op, Unrow | Unrows | Accumulate) or any(a in self._late for a in node.args):
                self._late[node] = None
            else:
                self.values[node] = self._leaf(node) if isinstance(node.op, Leaf) else self._token_value(node)

    def _leaf(self, node: Node) -> Array:
        numbers = self._draw.leaf(node.leaf, node.axes, self._length)
        if node.leaf.kind != "cotangent":
            return numbers
        return filled(numbers.shape, lambda i: Linear([(self.domain.atom(numbers[i], _label(node, i)), ONE)]))

    def _elementwise(self, node: Node) -> Array:
        element = _map(node.op.expr) if isinstance(node.op, Map) else sum
        return elementwise(node, [self.values[a] for a in node.args], element)

    def atoms(self, node: Node, tokens: range, formal: bool) -> Array:
        """The values of a node at some tokens as atoms, or as log-decays when they are `formal`."""
        if node not in self.values:
            raise NotExact(f"{node} enters a chunk but depends on the chunks' results")
        source = self.values[node]
        first = [tokens.start if a == "t" else 0 for a in node.axes]
        shape = [len(tokens) if a == "t" else n for a, n in zip(node.axes, source.shape, strict=True)]

        def atom(index: Index) -> Any:
            index = tuple(map(sum, zip(index, first, strict=True)))
            x = source[index]
            if isinstance(x, Linear):
                return x.exact(self.domain)
            return Sum({known(x): 1}) if formal else self.domain.atom(x, _label(node, index))

        return filled(shape, atom)

    def finish(self, chunks: Sequence[Mapping[Node, Array]], rows: Sequence[int]) -> None:
        """Compute what depends on the results of the chunks, of which the first `rows` rows count in each."""
        with mpmath.workdps(precise.DIGITS):
            self._finish(chunks, rows)

    def _finish(self, chunks: Sequence[Mapping[Node, Array]], rows: Sequence[int]) -> None:
        for node in self._late:
            source = node.args[0]
            if source.level != "chunk":
                self.values[node] = self._token_value(node)
            elif isinstance(node.op, Accumulate):
                parts = [total(c[source], source.axes, "ti") for c in chunks]
                nothing = np.full([self._draw.widths[a] for a in node.axes], 0, dtype=object)
                self.values[node] = _linear(np.stack(parts).sum(axis=0) if parts else nothing)
            elif isinstance(node.op, Unrow):
                values = [c[source] for c in chunks]
                shape = [self._draw.widths[a] for a in source.axes]
                self.values[node] = _linear(np.stack(values) if values else np.empty((0, *shape), dtype=object))
            else:
                self.values[node] = _linear(_joined([c[source] for c in chunks], rows, source))

    def _token_value(self, node: Node) -> Array:
        """An elementwise value, a sum over features or channels, or the sum over all tokens; over none it is zero."""
        if isinstance(node.op, EveryToken):
            return (
                np.stack([self.values[node.args[0]]] * self._length)
                if self._length
                else np.empty((0, *(self._draw.widths[a] for a in node.axes if a != "t")), dtype=object)
            )
        if isinstance(node.op, Cast | Concat | Slice | Flatten | Unflatten | Rename | Largest | Contract | Swap | Wave):
            value = wide_value(node, [self.values[a] for a in node.args], self._draw.widths)
            return _or_nothing(value) if node.level == "head" and node in self._late else value
        if not isinstance(node.op, Accumulate | Reduce):
            return self._elementwise(node)
        source = node.args[0]
        over = "ti" if isinstance(node.op, Accumulate) else node.op.over
        sums = np.asarray(total(self.values[source], source.axes, over), dtype=object)
        if isinstance(node.op, Reduce):
            return sums
        return _or_nothing(sums)

    def exact(self, node: Node) -> Array:
        """The values of a result, in the domain."""
        source = self.values[node]
        return filled(source.shape, lambda index: source[index].exact(self.domain))


def _or_nothing(sums: Array) -> Array:
    """Sums over tokens, of which there may be none."""
    return filled(sums.shape, lambda i: sums[i] if isinstance(sums[i], Linear) else Linear([]))


def _joined(chunks: Sequence[Array], rows: Sequence[int], source: Node) -> Array:
    if source.axes[:1] != ("t",):
        raise NotExact(f"{source} has no rows to hand back")
    return np.concatenate([c[:n] for c, n in zip(chunks, rows, strict=True)])


def _linear(elements: Any) -> Array:
    elements = np.asarray(elements, dtype=object)
    return filled(elements.shape, lambda index: Linear([(elements[index], ONE)]))


def _map(expr: sympy.Expr) -> Callable[[Sequence[Any]], Any]:
    """The expression as a function of its arguments: numbers, of which one may be exact and enters linearly."""

    def element(args: Sequence[Any]) -> Any:
        at = dict(enumerate(args))
        exact = [k for k, x in at.items() if isinstance(x, Linear)]
        numbers = {placeholder(k): x for k, x in at.items() if k not in exact}
        if not exact:
            return precise.value(expr, numbers)
        return at[exact[0]].scaled(precise.value(_factor(expr, exact), numbers))

    return element


def _factor(expr: sympy.Expr, exact: Sequence[int]) -> sympy.Expr:
    symbol = placeholder(exact[0])
    factor = expr.diff(symbol)
    if len(exact) > 1 or factor.has(symbol) or expr.xreplace({symbol: sympy.S.Zero}) != 0:
        raise NotExact(f"the token stage is not linear in the chunks' results: {expr}")
    return factor


def _label(node: Node, index: Index) -> str:
    return node.name + (f"[{','.join(map(str, index))}]" if index else "")
