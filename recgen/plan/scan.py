"""The scan schedule: chunks of time run at once, the tokens of a chunk one after the other, the state in registers.

Forwards, every chunk first runs from nothing; what it decays and where it ends is handed over from chunk to chunk; then
it runs again from its right start and stores its outputs. Backwards it is the same with the state's gradient, in
reverse, and the second run finds the states of its tokens where it has put them just before.

A tile holds all features, so that only a sum over the values leaves a part per tile. Every gradient without values is
such a sum, and sums stay sums through the adjoint's token stage, which is linear.
"""

from __future__ import annotations

from collections.abc import Iterable

from recgen.algebra.features import is_elementwise
from recgen.algebra.operations import Accumulate, Add, Leaf, Map, Reduce, Row, Unrow
from recgen.algebra.program import Carry, Node, Program, topological
from recgen.algebra.scan import log_decay_of

from .check import PlanError
from .kernels import Epilogue, Kernel, Store
from .tiling import partial_values

TILE = "v"
Carries = tuple[Carry, ...]


def scan(program: Program, adjoint: Program) -> tuple[tuple[Kernel, ...], Kernel, tuple[Kernel, ...], Epilogue]:
    """The runs from nothing forwards and backwards, the forward kernel, the backward kernel, and the epilogue."""
    states, gradients = program.carries, adjoint.carries
    if len({(log_decay_of(c), c.axes) for c in states}) > 1:
        raise PlanError("the carried values have different axes or decays, and chunks are handed over in one way")
    given = _given(program, adjoint)

    def kernel(name: str, purpose: str, carries: Carries, stores: tuple[Store, ...] = ()) -> Kernel:
        """A kernel with what it reads: values that are given, and states before each token where it walks backwards."""
        results = [*(s.node for s in stores), *_steps(carries)]
        needed = topological(results, set(given))
        again = [c for c in states if carries is gradients and c.start in needed]
        used = topological([*results, *_steps(again)], set(given))
        kept, edges = tuple(n for n in given if n in used), tuple(c.start for c in again)
        ends = bool(stores)
        return Kernel(name, purpose, TILE, carries is gradients, carries, stores, kept, edges, (), ends, alone=not ends)

    stores, epilogue = _results(adjoint, given)
    alone = (
        kernel("_scan_ends", "where the chunks end that start from nothing, and their log-decay", states),
        kernel("_scan_ends_backward", "the same of the state's gradient, backwards", gradients),
    )
    outputs = (Store("o", program.outputs["o"], "output"),)
    forward = kernel("_scan_forward", "outputs of a chunk from the state at its start", states, outputs)
    purpose = "gradients of a chunk from the state at its start and the state's gradient at its end"
    return alone, forward, (kernel("_scan_backward", purpose, gradients, stores),), epilogue


def _steps(carries: Iterable[Carry]) -> list[Node]:
    return [n for c in carries for n in c.hand_over]


def _given(*programs: Program) -> tuple[Node, ...]:
    """The token values that no tile can compute, such as a feature map over the whole width."""
    rows = (n.args[0] for p in programs for n in p.nodes() if isinstance(n.op, Row) and n.args[0].level == "token")
    return tuple(dict.fromkeys(n for n in rows if not is_elementwise(n)))


def _results(adjoint: Program, given: tuple[Node, ...]) -> tuple[tuple[Store, ...], Epilogue]:
    """What the backward kernel stores: whole gradients, one part per tile, and sums over a chunk's tokens."""
    stores: list[Store] = []
    sums: dict[Node, tuple[Store, ...]] = {}
    late: dict[str, Node] = {}
    partial = partial_values(adjoint.outputs.values(), TILE, ())
    for name, out in adjoint.outputs.items():
        handed_back = _handed_back(out)
        in_tiles = _in_tiles(out, {*handed_back, *given})
        if out.level == "token" and out not in partial and in_tiles:
            stores.append(Store(name, out, "output"))
            continue
        late[name] = out
        for n in _summed(out) if in_tiles else handed_back:
            if n not in sums:
                if n not in partial and TILE not in n.axes:
                    raise PlanError(f"{n} is whole in every tile, and would be summed over them")
                called = n.name or (name if in_tiles else n.args[0].name)
                sums[n] = (Store(f"{called}_{'tiles' if n.level == 'token' else 'chunks'}", n, "partial"),)
                stores.extend(sums[n])
    return tuple(stores), Epilogue(sums, late)


def _handed_back(out: Node) -> list[Node]:
    """What a token's program hands to its gradients: values of the token, and sums over all tokens."""
    return [
        n
        for n in topological([out])
        if isinstance(n.op, Unrow) or isinstance(n.op, Accumulate) and n.args[0].level == "chunk"
    ]


def _in_tiles(out: Node, known: set[Node]) -> bool:
    """Whether a kernel can compute a gradient, or the sums over time that it is made of, from what it knows."""
    ends = [out] if out.level == "token" else _summed(out)
    return all(n in known or isinstance(n.op, Accumulate | Add | Leaf | Map | Reduce) for n in topological(ends, known))


def _summed(out: Node) -> list[Node]:
    """What tiles hold parts of: a token's gradient, or the sums over all tokens that a parameter's is made of; a sum of
    such sums is one."""
    if out.level == "token":
        return [out]

    def summed(n: Node) -> bool:
        return isinstance(n.op, Accumulate) or isinstance(n.op, Add) and all(map(summed, n.args))

    nodes = topological([out], {n for n in topological([out]) if summed(n)})
    inside = {a for n in nodes if summed(n) and isinstance(n.op, Add) for a in n.args}
    return [n for n in nodes if summed(n) and n not in inside]
