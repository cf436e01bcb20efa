"""The kernel plan: a small typed IR between the algebra's programs and Triton text.

A kernel runs one program per segment of time, head and tile of its tiled axis, walks the segment's chunks in order (or
backwards), holds carried values in registers, and stores per-token, per-head or per-chunk results. A segment is a whole
sequence or a part of one, which the schedule decides. What a kernel computes is a slice of a tensor program; addresses,
loops and launches are the template's.
"""

from __future__ import annotations

from dataclasses import dataclass

from recgen.algebra.operations import Leaf
from recgen.algebra.program import Carry, Node, Program, topological


@dataclass(frozen=True)
class Store:
    """A result that leaves a kernel.

    kind: output (the operator's output or a gradient, in its tensor's dtype), kept (float32, for a later kernel),
    partial (float32, one slice per tile of the kernel, to be summed), or part (float32, completed by a later kernel).
    `over_time` results are accumulated over all chunks and stored once per segment and head.
    """

    name: str
    node: Node
    kind: str

    @property
    def over_time(self) -> bool:
        return self.node.level == "head"


@dataclass(frozen=True)
class Kernel:
    """One launch.

    `edges` are carried values of the other direction, read per chunk from where `stores_edges` left them. Where these
    are `sparse`, two chunks may share one, and `catch_up` says how the later one's sums follow. `totals` are sums over
    the sequence, which it reads, and `sums` are carried values of which it stores what its segment adds. One
    that runs `alone` starts its carried values from nothing, and stores where they end and the sum of their log-decay.
    One that is `whole` is launched only where one tile has the whole state. `order` names its variables in the order of
    their computation, where a better one is known than that of `statements`.
    """

    name: str
    purpose: str
    tile: str
    reverse: bool
    carries: tuple[Carry, ...]
    stores: tuple[Store, ...]
    kept: tuple[Node, ...] = ()
    edges: tuple[Node, ...] = ()
    stores_edges: tuple[Node, ...] = ()
    sparse: bool = False
    catch_up: tuple[Carry, ...] = ()
    stores_ends: bool = True
    totals: tuple[Node, ...] = ()
    sums: tuple[Carry, ...] = ()
    alone: bool = False
    whole: bool = False
    order: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[Node, ...]:
        """Token values that no tile can compute: torch does, before the launch."""
        return tuple(n for n in self.kept if n.level == "token")

    @property
    def starts(self) -> set[Node]:
        """The carried values at the start of the chunk."""
        return {c.start for c in self.carries}

    def roots(self) -> tuple[Node, ...]:
        ends = [n for c in (*self.carries, *self.sums) for n in c.hand_over]
        return (*(s.node for s in self.stores), *ends)

    def nodes(self) -> list[Node]:
        return topological(self.roots(), set(self.kept))

    def leaves(self) -> list[Node]:
        return [n for n in self.nodes() if isinstance(n.op, Leaf) or n in self.kept]


@dataclass(frozen=True)
class Epilogue:
    """What is left for torch after the last kernel: sums over tiles, and the token stage of what no kernel finishes."""

    sums: dict[Node, tuple[Store, ...]]
    outputs: dict[str, Node]


@dataclass(frozen=True)
class Plan:
    """Everything the emitter needs: programs for torch, kernels and epilogue for Triton, factorisation and sizes.

    `chunk_sizes` are the sizes a caller may ask for, `chunk_size` the default one, and `longest_chunk` bounds the chunk
    of the parallel form: 0 where nothing does. `alone`: the runs from nothing, forwards and backwards, of a scan's
    chunks or of the split schedule's segments. `whole`: one kernel for all backward kernels that walk the same way, for
    widths at which one tile has the whole state. `sums`: the kernel that sums what is written where every token reads
    the total, and `pairs` the parallel form's program.
    """

    program: Program
    adjoint: Program
    factorisation: str
    chunk_sizes: tuple[int, ...]
    chunk_size: int
    longest_chunk: int
    forward: Kernel
    backward: tuple[Kernel, ...]
    epilogue: Epilogue
    alone: tuple[Kernel, ...] = ()
    whole: tuple[Kernel, ...] = ()
    sums: Kernel | None = None
    pairs: Program | None = None

    @property
    def schedules(self) -> tuple[str, ...]:
        """The ways in which its kernels cut time, the default one first."""
        return (self.factorisation,) if self.factorisation in ("scan", "total") else ("fused", "split")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel, in the order of their launch; a whole one after those that it stands for."""
        sums = () if self.sums is None else (self.sums,)
        walks = [[k for k in (*self.backward, *self.whole) if k.reverse == way] for way in (False, True)]
        return (*self.alone[:1], *sums, self.forward, *walks[0], *self.alone[1:], *walks[1])

    @property
    def given(self) -> tuple[Node, ...]:
        """The token values that torch computes for the kernels."""
        sums = () if self.sums is None else (self.sums,)
        return tuple(dict.fromkeys(n for k in (*sums, self.forward, *self.backward) for n in k.given))
