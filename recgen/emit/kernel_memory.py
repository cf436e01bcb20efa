"""Where a kernel that goes chunk by chunk finds its values: addresses, loads and stores of rows and of states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recgen.algebra.operations import Leaf
from recgen.algebra.program import Node
from recgen.plan.kernels import Kernel, Store

from .groups import head_row
from .naming import Names
from .triton_program import COLUMN, EXTENT, TritonText, tile_axes

WIDTH = {"m": "K", "v": "V"}


@dataclass
class KernelText:
    """Everything the kernel template needs, and what the launcher must pass, in order."""

    kernel: Kernel
    pointers: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)  # stored where a segment is a whole sequence
    helpers: set[str] = field(default_factory=set)
    levels: bool = False
    counts: bool = False
    partial_rows: bool = False
    segments: bool = False
    edges: bool = False
    grouped: list[str] = field(default_factory=list)  # the inputs it reads that may have fewer heads

    @property
    def products(self) -> bool:
        """Whether it takes matrix products."""
        return any(name.startswith("_dot") for name in self.helpers)


def zeros(axes: Iterable[str]) -> str:
    return f"tl.zeros([{', '.join(EXTENT[a] for a in axes) or '1'}], tl.float32)"


class Memory:
    """Writes loads and stores, and notes in `out` what they take."""

    def __init__(self, kernel: Kernel, names: Names, grouped: Sequence[str]) -> None:
        """grouped: the inputs that may have fewer heads."""
        self.kernel = kernel
        self.names = names
        self.grouped = grouped
        self.text = TritonText(names)
        self.out = KernelText(kernel)

    def load_rows(self, pointer: str, n: Node) -> str:
        axis = "".join(a for a in tile_axes(n) if a != "t")
        start, at = "start", "at"
        if isinstance(n.op, Leaf) and n.op.name in self.grouped:
            self.out.grouped += [n.op.name] if n.op.name not in self.out.grouped else []
            start, at = head_row("token", n.op.name), f"row * {n.op.name}_heads"
        if not axis:
            start = start.strip("()")
            return f"tl.load({pointer} + {start} + {at}, mask=valid, other=0.0).to(tl.float32)"
        self.out.helpers.add("_load")
        return f"_load({self._rows(pointer, axis, start, at)})"

    @staticmethod
    def _rows(pointer: str, axis: str, start: str = "start", at: str = "at") -> str:
        """The arguments of a load or store of a chunk's rows."""
        column, width = COLUMN[axis], WIDTH[axis]
        return f"{pointer} + {start} * {width}, {at}, {column}, valid, {column}_valid, {width}"

    def _state_base(self, pointer: str, n: Node, where: str) -> str:
        return f"{pointer} + ({where} * H + head) * {' * '.join(WIDTH[a] for a in n.axes)}"

    def load_state(self, pointer: str, n: Node, where: str, when: str = "") -> str:
        """when: the condition without which nothing is read."""
        base, only = self._state_base(pointer, n, where), f" & {when}" if when else ""
        if len(n.axes) == 1:
            column = COLUMN[n.axes[0]]
            return f"tl.load({base} + {column}, mask={column}_valid{only}, other=0.0)"
        self.out.helpers.add("_load")
        return f"_load({base}, feature, channel, feature_valid{only}, channel_valid, V)"

    def store_state(self, pointer: str, n: Node, where: str, lines: list[str], value: str) -> None:
        self.out.pointers.append(pointer)
        base = self._state_base(pointer, n, where)
        if len(n.axes) == 1:
            column = COLUMN[n.axes[0]]
            mask = f"{column}_valid" + ("" if self.kernel.tile in n.axes else " & (tile == 0)")
            lines.append(f"tl.store({base} + {column}, {value}, mask={mask})")
        else:
            self.out.helpers.add("_store")
            lines.append(f"_store({base}, feature, channel, feature_valid, channel_valid, V, {value})")

    def store_rows(self, s: Store) -> None:
        out = self.out
        out.pointers.append(f"{s.name}_ptr")
        axis = "".join(a for a in tile_axes(s.node) if a != "t")
        value = self.text.use(s.node)
        if axis:
            out.helpers.add("_store")
            out.inside.append(f"_store({self._rows(f'{s.name}_ptr', axis)}, {value})")
        elif s.kind == "partial":
            out.partial_rows = True
            out.inside.append(f"tl.store({s.name}_ptr + tile * rows * H + start + at, {value}, mask=valid)")
        else:
            out.inside.append(f"tl.store({s.name}_ptr + start + at, {value}, mask=valid & (tile == 0))")

    def store_accumulated(self, s: Store) -> None:
        self.out.pointers.append(f"{s.name}_ptr")
        axes = s.node.axes
        where = "segment" if self.kernel.tile in axes else "(tile * segments + segment)"
        self.out.segments |= self.kernel.tile not in axes
        at = f"{s.name}_ptr + ({where} * H + head)"
        if axes:
            column = COLUMN[axes[0]]
            self.out.after.append(f"tl.store({at} * {WIDTH[axes[0]]} + {column}, {s.name}, mask={column}_valid)")
        else:
            self.out.after.append(f"tl.store({at} + tl.arange(0, 1), {s.name})")
