"""Making a failing case smaller, one plain change at a time, as long as it still fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from .case import Case

_PLAIN = {
    "documents": None,
    "split": None,
    "layout": "contiguous",
    "grad_layout": "contiguous",
    "mixed": False,
    "frozen": (),
    "dtype": "float32",
    "gate": "mild",
    "values": "normal",
    "scale": None,
    "chunk_size": None,
    "initial": False,
    "final": False,
    "loss": "output",
}


def simpler(case: Case) -> Iterator[Case]:
    """Cases one step plainer or smaller than `case`, the boldest first."""
    for name, value in _PLAIN.items():
        if getattr(case, name) != value:
            yield dataclasses.replace(case, **{name: value})
    for name in ("B", "H", "K", "V", "T"):
        least, size = (0 if name == "T" else 1), getattr(case, name)
        for smaller in sorted({least, 1, 2, size // 2, size * 3 // 4, size - 1}):
            if least <= smaller < size and not (name in "TB" and case.documents is not None):
                split = min(case.split, smaller) if name == "T" and case.split is not None else case.split
                yield dataclasses.replace(case, **{name: smaller, "split": split})


def shrink(case: Case, fails: Callable[[Case], bool], out_of_time: Callable[[], bool]) -> Case:
    """The smallest case found from `case` by `simpler` steps for which `fails` still holds."""
    tried = {case}
    found = True
    while found:
        found = False
        for candidate in simpler(case):
            if out_of_time():
                return case
            if candidate in tried or candidate == case:
                continue
            tried.add(candidate)
            if fails(candidate):
                case, found = candidate, True
                break
    return case
