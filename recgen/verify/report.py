"""What a verification found: one row per form, backend, dtype and kind of result, and every failure with a snippet."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from .case import Case
from .check import Outcome
from .run import kind

Key = tuple[str, str, str, str]


@dataclass
class Row:
    """The worst error of one kind of result (output, state, gradient) of one form, backend and dtype."""

    form: str
    backend: str
    dtype: str
    what: str
    cases: int = 0
    error: float = 0.0
    allowed: float = 0.0
    name: str = ""
    ok: bool = True

    def add(self, name: str, error: float, allowed: float, ok: bool) -> None:
        """Count one measure; the one furthest out of tolerance is kept."""
        self.cases += 1
        ratio = math.inf if math.isnan(error) else error / allowed
        kept = math.inf if math.isnan(self.error) else self.error / self.allowed if self.allowed else -1.0
        if ratio > kept or not self.name:
            self.error, self.allowed, self.name = error, allowed, name
        self.ok = self.ok and ok


@dataclass(frozen=True)
class Failure:
    """A case that broke a promise: why, and a script that shows it."""

    case: Case
    reasons: tuple[str, ...]
    snippet: str
    origin: str

    def __str__(self) -> str:
        return f"{self.case.form} on {self.case.backend}: {'; '.join(self.reasons)}\n{self.case}"


@dataclass
class Report:
    """The result of `verify_module` and `verify_spec`."""

    name: str
    path: str
    seed: int
    rows: list[Row] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cases: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """No failure, and something was run."""
        return not self.failures and self.cases > 0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome in the rows; failures are added by `fail`."""
        self.cases += 1
        case = outcome.case
        if outcome.refused:
            key = f"{case.form} on {case.backend}: {outcome.refused.splitlines()[0]}"
            self.refusals[key] = self.refusals.get(key, 0) + 1
            return
        for m in outcome.measures:
            self._row((case.form, case.backend, case.dtype, kind(m.name))).add(m.name, m.error, m.allowed, m.ok)

    def _row(self, key: Key) -> Row:
        for row in self.rows:
            if (row.form, row.backend, row.dtype, row.what) == key:
                return row
        self.rows.append(Row(*key))
        return self.rows[-1]

    def fail(self, outcome: Outcome, origin: str) -> None:
        """Record a failed outcome as a failure with its snippet."""
        case = outcome.case
        self.failures.append(Failure(case, tuple(outcome.reasons()), case.snippet(self.path), origin))

    def merge(self, other: Report) -> None:
        """Take in the rows, failures and notes of a run over other backends."""
        self.rows += other.rows
        self.failures += other.failures
        self.refusals.update(other.refusals)
        self.notes += [note for note in other.notes if note not in self.notes]
        self.cases += other.cases

    def as_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        data = dataclasses.asdict(self)
        for plain, failure in zip(data["failures"], self.failures, strict=True):
            plain["case"] = failure.case.settings()
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """The inverse of `as_dict`, also after a round trip through JSON."""
        rows = [Row(**row) for row in data["rows"]]
        failures = [
            Failure(Case.from_settings(f["case"]), tuple(f["reasons"]), f["snippet"], f["origin"])
            for f in data["failures"]
        ]
        return cls(**{**data, "rows": rows, "failures": failures})

    def render(self) -> str:
        """The table of worst errors, then notes, then the smallest failing input of each failure as a script."""
        head = ("form", "backend", "dtype", "result", "measures", "worst error", "allowed", "in", "")
        lines = [head] + [
            (r.form, r.backend, r.dtype, r.what, str(r.cases), f"{r.error:.1e}", f"{r.allowed:.1e}", r.name, "" if r.ok else "FAILS")
            for r in sorted(self.rows, key=lambda r: (r.backend, r.form, r.dtype, r.what))
        ]
        sizes = [max(len(line[n]) for line in lines) for n in range(len(head))]
        text = ["  ".join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip() for line in lines]
        text += [f"note: {note}" for note in self.notes]
        text += [f"refused {count} times: {reason}" for reason, count in self.refusals.items()]
        for failure in self.failures:
            text += ["", f"FAILED ({failure.origin}) {failure}", "", failure.snippet.rstrip()]
        verdict = "verified" if self.ok else f"{len(self.failures)} failures"
        text += ["", f"{self.name}: {verdict}, {self.cases} runs, seed {self.seed}, {self.seconds:.1f} s"]
        return "\n".join(text)
