"""What a survey of faults found: caught by what, survived where."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from recgen.errors import shortened
from recgen.tables import aligned

from .faults import Fault

WIDTH = 60


@dataclass(frozen=True)
class Tried:
    """One fault, the form and backend whose check caught it (empty if none did), and what the check said."""

    fault: Fault
    by: str
    why: str

    @property
    def caught(self) -> bool:
        return bool(self.by)


@dataclass
class Survey:
    """The faults that were tried. `found` are all that the module could have, `reached` those that the quick check
    runs, `chosen` those that were to be tried, `wrong` what the module fails without any fault."""

    name: str
    path: str
    seed: int
    found: int = 0
    reached: int = 0
    chosen: int = 0
    checks: int = 0
    wrong: list[str] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def survivors(self) -> list[Tried]:
        return [one for one in self.tried if not one.caught]

    @property
    def share(self) -> float:
        """The share of the tried faults that was caught; 0 when none was tried."""
        return 1 - len(self.survivors) / len(self.tried) if self.tried else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        plain = dataclasses.asdict(self)
        for line, one in zip(plain["tried"], self.tried, strict=True):
            line["caught"] = one.caught
        return plain | {"share": self.share}

    def render(self) -> str:
        """Every fault that was tried, then counts by kind and by what caught them, then those that survived."""
        if self.wrong:
            return "\n".join([f"{self.name} fails its own quick check, so no fault was tried:", *self.wrong])
        lines = [_line(one) for one in sorted(self.tried, key=lambda one: one.fault.line) if one.caught]
        lines += ["", *_counts("fault", self.tried, lambda one: one.fault.kind)]
        by = Counter(one.by for one in self.tried if one.caught)
        lines += ["", "caught by " + ", ".join(f"{name}: {count}" for name, count in by.most_common())] if by else []
        if self.survivors:
            lines += ["", f"survived, in {self.path}:"]
            lines += [_line(one) for one in sorted(self.survivors, key=lambda one: one.fault.line)]
            lines += ["A survivor may be a fault that changes no result, or one that this quick check cannot see."]
        lines += ["", self._verdict()]
        return "\n".join(lines)

    def _verdict(self) -> str:
        text = f"{self.name}: {len(self.tried) - len(self.survivors)} of {len(self.tried)} faults caught"
        if len(self.tried) < self.chosen:
            text += f" ({self.chosen - len(self.tried)} more were not reached in time)"
        of = f"drawn from {self.reached} on lines that the {self.checks} checks run, of {self.found} in the file"
        return f"{text}, {of}; seed {self.seed}, {self.seconds:.1f} s"


def _line(one: Tried) -> str:
    fault = one.fault
    place = f"{fault.line:5}  {fault.function:28}"
    change = f"{fault.kind}: {_cut(fault.before)} → {_cut(fault.after)}"
    return f"{place}  {change}" + (f"\n{'':37}caught by {one.by}: {_cut(one.why, 90)}" if one.caught else "")


def _cut(text: str, most: int = WIDTH) -> str:
    return shortened(" ".join(text.split()), most)


def _counts(heading: str, tried: list[Tried], of: Any) -> list[str]:
    every, caught = Counter(map(of, tried)), Counter(of(one) for one in tried if one.caught)
    rows = [(name, f"{caught[name]:3} of {count:3}") for name, count in sorted(every.items())]
    return aligned([(heading, "caught"), *rows]).split("\n")
