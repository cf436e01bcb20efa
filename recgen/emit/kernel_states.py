"""The carried values of a kernel around its loop: where they come from, and what is left of them at edges and ends."""

from __future__ import annotations

from collections.abc import Sequence

from recgen.algebra.program import Node
from recgen.algebra.scan import log_decay_of
from recgen.plan.kernels import Kernel

from .kernel_memory import Memory, zeros
from .naming import Names
from .notes import Note
from .triton_program import tile_axes


class States(Memory):
    """Writes the lines for carried values, totals and sums before and after the loop."""

    def __init__(self, kernel: Kernel, names: Names, grouped: Sequence[str], note: Note) -> None:
        super().__init__(kernel, names, grouped)
        self.note = note

    def carried_in(self) -> None:
        for c in self.kernel.carries:
            name = c.start.leaf.name
            if self.kernel.alone:
                self.out.before.append(f"{name} = {zeros(c.axes)}")
                continue
            self.out.pointers.append(f"{name}_ptr")
            self.out.before.append(f"{name} = {self.load_state(f'{name}_ptr', c.start, 'segment')}")
        for log in self._log():
            axes = tile_axes(log)
            self.out.before.append(f"log_total = {zeros(axes) if axes else '0.0'}")

    def _log(self) -> list[Node]:
        """The log-decay that a kernel alone sums up, if there is one."""
        log = log_decay_of(self.kernel.carries[0]) if self.kernel.alone else None
        return [] if log is None else [log]

    def finish_alone(self) -> None:
        """Where the segment ends that started from nothing, and how much it decays what it is given."""
        for c in self.kernel.carries:
            name = c.start.leaf.name
            self.store_state(f"{name}_ends_ptr", c.start, "segment", self.out.after, name)
        for log in self._log():
            line = f"log_total += {self.text.use(log)}"
            self.out.inside.append(self.note.mark(line, f"log_total = Σ_chunks {log.name}"))
            if tile_axes(log):
                self.store_state("totals_ptr", log, "segment", self.out.after, "log_total")
            else:
                self.out.pointers.append("totals_ptr")
                self.out.after.append("tl.store(totals_ptr + segment * H + head, log_total, mask=tile == 0)")

    def totals_in(self) -> None:
        """What is read as a total, of the segment's sequence; what is summed starts from nothing."""
        if self.kernel.totals:
            self.out.pointers.append("owners_ptr")
        for n in self.kernel.totals:
            name = n.leaf.name
            self.out.pointers.append(f"{name}_ptr")
            self.out.before.append(f"{name} = {self.load_state(f'{name}_ptr', n, 'sequence')}")
        for c in self.kernel.sums:
            self.out.before.append(f"{c.start.leaf.name} = {zeros(c.axes)}")

    def store_edges(self) -> None:
        lines: list[str] = []
        for n in self.kernel.stores_edges:
            self.out.edges = True
            self.store_state(f"{n.leaf.name}_edges_ptr", n, "slot", lines, n.leaf.name)
        if self.kernel.sparse and lines:
            last = "(back % EVERY == EVERY - 1) | (chunk == 0)"  # of those that one state is read for, going back
            lines = [f"if {last}:", *(f"    {line}" for line in lines)]
        self.out.inside += lines
