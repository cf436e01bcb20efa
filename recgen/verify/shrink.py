"""Making a failing case smaller, one plain change at a time, as long as it still fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from .case import Case

_PLAIN: dict[str, Any] = {
    "split": None,
    "layout": "contiguous",
    "grad_layout": "contiguous",
    "mixed": False,
    "frozen": (),
    "dtype": "float32",
    "gate": "mild",
    "values": "normal",
    "scale": None,
    "groups": (),
    "chunk_size": None,
    "initial": False,
    "final": False,
    "loss": "output",
}


def simpler(case: Case) -> Iterator[Case]:
    """Cases one step smaller or plainer than `case`, those that make it cheaper first and the boldest of them first."""
    if case.documents is not None:
        yield dataclasses.replace(case, documents=None)
        for n in range(len(case.documents)):
            yield dataclasses.replace(case, documents=case.documents[:n] + case.documents[n + 1 :])
    for name in ("T", "B", "H", "K", "V"):
        if not (name in "TB" and case.documents is not None):
            for smaller in _smaller(getattr(case, name), 0 if name == "T" else 1):
                split = min(case.split, smaller) if name == "T" and case.split is not None else case.split
                change: dict[str, Any] = {name: smaller, "split": split}
                yield dataclasses.replace(case, **change)
    for name, value in _PLAIN.items():
        if getattr(case, name) != value:
            yield dataclasses.replace(case, **{name: value})
    if case.seed:
        yield dataclasses.replace(case, seed=0)


def _smaller(size: int, least: int) -> list[int]:
    """Sizes to try instead, ascending; those with the same remainder for a chunk or a tile among them."""
    same = [size % n for n in (16, 32, 64, 128)] + [size - n for n in (16, 64)]
    return sorted({n for n in (least, 1, 2, size // 2, size * 3 // 4, size - 1, *same) if least <= n < size})


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
