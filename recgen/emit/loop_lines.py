"""The single lines of a kernel's loop over chunks: loads where they are needed first, assignments, hand-overs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recgen.algebra.operations import Leaf, Rows, Unrows
from recgen.algebra.program import Carry, Node, topological
from recgen.plan.kernels import Kernel

from .kernel_memory import WIDTH
from .kernel_states import States
from .naming import Names, operand, renamed
from .notes import Note
from .torch_program import is_scalar
from .triton_program import COLUMN, broadcast, tile_axes, zero_when_padded

TAKEN = (
    "program",
    "tile",
    "head",
    "sequence",
    "first",
    "length",
    "row",
    "feature",
    "channel",
    "chunks",
    "chunk",
    "valid",
    "rows_here",
    "token",
    "start",
    "at",
    "slot",
    "back",
    "level",
    "siblings",
    "scale",
    "rows",
    "segment",
    "segments",
    "log_total",
    "reads",
)


def same_tile(node: Node) -> bool:
    """Rows under another axis, loaded rows (zero beyond the end), and rows on their way out are the same tile."""
    if isinstance(node.op, Rows):
        return isinstance(node.args[0].op, Leaf) and zero_when_padded(node.args[0])
    return isinstance(node.op, Unrows) or renamed(node)


def sizes_as_numbers(nodes: Iterable[Node]) -> dict[Node, str]:
    """Names of the sizes that expressions use: as arguments of their own, in floating point."""
    return {n: f"float_{n.leaf.name}" for n in nodes if is_scalar(n) and n.leaf.name in ("H", "K", "V")}


class LoopLines(States):
    """Writes lines inside the loop, and knows what is there already."""

    def __init__(self, kernel: Kernel, note: Note, grouped: Sequence[str]) -> None:
        self.nodes = kernel.nodes()
        super().__init__(kernel, Names(self.nodes, taken=TAKEN, alias=same_tile), grouped, note)
        self.names.set(sizes_as_numbers(self.nodes))
        self.loads: dict[Node, str] = {}  # what no statement has needed yet
        self.computed: set[Node] = set()

    def find_loads(self) -> set[Node]:
        """Head values and scalars are loaded before the loop; rows and edges inside it, once something needs them."""
        out = self.out
        known: set[Node] = set()
        heads = {a for n in self.nodes if n.level != "head" for a in n.args if a.level == "head"}
        carried = {c.start for c in self.kernel.carries} | set(self.kernel.totals)
        for n in self.nodes:
            name = self.names.get(n)
            leaf = n.op if isinstance(n.op, Leaf) else None
            if leaf and leaf.kind == "scalar" and n in heads:
                out.scalars.append(name)
            elif n in heads:
                out.pointers.append(f"{name}_ptr")
                at = "head" if not n.axes else f"head * {WIDTH[n.axes[0]]} + {COLUMN[n.axes[0]]}"
                mask = f", mask={COLUMN[n.axes[0]]}_valid, other=0.0" if n.axes else ""
                out.before.append(f"{name} = tl.load({name}_ptr + {at}{mask})")
            elif n in self.kernel.edges:
                out.pointers.append(f"{name}_edges_ptr")
                out.edges = True
                self.loads[n] = (
                    f"{name} = {self.load_state(f'{name}_edges_ptr', n, 'slot', 'reads' if self.kernel.sparse else '')}"
                )
            elif n in self.kernel.kept or leaf and n not in carried and n.level != "head":
                out.pointers.append(f"{name}_ptr")
                self.loads[n] = f"{name} = {self.load_rows(f'{name}_ptr', n)}"
            elif n not in carried:
                continue
            known.add(n)
        return known

    def load_for(self, nodes: Iterable[Node]) -> None:
        """Loads that the nodes need and no earlier statement did: the later a tile is loaded, the less is held."""
        for n in topological(nodes, self.computed | set(self.loads)):
            if n in self.loads:
                self.out.inside.append(self.loads.pop(n))
                self.computed.add(n)

    def assign(self, node: Node, indent: str, name: str = "") -> None:
        text, name = self.text.value(node), name or self.names[node]
        if text == name:
            return
        self.out.inside.extend(self.note(f"{indent}{name} = {text}", node, self.names))

    def advance(self, c: Carry, name: str) -> None:
        """The line by which a carried value of this name becomes that of the next chunk."""
        self.load_for([c.write, c.decay] if c.decay is not None else [c.write])
        kept = name
        if c.decay is not None:
            decay = broadcast(self.text.use(c.decay), tile_axes(c.decay), list(c.start.axes))
            kept = f"{name} * {operand(decay)}"
        self.out.inside.append(self.note.mark(f"{name} = {kept} + {self.text.use(c.write)}", c))
