"""The fused schedule: carried values stay in registers, one forward launch, backward launches cut by what they carry.

The adjoint is sliced at its boundary to the token stage: per quantity (query, key, value, log-decay, …) the terms of
its gradient. Terms that need the gradient carried backwards go to kernels that walk the chunks in reverse; the others
to a kernel that walks forwards and recomputes the carried state. A term that needs both reads the states that the
forward walk stored at the chunks' edges. Each kernel tiles the axis that its results have, so every result is reduced
over the other axis inside one program, and nothing is added atomically.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from recgen.algebra.features import is_elementwise
from recgen.algebra.graph import Graph
from recgen.algebra.operations import Accumulate, Add, Contract, Reduce, Rows, Unrows
from recgen.algebra.program import Carry, Node, Program, topological

from .edges import sparse
from .kernels import Epilogue, Kernel, Store
from .late import inner_sums
from .tiling import NotTileable, partial_values

NAMES = {
    (False, "m"): ("_chunk_backward_query", "gradients of what reads the state; walks forwards with the state"),
    (True, "m"): ("_chunk_backward_key", "gradients of what writes to the state; walks backwards with its gradient"),
    (True, "v"): (
        "_chunk_backward_value",
        "gradients of the values written; walks backwards with the state's gradient",
    ),
    (False, "v"): ("_chunk_backward_output", "gradients of what leaves the state; walks forwards with the state"),
}


WHOLE = {
    False: ("_chunk_backward_reads", "gradients of what reads the state and of what leaves it, in one walk"),
    True: ("_chunk_backward_writes", "gradients of all that writes to the state, in one walk backwards"),
}


@dataclass(frozen=True)
class Boundary:
    """Where the chunk stage hands a gradient to the token stage: Unrows(total), or a sum over time for a head."""

    node: Node
    terms: tuple[Node, ...]

    @property
    def name(self) -> str:
        return self.node.name or self.node.args[0].name

    @property
    def tile(self) -> str:
        return "v" if "v" in self.node.axes and "m" not in self.node.axes else "m"


def fused(program: Program, adjoint: Program) -> tuple[Kernel, tuple[Kernel, ...], Epilogue]:
    """The forward kernel, the backward kernels in launch order, and the epilogue."""
    output = program.outputs["o"].args[0]
    boundaries = [_boundary(n) for n in _boundary_nodes(adjoint)]
    for b in boundaries:
        if not b.name:  # the gradient of what has no name itself
            program.graph.label(b.node, "d_sum" if b.node.level == "head" else "d_rows")
    given = given_values(program, adjoint)
    kept: tuple[Node, ...] = (*given, output) if output in adjoint.nodes() else given
    kept = _kept(program, _assign(program, adjoint, boundaries, kept), kept)
    assigned = _assign(program, adjoint, boundaries, kept)
    by_kernel = tuple(n for n in kept if n is not output and n not in given)
    forward = Kernel(
        "_chunk_forward",
        "outputs and the final state",
        "v",
        False,
        program.carries,
        (Store("o", program.outputs["o"], "output"), *(Store(n.name, n, "kept") for n in by_kernel)),
        tuple(n for n in given if n in program.nodes()),
    )
    kernels, epilogue = _slices(program, adjoint, boundaries, assigned, kept)
    partial_values(forward.roots(), forward.tile, given)
    return forward, kernels, epilogue


def whole(backward: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """One kernel for each two that walk the same way: where a tile has the whole state, they share what they load."""
    found = []
    for way, (name, purpose) in WHOLE.items():
        parts = [k for k in backward if k.reverse == way]
        if len(parts) < 2:
            continue
        fields = ("carries", "stores", "kept", "edges", "stores_edges", "catch_up")
        merged: dict[str, Any] = {f: _union(getattr(k, f) for k in parts) for f in fields}
        merged |= {f: any(getattr(k, f) for k in parts) for f in ("stores_ends", "sparse")}
        found.append(Kernel(name, purpose, parts[0].tile, way, **merged, whole=True))
    return tuple(found)


def _union(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(x for part in parts for x in part))


def given_values(*programs: Program) -> tuple[Node, ...]:
    """The token values that enter chunks and that no tile can compute, such as a feature map over the whole width."""
    rows = (n.args[0] for p in programs for n in p.nodes() if isinstance(n.op, Rows))
    return tuple(dict.fromkeys(n for n in rows if not is_elementwise(n)))


def _boundary_nodes(adjoint: Program) -> list[Node]:
    """Unrows nodes, and head nodes that are sums over the rows of all chunks."""
    nodes = adjoint.nodes()
    over_rows = {n for n in nodes if isinstance(n.op, Accumulate) and n.args[0].level == "chunk"}
    sums = [n for n in nodes if isinstance(n.op, Add) and set(n.args) <= over_rows]
    inside = {a for n in sums for a in n.args}
    single = [n for n in nodes if n in over_rows - inside]
    ahead = set(topological(c.write for c in adjoint.carries))
    return [n for n in nodes if isinstance(n.op, Unrows) and n not in ahead] + sums + single


def _boundary(node: Node) -> Boundary:
    if isinstance(node.op, Unrows):
        total = node.args[0]
        return Boundary(node, total.args if isinstance(total.op, Add) else (total,))
    return Boundary(node, node.args if isinstance(node.op, Add) else (node,))


def _carried(node: Node, names: Iterable[Node], kept: Iterable[Node]) -> set[Node]:
    return set(topological([node], set(kept))) & set(names)


Assignment = dict[Node, dict[bool, tuple[Node, ...]]]  # boundary → direction → its terms there


def _assign(program: Program, adjoint: Program, boundaries: list[Boundary], kept: tuple[Node, ...]) -> Assignment:
    """Which terms of each boundary are computed walking forwards (False) and backwards (True)."""
    states, grads = [c.start for c in program.carries], [c.start for c in adjoint.carries]
    assigned: Assignment = {}
    work: dict[bool, set[Node]] = {False: set(), True: set()}
    mixed = []
    for b in boundaries:
        backwards = [t for t in b.terms if _carried(t, grads, kept)]
        free = [t for t in b.terms if t not in backwards]
        if backwards and any(_carried(t, states, kept) for t in free):
            mixed.append((b, free))
            continue
        assigned[b.node] = {bool(backwards): b.terms}
        work[bool(backwards)] |= set(topological(b.terms))
    for b, free in mixed:
        forwards = [t for t in free if _carried(t, states, kept) or _extra(t, work[False]) <= _extra(t, work[True])]
        assigned[b.node] = {False: tuple(forwards), True: tuple(t for t in b.terms if t not in forwards)}
    return assigned


def _extra(term: Node, work: set[Node]) -> int:
    """Matrix products that a term needs beyond the work that is done anyway."""
    return sum(isinstance(n.op, Contract) for n in topological([term]) if n not in work)


def _kept(program: Program, assigned: Assignment, known: tuple[Node, ...]) -> tuple[Node, ...]:
    """Forward values that a backward kernel cannot compute from its tile, found by trying."""
    forward = set(program.nodes())
    kept = list(known)
    for node, parts in assigned.items():
        for terms in parts.values():
            while True:
                try:
                    partial_values(terms, _boundary(node).tile, kept)
                    break
                except NotTileable as problem:
                    new = [n for n in problem.needed if n in forward and "i" not in n.axes and "t" in n.axes]
                    if not new:
                        raise
                    kept.extend(new)
    return tuple(kept)


def _slices(
    program: Program, adjoint: Program, boundaries: list[Boundary], assigned: Assignment, kept: tuple[Node, ...]
) -> tuple[tuple[Kernel, ...], Epilogue]:
    g = program.graph
    stores: dict[tuple[bool, str], list[Store]] = {}
    totals: dict[Node, Node] = {}  # boundary → the node a kernel completes it with
    home: dict[Node, tuple[bool, str]] = {}
    sums: dict[Node, list[Store]] = {}
    for b in boundaries:
        parts = assigned[b.node]
        whole = all(not (set(p) & partial_values(p, b.tile, kept)) for p in parts.values()) and b.node.level == "token"
        loaded: list[Node] = []
        for direction in sorted(parts):
            own = _in_one_loop(g, parts[direction], b.name)
            terms = g.add(*own, *loaded)
            piece = g.unrows(terms) if b.node.level == "token" else g.add(*own)
            last = direction == max(parts)
            if whole and last:
                totals[b.node], home[b.node] = piece, (direction, b.tile)
            elif whole:
                name = f"{b.name}_part"
                stores.setdefault((direction, b.tile), []).append(Store(name, piece, "part"))
                loaded = [g.leaf(name, "kept", b.node.axes, "chunk")]
            else:
                way = "reverse" if direction else "forward"
                store = Store(f"{b.name}_{way}", piece, "partial")
                stores.setdefault((direction, b.tile), []).append(store)
                sums.setdefault(b.node, []).append(store)
    late: dict[str, Node] = {}
    whole_nodes = {b.node: b.name for b in boundaries}
    for name, out in adjoint.outputs.items():
        needs = [n for n in topological([out], set(whole_nodes)) if n in whole_nodes]
        places = {home.get(n) for n in needs}
        whole_path = is_elementwise(out, whole_nodes)
        place = places.pop() if len(places) == 1 else None
        if place is not None and out.level == "token" and whole_path:
            stores.setdefault(place, []).append(Store(name, g.replace(out, totals), "output"))
            continue
        late[name] = out
    inner = inner_sums(late.values(), whole_nodes, home)
    for n, place in inner.items():
        summed = next(b for b in topological([n], set(whole_nodes)) if b in whole_nodes)
        g.label(n, f"sum_of_{whole_nodes[summed]}")
        sums[n] = [Store(n.name, g.replace(n, totals), "partial")]
        stores.setdefault(place, []).extend(sums[n])
    for n in topological(late.values(), {*whole_nodes, *inner}):
        if n in home and n not in sums:  # complete in its kernel, but needed after it
            sums[n] = [Store(f"{whole_nodes[n]}_rows", totals[n], "part")]
            stores.setdefault(home[n], []).extend(sums[n])
    return _kernels(program, adjoint, stores, kept), Epilogue({n: tuple(s) for n, s in sums.items()}, late)


def _in_one_loop(g: Graph, terms: tuple[Node, ...], name: str) -> tuple[Node, ...]:
    """The terms, those that are sums over the levels of the pair tree as one such sum."""
    sums = [t for t in terms if isinstance(t.op, Reduce) and t.op.over == "s"]
    if len(sums) < 2:
        return terms
    inside = g.add(*(t.args[0] for t in sums))
    return (*(t for t in terms if t not in sums), g.reduce(inside, "s", name=f"{name}_levels"))


def _kernels(
    program: Program, adjoint: Program, stores: dict[tuple[bool, str], list[Store]], kept: tuple[Node, ...]
) -> tuple[Kernel, ...]:
    states = {c.start: c for c in program.carries}
    kernels: list[Kernel] = []
    first_reverse = True
    for direction, tile in sorted(stores, key=lambda k: (k[0], k[1])):
        results = tuple(stores[direction, tile])
        own = adjoint.carries if direction else program.carries
        carries = _needed([s.node for s in results], own, kept, always=direction and first_reverse)
        name, purpose = NAMES[direction, tile]
        kernel = Kernel(name, purpose, tile, direction, carries, results, kept, stores_ends=direction and first_reverse)
        used = set(kernel.nodes())
        edges = tuple(s for s in states if direction and s in used)
        kernels.append(replace(kernel, kept=tuple(n for n in kept if n in used), edges=edges))
        first_reverse = first_reverse and not direction
    edges = tuple(dict.fromkeys(e for k in kernels for e in k.edges))
    if not edges:
        return tuple(kernels)
    kernels[0] = _with_edges(kernels[0], [states[e] for e in edges], states)
    return sparse(program.graph, kernels, states, kept)


def _needed(roots: list[Node], carries: tuple[Carry, ...], kept: tuple[Node, ...], always: bool) -> tuple[Carry, ...]:
    """The carried values that the roots depend on, directly or through the hand-over of another one."""
    needed: list[Carry] = list(carries) if always else []
    while True:
        ends = [n for c in needed for n in c.hand_over]
        used = set(topological([*roots, *ends], set(kept)))
        more = [c for c in carries if c.start in used and c not in needed]
        if not more:
            return tuple(c for c in carries if c in needed)
        needed.extend(more)


def _with_edges(kernel: Kernel, wanted: list[Carry], states: dict[Node, Carry]) -> Kernel:
    """The forward walk also stores the carried values at the chunks' edges, for the kernels that walk backwards."""
    if kernel.reverse:
        raise ValueError("no kernel walks forwards to store the states that a backward walk needs")
    carries = tuple(c for c in states.values() if c in kernel.carries or c in wanted)
    return replace(kernel, carries=carries, stores_edges=tuple(c.start for c in wanted))
