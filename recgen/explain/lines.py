"""The emitted lines of one function, each beside the equation of the algebra that it implements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recgen.emit.trace import EQUATION, Line
from recgen.spec.source import near

COLUMN = 64  # where equations begin; a longer line has its own on the next one


class UnknownFunction(LookupError):
    """Names the functions that there are."""


def listing(functions: Mapping[str, tuple[Line, ...]], name: str, column: int = COLUMN) -> str:
    """One function, line by line. What implements no equation says in dots what it does. Raises UnknownFunction."""
    found = functions.get(name) or functions.get(f"_{name}")
    if found is None:
        raise UnknownFunction(_unknown(name, functions))
    width = len(str(found[-1].number))
    rows = []
    for line in found:
        said = line.equation if line.kind == EQUATION else f"· {line.kind}"
        *before, last = [code.removeprefix("    ") for code in line.code]
        numbers = [str(line.number), *[""] * len(before)]
        rows += [f"{n:>{width}}  {code}" for n, code in zip(numbers, before, strict=False)]
        start = f"{numbers[len(before)]:>{width}}  {last}"
        if len(start) + 2 > column:
            rows += [start, " " * column + said]
        else:
            rows.append(start.ljust(column) + said)
    return "\n".join(rows) + "\n"


def _unknown(name: str, functions: Iterable[str]) -> str:
    known = list(functions)
    close = near(name, known)
    guess = f" Did you mean {close}?" if close else ""
    return f"no function called {name!r} implements an equation.{guess} There are: {', '.join(known)}."
