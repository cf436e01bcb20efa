"""What each form of an operator costs per token and head.

Operations are counted on the programs that the forms are printed from, what the chunkwise form keeps on its plan, and
pairs of tokens on the program. That the other forms keep a state, once or per token, is stated here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy

from recgen.algebra.derive import Derivation
from recgen.algebra.operations import Leaf, Mask, Rename
from recgen.algebra.program import Node, Program, topological
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.widths import changes_width, width
from recgen.plan.kernels import Plan
from recgen.spec.axes import widths_of
from recgen.spec.model import SIZES

from .count import ALL_LEVELS, LEVELS, C, Count, Sizes, T, count, operations
from .stored import by_backward, by_forward

D = sympy.Symbol("D", integer=True, positive=True)
WIDTH, LENGTH = 64, 4096
"""The sizes for which costs are given in numbers."""


@dataclass(frozen=True)
class Form:
    """One form. kept: numbers per token and head in memory beside inputs and outputs; meaning: what they are."""

    name: str
    count: Count
    kept: sympy.Expr
    meaning: str


@dataclass(frozen=True)
class Costs:
    """All forms. rows: numbers per token of inputs and output. features: the width M, where it is not K."""

    forms: tuple[Form, ...]
    state: sympy.Expr
    rows: sympy.Expr
    features: sympy.Expr | None
    chunk_size: int

    def number(self, expr: sympy.Expr) -> float:
        """The value at the sizes that are given in numbers."""
        if self.features is not None:
            expr = expr.xreplace({SIZES["M"]: self.features})
        expr = expr.xreplace({LEVELS: sympy.log(C, 2), ALL_LEVELS: sympy.log(T, 2)})
        sizes = {C: self.chunk_size, T: LENGTH, D: WIDTH} | dict.fromkeys(SIZES.values(), WIDTH)
        return float(expr.xreplace({s: sympy.Integer(n) for s, n in sizes.items()}))


def costs(derivation: Derivation, plan: Plan) -> Costs:
    """Operations and memory of each form."""
    return _Counter(derivation, plan).costs()


class _Counter:
    def __init__(self, derivation: Derivation, plan: Plan) -> None:
        self.rec, self.plan = derivation.recurrence, plan
        self.program, self.adjoint = plan.program, plan.adjoint
        self.vector = all("m" not in rule.axes for rule in self.rec.states)
        self.features = _features(self.rec)
        tokens = plan.factorisation == "scan"  # its program is that of one token
        self.rows = sympy.S.One if tokens else C
        self.width = {"m": SIZES["K"] if self.features is None else SIZES["M"], "v": D if self.vector else SIZES["V"]}
        self.sizes = Sizes(self.rec.tensors, self.width["m"], self.width["v"], self.rows)

    def costs(self) -> Costs:
        state = sympy.Add(*(self._numbers(rule.axes) for rule in self.rec.states))
        forms = self._of_totals(state) if self.program.total else self._of_states(state)
        return Costs(tuple(forms), state, self._in_and_out(), self.features, self.plan.chunk_size)

    def _of_states(self, state: sympy.Expr) -> Iterable[Form]:
        step, chunk, scans = self._step(), self._chunk(), self.plan.factorisation == "scan"
        every = "a state per token, which its gradient reads"
        yield Form("naive", step, state, every)
        if scans:
            yield Form("parallel", chunk, state, "a state per token")
            yield Form("chunk", chunk + self._alone(), *by_forward(self.plan, self.sizes))
        else:
            longest = self.plan.longest_chunk
            rows = sympy.Integer(longest) if longest else T
            pairs = self._pairs(self.program) * rows
            name = f"parallel ({longest} tokens at most)" if longest else "parallel"
            yield Form(name, chunk.at(rows), pairs, "all pairs of tokens")
            yield Form("chunk", chunk, *by_forward(self.plan, self.sizes))
        yield Form("chunk, gradient", self._gradient(), *by_backward(self.plan, self.sizes))
        yield Form("recurrent", step, state / T, "one state for all tokens")
        yield Form("step", step, state, "the state, for one token")

    def _of_totals(self, state: sympy.Expr) -> Iterable[Form]:
        assert self.plan.pairs is not None
        pairs = count(self.plan.pairs.nodes(), (), self.sizes).per(C).at(T)
        yield Form("naive", self._step(), state / T, "one sum for all tokens")
        yield Form("parallel", pairs, self._pairs(self.plan.pairs) * T, "all pairs of tokens")
        yield Form("chunk", self._chunk(), *by_forward(self.plan, self.sizes))
        yield Form("chunk, gradient", self._gradient(), *by_backward(self.plan, self.sizes))

    def _numbers(self, axes: Iterable[str]) -> sympy.Expr:
        return sympy.Mul(*(self.width[a] for a in axes))

    def _in_and_out(self) -> sympy.Expr:
        """Numbers of a token's inputs and its output."""
        leaves = [n for n in self.program.nodes() if isinstance(n.op, Leaf) and n.op.kind == "input"]
        tokens = (*leaves, *self.program.outputs.values())
        return sympy.expand(sympy.Add(*map(self.sizes.of, tokens)) / self.rows)

    def _chunk(self) -> Count:
        return count(self.program.nodes(), self.program.carries, self.sizes).per(self.rows)

    def _gradient(self) -> Count:
        """Everything that the gradients take, the values of the forward pass computed again."""
        needed = set(topological(self.adjoint.roots()))
        carries = [c for c in self.program.carries if {c.start, c.end} & needed]
        ends = [n for c in carries for n in c.hand_over]
        nodes = topological([*ends, *self.adjoint.roots()])
        return count(nodes, [*carries, *self.adjoint.carries], self.sizes).per(self.rows)

    def _alone(self) -> Count:
        """The run from an empty state that finds where each chunk ends."""
        nodes = topological([n for c in self.program.carries for n in c.hand_over])
        return count(nodes, self.program.carries, self.sizes)

    def _pairs(self, program: Program) -> int:
        """How many values of all pairs there are: what is masked or renamed is none of its own."""
        found = [n for n in program.nodes() if {"t", "i"} <= set(n.axes) and not isinstance(n.op, Mask | Rename)]
        return len([n for n in found if n.name])

    def _step(self) -> Count:
        """The token's own values, then the recurrence as it stands."""
        nodes = [n for n in self.program.nodes() if n.level == "token" and n not in self.program.outputs.values()]
        tokens = count((n for n in nodes if not _behind(n, self.program)), (), self.sizes).per(self.rows)
        axes = {q.symbol: q.axes for q in self.rec.quantities.values()} | {r.symbol: r.axes for r in self.rec.states}
        total = sympy.S.Zero
        for rule in self.rec.states:
            total += operations(rule.update, axes, self.width.__getitem__)
            for read in (rule.read, rule.own):
                summed = "m" in rule.axes and read != 0
                total += operations(read, axes, self.width.__getitem__) + (self._numbers(rule.axes) if summed else 0)
            axes[sympy.Symbol(rule.read_name, real=True)] = rule.axes.replace("m", "")
        total += operations(self.rec.output, axes, self.width.__getitem__)
        return tokens + Count(others=sympy.expand(total))


def _behind(node: Node, program: Program) -> bool:
    """Whether a token value follows from the state: it belongs to the read, which the recurrence counts."""
    return bool({c.start for c in program.carries} & set(topological([node])))


def _features(rec: Recurrence) -> sympy.Expr | None:
    """The width of the features in the other sizes, M where a parameter has it; None where it is that of the key."""
    widths = widths_of(rec.tensors)
    return next((width(q.expr, widths) for q in rec.quantities.values() if changes_width(q.expr)), None)
