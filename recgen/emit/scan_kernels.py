"""The kernels of the scan schedule as text: what each loads, computes and stores per token, and around the tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recgen.algebra.operations import Leaf
from recgen.algebra.program import Carry, Node, topological
from recgen.algebra.scan import log_decay_of
from recgen.plan.kernels import Kernel, Plan, Store
from recgen.plan.order import Compute, statements

from .groups import group_constants, head_row, place_lines
from .launch import KernelContext, Launch, host_value
from .layout import Layout
from .loop_lines import sizes_as_numbers
from .naming import Names, atom, is_constant, operand
from .notes import Note
from .torch_program import is_scalar
from .torch_scan import same_value
from .triton_program import EXTENT, TritonText, broadcast, tile_axes, zero_when_padded
from .triton_program import inside as exists

TAKEN = ("program", "tile", "head", "slot", "first", "last", "feature", "channel", "at", "t", "back", "step", "tokens")


@dataclass
class _Text:
    """The lines of one kernel, and what it takes, in order."""

    pointers: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)
    grouped: dict[str, None] = field(default_factory=dict)  # the inputs it reads that may have fewer heads, in order


class TokenKernel:
    """Writes one kernel of a scan."""

    def __init__(
        self, kernel: Kernel, states: Sequence[Carry], layout: Layout, note: Note, grouped: Sequence[str]
    ) -> None:
        self.kernel, self.layout, self.note, self.grouped = kernel, layout, note, grouped
        self.again = [c for c in states if c.start in kernel.edges]
        roots = [*kernel.roots(), *self._again_roots()]
        log = log_decay_of(kernel.carries[0])
        self.nodes = topological([*roots, *([log] if log is not None else [])], set(kernel.kept))
        self.names = Names(self.nodes, taken=TAKEN, alias=same_value)
        self.names.set(sizes_as_numbers(self.nodes))
        self.text = TritonText(self.names, hidden="st")
        self.entering = {n.args[0] for n in self.nodes if same_value(n) and n.args[0].level == "token"}
        self.out = _Text()

    def _again_roots(self) -> list[Node]:
        """What the steps of the state need, where the kernel takes them again."""
        return [n for c in self.again for n in c.hand_over]

    def write(self) -> tuple[KernelContext, Launch]:
        k, out, layout = self.kernel, self.out, self.layout
        self._load_head_values()
        self._start()
        given = set(k.kept)
        known = {*(c.start for c in k.carries), *k.edges, *given}
        self._load_tokens(topological([*k.roots(), *self._log()], given), out.inside)
        self._compute([s.node for s in k.stores], known, out.inside)
        for s in k.stores:
            self._store(s)
        self._advance(k.carries, known, out.inside, self._log())
        if self.kernel.alone:
            self._finish_alone()
        if k.edges:
            self._load_tokens(topological(self._again_roots(), given), out.again)
            self._advance(self.again, {*k.edges, *given}, out.again)
        out.helpers |= self.text.helpers
        body = "\n".join((*out.before, *out.again, *out.inside, *out.after))
        out.helpers |= {h for h in ("_load", "_store") if f"{h}(" in body}
        table = [*(["scratch_ptr"] if k.edges else []), "cuts_ptr"]
        numbers = [*out.scalars, *(["rows"] if "rows" in body else []), "slots", "first_slot", *layout.counts]
        numbers = [n for n in numbers if n not in ("slots", "first_slot") or self._uses(n, body)]
        constants = ["CHUNK"] * bool(k.edges) + layout.constants + [f"{n}_group" for n in out.grouped]
        out.before[:0] = place_lines(out.grouped)
        for lines in (out.again, out.inside):
            if re.search(r"\bat\b", "\n".join(lines)):
                lines.insert(0, f"at = {layout.token}")
        arguments = [*(f"{p}_ptr" for p in out.pointers), *table, *numbers, *(f"{c}: tl.constexpr" for c in constants)]
        states = [n.leaf.name for n in k.edges]
        context = KernelContext(
            k.name,
            k.purpose,
            k.tile,
            k.reverse,
            arguments,
            out.before,
            out.inside,
            out.after,
            bool(k.edges),
            out.again,
            states,
        )
        scalars = [host_value(n) for n in out.scalars]
        return context, Launch(k.name, [], out.pointers, scalars, k.tile, group_constants(out.grouped))

    def _uses(self, name: str, body: str) -> bool:
        return bool(self.kernel.edges) if name == "first_slot" else "slots" in body

    def _log(self) -> list[Node]:
        log = log_decay_of(self.kernel.carries[0]) if self.kernel.alone and not self.kernel.reverse else None
        return [] if log is None else [log]

    def _load_head_values(self) -> None:
        """Values that are the same for every token: loaded once."""
        computed = [n for n in self.nodes if n.level != "head" and n not in self.kernel.kept]
        read = {a for n in computed for a in n.args if a.level == "head"}
        for n in (n for n in self.nodes if n in read and (n.name or not is_constant(n))):
            name = self.names.get(n)
            if is_scalar(n):
                self.out.scalars.append(name)
                continue
            self.out.pointers.append(name)
            value = self.layout.load(f"{name}_ptr", self.layout.head, n.axes, wide=True)
            self.out.before.append(f"{name} = {value}")

    def _load_tokens(self, needed: Iterable[Node], lines: list[str]) -> None:
        for n in needed:
            if n.level == "token" and (isinstance(n.op, Leaf) or n in self.kernel.kept):
                name, axes = self.names[n], tile_axes(n, "st")
                if name not in self.out.pointers:
                    self.out.pointers.append(name)
                at = "at"
                if isinstance(n.op, Leaf) and name in self.grouped:
                    at = head_row("t", name)
                    self.out.grouped |= {name: None}
                lines.append(f"{name} = {self.layout.load(f'{name}_ptr', at, axes)}")

    def _start(self) -> None:
        """The carried values at the chunk's edge, and zeros for what is summed over its tokens."""
        out, carried = self.out, [c.start for c in self.kernel.carries]
        loaded = [*self.kernel.edges, *([] if self.kernel.alone else carried)]
        for n in loaded:
            edge = n.leaf.name
            out.pointers.append(f"{edge}_edges")
            value = self.layout.load(f"{edge}_edges_ptr", self.layout.row("slot"), n.axes, wide=True)
            out.before.append(f"{edge} = {value}")
        if self.kernel.alone:
            for n in carried:
                out.before.append(f"{n.leaf.name} = tl.zeros([{', '.join(EXTENT[a] for a in n.axes)}], tl.float32)")
            for log in self._log():
                axes = tile_axes(log, "st")
                zero = f"tl.zeros([{', '.join(EXTENT[a] for a in axes)}], tl.float32)" if axes else "0.0"
                out.before.append(f"total = {zero}")
        for s in self.kernel.stores:
            if s.over_time:
                along = s.node.axes
                zero = f"tl.zeros([{', '.join(EXTENT[a] for a in along)}], tl.float32)" if along else "0.0"
                out.before.append(f"{s.name} = {zero}")

    def _compute(self, roots: list[Node], known: set[Node], lines: list[str]) -> None:
        """Statements for the roots; what they have computed is known afterwards."""
        for s in statements(roots, known):
            if not isinstance(s, Compute) or s.node not in self.names or s.node.level == "head":
                continue
            value = self.text.value(s.node)
            axes = tile_axes(s.node, "st")
            if s.node in self.entering and axes and not zero_when_padded(s.node):
                value = f"tl.where({exists(axes)}, {value}, 0.0)"
            lines.extend(self.note(f"{self.names[s.node]} = {value}", s.node, self.names))
            known.add(s.node)

    def _advance(self, carries: Iterable[Carry], known: set[Node], lines: list[str], logs: Sequence[Node] = ()) -> None:
        """The steps of carried values: what they need is computed before the first of them is taken.

        logs: a log-decay that is summed over the tokens.
        """
        left = [c for c in carries if c.end is None or c.end not in known]
        self._compute([*(n for c in left for n in c.hand_over), *logs], known, lines)
        lines.extend(self.note.mark(f"total += {self.text.use(log)}", f"total = Σ_t {log.name}") for log in logs)
        for c in carries:
            line = self._step(c) if c.end is None or c in left else f"{c.start.leaf.name} = {self.names[c.end]}"
            lines.append(self.note.mark(line, c))

    def _step(self, c: Carry) -> str:
        name, axes = c.start.leaf.name, list(c.axes)
        write = broadcast(self.text.use(c.write), tile_axes(c.write, "st"), axes)
        kept = name
        if c.decay is not None:
            decay = broadcast(self.text.use(c.decay), tile_axes(c.decay, "st"), axes)
            kept = f"{name} * {operand(decay)}"
        return f"{name} = {kept} + {write}"

    def _store(self, s: Store) -> None:
        out, axes = self.out, tile_axes(s.node, "st")
        out.pointers.append(s.name)
        value = self.text.use(s.node)
        once = "v" not in axes
        if s.over_time:
            out.inside.append(self.note.mark(f"{s.name} += {self.text.value(s.node)}", s.node))
            row = "(tile * slots + slot)" if once else "slot"
            out.after.append(self.layout.store(f"{s.name}_ptr", self.layout.row(row), axes, s.name))
            return
        row = f"(tile * rows{' * H' if self.layout.heads else ''} + at)" if once else "at"
        converted = value if len(axes) == 2 or once else f"{atom(value)}.to({s.name}_ptr.dtype.element_ty)"
        line = self.layout.store(f"{s.name}_ptr", row, axes, converted)
        out.inside.append(line if self._has_variable(s.node) else self.note.mark(line, s.node))

    def _has_variable(self, node: Node) -> bool:
        return node in self.names or (same_value(node) and self._has_variable(node.args[0]))

    def _finish_alone(self) -> None:
        layout = self.layout
        for c in self.kernel.carries:
            name = c.start.leaf.name
            self.out.pointers.append(f"{name}_edges")
            self.out.after.append(layout.store(f"{name}_edges_ptr", layout.row("slot"), c.axes, name))
        for log in self._log():
            axes = tile_axes(log, "st")
            self.out.pointers.append("totals")
            once = "v" not in axes
            self.out.after.append(layout.store("totals_ptr", layout.row("slot"), axes, "total", once))


def scan_kernels(
    plan: Plan, layout: Layout, note: Note, grouped: Sequence[str]
) -> tuple[list[KernelContext], list[Launch], set[str]]:
    """The kernels in the order of their launch, their launches, and the helpers that they call."""
    contexts, launches, helpers = [], [], set()
    ends, ends_backward = plan.alone
    for kernel in (ends, plan.forward, ends_backward, *plan.backward):
        writer = TokenKernel(kernel, plan.program.carries, layout, note, grouped)
        context, launch = writer.write()
        contexts.append(context)
        launches.append(launch)
        helpers |= writer.out.helpers
    return contexts, launches, helpers
