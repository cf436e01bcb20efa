"""A program as the statements of a torch function: what feeds the hand-over, the scan over chunks, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recgen.algebra.operations import Leaf
from recgen.algebra.program import Carry, Node, Program, topological
from recgen.plan.order import Compute, LevelLoop, statements

from .naming import Names
from .notes import Note
from .torch_program import TorchText


@dataclass(frozen=True)
class Scan:
    """The hand-over of one carried value over all chunks; afterwards its leaf holds the value at each chunk's edge."""

    carry: Carry
    reverse: bool
    end: str  # variable that holds the value after the last chunk


class TorchWriter:
    """Collects the lines of one function body. `text.helpers` tells which helpers the lines call."""

    def __init__(self, nodes: Iterable[Node], keep: Iterable[Node], note: Note, like: str) -> None:
        self.nodes = list(nodes)
        self.names = Names(self.nodes, keep, taken=("size", "half", "siblings", "T", "row", "length", "chunk"))
        self.text = TorchText(self.names, like)
        self.note = note
        self.lines: list[str] = []
        self._known: set[Node] = set()

    def compute(self, roots: Iterable[Node]) -> None:
        roots = list(roots)
        for s in statements(roots, self._known):
            if isinstance(s, Compute):
                self._assign(s.node, "")
            else:
                self._loop(s)
        self._known |= {n for n in topological(roots, self._known) if "s" not in n.axes}

    def scan(self, scans: Sequence[Scan]) -> None:
        """Compute what the scans need, then run them."""
        self.compute(n for s in scans for n in (s.carry.decay, s.carry.write) if n is not None)
        for s in scans:
            c, dim = s.carry, -1 - len(s.carry.axes)
            name = c.start.leaf.name
            decay = "" if c.decay is None else f"{self.text.aligned(c.decay, c.start)}, "
            direction = ", reverse=True" if s.reverse else ""
            self.text.helpers.add("_scan")
            line = f"{name}, {s.end} = _scan({name}, {decay}{self.text.use(c.write)}, dim={dim}{direction})"
            self.lines.append(self.note.mark(line, c))

    def ends(self, carries: Sequence[Carry]) -> None:
        """As `scan`, where only the value after the last chunk is wanted."""
        self.compute(n for c in carries for n in c.hand_over)
        for c in carries:
            name, dim = c.start.leaf.name, -1 - len(c.axes)
            decay = "" if c.decay is None else f"{self.text.aligned(c.decay, c.start)}, "
            line = f"_, {c.name}_end = _scan({name}, {decay}{self.text.use(c.write)}, dim={dim})"
            self.lines.append(self.note.mark(line, c))

    def total(self, carries: Sequence[Carry]) -> None:
        """Compute what every chunk writes and sum it over all chunks; afterwards each leaf holds the total."""
        self.compute(c.write for c in carries)
        for c in carries:
            self.lines.append(self.note.mark(f"{c.start.leaf.name} = _total({self.text.use(c.write)})", c))

    def _assign(self, node: Node, indent: str) -> None:
        if node not in self.names or isinstance(node.op, Leaf):
            return
        statement = f"{indent}{self.names[node]} = {self.text.value(node)}"
        self.lines.extend(self.note(statement, node, self.names))

    def _loop(self, loop: LevelLoop) -> None:
        self.lines.extend(self.note.mark(f"{self.names[s]} = 0", s) for s in loop.sums)
        self.lines.append("for half in _halves(size):")
        self.text.helpers.add("_halves")
        if any(type(n.op).__name__ == "Mask" for n in loop.body):
            self.text.helpers.add("_siblings")
            self.lines.append(f"    siblings = _siblings(size, half, like={self.text.like})")
        for n in loop.body:
            self._assign(n, "    ")
        for s in loop.sums:
            line = f"    {self.names[s]} = {self.names[s]} + {self.text.use(s.args[0])}"
            self.lines.append(self.note.mark(line, s))


def forward_lines(program: Program, note: Note, like: str) -> TorchWriter:
    """o and the end of every carried value, from the inputs and the values carried in."""
    outputs = list(program.outputs.values())
    writer = TorchWriter(program.nodes(), (), note, like)
    if program.total:
        writer.total(program.carries)
    else:
        writer.scan([Scan(c, False, f"{c.name}_end") for c in program.carries])
    writer.compute(outputs)
    return writer


def end_lines(program: Program, note: Note, like: str) -> TorchWriter:
    """The end of every carried value alone."""
    writer = TorchWriter(topological([n for c in program.carries for n in c.hand_over]), (), note, like)
    writer.ends(program.carries)
    return writer


def backward_lines(program: Program, adjoint: Program, note: Note, like: str) -> TorchWriter:
    """The gradients, from the inputs, the values carried in, and the cotangents of outputs and final values."""
    outputs = list(adjoint.outputs.values())
    needed = adjoint.nodes()
    forward = [Scan(c, False, "_") for c in program.carries if c.start in needed]
    nodes = topological(
        [n for s in forward for n in (s.carry.decay, s.carry.write) if n is not None] + list(adjoint.roots())
    )
    writer = TorchWriter(nodes, (), note, like)
    if program.total:
        writer.total([s.carry for s in forward])
        writer.total(adjoint.carries)
    else:
        if forward:
            writer.scan(forward)
        writer.scan([Scan(c, True, f"d_{c.name}_start") for c in adjoint.carries])
    writer.compute(outputs)
    return writer
