"""The total schedule: what every token reads is a sum over the whole sequence, so time is cut into segments.

The slices are those of the fused schedule. Each kernel runs one program per segment, walks its chunks, and carries
nothing from one to the next: it loads the totals that it reads, and sums over its segment what it adds to other totals.
A sequence's segments are then added up, in their order, and the next kernel reads the result.

    sums        what the tokens write
    forward     outputs from the totals
    backward    first what needs the totals alone, with the sums of the totals' gradients; then what needs these
"""

from __future__ import annotations

from dataclasses import replace

from recgen.algebra.program import Carry, Node, Program

from .check import PlanError
from .fused import fused, given_values
from .kernels import Epilogue, Kernel

NAMES = {
    (False, "m"): ("_chunk_backward_query", "gradients of what reads the totals, and parts of the totals' own"),
    (False, "v"): ("_chunk_backward_output", "gradients of what leaves the totals"),
    (True, "m"): ("_chunk_backward_key", "gradients of what is written, from the totals' gradients"),
    (True, "v"): ("_chunk_backward_value", "gradients of the values written, from the totals' gradients"),
}
READS = (False, "m")  # the kernel that has all that the totals' gradients are summed from


def total(program: Program, adjoint: Program) -> tuple[Kernel, Kernel, tuple[Kernel, ...], Epilogue]:
    """The kernel that sums what is written, the forward kernel, the backward kernels in order, and the epilogue."""
    forward, backward, epilogue = fused(program, adjoint)
    given = given_values(program, adjoint)
    kept = tuple(dict.fromkeys((*given, *(n for k in backward for n in k.kept))))

    def over_segments(kernel: Kernel, kept: tuple[Node, ...], sums: tuple[Carry, ...] = ()) -> Kernel:
        """The kernel on a segment of time: what was summed up before it loads, and it sums what is asked for."""
        kernel = replace(kernel, reverse=False, carries=(), sums=sums, kept=kept, stores_ends=False)
        used = set(kernel.nodes())
        totals = tuple(c.start for c in (*program.carries, *adjoint.carries) if c.start in used)
        return replace(kernel, kept=tuple(n for n in kept if n in used), totals=totals)

    written = Kernel("_chunk_sums", "what the tokens of a segment write", "v", False, (), ())
    outputs = replace(forward, purpose="outputs from the totals")
    kernels: list[Kernel] = []
    for k in backward:
        name, purpose = NAMES[k.reverse, k.tile]
        first = not kernels
        if first and (k.reverse, k.tile) != READS:
            raise PlanError(f"{name} would come before the totals of the gradients are known")
        kernels.append(over_segments(replace(k, name=name, purpose=purpose), kept, adjoint.carries if first else ()))
    return over_segments(written, given, program.carries), over_segments(outputs, given), tuple(kernels), epilogue
