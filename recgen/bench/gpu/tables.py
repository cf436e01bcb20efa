"""The results as Markdown, and as a few lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from recgen.bench.gpu.checks import DTYPES
from recgen.bench.gpu.contenders import AUTO, FLOOR, PEER, SOFTMAX
from recgen.bench.gpu.results import Results
from recgen.bench.tables import mebibytes

NOTHING = "–"
Entry = dict[str, Any]

READING = """\
Times are medians of interleaved rounds, with their quartiles; the L2 cache is overwritten before each. `auto` and the
schedules are recgen's; `fla` is flash-linear-attention's function on ready gates and features; `softmax` is torch's
causal attention; `copy` moves the bytes that no forward (and backward) pass can avoid. The forward pass is without
gradients. "as fast as" is the other's time over the row's, forward and backward. "differs" is how far fla's output is
from recgen's, both in bfloat16."""


def markdown(results: Results) -> str:
    """Everything that a person wants to read: the checks, the times, what was left out and why."""
    title = "a dry run, which measures nothing" if results.dry else results.machine["device"]
    parts = [f"# recgen on the GPU: {title}", _table(("", ""), ((k, str(v)) for k, v in results.machine.items() if v))]
    parts += ["## Checks", _checks(results)]
    parts += _list("Failed", results.failures)
    if results.timings:
        parts += ["## Times, bfloat16", READING]
        for shape in dict.fromkeys(entry["at"] for entry in results.timings):
            parts += [f"### {shape}", _times([e for e in results.timings if e["at"] == shape])]
    if results.decode:
        parts += ["## One token, bfloat16", _decode(results.decode)]
    left = [*results.left_out, *(f"{name}: not one check was made" for name in results.unchecked)]
    parts += _list("Left out for lack of time", left) + _list("Notes", results.notes)
    return "\n\n".join(parts) + "\n"


def summary(results: Results) -> Iterator[str]:
    """A few lines: the verdict, the ratios, what is missing."""
    failed = sum(not entry.get("ok", False) for entry in results.checks)
    operators = len(results.operators) - len(results.unchecked)
    yield f"checks: {len(results.checks)} of {operators} operators, {failed} failed"
    yield from (f"  {line}" for line in results.failures[:10])
    if len(results.failures) > 10:
        yield f"  and {len(results.failures) - 10} more"
    yield f"times: {len(results.timings)} comparisons, {len(results.decode)} of one token"
    for other in (PEER, SOFTMAX, FLOOR):
        found = [ratio for e in results.timings if (ratio := _ratio(e, AUTO, other)) is not None]
        if found:
            yield f"  as fast as {other}, forward and backward: {min(found):.2f} to {max(found):.2f}"
    if results.dry:
        yield "  a dry run measures nothing: every time is empty"
    if results.left_out:
        yield f"left out for lack of time: {len(results.left_out)}"
        yield from (f"  {line}" for line in results.left_out)


def _checks(results: Results) -> str:
    rows = []
    for name in results.operators:
        own = [entry for entry in results.checks if entry["operator"] == name]
        failed = sum(not entry.get("ok", False) for entry in own)
        rows.append((f"`{name}`", str(len(own)), str(failed), *(_worst(own, dtype) for dtype in DTYPES)))
    return _table(("operator", "checks", "failed", *(f"nearest to the limit, {dtype}" for dtype in DTYPES)), rows)


def _worst(entries: Iterable[Entry], dtype: str) -> str:
    """The measure nearest to, or furthest beyond, what is allowed."""
    judged = [entry for entry in entries if "case" in entry]
    measures = [m for e in judged if e["case"].get("dtype", DTYPES[0]) == dtype for m in e["measures"]]
    if any(m["error"] is None for m in measures):
        return "not finite"
    limited = [m for m in measures if m["allowed"]]
    if not limited:
        return NOTHING
    worst = max(limited, key=lambda m: m["error"] / m["allowed"])
    return f"{worst['name']} {worst['error']:.1e} of {worst['allowed']:.1e}"


def _times(entries: Sequence[Entry]) -> str:
    others = (PEER, SOFTMAX, FLOOR)
    heads = ("operator", "", "forward", "forward + backward", *(f"as fast as {o}" for o in others), "peak", "differs")
    rows = []
    for entry in entries:
        if "crash" in entry:
            rows.append((f"`{entry['operator']}`", entry["crash"], *[""] * 7))
        for name in entry.get("both", {}):
            ratios = (NOTHING if (r := _ratio(entry, name, o)) is None or name == o else f"{r:.2f}" for o in others)
            peak, differs = entry["peak_bytes"].get(name), entry["difference"] if name == PEER else None
            rows.append(
                (
                    f"`{entry['operator']}`",
                    name,
                    _time(entry["forward"][name]),
                    _time(entry["both"][name]),
                    *ratios,
                    NOTHING if peak is None else mebibytes(peak),
                    NOTHING if differs is None else f"{differs:.1e}",
                )
            )
    return _table(heads, rows)


def _decode(entries: Sequence[Entry]) -> str:
    shapes = list(dict.fromkeys(entry["at"] for entry in entries))
    rows = []
    for name in dict.fromkeys(entry["operator"] for entry in entries):
        own = {entry["at"]: entry.get("times", {}) for entry in entries if entry["operator"] == name}
        for form in ("step", "recurrent"):
            cells = (_time(own[at][form]) if form in own.get(at, {}) else NOTHING for at in shapes)
            rows.append((f"`{name}`", form, *cells))
    return _table(("operator", "form", *shapes), rows)


def _ratio(entry: Entry, name: str, other: str) -> float | None:
    """How many times as long the other takes, forward and backward."""
    both = entry.get("both", {})
    mine, theirs = (both.get(one, {}).get("median") for one in (name, other))
    return theirs / mine if mine and theirs else None


def _time(figure: Entry) -> str:
    if figure["median"] is None:
        return NOTHING
    return "{:.3f} ms ({:.3f}–{:.3f})".format(*(1e3 * figure[name] for name in ("median", "low", "high")))


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(f"- {' '.join(line.split())}" for line in lines)] if lines else []


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in (heads, *rows)]
    lines.insert(1, ["---"] * len(heads))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
