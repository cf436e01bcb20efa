"""What the kernels of a call do, counted in Triton's interpreter: bytes, products, arithmetic, turns of loops.

    with counting() as counts:
        o, _ = module.operator(**inputs, mode="chunk", backend="triton")
        o.sum().backward()
    counts["_chunk_forward"].loaded

Counted is what the programs ask for: a lane that a mask hides moves nothing, and what two programs load is loaded
twice. Caches are not modelled. The process must have been started with TRITON_INTERPRET=1.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from math import prod
from types import FrameType
from typing import Any

import numpy as np

from .jobs import Job, call
from .process import serve

SPECIAL = {np.exp, np.exp2, np.log, np.log2, np.sqrt, np.sin, np.cos, np.divide}
SPECIAL_LANES = 8
"""What one exponential, logarithm, root or division counts as: GPUs have that many times fewer units for them."""


@dataclass
class Counts:
    """The work of one kernel, all its launches and programs together.

    loaded, stored  bytes; an atomic update counts as both
    products        multiplications and additions of matrix products
    arithmetic      floating-point operations on single elements
    turns           turns of the program's longest loop that loads, summed over programs
    """

    launches: float = 0
    programs: float = 0
    loaded: float = 0
    stored: float = 0
    products: float = 0
    arithmetic: float = 0
    turns: float = 0

    @property
    def moved(self) -> float:
        """Bytes in either direction."""
        return self.loaded + self.stored


@dataclass(frozen=True)
class Line:
    """Counts that grow with the number of tokens: at T tokens there are `fixed` + T · `per_token`."""

    fixed: Counts
    per_token: Counts

    @classmethod
    def through(cls, first: int, at_first: Counts, second: int, at_second: Counts) -> Line:
        """The line through the counts at two lengths."""
        fixed, slope = Counts(), Counts()
        for field in fields(Counts):
            low, high = getattr(at_first, field.name), getattr(at_second, field.name)
            growth = (high - low) / (second - first)
            setattr(slope, field.name, growth)
            setattr(fixed, field.name, low - growth * first)
        return cls(fixed, slope)

    def at(self, T: int) -> Counts:
        """The counts at T tokens."""
        pairs = zip(asdict(self.fixed).items(), asdict(self.per_token).values(), strict=True)
        return Counts(**{name: max(0.0, fixed + T * slope) for (name, fixed), slope in pairs})


def lines(job: Job, lengths: tuple[int, int]) -> dict[str, Line]:
    """Kernel name → its counts as a line through those at two lengths."""
    at = []
    for length in lengths:
        with counting() as counts:
            call(Job(**{**asdict(job), "T": length}))
        at.append(counts)
    first, second = at
    return {name: Line.through(lengths[0], first.get(name, Counts()), lengths[1], second[name]) for name in second}


@contextlib.contextmanager
def counting() -> Iterator[dict[str, Counts]]:
    """Count the kernels that are interpreted inside the block, by their names, in the order of their first launches."""
    from triton.runtime import interpreter

    counts: dict[str, Counts] = {}
    meter = _Meter(counts)
    builder, executor, reduction = (
        interpreter.InterpreterBuilder,
        interpreter.GridExecutor,
        interpreter.ReduceScanOpInterface,
    )
    watched = [
        (executor, "__call__", meter.launch),
        (builder, "set_grid_idx", meter.program),
        (builder, "create_masked_load", meter.load),
        (builder, "create_masked_store", meter.store),
        (builder, "create_atomic_rmw", meter.atomic),
        (builder, "create_dot", meter.dot),
        (builder, "binary_op", meter.binary),
        (builder, "ternary_op", meter.ternary),
        (builder, "unary_op", meter.unary),
        (reduction, "apply", meter.reduce),
    ]
    with contextlib.ExitStack() as undo:
        for owner, name, wrap in watched:
            original = getattr(owner, name)
            setattr(owner, name, wrap(original))
            undo.callback(setattr, owner, name, original)
        yield counts


Method = Callable[..., Any]


class _Meter:
    """Wraps the interpreter's methods so that each call is counted for the kernel that runs."""

    def __init__(self, counts: dict[str, Counts]) -> None:
        self.counts = counts
        self.kernel = ""
        self.now = Counts()  # of the kernel that runs
        self.loads: Counter[int] = Counter()  # place in the kernel → loads of this program

    def launch(self, original: Method) -> Method:
        def launched(executor: Any, *arguments: Any, **options: Any) -> Any:
            self.kernel = executor.fn.__name__
            self.now = self.counts.setdefault(self.kernel, Counts())
            self.now.launches += 1
            try:
                return original(executor, *arguments, **options)
            finally:
                self._end_program()

        return launched

    def program(self, original: Method) -> Method:
        def entered(builder: Any, *index: int) -> Any:
            self._end_program()
            self.now.programs += 1
            return original(builder, *index)

        return entered

    def _end_program(self) -> None:
        self.now.turns += max(self.loads.values(), default=0)
        self.loads.clear()

    def load(self, original: Method) -> Method:
        def loaded(builder: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
            self.now.loaded += _bytes(pointers, mask)
            self.loads[self._place()] += 1
            return original(builder, pointers, mask, *rest)

        return loaded

    def _place(self) -> int:
        """The instruction of the kernel that is being interpreted."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_name != self.kernel:
            frame = frame.f_back
        return frame.f_lasti if frame is not None else 0

    def store(self, original: Method) -> Method:
        def stored(builder: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
            self.now.stored += _bytes(pointers, mask)
            return original(builder, pointers, value, mask, *rest)

        return stored

    def atomic(self, original: Method) -> Method:
        def updated(builder: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
            size = _bytes(pointers, mask)
            self.now.loaded += size
            self.now.stored += size
            return original(builder, operation, pointers, value, mask, *rest)

        return updated

    def dot(self, original: Method) -> Method:
        def multiplied(builder: Any, left: Any, right: Any, *rest: Any) -> Any:
            self.now.products += 2 * prod(left.data.shape) * right.data.shape[-1]
            return original(builder, left, right, *rest)

        return multiplied

    def binary(self, original: Method) -> Method:
        return lambda builder, left, right, op: self._element(original(builder, left, right, op), op)

    def ternary(self, original: Method) -> Method:
        return lambda builder, first, second, third, op: self._element(original(builder, first, second, third, op), op)

    def unary(self, original: Method) -> Method:
        return lambda builder, argument, op: self._element(original(builder, argument, op), op)

    def _element(self, result: Any, op: Any) -> Any:
        if result.data.dtype.kind == "f":
            self.now.arithmetic += result.data.size * (SPECIAL_LANES if op in SPECIAL else 1)
        return result

    def reduce(self, original: Method) -> Method:
        def reduced(operation: Any, values: Any) -> Any:
            first = values[0] if isinstance(values, tuple) else values
            if first.handle.data.dtype.kind == "f":
                self.now.arithmetic += first.handle.data.size
            return original(operation, values)

        return reduced


def _bytes(pointers: Any, mask: Any) -> int:
    lanes = int(np.count_nonzero(np.broadcast_to(mask.data, pointers.data.shape)))
    return int(lanes * (pointers.get_element_ty().primitive_bitwidth // 8))


def main() -> None:
    """Answer tasks {job, lengths} with {error, lines: {kernel: {fixed, per_token}}}."""
    np.seterr(all="ignore")  # values mean nothing here

    def answer(task: dict[str, Any]) -> dict[str, Any]:
        try:
            found = lines(Job(**task["job"]), tuple(task["lengths"]))
        except Exception as problem:  # what the interpreter cannot run may still compile
            return {"error": f"{type(problem).__name__}: {problem}"[:300], "lines": {}}
        return {"error": None, "lines": {name: asdict(line) for name, line in found.items()}}

    serve(answer)


if __name__ == "__main__":
    main()
