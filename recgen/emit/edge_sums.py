"""Sums over a state that is stored for two chunks, in a kernel that walks back (recgen/plan/edges.py).

The state is that at the start of the earlier chunk, and is read at the later one. What the earlier chunk's rows add to
the sum comes before the state is read, since its gradient is held for either. When the gradient is handed on, the same
sum is that of the earlier chunk, which adds nothing to it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from recgen.algebra.program import Carry, Node, topological
from recgen.plan.kernels import Kernel

from .loop_lines import LoopLines
from .notes import Note, Unsaid
from .triton_program import EXTENT, tile_axes


class EdgeSums(LoopLines):
    """Writes the steps of such sums."""

    def __init__(self, kernel: Kernel, note: Note, grouped: Sequence[str]) -> None:
        super().__init__(kernel, note, grouped)
        self.handed: list[Carry] = []  # carried values that are those of the next chunk already

    @abstractmethod
    def statements(self) -> None:
        """What is computed inside the loop, without what is around it."""

    def add_rows(self, node: Node) -> None:
        """What the rows of the chunk before add to a sum over a state, and what they keep of it.

        Without a state to read the sum is known already: it was found one chunk later.
        """
        for step in self._steps(node):
            name, before, out = self.names[node], self._of_chunk_before(step), self.out
            decay, _ = step.hand_over
            out.helpers |= before.out.helpers | before.text.helpers
            out.pointers += [p for p in before.out.pointers if p not in out.pointers]
            out.grouped += [n for n in before.out.grouped if n not in out.grouped]
            for variable, like, first in ((f"{name}_before", node, 0.0), (f"{name}_kept", decay, 1.0)):
                axes = ", ".join(EXTENT[a] for a in tile_axes(like))
                out.before.append(f"{variable} = tl.full([{axes}], {first}, tl.float32)")
            out.inside += [
                "if EVERY == 2:",
                "    if reads:  # the state at the start of the chunk before, if there is one",
                *(f"        {line}" for line in _shifted(before)),
                "    else:",
                self.note.mark(f"        {name}_rows = {name}_before", node),
            ]

    def catch_up(self, node: Node) -> None:
        """The sum over the state at the start of the chunk before becomes that over the state of this chunk."""
        for step in self._steps(node):
            name = self.names[node]
            self.out.inside.append("if EVERY == 2:")
            self.out.inside.append(self.note.mark(f"    {name} = {name} * {name}_kept + {name}_rows", step))

    def hand_on(self, c: Carry) -> None:
        """A carried value becomes that of the next chunk, and so do the sums over a stored state that it stands in."""
        self.advance(c, c.start.leaf.name)
        self.handed.append(c)
        for total in (t.start for t in self.kernel.catch_up):
            carried = self.kernel.starts & set(topological([total], {*self.kernel.kept, *self.kernel.edges}))
            if c.start in carried and carried <= {d.start for d in self.handed}:
                self.out.inside.append("if EVERY == 2:  # of the chunk before, at whose start the state is")
                self.assign(total, "    ", f"{self.names[total]}_before")

    def _steps(self, node: Node) -> list[Carry]:
        return [c for c in self.kernel.catch_up if c.start is node]

    def _of_chunk_before(self, step: Carry) -> EdgeSums:
        """What writes the lines that find, of a chunk's rows, what they add to a sum, and what they keep of it."""
        given = tuple(replace(c, decay=None, write=c.start) for c in self.kernel.carries)
        alone = replace(self.kernel, carries=given, stores=(), stores_edges=(), catch_up=(), sums=(step,))
        writer, name = type(self)(alone, Unsaid(self.note), self.grouped), self.names[step.start]
        writer.statements()
        writer.load_for(step.hand_over)
        decay, rows = step.hand_over
        kept = f"{name}_kept = {decay.name} of the chunk before"
        writer.out.inside.append(writer.note.mark(f"{name}_rows = {writer.text.use(rows)}", step))
        writer.out.inside.append(writer.note.mark(f"{name}_kept = {writer.text.use(decay)}", kept))
        return writer


def _shifted(writer: EdgeSums) -> list[str]:
    """The lines of a loop as those of the chunk before: what is of its rows has another name."""
    rows = (n for n in writer.nodes if n in writer.names and n.level != "head" and n not in writer.kernel.starts)
    own = {*(writer.names[n] for n in rows), "valid", "token", "start", "rows_here"}
    names = re.compile(rf"(?<![.\w])({'|'.join(sorted(own))})\b(?!=)")  # no attribute, and no keyword of a call
    lines = [names.sub(r"\1_before", line) for line in writer.out.inside]
    text = "\n".join(lines)
    where = {
        "valid": "time >= CHUNK",  # where there is a chunk before, it is full
        "token": "token - CHUNK",
        "start": "start - CHUNK * H",
        "rows_here": "tl.minimum(chunk * CHUNK, CHUNK)",
    }
    return [*(f"{name}_before = {value}" for name, value in where.items() if f"{name}_before" in text), *lines]
