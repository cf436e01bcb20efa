"""The recurrence itself, token by token, in an exact domain: what a program and its adjoint are compared with.

Everything here comes from the recurrence's own expressions. Nothing of a chunk program is used, and gradients come
from a tape over the unrolled loop: d exp(ℓ) = exp(ℓ) dℓ, d(1/x) = −dx/x², sums and products.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy

from recgen.algebra import precise
from recgen.algebra.calculus import derivative
from recgen.algebra.exact import Domain, Sum, evaluate, known
from recgen.algebra.operations import Leaf
from recgen.algebra.program import ordered
from recgen.algebra.recurrence import AXIS, Quantity, Recurrence, StateRule
from recgen.algebra.stabiliser import TRACKS
from recgen.algebra.tokens import Array, Draw, Index, filled
from recgen.algebra.wide_values import vector_value
from recgen.algebra.widths import POSITION, is_wide
from recgen.spec.model import PAIR


class Tracked:
    """An element of a domain that remembers what it was computed from: pairs (part, ∂self/∂part)."""

    __slots__ = ("value", "parts")

    def __init__(self, value: Any, parts: Iterable[tuple[Tracked, Any]] = ()) -> None:
        self.value = value
        self.parts = tuple(parts)

    def __add__(self, other: Any) -> Tracked:
        if not isinstance(other, Tracked):
            return Tracked(self.value + other, [(self, 1)])
        return Tracked(self.value + other.value, [(self, 1), (other, 1)])

    def __mul__(self, other: Any) -> Tracked:
        if not isinstance(other, Tracked):
            return Tracked(self.value * other, [(self, other)])
        return Tracked(self.value * other.value, [(self, other.value), (other, self.value)])

    __radd__, __rmul__ = __add__, __mul__


@dataclass(frozen=True)
class Taped:
    """A domain whose elements are tracked."""

    domain: Domain

    def atom(self, value: mpmath.mpf, label: str = "") -> Tracked:
        return Tracked(self.domain.atom(value, label))

    def log_decay(self, value: mpmath.mpf) -> Tracked:
        return Tracked(Sum({known(value): 1}))

    def constant(self, value: Fraction) -> Tracked:
        return Tracked(self.domain.constant(value))

    def exp(self, exponent: Tracked) -> Tracked:
        value = self.domain.exp(exponent.value)
        return Tracked(value, [(exponent, value)])

    def reciprocal(self, x: Tracked) -> Tracked:
        value = self.domain.reciprocal(x.value)
        return Tracked(value, [(x, -1 * value * value)])

    def function(self, node: sympy.Expr, args: Sequence[Tracked | int | Fraction]) -> Tracked:
        """A function without a formula: its slopes are the language's own derivatives."""
        plain = [x.value if isinstance(x, Tracked) else x for x in args]
        at = dict(zip(node.args, plain, strict=True))
        parts = [
            (x, evaluate(derivative(node, s), at, self.domain))
            for x, s in zip(args, node.args, strict=True)
            if isinstance(x, Tracked)
        ]
        return Tracked(self.domain.function(node, plain), parts)


def gradients(seeds: Iterable[tuple[Tracked, Any]]) -> dict[int, Any]:
    """Σ seed · ∂root/∂x for every x that the roots were computed from, by id(x)."""
    slopes: dict[int, Any] = {}
    order: dict[int, Tracked] = {}
    stack: list[tuple[Tracked, bool]] = []
    for root, seed in seeds:
        slopes[id(root)] = slopes.get(id(root), 0) + seed
        stack.append((root, False))
    while stack:
        node, complete = stack.pop()
        if complete:
            order[id(node)] = node
        elif id(node) not in order:
            stack.append((node, True))
            stack.extend((part, False) for part, _ in node.parts if id(part) not in order)
    for node in reversed(order.values()):
        for part, slope in node.parts:
            slopes[id(part)] = slopes.get(id(part), 0) + slopes.get(id(node), 0) * slope
    return slopes


def _by_size(at: dict[str, int]) -> dict[str, int]:
    """Indices of axes also under the names of their sizes, for tensors that a wide feature map uses as well."""
    return at | {size: at[axis] for size, axis in AXIS.items() if axis in at}


@dataclass
class Unrolled:
    """The recurrence over a sequence of some length, from drawn inputs and drawn initial states.

    outputs: o by (token, value). states: the final states, by name. inputs: the quantities' values, by name.
    Where the recurrence is not causal, every token reads the final states, which start from nothing and stay inside.
    """

    rec: Recurrence
    draw: Draw
    domain: Domain
    length: int
    outputs: Array = field(init=False)
    states: dict[str, Array] = field(init=False)
    initial: dict[str, Array] = field(init=False)
    quantities: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        tape = Taped(self.domain)
        self._leaves = {s: self._leaf(s) for q in self.rec.quantities.values() for s in q.expr.free_symbols - {PAIR}}
        self.quantities = {name: self._quantity(q, tape) for name, q in self.rec.quantities.items()}
        if self.rec.causal:
            self.initial = {rule.name: self._initial(rule, tape) for rule in self.rec.states}
            self.states = dict(self.initial)
            rows = [self._token(t, tape) for t in range(self.length)]
        else:
            self.initial, self.states = {}, {}
            rows = self._all_tokens(tape)
        self.outputs = filled((self.length, self.draw.widths["v"]), lambda index: rows[index[0]][index[1]])

    def _all_tokens(self, tape: Taped) -> list[list[Tracked]]:
        """Every token updates the states, from nothing; then every token reads what they have become."""
        widths = self.draw.widths
        found = {
            rule.name: filled([widths[a] for a in rule.axes], lambda _: tape.constant(Fraction(0)))
            for rule in self.rec.states
        }
        for t in range(self.length):
            for rule in self.rec.states:
                found[rule.name] = self._at_entries(rule.update, rule, t, found[rule.name], tape)
        rows = []
        for t in range(self.length):
            reads = {}
            for rule in self.rec.states:
                parts = self._at_entries(rule.read, rule, t, found[rule.name], tape)
                reads[sympy.Symbol(rule.read_name, real=True)] = parts.sum(axis=rule.axes.index("m"))
            rows.append(self._output(t, reads, tape))
        return rows

    def _at_entries(self, expr: sympy.Expr, rule: StateRule, t: int, state: Array, tape: Taped) -> Array:
        """An expression of a state's rule at a token and every entry of the state."""
        return filled(state.shape, lambda i: evaluate(expr, self._at(rule, t, i, state[i]), tape))

    def _token(self, t: int, tape: Taped) -> list[Tracked]:
        """One token: update every state, read it, put the reads together."""
        reads: dict[sympy.Symbol, Array] = {}
        for rule in self.rec.states:
            old, new = self.states[rule.name], np.empty_like(self.states[rule.name])
            parts = np.empty_like(new)
            entries: Iterable[Index] = np.ndindex(old.shape)
            for i in entries:
                new[i] = evaluate(rule.update, self._at(rule, t, i, old[i]), tape)
                state = old[i] if rule.before else new[i]
                parts[i] = evaluate(rule.read + rule.own, self._at(rule, t, i, state), tape)
            self.states[rule.name] = new
            summed = parts.sum(axis=rule.axes.index("m")) if "m" in rule.axes else parts
            reads[sympy.Symbol(rule.read_name, real=True)] = summed
        return self._output(t, reads, tape)

    def _output(self, t: int, reads: Mapping[sympy.Symbol, Array], tape: Taped) -> list[Tracked]:
        """The output of a token from what it has read."""
        return [
            evaluate(
                self.rec.output,
                self._quantities(t, {"v": v}) | {s: r[v] if np.ndim(r) else r for s, r in reads.items()},
                tape,
            )
            for v in range(self.draw.widths["v"])
        ]

    def _at(self, rule: StateRule, t: int, index: Index, state: Tracked) -> dict[sympy.Symbol, Tracked]:
        """What the symbols of a state's rule stand for at a token and an entry of the state."""
        at = dict(zip(rule.axes, index, strict=True))
        return {rule.symbol: state, **self._quantities(t, at)}

    def _quantities(self, t: int, at: Mapping[str, int]) -> dict[sympy.Symbol, Tracked]:
        """The quantities of a token at some indices of m and v: those that vary along no other axis."""
        return {
            q.symbol: self.quantities[name][(t, *(at[a] for a in q.axes))]
            for name, q in self.rec.quantities.items()
            if set(q.axes) <= set(at)
        }

    def _initial(self, rule: StateRule, tape: Taped) -> Array:
        numbers = self.draw.leaf(Leaf(rule.name, "carry"), rule.axes, 0)
        return filled(numbers.shape, lambda i: tape.atom(numbers[i], f"{rule.name}[{','.join(map(str, i))}]"))

    def _quantity(self, q: Quantity, tape: Taped) -> Array:
        shape = [self.length, *(self.draw.widths[a] for a in q.axes)]
        if is_wide(q.expr):
            rows = [vector_value(q.expr, self._vectors(q, t)) for t in range(self.length)]
            return filled(
                shape,
                lambda i: (
                    tape.log_decay(rows[i[0]][i[1]])
                    if q.decays
                    else tape.atom(rows[i[0]][i[1]], f"{q.name}[{','.join(map(str, i))}]")
                ),
            )

        def element(index: Index) -> Tracked:
            number = precise.value(q.expr, self._numbers(q, index))
            return (
                tape.log_decay(number)
                if q.decays or q.exponent
                else tape.atom(number, f"{q.name}[{','.join(map(str, index))}]")
            )

        return filled(shape, element)

    def _vectors(self, q: Quantity, t: int) -> dict[sympy.Symbol, Any]:
        """What the inputs and parameters of a quantity are at a token: numbers, vectors, matrices."""
        found = {}
        for s in q.expr.free_symbols - {PAIR}:
            values = self._leaves[s][t] if "t" in self._axes(s) else self._leaves[s]
            found[s] = values if np.ndim(values) else np.asarray(values, dtype=object)[()]
        return found

    def _numbers(self, q: Quantity, index: Index) -> dict[sympy.Symbol, mpmath.mpf]:
        """What the inputs and parameters of a quantity are at (token, its axes)."""
        at = _by_size(dict(zip(("t", *q.axes), index, strict=True)))
        return {s: self._leaves[s][tuple(at[a] for a in self._axes(s))] for s in q.expr.free_symbols}

    def _axes(self, symbol: sympy.Symbol) -> tuple[str, ...]:
        tensor = self.rec.tensors.get(symbol.name) if symbol.is_integer is None else None
        if symbol in TRACKS:
            return ("t", *self.rec.tracks[symbol.name])
        if tensor is None:
            return ("t",) if symbol == POSITION else ()
        inside = [a for a in tensor.axes if a in AXIS]
        if any(is_wide(q.expr) and symbol in q.expr.free_symbols for q in self.rec.quantities.values()):
            return ("t",) * ("T" in tensor.axes) + tuple(inside)  # named by their sizes: a matrix may be K by K
        return ordered(["t"] * ("T" in tensor.axes) + [AXIS[a] for a in inside])

    def _leaf(self, symbol: sympy.Symbol) -> Array:
        tensor = self.rec.tensors.get(symbol.name) if symbol.is_integer is None else None
        if symbol == POSITION:
            return self.draw.leaf(Leaf("position", "position"), ("t",), self.length)
        if symbol in TRACKS:
            return self.draw.leaf(Leaf(symbol.name, "track"), self._axes(symbol), self.length)
        if tensor is None:
            return self.draw.leaf(Leaf(symbol.name, "index" if symbol.name == "h" else "scalar"), (), self.length)
        return self.draw.leaf(
            Leaf(symbol.name, "input" if tensor.role == "input" else "param"), self._axes(symbol), self.length
        )

    def gradients(self, d_outputs: Array, d_states: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """The gradients of Σ d_o·o + Σ d_S·S_T with respect to every input and parameter, and to the initial states."""
        roots = [(self.outputs, d_outputs), *((self.states[name], d) for name, d in d_states.items())]
        slopes = gradients((x, d) for xs, ds in roots for x, d in zip(xs.flat, ds.flat, strict=True))

        def slopes_of(x: Array) -> Array:
            return filled(x.shape, lambda i: slopes.get(id(x[i]), 0))

        states = {name: slopes_of(x) for name, x in self.initial.items()}
        inputs = {
            s.name: self._leaf_gradient(s, slopes)
            for s in self._leaves
            if s.is_integer is None and s.name in self.rec.tensors
        }
        return inputs, states

    def _leaf_gradient(self, symbol: sympy.Symbol, slopes: Mapping[int, Any]) -> Array:
        """Σ over the quantities that use a leaf: ∂quantity/∂leaf, by numeric differentiation, times its gradient."""
        axes = self._axes(symbol)
        gradient = filled(self._leaves[symbol].shape, lambda _: 0)
        for name, q in self.rec.quantities.items():
            if symbol not in q.expr.free_symbols:
                continue
            if is_wide(q.expr):
                self._wide_gradient(symbol, q, gradient, slopes)
                continue
            for index in np.ndindex(self.quantities[name].shape):
                at = _by_size(dict(zip(("t", *q.axes), index, strict=True)))
                slope = precise.slope(q.expr, symbol, self._numbers(q, index))
                where = tuple(at[a] for a in axes)
                gradient[where] = gradient[where] + self.domain.atom(slope) * slopes.get(
                    id(self.quantities[name][index]), 0
                )
        return gradient

    def _wide_gradient(self, symbol: sympy.Symbol, q: Quantity, gradient: Array, slopes: Mapping[int, Any]) -> None:
        """Add the gradient of a leaf through a quantity of which every element depends on every element of the leaf."""
        moving = "t" in self._axes(symbol)
        for t in range(self.length):
            at = self._vectors(q, t)
            for index in np.ndindex(np.shape(at[symbol])):
                for m, slope in enumerate(self._slopes(q, at, symbol, index)):
                    where = (t, *index) if moving else index
                    gradient[where] = gradient[where] + self.domain.atom(slope) * slopes.get(
                        id(self.quantities[q.name][t, m]), 0
                    )

    @staticmethod
    def _slopes(q: Quantity, at: Mapping[sympy.Symbol, Any], symbol: sympy.Symbol, index: Index) -> Array:
        """∂quantity/∂leaf[index] for every element of the quantity, by a central difference."""

        def moved(step: mpmath.mpf) -> Array:
            x = np.array(at[symbol], dtype=object)
            x[index] = x[index] + step
            result: Array = vector_value(q.expr, {**at, symbol: x if x.ndim else x[()]})
            return result

        with mpmath.workdps(precise.DIGITS):
            step = mpmath.mpf(10) ** -45
            slopes: Array = (moved(step) - moved(-step)) / (2 * step)
            return slopes
