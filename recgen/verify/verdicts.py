"""The verdict table: a line per form, backend and dtype; a column for the output, every state and every gradient."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from recgen.tables import aligned

from .run import GRADIENT, OUTPUT, STATE, kind

if TYPE_CHECKING:
    from .report import Row

Pair = tuple[str, str]


def table(rows: Sequence[Row], failed: Collection[Pair] = ()) -> str:
    """The worst relative error of every result beside what is allowed; `failed` are forms and backends that broke.

    A `!` marks an error out of tolerance, a `~` one that the eager reference had to judge in some runs."""
    results = sorted(dict.fromkeys(row.result for row in rows), key=_rank)
    head = ("form", "backend", "dtype", "runs", *(_short(name) for name in results), "allowed", "")
    found = {(row.backend, row.form, row.dtype, row.result): row for row in rows}
    lines = [head]
    for backend, form, dtype in dict.fromkeys(key[:3] for key in sorted(found)):
        own = [found.get((backend, form, dtype, name)) for name in results]
        lines.append((form, backend, dtype, *_cells(own)))
    shown = {(row.form, row.backend) for row in rows if not row.ok}
    lines += [
        (form, backend, "", "", *("" for _ in results), "", "FAILS")
        for form, backend in sorted(set(failed) - shown)  # an exception, or a promise that is not about numbers
    ]
    return aligned(lines)


def _rank(result: str) -> int:
    """The output first, gradients last; each kind in the order in which its results came."""
    return (OUTPUT, STATE, GRADIENT).index(kind(result))


def _short(result: str) -> str:
    return result.replace(f"{GRADIENT} ", "d ")


def _cells(rows: Sequence[Row | None]) -> tuple[str, ...]:
    """Runs, errors, what is allowed of outputs and of gradients, and the verdict of one line."""
    there = [row for row in rows if row is not None]
    runs = max((row.measures for row in there if row.what == OUTPUT), default=0)
    errors = ("" if row is None else f"{row.error:.1e}" + "!" * (not row.ok) + "~" * bool(row.eager) for row in rows)
    allowed = dict.fromkeys(f"{row.allowed:.0e}" for row in there if row.allowed)
    verdict = "ok" if all(row.ok for row in there) else "FAILS"
    return (str(runs), *errors, " / ".join(allowed), verdict)
