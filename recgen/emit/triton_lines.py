"""A kernel of the plan as text: its arguments, and the statements before, inside and after its loop over chunks."""

from __future__ import annotations

from collections.abc import Sequence

from recgen.algebra.operations import Add, Leaf, Mask
from recgen.algebra.program import Node, topological
from recgen.plan.arrange import Part, arranged, words
from recgen.plan.kernels import Kernel
from recgen.plan.order import Compute, LevelLoop, Statement, statements

from .edge_sums import EdgeSums
from .kernel_memory import KernelText, zeros
from .loop_lines import same_tile
from .notes import Note
from .triton_program import tile_axes


def kernel_text(kernel: Kernel, note: Note, grouped: Sequence[str]) -> KernelText:
    """grouped: the inputs that may have fewer heads."""
    return _Writer(kernel, note, grouped).write()


def order_of(kernel: Kernel, grouped: Sequence[str]) -> list[str]:
    """The names of the variables in its loop, in the order of their computation; of a sum, once for each term."""
    writer = _Writer(kernel, Note(), grouped)
    return words(writer.arrangement(writer.find_loads()), writer.word)


class _Writer(EdgeSums):
    def __init__(self, kernel: Kernel, note: Note, grouped: Sequence[str]) -> None:
        super().__init__(kernel, note, grouped)
        self.waiting = [s for s in kernel.stores if not s.over_time]

    def write(self) -> KernelText:
        k, out = self.kernel, self.out
        loaded = self.find_loads()
        self.carried_in()
        self.totals_in()
        accumulated = [s for s in k.stores if s.over_time]
        for s in accumulated:
            out.before.append(f"{s.name} = {zeros(s.node.axes)}")
        self.store_edges()
        self._statements(loaded)
        for s in accumulated:
            self.load_for([s.node])
            out.inside.append(self.note.mark(f"{s.name} += {self.text.value(s.node)}", s.node))
        for c in (*k.carries, *k.sums):
            if c not in self.handed:
                self.hand_on(c)
        out.counts = any("rows_here" in line for line in out.inside)
        for c in k.sums:
            self.store_state(f"{c.start.leaf.name}_parts_ptr", c.start, "segment", out.after, c.start.leaf.name)
        for c in k.carries if k.stores_ends else ():
            self.store_state(f"{c.start.leaf.name}_end_ptr", c.start, "segment", out.ends, c.start.leaf.name)
        for s in accumulated:
            self.store_accumulated(s)
        if k.alone:
            self.finish_alone()
        out.helpers |= self.text.helpers
        return out

    def statements(self) -> None:
        """What is computed inside the loop, without what is around it."""
        self._statements(self.find_loads())

    def _statements(self, known: set[Node]) -> None:
        """Every value after what it needs, and every result stored as soon as it is there."""
        out = self.out
        self._store_what_is_ready(known)
        todo = self.arrangement(known)
        for n, s in enumerate(todo):
            if not isinstance(s, LevelLoop):
                if self.word(s.node):
                    self.add_rows(s.node)
                    self.load_for(s.terms if isinstance(s, Part) else [s.node])
                    if isinstance(s, Part):
                        self._add_terms(s)
                    else:
                        self.assign(s.node, "")
                    if isinstance(s, Compute) or s.last:
                        self.catch_up(s.node)
                        self.computed.add(s.node)
                        self._store_what_is_ready(known)
                continue
            out.levels = True
            self._advance_ahead(todo[n:], known)
            self.load_for([*s.body, *s.sums])
            for total in s.sums:
                begin, origin = self._begin(total, known)
                out.inside.append(self.note.mark(f"{self.names[total]} = {begin}", origin))
            out.inside.append("for level in tl.static_range(LEVELS):")
            if any(isinstance(n.op, Mask) for n in s.body):
                out.helpers.add("_tile_siblings")
                out.inside.append("    siblings = _tile_siblings(time, 2**level)")
            for node in (x for x in s.body if x in self.names and x.level != "head"):
                self.assign(node, "    ")
            for total in s.sums:
                line = f"    {self.names[total]} += {self.text.use(total.args[0])}"
                out.inside.append(self.note.mark(line, total))
            self.computed |= set(s.sums)
            self._store_what_is_ready(known)

    def arrangement(self, known: set[Node]) -> list[Statement | Part]:
        """The statements of the loop, in the kernel's own order where it has one.

        A sum over a stored state comes last, or before the loop over levels: a second state is held for it, until its
        gradient is that of the chunk before.
        """
        todo = statements(self.kernel.roots(), known)
        order, late = self.kernel.order, [self.word(c.start) for c in self.kernel.catch_up]
        if late and not order:
            end = next((n for n, s in enumerate(todo) if isinstance(s, LevelLoop)), len(todo))
            first, last = ([w for w in words(part, self.word) if w not in late] for part in (todo[:end], todo[end:]))
            order = (*first, *late, *last)
        return arranged(todo, order, self.word, known) if order else [*todo]

    def word(self, node: Node) -> str:
        """What an order calls a statement of the loop: the variable it computes."""
        return "" if node.level == "head" else self.names.get(node)

    def _add_terms(self, part: Part) -> None:
        text, name = self.text.sum(part.terms, part.node), self.names[part.node]
        if part.first:
            self.out.inside += self.note(f"{name} = {text}", part.node, self.names)
        else:
            self.out.inside.append(self.note.mark(f"{name} += {text}", part.node))

    def _advance_ahead(self, todo: list[Statement | Part], known: set[Node]) -> None:
        """Advance what nothing needs any more, so that less is held through a loop over levels."""
        have = known | self.computed
        rest = {n for s in todo for n in ((*s.body, *s.sums) if isinstance(s, LevelLoop) else (s.node,))}
        for c in self.kernel.carries:
            below = topological(c.hand_over, have)
            others = [d.write for d in self.kernel.carries if d is not c and d not in self.handed]
            used = topological([*rest, *others, *(s.node for s in self.waiting)], have)
            if c not in self.handed and not rest & set(below) and c.start not in used:
                self.hand_on(c)

    def _begin(self, total: Node, known: set[Node]) -> tuple[str, Node]:
        """What a sum over levels is added to, and what that becomes: the other terms of the only sum that it is part
        of, or zero."""
        users = [n for n in self.nodes if total in n.args]
        if len(users) == 1 and isinstance(users[0].op, Add) and users[0].axes == total.axes:
            others = [a for a in users[0].args if a is not total]
            have = known | self.computed
            ready = all(a in have or a not in self.names for a in topological(others, have))
            if ready and any(a.axes == total.axes for a in others):
                self.load_for(others)
                if users[0] in self.names:
                    self.names.set({total: self.names[users[0]]})
                self.text.summed[users[0]] = self.names[total]
                return self.text.sum(others, total), users[0]
        return zeros(tile_axes(total)), total

    def _store_what_is_ready(self, known: set[Node]) -> None:
        for s in list(self.waiting):
            missing = [n for n in topological([s.node], known | self.computed) if n not in known | self.computed]
            if all(isinstance(n.op, Leaf) or n.level == "head" or n not in self.names for n in missing):
                self.waiting.remove(s)
                self.load_for([s.node])
                self.store_rows(s)
                if not self._has_variable(s.node):
                    self.out.inside[-1] = self.note.mark(self.out.inside[-1], s.node)

    def _has_variable(self, node: Node) -> bool:
        return node in self.names or (same_tile(node) and self._has_variable(node.args[0]))
