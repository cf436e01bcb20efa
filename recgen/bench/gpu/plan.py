"""What a run does, in the order of importance, and at which sizes: the real ones, or tiny ones for a dry run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from recgen.bench.gpu.peers import PEERS

TIMED = (
    "simple_gla",
    "gla",
    "linear_attention",
    "mamba2",
    "retnet",
    "mlstm",
    "rwkv6",
    "gated_retention",
    "hgrn2",
    "lightning",
)
"""The operators that are timed, the most telling first."""


@dataclass(frozen=True)
class Shape:
    """Batch, heads, time, and the width of keys and of values."""

    B: int
    H: int
    T: int
    D: int

    def __str__(self) -> str:
        return f"B={self.B} H={self.H} T={self.T} D={self.D}"


@dataclass(frozen=True)
class CheckSizes:
    """Sizes of the checks of one part. Of `widths` the first counts that the kernels take.

    `usual` is the length of the checks that are about something else.
    """

    widths: tuple[int, ...]
    lengths: tuple[int, ...]
    documents: tuple[int, ...] = ()
    usual: int = 0
    B: int = 2
    H: int = 2


@dataclass(frozen=True)
class Extent:
    """How much a run does. The core checks are of every operator, the wide ones of those that are timed.

    shares  the processes among which one peer's configurations are compiled
    unit    seconds after which one check or one measurement counts as hanging
    measure seconds for all contenders of one comparison
    """

    core: CheckSizes
    wide: CheckSizes
    shapes: tuple[Shape, ...]
    decode: Shape
    decode_batches: tuple[int, ...]
    slots: int
    shares: int
    unit: float
    measure: float


REAL = Extent(
    core=CheckSizes((64, 16, 8), (257, 63, 1), (5, 0, 64, 130, 1), 100),
    wide=CheckSizes((128,), (257,), B=1),
    shapes=(
        Shape(8, 16, 4096, 128),
        Shape(32, 16, 2048, 128),
        Shape(1, 16, 32768, 128),
        Shape(8, 32, 2048, 256),
        Shape(8, 16, 4096, 64),
    ),
    decode=Shape(1, 16, 1, 128),
    decode_batches=(1, 32, 256),
    slots=16,
    shares=4,
    unit=180,
    measure=0.7,
)

DRY = Extent(
    core=CheckSizes((8,), (9, 1), (3, 0, 6), 5, B=1, H=1),
    wide=CheckSizes((20,), (5,), B=1, H=1),
    shapes=(Shape(1, 2, 32, 16), Shape(2, 1, 16, 8)),
    decode=Shape(1, 2, 1, 16),
    decode_batches=(1, 2),
    slots=2,
    shares=1,
    unit=60,
    measure=0,
)

DRY_OPERATORS = ("simple_gla", "linear_attention", "hgrn")


@dataclass(frozen=True)
class Job:
    """One thing to do with one operator, in as many units as it turns out to have.

    kind      check, compile, tune (compile a peer's kernels), time or decode
    part      of a check: core or wide
    width     of compile and tune: which of the shapes are meant
    share     of tune: this share of the peer's configurations
    shape     of time
    obstacle  of time: why the peer is left out, if it is
    """

    kind: str
    operator: str
    part: str = ""
    width: int = 0
    share: int = 0
    shape: Shape | None = None
    obstacle: str = ""

    def __str__(self) -> str:
        what = {
            "check": f"{self.part} checks of {self.operator}",
            "compile": f"compiling {self.operator} at width {self.width}",
            "tune": f"compiling what {self.operator} is compared with at width {self.width}, share {self.share + 1}",
            "time": f"timing {self.operator} at {self.shape}",
            "decode": f"timing one token of {self.operator}",
        }
        return what[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """A plain dict that JSON can hold; `from_dict` is its inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Job:
        shape = fields["shape"]
        return cls(**{**fields, "shape": None if shape is None else Shape(**shape)})


@dataclass(frozen=True)
class Batch:
    """Jobs that one process does, one after the other; `skip` units of the first are already done."""

    jobs: tuple[Job, ...]
    skip: int = 0


def at_once(operators: Sequence[str], extent: Extent, peers: bool) -> Iterator[Batch]:
    """What may run in many processes at the same time: checks, and compiling what will be timed.

    `peers` says whether there is a library to compare with.
    """
    timed = [name for name in TIMED if name in operators]
    widths = list(dict.fromkeys(shape.D for shape in extent.shapes))
    for width in widths[:1]:
        yield from (Batch((Job("compile", name, width=width),)) for name in timed)
    for name in (*timed, *(name for name in operators if name not in timed)):
        yield Batch((Job("check", name, "core"),))
    if peers:
        yield from _tune(timed, widths[:1], extent)
    for width in widths[1:]:
        yield from (Batch((Job("compile", name, width=width),)) for name in timed)
    yield from (Batch((Job("check", name, "wide"),)) for name in timed)
    if peers:
        yield from _tune(timed, widths[1:], extent)


def _tune(timed: Sequence[str], widths: Sequence[int], extent: Extent) -> Iterator[Batch]:
    """Operators that share a peer's kernels share what is compiled."""
    first: dict[tuple[str, ...], str] = {}
    for name in timed:
        if name in PEERS:
            first.setdefault(PEERS[name].kernels, name)
    for width in widths:
        for name in first.values():
            yield from (Batch((Job("tune", name, width=width, share=share),)) for share in range(extent.shares))


def alone(operators: Sequence[str], extent: Extent, obstacles: dict[tuple[str, int], str]) -> Batch:
    """What needs the GPU for itself, in one process: times, at the most telling shapes first.

    `obstacles`: why an operator's peer is left out at a width, where it is.
    """
    timed = [name for name in TIMED if name in operators]

    def times(shape: Shape) -> Iterator[Job]:
        for name in timed:
            yield Job("time", name, shape=shape, obstacle=obstacles.get((name, shape.D), ""))

    jobs = [*times(extent.shapes[0]), *(Job("decode", name) for name in timed)]
    for shape in extent.shapes[1:]:
        jobs += times(shape)
    return Batch(tuple(jobs))


def at_batch(shape: Shape, batch: int) -> Shape:
    """The same shape at another batch."""
    return replace(shape, B=batch)
