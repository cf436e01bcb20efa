"""What launches the kernels: the buffers each result is written to, and the arguments in the kernel's order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recgen.algebra.operations import Cast, EveryToken, Leaf
from recgen.algebra.program import Node, topological
from recgen.algebra.scan import log_decay_of
from recgen.plan.kernels import Kernel, Plan, Store
from recgen.plan.order import Compute, statements
from recgen.spec.model import Tensor

from .groups import group_constants, place_lines
from .kernel_memory import KernelText
from .naming import Names
from .notes import Note
from .sizes import size_setup
from .stretch import stretch_text
from .torch_program import TorchText
from .triton_lines import kernel_text

AHEAD = 2  # launches of the forward pass: one to find where segments start, or what they sum to, and one for outputs


@dataclass(frozen=True)
class Launch:
    """The text of one launch: buffers, the call, and the lines that go with its results.

    after: the totals of what segments have summed. handed: the values that are handed over from segment to segment, in
    `reverse` or not, and where the segments' ends are; whether there are `totals` of a decay. when: what must hold for
    the launch, a choice of schedule or of tiles; nothing where it always takes place.
    """

    name: str
    buffers: list[str]
    pointers: list[str]
    scalars: list[str]
    tile: str
    constants: str
    after: list[str] = field(default_factory=list)
    handed: tuple[tuple[str, str], ...] = ()
    totals: bool = False
    reverse: bool = False
    when: str = ""


@dataclass(frozen=True)
class KernelContext:
    """A kernel for the template: its signature and its body.

    again: the steps of `states`, which a kernel that walks back takes first.
    """

    name: str
    purpose: str
    tile: str
    reverse: bool
    arguments: list[str]
    before: list[str]
    inside: list[str]
    after: list[str]
    edges: bool
    again: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    totals: bool = False
    counts: bool = False
    addressed: bool = True
    sparse: bool = False


def kernel_contexts(
    plan: Plan, note: Note, value: str, state: str, features: str, grouped: Sequence[str]
) -> tuple[list[KernelContext], list[Launch], set[str]]:
    """Every kernel with its launch, and the helpers that they call.

    state: what float32 buffers are made like. features: the letter of the feature width. grouped: the inputs that may
    have fewer heads.
    """
    contexts, launches, helpers = [], [], set()
    stretch = stretch_text(plan)
    for kernel in plan.kernels:
        text = kernel_text(kernel, note, grouped)
        contexts.append(_context(text))
        launch = _launch(text, value, state, features, grouped, stretch)
        launches.append(replace(launch, when=_condition(kernel, plan)))
        helpers |= text.helpers
    return contexts, launches, helpers


def _condition(kernel: Kernel, plan: Plan) -> str:
    if kernel.alone:
        return "grid.split"
    if kernel.whole:
        return f"grid.fits('{kernel.name}')"
    whole = [k.name for k in plan.whole if k.reverse == kernel.reverse]
    return f"not grid.fits('{whole[0]}')" if whole and kernel in plan.backward else ""


def host_value(scalar: str) -> str:
    """What is passed for a scalar argument of a kernel."""
    return f"float({scalar.removeprefix('float_')})" if scalar.startswith("float_") else scalar


def _scalars(text: KernelText) -> list[str]:
    extra = ["rows"] * text.partial_rows + ["segments"] * text.segments
    return [*text.scalars, *extra, "H"]


def _context(text: KernelText) -> KernelContext:
    k = text.kernel
    constants = ["K", "V", "CHUNK", "BM", "BV", "TILES"] + ["ENDS"] * bool(text.ends)
    constants += ["EVERY"] * k.sparse + ["LEVELS"] * text.levels + ["DOT", "PRECISION"] * text.products
    constants += [f"{n}_group" for n in text.grouped]
    arguments = [*text.pointers, "cuts_ptr", *_scalars(text), *(f"{c}: tl.constexpr" for c in constants)]
    before = [*place_lines(text.grouped), *text.before]
    return KernelContext(
        k.name,
        k.purpose,
        k.tile,
        k.reverse,
        arguments,
        before,
        text.inside,
        text.after,
        text.edges,
        ends=text.ends,
        totals=bool(k.totals),
        counts=text.counts,
        sparse=k.sparse,
        addressed=any(re.search(r"\bstart\b", line) for line in text.inside),
    )


def _launch(text: KernelText, value: str, state: str, features: str, grouped: Sequence[str], stretch: str) -> Launch:
    kernel = text.kernel
    buffers = [f"{s.name} = {_buffer(s, kernel, value, state, features, grouped)}" for s in kernel.stores]
    sizes, own = {"m": features, "v": "V"}, f"grid.tiles('{kernel.name}', '{kernel.tile}')"
    if kernel.sparse and kernel.stores_edges:
        buffers.append(f"stretch = {stretch}")
    apart = "stretch" if kernel.sparse else f"{own}[0]"
    buffers += [
        f"{n.leaf.name}_edges = {state}.new_empty(rows // {apart} + segments, *{n.leaf.name}_starts.shape[1:])"
        for n in kernel.stores_edges
    ]
    for c in kernel.sums:
        shape = ", ".join(["segments", "H", *(sizes[a] for a in c.axes)])
        buffers.append(f"{c.start.leaf.name}_parts = {state}.new_empty({shape})")
    constants = ", levels=True" * text.levels + ", stretch=stretch" * kernel.sparse
    constants += group_constants(text.grouped)
    constants += ", ENDS=not grid.split" * bool(text.ends) + ", **products" * text.products
    scalars = [host_value(s) for s in _scalars(text)[:-1]]
    pointers = [_passed(p[:-4], kernel) for p in text.pointers]
    after = [f"{c.start.leaf.name} = grid.total({c.start.leaf.name}_parts)" for c in kernel.sums]
    launch = Launch(kernel.name, buffers, pointers, scalars, kernel.tile, constants, after)
    if kernel.alone:
        handed = tuple((n, _passed(f"{n}_ends", kernel)) for n in (c.start.leaf.name for c in kernel.carries))
        buffers += [f"{x} = {n}.new_empty(segments, *{n}.shape[1:])" for n, x in handed if kernel.reverse]
        log = log_decay_of(kernel.carries[0])
        if log is not None:
            axes = [a for a in log.axes if a in "mv"]
            buffers.append(f"totals = {state}.new_empty({', '.join(['segments', 'H', *(sizes[a] for a in axes)])})")
        launch = replace(launch, handed=handed, totals=log is not None, reverse=kernel.reverse)
    return launch


def _passed(pointer: str, kernel: Kernel) -> str:
    """What is passed for a pointer: carried values are those at the start of the segment. Where segments end that start
    from nothing is in the place of where they start in truth, which the forward pass keeps.
    """
    if pointer == "owners":
        return "grid.owners"
    if kernel.alone and not kernel.reverse and pointer.endswith("_ends"):
        return f"{pointer.removesuffix('_ends')}_segments"
    return f"{pointer}_starts" if pointer in {c.start.leaf.name for c in kernel.carries} else pointer


def _buffer(s: Store, kernel: Kernel, value: str, state: str, features: str, grouped: Sequence[str]) -> str:
    tiled = kernel.tile not in s.node.axes if s.over_time else s.kind == "partial"
    widths = ["H", *({"m": features, "v": "V"}[a] for a in s.node.axes if a in "mv")]
    tiles = [f"grid.tiles('{kernel.name}', '{kernel.tile}')[2]"] * tiled
    return buffer(s, tiles, "segments", widths, value, state, grouped)


def buffer(
    store: Store,
    tiles: Sequence[str],
    stretches: str,
    widths: Sequence[str],
    value: str,
    state: str,
    grouped: Sequence[str],
) -> str:
    """Where a kernel's result goes: the output is made like `value`, float32 results like `state`.

    tiles: their number, where each has a result. stretches: the number of stretches of time, where each has one.
    grouped: the inputs that may have fewer heads; their gradients are per head of the operator.
    """
    if store.kind == "output" and store.name.startswith("d_"):
        name = store.name.removeprefix("d_")
        return f"_gradient_room({name}, H)" if name in grouped else f"torch.empty_like({name})"
    shape = [*tiles, *([stretches] if store.over_time else ["batch", "T"]), *widths]
    return f"{value if store.kind == 'output' else state}.new_empty({', '.join(shape)})"


def prologue_lines(kernels: Sequence[Kernel], like: str) -> tuple[list[str], list[Node]]:
    """Head values that kernels load, in torch; and their nodes."""
    heads: dict[Node, None] = {}
    for k in kernels:
        for n in k.nodes():
            if n.level != "head":
                heads.update(dict.fromkeys(a for a in n.args if a.level == "head" and not _is_given(a)))
    nodes = list(heads)
    return _torch_lines(nodes, like, {})[0], nodes


def _is_given(node: Node) -> bool:
    """Whether a value is an argument of the launch: a parameter or a number. The index of the head is not."""
    return isinstance(node.op, Leaf) and node.op.kind != "index"


def given_lines(plan: Plan, tensors: Sequence[Tensor]) -> tuple[list[str], list[str]]:
    """The token values that kernels take ready-made, in torch; and the names of the tensors that they are made from."""
    nodes = list(plan.given)
    leaves = [n.op.name for n in topological(nodes) if isinstance(n.op, Leaf) and n.op.kind in ("input", "param")]
    repeats = any(isinstance(n.op, EveryToken) for n in topological(nodes))
    first = tensors[0].name
    sources = list(dict.fromkeys([first, *leaves] if repeats or not leaves else leaves))  # `first` has the tokens
    like = first if first in sources else sources[0]
    setup = size_setup(nodes, sorted(tensors, key=lambda t: t.name not in sources), like)
    sources += [t.name for t in tensors if t.name not in sources and any(f"{t.name}.shape" in line for line in setup)]
    return setup + _torch_lines(nodes, like, {})[0], sources


def given_context(
    plan: Plan, tensors: Sequence[Tensor], extras: Sequence[str], grouped: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """What the template of the given values needs, and the line of a launch that computes them, if there are any."""
    lines, sources = given_lines(plan, tensors)
    names = [n.name for n in plan.given]
    passed = [f"_repeated({s}, H)" if s in grouped else s for s in sources]
    call = [f"{', '.join(names)} = _given({', '.join([*passed, *extras])})"] if names else []
    return {"given_lines": lines, "given_doc": given_doc(plan), "given_names": names, "given_from": sources}, call


def epilogue_lines(plan: Plan, like: str, grouped: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Sums over tiles and what torch computes from them; and the variable of each gradient that they compute."""
    e = plan.epilogue
    lines = []
    for node, stores in e.sums.items():
        parts = []
        for s in stores:
            kernel = next(k for k in plan.backward if s in k.stores)
            over = (0, 1) if s.over_time and kernel.tile not in s.node.axes else 0
            parts.append(s.name if s.kind == "part" else f"{s.name}.sum({over})")
        lines.append(f"{_sum_name(node, stores)} = {' + '.join(parts)}")
    known = {node: _sum_name(node, stores) for node, stores in e.sums.items()}
    known |= {n: n.name for n in plan.given}
    inputs = {n.leaf.name for n in topological(e.outputs.values(), set(known)) if _is_input(n)}
    for name in sorted(inputs):
        lines.append(f"{name} = {f'_repeated({name}, H)' if name in grouped else name}.float()")
    late, names = _torch_lines(list(e.outputs.values()), like, known)
    return lines + late, {name: names[node] for name, node in e.outputs.items()}


def _is_input(node: Node) -> bool:
    return isinstance(node.op, Leaf) and node.op.kind == "input"


def given_doc(plan: Plan) -> str:
    """Why kernels take token values ready-made."""
    if any(isinstance(n.op, Cast | EveryToken) for n in topological(plan.given)):
        return "What kernels load ready-made, in float32: features that turn or repeat from token to token."
    reason = "every feature of it depends on a token's whole vector"
    return f"What kernels cannot compute tile by tile, in float32: {reason}."


def _sum_name(node: Node, stores: Sequence[Store]) -> str:
    return node.name or node.args[0].name or f"{stores[0].name}_sum"


def _torch_lines(nodes: list[Node], like: str, known: Mapping[Node, str]) -> tuple[list[str], Names]:
    work = statements(nodes, known)
    names = Names([*known, *(s.node for s in work if isinstance(s, Compute))], keep=[*nodes, *known])
    names.set(dict(known))
    text = TorchText(names, like)
    lines = [f"{names[s.node]} = {text.value(s.node)}" for s in work if isinstance(s, Compute) and s.node in names]
    return lines, names
