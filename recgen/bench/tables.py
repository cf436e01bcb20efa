"""The results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from recgen.bench.results import Comparison, Results


def tables(results: Results) -> Iterator[RenderableType]:
    """A table of times with the speed-ups, then one of peak memory with its growth."""
    sizes = ", ".join(f"{axis}={width}" for axis, width in results.sizes.items() if axis != "T")
    where = f"CPU, {results.threads} thread{'s' * (results.threads != 1)}, float32, {sizes}"
    yield _times(results, f"Forward + backward: {where}; medians of interleaved rounds (and quartiles)")
    yield from (f"{c.operator} against the {c.against}: {c.note}" for c in results.comparisons if c.note)
    yield _memory(results, f"Peak memory of forward + backward: {where}")


def _times(results: Results, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("operator", "T", "time", "against", "time", "faster by", "wanted", ""):
        table.add_column(heading, justify="left" if heading in ("operator", "against", "") else "right")
    for c in results.comparisons:
        ratio, (low, high) = c.speedup
        table.add_row(
            c.operator,
            str(c.length),
            milliseconds(c.operator_seconds.median),
            c.against,
            milliseconds(c.against_seconds.median),
            f"{ratio:.2f}x" + (f" ({low:.2f}–{high:.2f})" if len(c.operator_seconds.seconds) > 1 else ""),
            "" if c.wanted is None else f"{c.wanted:g}x",
            _verdict(c),
        )
    return table


def _memory(results: Results, title: str) -> Table:
    lengths = sorted({length for row in results.memory for length in row.lengths})
    table = Table(title=title, title_justify="left")
    table.add_column("contender")
    for length in lengths:
        table.add_column(f"T={length}", justify="right")
    table.add_column("grows as", justify="right")
    for row in results.memory:
        peaks = dict(zip(row.lengths, row.peaks, strict=True))
        cells = [mebibytes(peaks[length]) if length in peaks else "" for length in lengths]
        table.add_row(row.name, *cells, f"T^{row.slope:.2f}")
    return table


def _verdict(comparison: Comparison) -> str:
    if comparison.wanted is None:
        return ""
    return "[green]met[/green]" if comparison.ok else "[red]missed[/red]"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"


def mebibytes(count: float) -> str:
    return f"{count / 2**20:,.1f} MiB"
