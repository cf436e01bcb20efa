"""The scan schedule: chunks of time run at once, the tokens of a chunk one after the other, the state in registers.

Forwards, every chunk first runs from nothing; what it decays and where it ends is handed over from chunk to chunk; then
it runs again from its right start and stores its outputs. Backwards it is the same with the state's gradient, in
reverse, and the second run finds the states of its tokens where it has put them just before.

A tile holds all features, so that only a sum over the values leaves a part per tile. Every gradient without values is
such a sum, and sums stay sums through the adjoint's token stage, which is linear.
"""

from __future__ import annotations

from collections.abc import Iterable

from recgen.algebra.program import Accumulate, Add, Carry, Node, Program, topological
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
    alone = (
        _run_from_nothing("_scan_ends", "where the chunks end that start from nothing, and their log-decay", states),
        _run_from_nothing("_scan_ends_backward", "the same of the state's gradient, backwards", gradients, states),
    )
    outputs = (Store("o", program.outputs["o"], "output"),)
    forward = Kernel("_scan_forward", "outputs of a chunk from the state at its start", TILE, False, states, outputs)
    stores, epilogue = _results(adjoint)
    backward = Kernel(
        "_scan_backward",
        "gradients of a chunk from the state at its start and the state's gradient at its end",
        TILE,
        True,
        gradients,
        stores,
        edges=_read_states(states, [*(s.node for s in stores), *_steps(gradients)]),
    )
    return alone, forward, (backward,), epilogue


def _run_from_nothing(name: str, purpose: str, carries: Carries, of: Carries = ()) -> Kernel:
    """The run of some carried values; of the gradients `of` carried values, backwards."""
    edges = _read_states(of, _steps(carries))
    return Kernel(name, purpose, TILE, bool(of), carries, (), edges=edges, stores_ends=False)


def _steps(carries: Carries) -> list[Node]:
    return [n for c in carries for n in (c.decay, c.write) if n is not None]


def _read_states(states: Carries, results: Iterable[Node]) -> tuple[Node, ...]:
    """The states before each token that a walk backwards needs: a normalizer's gradient depends on what was read."""
    needed = topological(results)
    return tuple(c.start for c in states if c.start in needed)


def _results(adjoint: Program) -> tuple[tuple[Store, ...], Epilogue]:
    """What the backward kernel stores: whole gradients, one part per tile, and sums over a chunk's tokens."""
    stores: list[Store] = []
    sums: dict[Node, tuple[Store, ...]] = {}
    late: dict[str, Node] = {}
    partial = partial_values(adjoint.outputs.values(), TILE, ())
    for name, out in adjoint.outputs.items():
        if out.level == "token" and out not in partial:
            stores.append(Store(name, out, "output"))
            continue
        late[name] = out
        for n in [out] if out.level == "token" else _sums_over_time(out):
            if n not in sums:
                if n not in partial and TILE not in n.axes:
                    raise PlanError(f"{n} is whole in every tile, and would be summed over them")
                sums[n] = (Store(f"{n.name or name}_{'tiles' if n.level == 'token' else 'chunks'}", n, "partial"),)
                stores.extend(sums[n])
    return tuple(stores), Epilogue(sums, late)


def _sums_over_time(out: Node) -> list[Node]:
    """The sums over all tokens that a parameter's gradient is made of; a sum of such sums is one."""

    def summed(n: Node) -> bool:
        return isinstance(n.op, Accumulate) or isinstance(n.op, Add) and all(map(summed, n.args))

    nodes = topological([out], {n for n in topological([out]) if summed(n)})
    inside = {a for n in nodes if summed(n) and isinstance(n.op, Add) for a in n.args}
    return [n for n in nodes if summed(n) and n not in inside]
