"""The split schedule: segments of time at once, each from the state at its start.

Its kernels are those of the fused schedule, on segments instead of whole sequences. What they start from is found in
two steps. First every segment runs from nothing; a chunk's hand-over is affine, so

    state at a segment's end = e^{sum of ℓ over the segment} · state at its start + what it leaves from nothing

and the states at the starts follow from one segment to the next, with few numbers to move. The state's gradient is
found in the same way, backwards.
"""

from __future__ import annotations

from dataclasses import replace

from recgen.algebra.program import Carry, Node, Program
from recgen.algebra.scan import log_decay_of

from .check import PlanError
from .kernels import Kernel
from .tiling import NotTileable, partial_values


def alone(program: Program, adjoint: Program, backward: tuple[Kernel, ...]) -> tuple[Kernel, Kernel]:
    """The runs from nothing, forwards and backwards. `backward`: the kernels whose starts the second one finds."""
    states, gradients = program.carries, adjoint.carries
    if len({log_decay_of(c) for c in states}) > 1:
        raise PlanError("the carried values have different decays, and segments are handed over with one")
    known = tuple(dict.fromkeys(n for k in backward for n in k.kept))

    def kernel(name: str, purpose: str, carries: tuple[Carry, ...], tile: str) -> Kernel:
        found = Kernel(name, purpose, tile, carries is gradients, carries, (), known, stores_ends=False, alone=True)
        used = set(found.nodes())
        edges = tuple(c.start for c in states if carries is gradients and c.start in used)
        return replace(found, kept=tuple(n for n in known if n in used), edges=edges)

    ends = kernel("_segment_ends", "where segments end that start from nothing, and their log-decay", states, "v")
    purpose = "the same of the state's gradient, backwards"
    return ends, kernel("_segment_ends_backward", purpose, gradients, _tile(gradients, known))


def _tile(carries: tuple[Carry, ...], known: tuple[Node, ...]) -> str:
    """The axis whose tiles see all that they write."""
    for tile in "vm":
        try:
            partial = partial_values([c.write for c in carries], tile, known)
        except NotTileable:
            continue
        if not any(c.write in partial for c in carries):
            return tile
    raise PlanError("what is written to the state needs the whole of keys and values at once")
