"""The recurrent kernels: the one-step recurrence on a tile of the state, in a loop over tokens or once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sympy

from recgen.algebra.chunkwise import repeated, token_value
from recgen.algebra.features import is_elementwise
from recgen.algebra.graph import Graph
from recgen.algebra.mathtext import step_equations
from recgen.algebra.operations import Leaf
from recgen.algebra.program import Node, topological
from recgen.algebra.recurrence import Recurrence, steady_update
from recgen.algebra.widths import is_wide
from recgen.plan.kernels import Kernel, Store
from recgen.plan.order import Compute, statements

from .groups import group_constants, head_row, place_lines
from .launch import KernelContext, Launch, host_value
from .layout import Layout
from .loop_lines import sizes_as_numbers
from .naming import Names
from .notes import Note
from .reference import own_factors, read_variable, splits
from .torch_program import is_scalar
from .triton_expr import TritonPrinter
from .triton_program import COLUMN, TritonText, broadcast, tile_axes


@dataclass(frozen=True)
class Recurrent:
    """The kernel that goes token by token, the one that takes a single token, and the helpers that they call.

    The latter's `again` is what it stores where there is no sequence.
    """

    context: KernelContext
    launch: Launch
    step: KernelContext
    step_launch: Launch
    helpers: set[str]


def recurrent_kernel(
    rec: Recurrence, forward: Kernel, like: Launch, layout: Layout, note: Note, grouped: Sequence[str]
) -> Recurrent:
    """The kernels, launched with the buffers of the chunk form's forward launch.

    grouped: the inputs that may have fewer heads.
    """
    graph = Graph()
    nodes = {
        q.name: token_value(graph, q, rec, name="" if is_wide(q.expr) and not rec.scans else q.name)
        for q in rec.quantities.values()
    }
    nodes = nodes if rec.scans else {name: repeated(graph, name, n) for name, n in nodes.items()}
    names = Names(graph, nodes.values(), taken=("scale", "t", "token", "at"))
    names.set({n: n.name for n in nodes.values() if not is_elementwise(n)})
    names.set(sizes_as_numbers(graph))
    text = TritonText(names, hidden="st")
    pointers: list[str] = []
    before: list[str] = []
    inside: list[str] = []
    shared: list[str] = []
    given = {n for n in nodes.values() if n.level == "token" and not is_elementwise(n)}
    own = topological(nodes.values(), given)
    moving = [n for n in own if n.level == "token" and n not in given]
    head_values = {n for n in nodes.values() if n.level == "head" and not is_scalar(n)}
    head_values |= {a for n in moving for a in n.args if a.level == "head" and not is_scalar(a)}
    for n in own:
        if n in given:
            pointers.append(names[n])
            inside.append(f"{names[n]} = {layout.load(f'{names[n]}_ptr', 'at', tile_axes(n, 'st'))}")
        elif n in head_values:
            pointers.append(names[n])
            before.append(f"{names[n]} = {layout.load(f'{names[n]}_ptr', layout.head, tile_axes(n, 'st'), wide=True)}")
        elif isinstance(n.op, Leaf) and n.level == "token":
            pointers.append(n.op.name)
            at = "at"
            if n.op.name in grouped:
                shared.append(n.op.name)
                at = head_row("token", n.op.name)
            inside.append(f"{n.op.name} = {layout.load(f'{n.op.name}_ptr', at, tile_axes(n, 'st'))}")
    for s in statements([n for n in nodes.values() if n not in head_values], given):
        if isinstance(s, Compute) and s.node in names:
            padded = s.node in nodes.values()
            value = text.value(s.node)
            line = f"{names[s.node]} = {_padded(text, s.node, value) if padded else value}"
            inside.append(note.mark(line, s.node))
    known = {rec.quantities[q].symbol: (names[n], rec.quantities[q].axes) for q, n in nodes.items()}
    lines, helpers = _steps(rec, known, note)
    inside += lines
    after = []
    for rule in rec.states:
        pointers.append(rule.name)
        row, once = layout.row("sequence"), "v" not in rule.axes
        before.append(f"{rule.name} = {layout.load(f'{rule.name}_ptr', row, rule.axes, wide=True)}")
        after.append(layout.store(f"{rule.name}_end_ptr", row, rule.axes, rule.name, once))
    used = {a for m in moving for a in m.args} | set(nodes.values())
    scalars = [names[n] for n in own if is_scalar(n) and n in used]
    before = [*place_lines(shared), *before]

    def kernel(
        name: str, stores: Sequence[Store], tables: Sequence[str], constants: str
    ) -> tuple[KernelContext, Launch]:
        everything = [*pointers, *(s.name for s in stores), *(f"{rule.name}_end" for rule in rec.states)]
        arguments = [
            *(f"{p}_ptr" for p in everything),
            *tables,
            *scalars,
            *layout.counts,
            *(f"{c}: tl.constexpr" for c in (*layout.constants, *(f"{n}_group" for n in shared))),
        ]
        lines = [*inside, *(_stored(s, layout, s.name) for s in stores)]
        context = KernelContext(name, "", "v", False, arguments, before, lines, after, False)
        passed = [host_value(s) for s in scalars]
        return context, replace(like, name=name, pointers=everything, scalars=passed, constants=constants)

    groups, output = group_constants(shared), [s for s in forward.stores if s.kind == "output"]
    chunked = ", chunked=False" * (not rec.scans)
    context, launch = kernel("_recurrent_forward", forward.stores, ["offsets_ptr"], groups + chunked)
    step, step_launch = kernel("_step_forward", output, ["slots_ptr", "states"], groups)
    step_launch = replace(step_launch, buffers=[b for b in like.buffers if b.startswith(f"{output[0].name} = ")])
    step.again.append(_stored(output[0], layout, "0.0"))
    return Recurrent(context, launch, step, step_launch, helpers | text.helpers)


def _stored(store: Store, layout: Layout, value: str) -> str:
    axis = [a for a in store.node.axes if a != "t"]
    if axis:
        place, mask = f"at * {layout.widths['v']} + {COLUMN[axis[0]]}", f"{COLUMN[axis[0]]}_valid"
    else:
        place, mask = "at", "tile == 0"
    converted = value if value == "0.0" else f"{value}.to({store.name}_ptr.dtype.element_ty)"
    return f"tl.store({store.name}_ptr + {place}, {converted}, mask={mask})"


def _padded(text: TritonText, node: Node, value: str) -> str:
    from .triton_program import inside, zero_when_padded

    axes = tile_axes(node, "st")
    return value if zero_when_padded(node) or not axes else f"tl.where({inside(axes)}, {value}, 0.0)"


def _steps(rec: Recurrence, known: dict[sympy.Symbol, tuple[str, str]], note: Note) -> tuple[list[str], set[str]]:
    lines: list[str] = []
    helpers: set[str] = set()
    reads: dict[sympy.Symbol, tuple[str, str]] = {}
    said = step_equations(rec)

    def text(expr: sympy.Expr, names: dict[sympy.Symbol, tuple[str, str]], axes: str) -> str:
        printer = TritonPrinter({s: broadcast(name, list(own), list(axes)) for s, (name, own) in names.items()})
        result = printer.text(expr)
        helpers.update(printer.helpers)
        return result

    def summed(expr: sympy.Expr, names: dict[sympy.Symbol, tuple[str, str]], axes: str) -> str:
        value = text(expr, names, axes)
        return f"tl.sum({value}, {axes.index('m')})" if "m" in axes else value

    for rule in rec.states:
        names = {**known, rule.symbol: (rule.name, rule.axes)}
        name = read_variable(rec, rule)
        update = f"{rule.name} = {text(steady_update(rule), names, rule.axes)}"
        update = note.mark(update, said[rule.name])
        read = note.mark(f"{name} = {summed(rule.read, names, rule.axes)}", said[rule.read_name])
        lines += [read, update] if rule.before else [update, read]
        if rule.own != 0 and not splits(rule, rec):
            own = f"{name} += {summed(rule.own, names, rule.axes)}"
            lines.append(note.mark(own, said[rule.read_name]))
        elif rule.own != 0:
            inner, outer = own_factors(rule.own, rec)
            value = f" * ({text(outer, names, 'v')})" if "v" in rule.axes else ""
            own = f"{name} += tl.sum({text(inner, names, 'm')}, 0){value}"
            lines.append(note.mark(own, said[rule.read_name]))
        reads[sympy.Symbol(rule.read_name, real=True)] = (name, rule.axes.replace("m", ""))
    if "o" not in {name for name, _ in reads.values()}:
        lines.append(note.mark(f"o = {text(rec.output, {**known, **reads}, 'v')}", said["o"]))
    return lines, helpers
