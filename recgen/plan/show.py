"""A plan as pseudo-code, for `recgen explain --stage plan`."""
from __future__ import annotations

from recgen.algebra.mathtext import equation

from .kernels import Kernel, Plan
from .order import Compute, statements

AXIS = {"m": "key channels", "v": "value channels"}


def show_plan(plan: Plan) -> str:
    """Factorisation, sizes, and every kernel: what it walks, tiles, carries, reads, computes and stores."""
    lines = [
        f"pair weights   {plan.factorisation}",
        f"chunk          {plan.chunk_size} rows by default; {', '.join(map(str, plan.chunk_sizes))} on request",
        "schedule       fused: the carried values stay in registers, nothing is added atomically",
    ]
    for kernel in (plan.forward, *plan.backward):
        lines += ["", *_kernel(kernel)]
    if plan.epilogue.sums:
        lines += ["", "epilogue (torch)"]
        for node, stores in plan.epilogue.sums.items():
            lines.append(f"    {node.name or node.args[0].name} = " + " + ".join(f"Σ over tiles of {s.name}" for s in stores))
        lines += [f"    {equation(n)}" for n in plan.epilogue.outputs.values()]
    return "\n".join(lines)


def _kernel(kernel: Kernel) -> list[str]:
    names = {c.start.op.name for c in kernel.carries}
    lines = [f"{kernel.name}: {kernel.purpose}",
             f"    one program per sequence, head and tile of {AXIS[kernel.tile]}; carries {', '.join(sorted(names)) or 'nothing'}",
             f"    for each chunk{', last to first' if kernel.reverse else ''}:"]
    inputs = [n.name or n.op.name for n in kernel.leaves() if n.level != "head" and (n.op.__class__.__name__ != "Leaf" or n.op.kind != "carry")]
    lines.append(f"        load  {', '.join(inputs)}")
    if kernel.edges:
        lines.append(f"        load  {', '.join(n.op.name for n in kernel.edges)} at the start of the chunk")
    lines += [f"        store {n.op.name} at the start of the chunk" for n in kernel.stores_edges]
    known = {*kernel.kept, *kernel.edges}
    for s in statements(kernel.roots(), known):
        if isinstance(s, Compute):
            if s.node.name:
                lines.append(f"        {equation(s.node)}")
        else:
            lines.append("        for each level s of the pair tree:")
            lines += [f"            {equation(n)}" for n in s.body if n.name]
    lines += [f"        store {s.name}{' (one part per tile)' if s.kind == 'partial' else ''}" for s in kernel.stores if not s.over_time]
    lines += [f"        {c.start.op.name} ← {'decay · ' if c.decay is not None else ''}{c.start.op.name} + write" for c in kernel.carries]
    lines += [f"    store {s.name}, summed over the chunks" for s in kernel.stores if s.over_time]
    return lines
