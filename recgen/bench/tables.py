"""The results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from recgen.bench.results import BACKWARD, FORWARD, Comparison, Results


def tables(results: Results) -> Iterator[RenderableType]:
    """A table of times with the speed-ups, then one of peak memory with its growth."""
    where = setting(results)
    yield f"Time of forward, backward, both and one token: {where}"
    yield "Medians of interleaved rounds, and the quartiles of their ratios."
    for operator in dict.fromkeys(c.operator for c in results.comparisons):
        yield _times(operator, [c for c in results.comparisons if c.operator == operator])
    yield from (f"{c.operator} against the {c.against}: {c.note}" for c in results.comparisons if c.note and _whole(c))
    yield from results.notes
    yield _memory(results, f"Peak memory of forward + backward: {where}")


def setting(results: Results) -> str:
    """Where and at which sizes, in words."""
    sizes = ", ".join(f"{axis}={width}" for axis, width in results.sizes.items() if axis != "T")
    threads = f", {results.threads} thread{'s' * (results.threads != 1)}" if results.device == "CPU" else ""
    return f"{results.device}{threads}, {results.dtype}, {sizes}"


def _whole(comparison: Comparison) -> bool:
    return comparison.what not in (FORWARD, BACKWARD)


WORDS = ("pass", "against")
HEADINGS = ("pass", "T", "time", "against", "its time", "faster by", "wanted")


def cells(c: Comparison) -> tuple[str, ...]:
    """A comparison as text, one for each of HEADINGS."""
    ratio, (low, high) = c.speedup
    return (
        c.what,
        f"{c.length}",
        milliseconds(c.operator_seconds.median),
        c.against,
        milliseconds(c.against_seconds.median),
        f"{ratio:.2f}x" + (f" ({low:.2f}–{high:.2f})" if len(c.operator_seconds.seconds) > 1 else ""),
        "" if c.wanted is None else f"{c.wanted:g}x, {'met' if c.ok else 'missed'}",
    )


def _times(operator: str, comparisons: list[Comparison]) -> Table:
    promised = any(c.wanted is not None for c in comparisons)
    table = Table(title=operator, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in HEADINGS if promised else HEADINGS[:-1]:
        table.add_column(heading, justify="left" if heading in WORDS else "right", no_wrap=True)
    for c in comparisons:
        table.add_row(*(cells(c) if promised else cells(c)[:-1]), style="" if c.ok else "red")
    return table


def _memory(results: Results, title: str) -> Table:
    lengths = sorted({length for row in results.memory for length in row.lengths})
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("contender")
    for length in lengths:
        table.add_column(f"T={length}", justify="right")
    table.add_column("grows as", justify="right")
    for row in results.memory:
        peaks = dict(zip(row.lengths, row.peaks, strict=True))
        cells = [mebibytes(peaks[length]) if length in peaks else "" for length in lengths]
        table.add_row(row.name, *cells, f"T^{row.slope:.2f}")
    return table


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.{1 if seconds >= 1e-3 else 3}f} ms"


def mebibytes(count: float) -> str:
    return f"{count / 2**20:,.1f} MiB"
