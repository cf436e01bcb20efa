"""What a token's gradient still needs after the kernels, and the sums over a width that they finish themselves.

A gradient that no kernel completes, such as that of a gate which also decays the state, takes what it needs of a
boundary from memory. Where that is a sum over the tiled width alone,

    d_gate[t] = … + Σ_m d_key[t,m] ∂key[t,m]/∂gate[t]

the kernel that has d_key stores its tile's part of the sum, one number a token, and not the whole of d_key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recgen.algebra.features import is_elementwise
from recgen.algebra.operations import Reduce
from recgen.algebra.program import Node, topological

Place = tuple[bool, str]  # the direction of a kernel's walk, and the axis that it tiles


def inner_sums(outputs: Iterable[Node], boundaries: Iterable[Node], home: Mapping[Node, Place]) -> dict[Node, Place]:
    """The sums over a tiled width that replace every use of some boundary, and the kernel that has what they sum.

    outputs: what is computed after the kernels. home: where a boundary is completed, if in one place.
    """
    outputs, boundaries = tuple(outputs), set(boundaries)
    found: dict[Node, Place] = {}
    for n in topological(outputs, boundaries):
        places = {home.get(b) for b in topological([n], boundaries) if b in boundaries}
        place = places.pop() if len(places) == 1 else None
        if (
            place is not None
            and isinstance(n.op, Reduce)
            and n.op.over == place[1]
            and set(n.axes) <= {"t"}
            and n.level == "token"
            and is_elementwise(n.args[0], boundaries)
        ):
            found[n] = place
    needed = {n for n in topological(outputs, {*boundaries, *found}) if n in boundaries}
    return {n: place for n, place in found.items() if not needed & set(topological([n], boundaries))}
