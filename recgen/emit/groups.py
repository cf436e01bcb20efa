"""Grouped heads: an input may have fewer heads than the operator, each of which serves a group of its heads.

The operator has as many heads as the input with the most, H. Head h reads head h // (H // n) of an input with n heads.
In torch inputs are repeated; kernels compute the address of the head that they read. Gradients are per head of the
operator, and are summed over each group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recgen.spec.model import Spec


def grouped_inputs(spec: Spec) -> tuple[str, ...]:
    """The inputs that may have fewer heads than others; a lone input has nothing to differ from."""
    names = tuple(t.name for t in spec.inputs if "H" in t.axes)
    return names if len(names) > 1 else ()


def heads_text(grouped: Iterable[str], states: Iterable[str]) -> str:
    """The number of the operator's heads: those of a state, or the most that an input has."""
    for state in states:
        return f"{state}.shape[1]"
    return f"max(x.shape[2] for x in ({', '.join(grouped)}))"


def repeat_lines(grouped: Sequence[str], heads: str) -> list[str]:
    """Inputs with a value for every head, in torch."""
    names = ", ".join(grouped)
    return [f"heads = {heads}", f"{names} = (_repeated(x, heads) for x in ({names}))"] if grouped else []


def place_lines(names: Iterable[str]) -> list[str]:
    """What a kernel needs to know of grouped inputs: how many heads each has, and which one is read."""
    return [f"{n}_heads, {n}_head = H // {n}_group, head // {n}_group" for n in names]


def head_row(token: str, name: str) -> str:
    """The row of a grouped input that a kernel reads: a token's, and of its heads the one that serves this head."""
    return f"({token} * {name}_heads + {name}_head)"


def group_constants(names: Iterable[str]) -> str:
    """What a launch passes for grouped inputs, after its other arguments: how many heads share one."""
    return "".join(f", {n}_group=_group({n}, H)" for n in names)
