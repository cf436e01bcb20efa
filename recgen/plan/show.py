"""A plan as pseudo-code, for `recgen explain --stage plan`."""

from __future__ import annotations

from collections.abc import Iterator

from recgen.algebra.mathtext import carry_equation, equation

from .kernels import Kernel, Plan
from .order import LevelLoop, statements

AXIS = {"m": "key channels", "v": "value channels"}


SCHEDULES = {
    "fused": "fused: the carried values stay in registers, one program walks a whole sequence",
    "split": "split: segments of time at once, after their starts were found by runs from nothing",
    "scan": "scan: chunks at once, tokens in turn; the state in registers",
    "total": "total: segments of time at once, their sums added up in order",
}


def show_plan(plan: Plan) -> str:
    """Factorisation, sizes, and every kernel: what it walks, tiles, carries, reads, computes and stores."""
    lines = [
        f"pair weights   {plan.factorisation}",
        f"chunk          {plan.chunk_size} rows by default; {', '.join(map(str, plan.chunk_sizes))} on request",
        *(f"schedule       {SCHEDULES[name]}" for name in plan.schedules),
    ]
    for kernel in plan.kernels:
        lines += ["", *_kernel(kernel, plan.factorisation == "scan")]
    if plan.epilogue.sums:
        lines += ["", "epilogue (torch)"]
        for node, stores in plan.epilogue.sums.items():
            parts = " + ".join(f"Σ over tiles of {s.name}" for s in stores)
            lines.append(f"    {node.name or node.args[0].name or stores[0].name} = {parts}")
        lines += [f"    {equation(n)}" for n in plan.epilogue.outputs.values()]
    return "\n".join(lines)


def _kernel(kernel: Kernel, scan: bool) -> list[str]:
    carried = ", ".join(sorted(c.start.leaf.name for c in kernel.carries)) or "nothing"
    rows = [s for s in kernel.stores if not s.over_time]
    unit, step, span = ("chunk", "token", "chunk's tokens") if scan else ("segment", "chunk", "chunks")
    totals = ", ".join(n.leaf.name for n in kernel.totals)
    return [
        f"{kernel.name}: {kernel.purpose}",
        f"    one program per {unit}, head and tile of {AXIS[kernel.tile]}; carries {carried}",
        *([f"    load the total{'s' if len(kernel.totals) > 1 else ''} {totals}"] if totals else []),
        f"    for each {step}{', last to first' if kernel.reverse else ''}:",
        *(f"        {line}" for line in _body(kernel)),
        *(f"        where no state is stored, from the chunk before: {carry_equation(c)}" for c in kernel.catch_up),
        *(f"        store {s.name}{' (one part per tile)' if s.kind == 'partial' else ''}" for s in rows),
        *(f"        {carry_equation(c)}" for c in (*kernel.carries, *kernel.sums)),
        *(f"    store {c.start.leaf.name}, the segment's part" for c in kernel.sums),
        *(f"    store {s.name}, summed over the {span}" for s in kernel.stores if s.over_time),
    ]


def _body(kernel: Kernel) -> Iterator[str]:
    """What is loaded, which states are stored at the chunk's edge, and what is computed."""
    carried = {c.start for c in kernel.carries} | set(kernel.totals)
    loads = [n for n in kernel.leaves() if n.level != "head" and n not in carried]
    yield "load  " + ", ".join(f"{n.name} at the chunk's start" if n in kernel.edges else n.name for n in loads)
    for n in kernel.stores_edges:
        yield f"store {n.name} at the start of {'some chunks' if kernel.sparse else 'the chunk'}"
    for s in statements(kernel.roots(), {*kernel.kept, *kernel.edges}):
        if isinstance(s, LevelLoop):
            yield "for each level s of the pair tree:"
            yield from (f"    {equation(n)}" for n in s.body if n.name)
        elif s.node.name:
            yield equation(s.node)
