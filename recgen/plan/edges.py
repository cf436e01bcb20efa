"""One stored state for two chunks: what the later one makes of the state S' at the start of the earlier one.

A kernel that walks back meets the state S at a chunk's start in sums with the state's gradient dS alone. The chunk
before handed on S = decay ⋆ S' + Σ_t a[t] b[t], so such a sum follows from the same sum with S' and from the rows of
that chunk:

    Σ dS ⊙ S = decay (Σ dS ⊙ S') + Σ_t a[t] (dS b[t])

This is one more product of a chunk's rows, in the place of a second state in registers. The earlier chunk's own sum is
that with S' again, once dS is the gradient at its end: the kernel takes it when it has handed dS on, and reads S' once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sympy

from recgen.algebra.graph import Graph
from recgen.algebra.operations import Add, Contract, Map, Reduce, placeholder
from recgen.algebra.program import Carry, Node, topological

from .kernels import Kernel

PRODUCT = sympy.Mul(placeholder(0), placeholder(1))


def sparse(
    g: Graph, kernels: Iterable[Kernel], states: Mapping[Node, Carry], kept: tuple[Node, ...]
) -> tuple[Kernel, ...]:
    """The kernels with fewer stored states, where every sum over one can be caught up with; else as they are.

    kept: the values that kernels may load instead of computing them.
    """
    kernels = tuple(kernels)
    found = [_caught_up(g, k, states) for k in kernels]
    if any(k.edges and not sums for k, sums in zip(kernels, found, strict=True)):
        return kernels
    return tuple(_with(k, sums, kept) for k, sums in zip(kernels, found, strict=True))


def _with(kernel: Kernel, sums: tuple[Carry, ...], kept: tuple[Node, ...]) -> Kernel:
    used = {*kernel.kept, *topological([n for c in sums for n in c.hand_over], set(kept))}
    loaded = tuple(n for n in kept if n in used)
    return replace(kernel, catch_up=sums, sparse=bool(kernel.edges or kernel.stores_edges), kept=loaded)


def _caught_up(g: Graph, kernel: Kernel, states: Mapping[Node, Carry]) -> tuple[Carry, ...]:
    """How every sum over a state at the edge follows from the same sum one chunk earlier. Nothing if one does not."""
    steps: dict[Node, Carry] = {}
    for n in kernel.nodes():
        step = _step(g, n, kernel, states)
        if step is not None:
            steps = {x: s for x, s in steps.items() if x not in topological([n])} | {n: step}
    rest = topological(kernel.roots(), {*kernel.kept, *steps})
    return () if set(kernel.edges) & set(rest) else tuple(steps.values())


def _step(g: Graph, n: Node, kernel: Kernel, states: Mapping[Node, Carry]) -> Carry | None:
    """How a sum over a state, or a sum of such, follows from the same one chunk earlier."""
    if isinstance(n.op, Add):
        terms = [t for t in (_step(g, a, kernel, states) for a in n.args) if t is not None]
        if len(terms) < len(n.args) or any(t.decay is not terms[0].decay for t in terms):
            return None
        return Carry(n.name, n, terms[0].decay, g.add(*(t.write for t in terms)))
    over: list[str] = []
    product = n
    while isinstance(product.op, Reduce):
        over.append(product.op.over)
        product = product.args[0]
    if not (over and isinstance(product.op, Map) and product.op.expr == PRODUCT):
        return None
    edge = next((a for a in product.args if a in kernel.edges), None)
    if edge is None or edge.axes != product.axes:
        return None
    (gradient,) = (a for a in product.args if a is not edge)
    state = states[edge]
    if state.decay is None or set(over) & set(state.decay.axes):
        return None
    rows = _of_rows(g, gradient, state.write, over, kernel.tile)
    return None if rows is None else Carry(n.name, n, state.decay, rows)


def _of_rows(g: Graph, gradient: Node, write: Node, over: list[str], tile: str) -> Node | None:
    """Σ over some axes of gradient ⊙ write, summed over those axes first and over the write's rows last."""
    if isinstance(write.op, Reduce) and write.op.over == "t":
        near, far = None, write.args[0]
    elif isinstance(write.op, Contract) and write.op.over == "t":
        near, far = sorted(write.args, key=lambda a: bool(set(over) - {tile} & set(a.axes)))
    else:
        return None
    inner = [a for a in over if a in far.axes and (near is None or a != tile)]
    if len(inner) != 1:
        return None
    x = g.contract(gradient, far, inner[0])
    x = x if near is None else g.mul(x, near)
    for a in over:
        x = g.reduce(x, a) if a != inner[0] else x
    return g.reduce(x, "t")
