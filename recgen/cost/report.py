"""What `recgen compile` says of one operator: what its kernels take on each target, what they cost by the model, and
what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from recgen.targets import TARGETS
from recgen.verify.profile import Profile

from .gather import Advance, Form, Request, gather
from .model import DEVICES, SHAPES, Footprint, Shape, floor_seconds, kernel_seconds, scaled
from .traffic import Line

BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True)
class Kernel:
    """One kernel of a form, all its compiled variants together: of each fact the worst."""

    name: str
    hashes: tuple[str, ...]
    error: str
    launches: int
    programs: int
    warps: int
    registers: int
    spill: int
    shared: int
    on: int
    off: int
    instructions: dict[str, int] | None
    narrow: tuple[str, ...]

    @classmethod
    def of(cls, variants: list[dict[str, Any]]) -> Kernel:
        """The kernel whose variants have been compiled."""
        sums = {name: sum(v[name] for v in variants) for name in ("launches", "programs")}
        most = ("warps", "registers", "spill", "shared", "on", "off")
        worst = {name: max(v[name] for v in variants) for name in most}
        return cls(
            name=variants[0]["name"],
            hashes=tuple(v["hash"] for v in variants),
            error=next((v["error"] for v in variants if v["error"]), ""),
            instructions=max((v["instructions"] for v in variants), key=lambda found: sum((found or {}).values())),
            narrow=tuple(product for v in variants for product in v["narrow"]),
            **sums,
            **worst,
        )

    def faults(self, target: str, dtype: str) -> Iterator[str]:
        """What is wrong with it, a clause each. Float32 products are exact, so they may be off the tensor cores."""
        most = TARGETS[target].shared
        if self.shared > most:
            yield f"needs {self.shared:,} bytes of shared memory, and there are {most:,}"
        elif self.error:
            yield f"does not compile: {' '.join(self.error.split())[:300]}"
        if self.spill > 0:
            yield f"spills {self.spill} bytes per thread"
        if self.off and dtype != "float32":
            yield f"has {self.off} of {self.on + self.off} matrix products off the tensor cores"
        if self.narrow:
            yield f"multiplies in 32 bits for an address: {self.narrow[0]}"


@dataclass(frozen=True)
class Row:
    """One line of a target's table. The last three are None where the kernel could not be compiled or counted.

    bytes_per_token  loaded and stored, of one sequence and head
    seconds          modelled, at the first of SHAPES
    same_programs    whether as many programs were counted as are launched on the target
    """

    target: str
    form: str
    width: int
    kernel: Kernel
    bytes_per_token: float | None
    seconds: float | None
    same_programs: bool | None


@dataclass(frozen=True)
class Total:
    """Forward and backward of one form, modelled, and the floor; no seconds where a kernel is not known in full."""

    target: str
    form: str
    width: int
    shape: Shape
    seconds: float | None
    floor: float


@dataclass(frozen=True)
class Report:
    """What was found. `faults` are sentences that begin with the target and the kernel; `notes` say what is missing."""

    name: str
    dtype: str
    targets: tuple[str, ...]
    keys: dict[int, int]
    rows: tuple[Row, ...]
    totals: tuple[Total, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def as_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {"ok": self.ok, **asdict(self)}


def inspect(request: Request, progress: Advance = lambda done, steps, text: None) -> Report:
    """Compile and count everything that is asked for."""
    findings = gather(request, progress)
    rows: list[Row] = []
    totals: list[Total] = []
    faults: list[str] = []
    for target in request.targets:
        seen: set[str] = set()  # hashes of compiled variants: the recurrent form's backward is a chunk form's
        for form in request.forms:
            result, lines = findings.compiled[target, form], findings.counted[form]
            kernels = _kernels(result["kernels"])
            if result["error"] and not any(kernel.error for kernel in kernels):
                faults.append(f"{target}: {form} cannot be called: {result['error']}")
            fresh = [kernel for kernel in kernels if not seen.issuperset(kernel.hashes)]
            rows += [_row(request, target, form, kernel, lines) for kernel in fresh]
            totals += _totals(request, target, form, kernels, lines)
            for kernel in fresh:
                faults += [f"{target}: {kernel.name} ({form}) {text}" for text in kernel.faults(target, request.dtype)]
                seen |= set(kernel.hashes)
    notes = tuple(f"{form} is not counted: {reason}" for form, reason in findings.uncounted.items())
    found = (tuple(rows), tuple(totals), tuple(faults), notes)
    return Report(request.name, request.dtype, request.targets, request.keys, *found)


def _kernels(compiled: list[dict[str, Any]]) -> list[Kernel]:
    names = dict.fromkeys(kernel["name"] for kernel in compiled)
    return [Kernel.of([kernel for kernel in compiled if kernel["name"] == name]) for name in names]


def _row(request: Request, target: str, form: Form, kernel: Kernel, lines: dict[str, Line]) -> Row:
    line = lines.get(kernel.name)
    if kernel.error or line is None:
        return Row(target, form.name, form.width, kernel, None, None, None)
    same = round(line.at(request.lengths[1]).programs) == kernel.programs
    seconds = _seconds(kernel, line, SHAPES[0], request.dtype, target)
    return Row(target, form.name, form.width, kernel, line.per_token.moved, seconds, same)


def _seconds(kernel: Kernel, line: Line, shape: Shape, dtype: str, target: str) -> float:
    off = kernel.off / max(1, kernel.on + kernel.off)
    footprint = Footprint(kernel.warps, kernel.registers, kernel.shared, off)
    return kernel_seconds(scaled(line.at(shape.tokens), shape), footprint, dtype, DEVICES[target])


def _totals(
    request: Request, target: str, form: Form, kernels: Iterable[Kernel], lines: dict[str, Line]
) -> Iterator[Total]:
    for shape in SHAPES:
        once = bytes_once(request.about, shape, request.keys[form.width], form.width, request.dtype)
        floor = floor_seconds(once, DEVICES[target])
        seconds = None
        if kernels and all(kernel.name in lines and not kernel.error for kernel in kernels):
            seconds = sum(_seconds(kernel, lines[kernel.name], shape, request.dtype, target) for kernel in kernels)
        yield Total(target, form.name, form.width, shape, seconds, floor)


def bytes_once(about: Profile, shape: Shape, keys: int, width: int, dtype: str) -> int:
    """The bytes of what a forward and a backward call cannot do without: inputs read twice, and once each the output
    written, its gradient read, the gradients of the inputs written."""
    letters = about.letters(shape.batch, shape.tokens, shape.heads, keys, width)
    if "H" not in {axis for axes in about.inputs.values() for axis in axes}:
        letters["D"] = shape.heads * width
    inputs = [prod(letters[axis] for axis in axes) for axes in about.inputs.values()]
    output = shape.batch * shape.tokens * shape.heads * width
    return (3 * sum(inputs) + 2 * output) * BYTES[dtype]
