"""A kernel of the plan as text: its arguments, and the statements before, inside and after its loop over chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recgen.algebra.operations import Add, Leaf, Mask, Rows, Unrows
from recgen.algebra.program import Carry, Node, topological
from recgen.plan.arrange import Part, arranged, words
from recgen.plan.kernels import Kernel
from recgen.plan.order import Compute, LevelLoop, Statement, statements

from .kernel_memory import WIDTH, KernelText, zeros
from .kernel_states import States
from .naming import Names, operand, renamed
from .notes import Note, Unsaid
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
)


def _same_tile(node: Node) -> bool:
    """Rows under another axis, loaded rows (zero beyond the end), and rows on their way out are the same tile."""
    if isinstance(node.op, Rows):
        return isinstance(node.args[0].op, Leaf) and zero_when_padded(node.args[0])
    return isinstance(node.op, Unrows) or renamed(node)


def kernel_text(kernel: Kernel, note: Note, grouped: Sequence[str]) -> KernelText:
    """grouped: the inputs that may have fewer heads."""
    return _Writer(kernel, note, grouped).write()


def order_of(kernel: Kernel, grouped: Sequence[str]) -> list[str]:
    """The names of the variables in its loop, in the order of their computation; of a sum, once for each term."""
    writer = _Writer(kernel, Note(), grouped)
    return words(writer.arrangement(writer._find_loads()), writer.word)


def sizes_as_numbers(nodes: Iterable[Node]) -> dict[Node, str]:
    """Names of the sizes that expressions use: as arguments of their own, in floating point."""
    return {n: f"float_{n.leaf.name}" for n in nodes if is_scalar(n) and n.leaf.name in ("H", "K", "V")}


def _rows_before(kernel: Kernel, name: str, note: Note, grouped: Sequence[str]) -> tuple[list[str], KernelText]:
    """The lines that advance the only sum of the kernel, `name`, by the chunk before; and what they read."""
    given = tuple(replace(c, decay=None, write=c.start) for c in kernel.carries)
    alone = replace(kernel, carries=given, stores=(), stores_edges=(), catch_up=())
    writer = _Writer(alone, Unsaid(note), grouped)
    writer.statements()
    writer.advance(kernel.sums[0], name)
    own = {writer.names[n] for n in writer.nodes if n in writer.names and n.level != "head" and n not in kernel.starts}
    shifted = re.compile(rf"\b({'|'.join(sorted({*own, 'valid', 'token', 'start', 'rows_here'}))})\b")
    lines = [shifted.sub(r"\1_before", line) for line in writer.out.inside]
    where = {
        "valid": "time - CHUNK < length",
        "token": "token - CHUNK",
        "start": "start - CHUNK * H",
        "rows_here": "tl.minimum(length - (chunk - 1) * CHUNK, CHUNK)",
    }
    text = "\n".join(lines)
    rows = [f"{name}_before = {value}" for name, value in where.items() if f"{name}_before" in text]
    writer.out.helpers |= writer.text.helpers
    return [*rows, *lines], writer.out


class _Writer(States):
    def __init__(self, kernel: Kernel, note: Note, grouped: Sequence[str]) -> None:
        self.nodes = kernel.nodes()
        super().__init__(kernel, Names(self.nodes, taken=TAKEN, alias=_same_tile), grouped, note)
        self.names.set(sizes_as_numbers(self.nodes))
        self.loads: dict[Node, str] = {}  # what no statement has needed yet
        self.computed: set[Node] = set()
        self.waiting = [s for s in kernel.stores if not s.over_time]
        self.ahead: list[Carry] = []  # carried values that were advanced before the rest was computed

    def write(self) -> KernelText:
        k, out = self.kernel, self.out
        loaded = self._find_loads()
        self.carried_in()
        self.totals_in()
        accumulated = [s for s in k.stores if s.over_time]
        for s in accumulated:
            out.before.append(f"{s.name} = {zeros(s.node.axes)}")
        self.store_edges()
        self._statements(loaded)
        for s in accumulated:
            self._load_for([s.node])
            out.inside.append(self.note.mark(f"{s.name} += {self.text.value(s.node)}", s.node))
        for c in (*k.carries, *k.sums):
            if c not in self.ahead:
                self.advance(c, c.start.leaf.name)
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
        self._statements(self._find_loads())

    def _find_loads(self) -> set[Node]:
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
                self.loads[n] = f"{name} = {self.load_state(f'{name}_edges_ptr', n, 'slot')}"
            elif n in self.kernel.kept or leaf and n not in carried and n.level != "head":
                out.pointers.append(f"{name}_ptr")
                self.loads[n] = f"{name} = {self.load_rows(f'{name}_ptr', n)}"
            elif n not in carried:
                continue
            known.add(n)
        return known

    def _load_for(self, nodes: Iterable[Node]) -> None:
        """Loads that the nodes need and no earlier statement did: the later a tile is loaded, the less is held."""
        for n in topological(nodes, self.computed | set(self.loads)):
            if n in self.loads:
                self.out.inside.append(self.loads.pop(n))

    def _statements(self, known: set[Node]) -> None:
        """Every value after what it needs, and every result stored as soon as it is there."""
        out = self.out
        self._store_what_is_ready(known)
        todo = self.arrangement(known)
        for n, s in enumerate(todo):
            if not isinstance(s, LevelLoop):
                if self.word(s.node):
                    self._load_for(s.terms if isinstance(s, Part) else [s.node])
                    if isinstance(s, Part):
                        self._add_terms(s)
                    else:
                        self._assign(s.node, "")
                    if isinstance(s, Compute) or s.last:
                        self._catch_up(s.node)
                        self.computed.add(s.node)
                        self._store_what_is_ready(known)
                continue
            out.levels = True
            self._advance_ahead(todo[n:], known)
            self._load_for([*s.body, *s.sums])
            for total in s.sums:
                begin, origin = self._begin(total, known)
                out.inside.append(self.note.mark(f"{self.names[total]} = {begin}", origin))
            out.inside.append("for level in tl.static_range(LEVELS):")
            if any(isinstance(n.op, Mask) for n in s.body):
                out.helpers.add("_tile_siblings")
                out.inside.append("    siblings = _tile_siblings(time, 2**level)")
            for node in (x for x in s.body if x in self.names and x.level != "head"):
                self._assign(node, "    ")
            for total in s.sums:
                line = f"    {self.names[total]} += {self.text.use(total.args[0])}"
                out.inside.append(self.note.mark(line, total))
            self.computed |= set(s.sums)
            self._store_what_is_ready(known)

    def arrangement(self, known: set[Node]) -> list[Statement | Part]:
        """The statements of the loop, in the kernel's own order where it has one."""
        todo = statements(self.kernel.roots(), known)
        return arranged(todo, self.kernel.order, self.word, known) if self.kernel.order else [*todo]

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
            others = [d.write for d in self.kernel.carries if d is not c and d not in self.ahead]
            used = topological([*rest, *others, *(s.node for s in self.waiting)], have)
            if c not in self.ahead and not rest & set(below) and c.start not in used:
                self.ahead.append(c)
                self.advance(c, c.start.leaf.name)

    def _begin(self, total: Node, known: set[Node]) -> tuple[str, Node]:
        """What a sum over levels is added to, and what that becomes: the other terms of the only sum that it is part
        of, or zero."""
        users = [n for n in self.nodes if total in n.args]
        if len(users) == 1 and isinstance(users[0].op, Add) and users[0].axes == total.axes:
            others = [a for a in users[0].args if a is not total]
            have = known | self.computed
            ready = all(a in have or a not in self.names for a in topological(others, have))
            if ready and any(a.axes == total.axes for a in others):
                self._load_for(others)
                if users[0] in self.names:
                    self.names.set({total: self.names[users[0]]})
                self.text.summed[users[0]] = self.names[total]
                return self.text.sum(others, total), users[0]
        return zeros(tile_axes(total)), total

    def _catch_up(self, node: Node) -> None:
        """Where the state is that of the chunk before: what a sum over it becomes by that chunk's rows."""
        for c in (c for c in self.kernel.catch_up if c.start is node):
            out, name = self.out, self.names[node]
            lines, read = _rows_before(replace(self.kernel, sums=(c,)), name, self.note, self.grouped)
            out.helpers |= read.helpers
            out.pointers += [p for p in read.pointers if p not in out.pointers]
            out.grouped += [n for n in read.grouped if n not in out.grouped]
            out.inside.append("if chunk % EVERY == 1:  # the state is that at the start of the chunk before")
            out.inside += [f"    {line}" for line in lines]

    def _store_what_is_ready(self, known: set[Node]) -> None:
        for s in list(self.waiting):
            missing = [n for n in topological([s.node], known | self.computed) if n not in known | self.computed]
            if all(isinstance(n.op, Leaf) or n.level == "head" or n not in self.names for n in missing):
                self.waiting.remove(s)
                self._load_for([s.node])
                self.store_rows(s)
                if not self._has_variable(s.node):
                    self.out.inside[-1] = self.note.mark(self.out.inside[-1], s.node)

    def _has_variable(self, node: Node) -> bool:
        return node in self.names or (_same_tile(node) and self._has_variable(node.args[0]))

    def _assign(self, node: Node, indent: str) -> None:
        text = self.text.value(node)
        if text == self.names[node]:
            return
        self.out.inside.extend(self.note(f"{indent}{self.names[node]} = {text}", node, self.names))

    def advance(self, c: Carry, name: str) -> None:
        """The line by which a carried value of this name becomes that of the next chunk."""
        self._load_for([c.write, c.decay] if c.decay is not None else [c.write])
        kept = name
        if c.decay is not None:
            decay = broadcast(self.text.use(c.decay), tile_axes(c.decay), list(c.start.axes))
            kept = f"{name} * {operand(decay)}"
        self.out.inside.append(self.note.mark(f"{name} = {kept} + {self.text.use(c.write)}", c))
