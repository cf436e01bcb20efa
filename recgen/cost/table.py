"""The report of `recgen compile` as text: per target one table of kernels and one of totals, then what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from recgen.tables import aligned

from .model import DEVICES, SHAPES
from .report import Report, Row, Total

KERNELS = (
    "kernel", "form", "width", "registers", "spill", "shared", "warps", "tensor cores", "off", "launches", "B/token",
    "time",
)  # fmt: skip
TOTALS = ("form", "width", "call", "time", "floor", "times the floor")
WORDS = {"kernel", "form", "call", "tensor cores"}


def render(report: Report) -> str:
    """The whole report."""
    parts = [part for target in report.targets for part in _target(report, target)]
    return "\n\n".join([*parts, "\n".join(_ending(report))])


def _target(report: Report, target: str) -> Iterator[str]:
    rows = [row for row in report.rows if row.target == target]
    totals = [total for total in report.totals if total.target == target]
    device = DEVICES[target].name
    yield f"{report.name} on {target}, {report.dtype}\n" + _table(KERNELS, map(_kernel, rows))
    yield f"Modelled on the data sheet of {device}, forward + backward\n" + _table(TOTALS, map(_total, totals))


def _kernel(row: Row) -> tuple[str, ...]:
    kernel = row.kernel
    name = kernel.name if len(kernel.hashes) == 1 else f"{kernel.name} ({len(kernel.hashes)} variants)"
    if kernel.error and kernel.registers < 0:
        return (name, row.form, str(row.width), *["–"] * 6, str(kernel.launches), "–", "fails")
    moved = "–" if row.bytes_per_token is None else f"{'' if row.same_programs else '~'}{row.bytes_per_token:,.0f}"
    numbers = (known(kernel.registers), known(kernel.spill), f"{kernel.shared:,}", str(kernel.warps))
    time = "fails" if kernel.error else _time(row.seconds)
    tensor = _instructions(kernel.instructions)
    return (name, row.form, str(row.width), *numbers, tensor, str(kernel.off), str(kernel.launches), moved, time)


def _instructions(found: dict[str, int] | None) -> str:
    if found is None:
        return "?"
    return ", ".join(f"{count} {name}" for name, count in found.items()) or "–"


def _total(total: Total) -> tuple[str, ...]:
    ratio = "–" if total.seconds is None else f"{total.seconds / total.floor:.1f}"
    return total.form, str(total.width), str(total.shape), _time(total.seconds), duration(total.floor), ratio


def _ending(report: Report) -> Iterator[str]:
    narrower = {width: keys for width, keys in report.keys.items() if keys != width}
    for width, keys in narrower.items():
        yield f"Width {width} has {keys} key channels, which make at most {width} features."
    if any(row.same_programs is False for row in report.rows):
        yield "~ counted with other tiles than the target is given."
    yield "off      matrix products off the tensor cores"
    yield "B/token  bytes loaded and stored per token and head, counted in Triton's interpreter"
    yield f"time     a model, not a measurement: {SHAPES[0]}"
    yield from report.notes
    for fault in report.faults:
        yield f"FAULT {fault}"


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds)


def known(number: int) -> str:
    """A number that a target's tools may not tell."""
    return "?" if number < 0 else str(number)


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _table(heading: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Words to the left, numbers to the right."""
    return aligned([heading, *rows], {n for n, name in enumerate(heading) if name not in WORDS})
