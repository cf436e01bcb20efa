"""What is legal between the stages: run on every program and kernel before anything is printed from it."""

from __future__ import annotations

from recgen.algebra.operations import Contract, Leaf, Reduce, Row, Rows, Unrow, Unrows
from recgen.algebra.program import AXES, Program, ordered, topological

from .kernels import Kernel
from .tiling import partial_values


class PlanError(ValueError):
    """A program or kernel that no backend can run. It is a fault of the compiler, not of the spec."""


def check_program(program: Program) -> None:
    """Axes are known and ordered, operands have at most two besides the levels, and the stages do not mix."""
    for n in program.nodes():
        if n.axes != ordered(n.axes) or not set(n.axes) <= set(AXES):
            raise PlanError(f"{n}: axes {n.axes} are not in canonical order")
        if n.level == "chunk" and len([a for a in n.axes if a != "s"]) > 2:
            raise PlanError(f"{n}: more than two axes; a tile has two")
        if isinstance(n.op, (Contract, Reduce)) and n.op.over in n.axes:
            raise PlanError(f"{n}: still has the axis {n.op.over} it sums over")
        if (
            isinstance(n.op, Rows)
            and n.args[0].level != "token"
            or isinstance(n.op, Row)
            and n.args[0].level == "chunk"
            or isinstance(n.op, (Unrow, Unrows))
            and n.args[0].level != "chunk"
        ):
            raise PlanError(f"{n}: crosses between tokens and chunk the wrong way")
    for name, n in program.outputs.items():
        if n.level == "chunk" or "s" in n.axes or "i" in n.axes:
            raise PlanError(f"output {name}: {n} does not leave the chunk")
    for c in program.carries:
        for part in c.hand_over:
            if not set(part.axes) <= set(c.axes):
                raise PlanError(f"carry {c.name}: {part} varies along axes the carried value does not have")
        if program.total and (c.decay is not None or {d.start for d in program.carries} & set(topological([c.write]))):
            raise PlanError(f"carry {c.name}: what is read as a total is a sum of writes that need no total")


def check_kernel(kernel: Kernel) -> None:
    """Every result is complete or stored as a partial one, every carried value is advanced, every read has a source."""
    partial = set() if kernel.whole else partial_values(kernel.roots(), kernel.tile, kernel.kept)
    for s in () if kernel.whole else kernel.stores:
        if (s.node in partial) != (s.kind == "partial") and not s.over_time:
            raise PlanError(
                f"{kernel.name}: {s.name} is {'' if s.node in partial else 'not '}partial, stored as {s.kind}"
            )
    for c in (*kernel.carries, *kernel.sums):
        if c.write in partial or c.decay in partial:
            raise PlanError(f"{kernel.name}: the carried {c.name} would be advanced with one tile's part")
    have = {c.start for c in kernel.carries} | {*kernel.edges, *kernel.kept, *kernel.totals}
    for n in kernel.nodes():
        if isinstance(n.op, Leaf) and n.op.kind == "carry" and n not in have:
            raise PlanError(f"{kernel.name}: reads {n}, which it neither carries nor loads")
