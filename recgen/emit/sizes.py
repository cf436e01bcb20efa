"""Sizes in the emitted text: which ones an expression refers to, and where they are read off."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy

from recgen.algebra.operations import Concat, Leaf, Op, Slice, Unflatten
from recgen.algebra.program import Node, topological
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.widths import changes_width, width
from recgen.spec.axes import widths_of
from recgen.spec.model import SIZES, Spec, Tensor

from .naming import is_uniform
from .python_expr import PythonPrinter


def size_setup(nodes: Iterable[Node], tensors: Sequence[Tensor], like: str, heads: str = "") -> list[str]:
    """Definitions of the head index and the sizes that head and token expressions use, in the dtype of `like`.

    heads: the variable that has their number already, where it is not read off the first tensor with heads.
    """
    below = topological(nodes)
    leaves = [n.op for n in below if isinstance(n.op, Leaf)]
    paired = any(leaf.kind == "pair" for leaf in leaves)
    used = {leaf.name for leaf in leaves if leaf.kind in ("index", "scalar")} | ({"K"} if paired else set())
    used |= {s.name for n in below for w in _widths_used(n.op) for s in w.free_symbols}
    written_out = {a for n in below if isinstance(n.op, Concat) for a in n.args}
    written_out -= {a for n in below if not isinstance(n.op, Concat) for a in n.args}
    has_heads = any("H" in t.axes for t in tensors)
    if any(is_uniform(n) and n not in written_out and (has_heads or n.name) for n in below):
        used.add("h")  # what all heads share is still one value per head
    sizes = sorted(used & {"H", "K", "V", "M"} - {heads})
    lines = [f"{size} = {extent(size, tensors)}" for size in sizes]
    if paired:
        lines.append(f"pair = torch.arange(K, dtype=torch.float64, device={like}.device) // 2")
    if "h" in used and has_heads:
        lines.append(f"h = torch.arange({heads or extent('H', tensors)}, dtype={like}.dtype, device={like}.device)")
    elif "h" in used:  # a vector state has no heads, and one value for all channels
        lines.append(f"h = torch.zeros((), dtype={like}.dtype, device={like}.device)")
    return lines


def _widths_used(op: Op) -> tuple[sympy.Expr, ...]:
    """The widths that the text of an operation needs."""
    if isinstance(op, Slice):
        return op.start, op.concat.widths[op.index]
    return op.flatten.widths if isinstance(op, Unflatten) else ()


def extent(axis: str, tensors: Sequence[Tensor]) -> str:
    """The size of an axis, read off the first tensor that has it; counted from the end, so that it holds per token."""
    holder = next(t for t in tensors if axis in t.axes)
    return f"{holder.name}.shape[{holder.axes.index(axis) - len(holder.axes)}]"


@dataclass(frozen=True)
class Shapes:
    """What the sizes of a launch are read off: `names` are the tensors that this takes, `inputs` those that are no
    state. `key` is batch, T, H and feature width, `value` the value width."""

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    key: str
    value: str

    @property
    def context(self) -> dict[str, str]:
        """What the template of a launch's grid needs."""
        return {
            "shape_inputs": ", ".join(self.names),
            "key_source": self.inputs[0],
            "key_shape": self.key,
            "value_shape": self.value,
        }


def launch_shapes(spec: Spec, state: str, given: Sequence[Node]) -> Shapes:
    """What is given along the features or values, or the first inputs with these widths, or else the state."""
    by_width = {t.axes[-1]: t.name for t in reversed(spec.inputs) if len(t.axes) == 4} | {
        {"m": "K", "v": "V"}[n.axes[-1]]: n.name for n in reversed(given) if n.axes[-1] in "mv"
    }
    key, value = by_width.get("K", ""), by_width.get("V", "")
    inputs = tuple(dict.fromkeys(name for name in (key, value) if name)) or (spec.inputs[0].name,)
    names = inputs if key and value else (*inputs, state)
    return Shapes(
        names,
        inputs,
        f"{key}.shape" if key else f"(*{inputs[0]}.shape[:3], {state}.shape[2])",
        f"{value}.shape[-1]" if value else f"{state}.shape[-1]",
    )


def sizes_read(text: str, shape: str, letters: Sequence[str], others: Mapping[str, str]) -> list[str]:
    """Definitions of the sizes that a text refers to: letters, in the order of the shape, and others by name."""
    extra = [line for name, line in others.items() if re.search(rf"\b{name}\b", text)]
    needed = "\n".join([text, *extra])
    found = [a if re.search(rf"\b{a}\b", needed) else "_" for a in letters]
    return [*([f"{', '.join(found)} = {shape}"] if set(found) != {"_"} else []), *extra]


def in_float32(params: Iterable[Tensor], text: str) -> list[str]:
    """The parameters that a text refers to, in float32."""
    return [f"{t.name} = {t.name}.float()" for t in params if re.search(rf"\b{t.name}\b", text)]


def feature_letter(rec: Recurrence) -> str:
    """The letter of the feature width: K, or M where the feature map changes it."""
    return "M" if any(changes_width(q.expr) for q in rec.quantities.values()) else "K"


def feature_width(rec: Recurrence) -> str:
    """The feature width in terms of the other sizes; nothing where a tensor has it as an axis."""
    widths = widths_of(rec.tensors)
    found = [width(q.expr, widths) for q in rec.quantities.values() if changes_width(q.expr)]
    if not found or found[0] == SIZES["M"]:
        return ""
    assert found[0] is not None
    return PythonPrinter({s: f'sizes["{s.name}"]' for s in found[0].free_symbols}).text(found[0])
