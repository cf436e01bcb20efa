"""What the kernels of the chunkwise form leave in memory for one another, as the plan of the default schedule says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy

from recgen.algebra.program import Node
from recgen.plan.kernels import Kernel, Plan
from recgen.spec.source import listing

from .count import C, Sizes, T

Numbers = tuple[sympy.Expr, str]  # per token and head, and what they are, by their names in the module


def by_forward(plan: Plan, sizes: Sizes) -> Numbers:
    """What the forward kernels need beside the inputs, or leave beside the output."""
    sums = () if plan.sums is None else (plan.sums,)
    return _Stored(plan, sizes).numbers((*_alone(plan)[:1], *sums, plan.forward))


def by_backward(plan: Plan, sizes: Sizes) -> Numbers:
    """The same of the backward kernels, with what the forward pass has kept for them."""
    return _Stored(plan, sizes).numbers((*_alone(plan), *plan.backward), kept=plan.forward)


def _alone(plan: Plan) -> Sequence[Kernel]:
    """The runs from nothing of every chunk; those of segments belong to another schedule."""
    return () if "split" in plan.schedules else plan.alone


class _Stored:
    def __init__(self, plan: Plan, sizes: Sizes) -> None:
        self.sizes = sizes
        self.span = C if plan.factorisation == "scan" else T  # over which a kernel sums what it stores once

    def numbers(self, kernels: Sequence[Kernel], kept: Kernel | None = None) -> Numbers:
        found = [*self._decays(kernels), *self._edges(kernels), *self._sums(kernels), *self._values(kernels, kept)]
        if not found:
            return sympy.S.Zero, "the state stays in registers"
        return sympy.expand(sympy.Add(*(size for size, _ in found))), "; ".join(what for _, what in found)

    def _decays(self, kernels: Sequence[Kernel]) -> Iterator[Numbers]:
        carries = [c for k in kernels if k.alone and not k.reverse for c in k.carries]
        if nodes := dict.fromkeys(c.decay for c in carries if c.decay is not None):
            yield sympy.Add(*map(self.sizes.of, nodes)) / C, "the log-decay of chunks"

    def _edges(self, kernels: Sequence[Kernel]) -> Iterator[Numbers]:
        """Carried values at the edges of chunks: where runs from nothing end, or what a kernel stores on its way."""
        nodes = dict.fromkeys(n for k in kernels for n in ([c.start for c in k.carries] if k.alone else k.stores_edges))
        if nodes:
            names = listing((n.leaf.name for n in nodes), "and")
            yield sympy.Add(*map(self.sizes.of, nodes)) / C, f"{names} at edges of chunks"

    def _sums(self, kernels: Sequence[Kernel]) -> Iterator[Numbers]:
        if nodes := [c.start for k in kernels for c in k.sums]:
            yield sympy.Add(*map(self.sizes.of, nodes)) / T, f"{listing((n.leaf.name for n in nodes), 'and')}, summed"

    def _values(self, kernels: Sequence[Kernel], kept: Kernel | None) -> Iterator[Numbers]:
        """What is computed before the launch, and what stores leave that are no outputs."""
        sizes = {n.name: self._per_token(n) for k in kernels for n in k.given}
        held = [s for s in kept.stores if s.kind == "kept"] if kept is not None else []
        for s in (*held, *(s for k in kernels for s in k.stores if s.kind != "output")):
            sizes[s.name] = self.sizes.of(s.node) / self.span if s.over_time else self._per_token(s.node)
        if sizes:
            yield sympy.Add(*sizes.values()), ", ".join(sizes)

    def _per_token(self, node: Node) -> sympy.Expr:
        return self.sizes.of(node) / self.sizes.fixed["t"]
