"""How far apart states are that a kernel walking forwards leaves for one walking backwards, as text of the launcher."""

from __future__ import annotations

from recgen.algebra.operations import Leaf
from recgen.algebra.program import topological
from recgen.plan.kernels import Kernel, Plan


def stretch_text(plan: Plan) -> str:
    """The tokens from one stored state to the next: the kernel that reads them says, the one that is launched."""
    readers = [k for k in (*plan.whole, *plan.backward) if k.edges and k.sparse]
    text = ""
    for k in reversed(readers):
        own = f"grid.stretch('{k.name}', '{k.tile}', {', '.join(map(str, _read_again(k)))})"
        text = f"{own} if grid.fits('{k.name}') else {text}" if k.whole else own
    return text


def _read_again(kernel: Kernel) -> tuple[int, int]:
    """The tensors with a number per token and channel that it catches up with: those of its tiled axis, and others."""
    sources = {*kernel.kept, *kernel.edges, *kernel.starts}
    below = topological([n for c in kernel.catch_up for n in c.hand_over], sources)
    rows = [n for n in below if (isinstance(n.op, Leaf) or n in kernel.kept) and n.level == "token"]
    wide = [n for n in rows if {"m", "v"} & set(n.axes)]
    own = sum(kernel.tile in n.axes for n in wide)
    return own, len(wide) - own
