"""What a verification found: one row per form, backend, dtype and result, and every failure with a script."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from .case import Case
from .check import Outcome
from .errors import Measure
from .run import kind
from .verdicts import table

Key = tuple[str, str, str, str]


@dataclass
class Row:
    """The worst error of one result (output, a state, a gradient) of one form, backend and dtype.

    error, allowed  of the measure furthest out of tolerance, among those that fail if any does, else among those held
                    to the tolerance of the dtype
    eager           how many measures of ill-conditioned cases the eager reference had to judge"""

    form: str
    backend: str
    dtype: str
    result: str
    measures: int = 0
    error: float = 0.0
    allowed: float = 0.0
    ok: bool = True
    eager: int = 0

    @property
    def what(self) -> str:
        """The kind of the result: output, state or gradient."""
        return kind(self.result)

    def add(self, m: Measure) -> None:
        """Count one measure."""
        first = not self.allowed
        self.measures += 1
        self.eager += m.eager
        worse = first or m.ratio > Measure(self.result, self.error, self.allowed).ratio
        if (not m.ok and (self.ok or worse)) or (m.ok and self.ok and worse and not m.eager):
            self.error, self.allowed = m.error, m.allowed
        self.ok = self.ok and m.ok


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
    never_ran: list[str] = field(default_factory=list)
    unreached: dict[str, int] = field(default_factory=dict)
    cases: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """No failure, and every form and backend ran at least one case that it did not refuse."""
        return not self.failures and not self.never_ran and self.cases > 0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome in the rows; failures are added by `fail`."""
        self.cases += 1
        case = outcome.case
        if outcome.refused:
            key = f"{case.form} on {case.backend}: {outcome.refused.splitlines()[0]}"
            self.refusals[key] = self.refusals.get(key, 0) + 1
            return
        for m in outcome.measures:
            self._row((case.form, case.backend, case.dtype, m.name)).add(m)

    def _row(self, key: Key) -> Row:
        for row in self.rows:
            if (row.form, row.backend, row.dtype, row.result) == key:
                return row
        self.rows.append(Row(*key))
        return self.rows[-1]

    def fail(self, outcome: Outcome, origin: str, script: str) -> None:
        """Record a failed outcome, with a script that shows it."""
        self.failures.append(Failure(outcome.case, tuple(outcome.reasons()), script, origin))

    def skip(self, what: str, count: int = 1) -> None:
        """Count runs that there was no time for."""
        self.unreached[what] = self.unreached.get(what, 0) + count

    def merge(self, other: Report) -> None:
        """Take in the rows, failures and notes of a run over other backends."""
        self.rows += other.rows
        self.failures += other.failures
        self.refusals.update(other.refusals)
        self.never_ran += other.never_ran
        self.unreached.update(other.unreached)
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
        text = [table(self.rows, {(f.case.form, f.case.backend) for f in self.failures})]
        text += [f"note: {note}" for note in self.notes]
        text += [f"refused {count} times: {reason}" for reason, count in self.refusals.items()]
        if self.unreached:
            text.append("not reached: " + ", ".join(f"{what} ({count} runs)" for what, count in self.unreached.items()))
        for failure in self.failures:
            text += ["", f"FAILED ({failure.origin}) {failure}", "", failure.snippet.rstrip()]
        text += [f"FAILED {pair}: every case was refused" for pair in self.never_ran]
        text += ["", f"{self.name}: {self._verdict()}, {self.cases} runs, seed {self.seed}, {self.seconds:.1f} s"]
        return "\n".join(text)

    def _verdict(self) -> str:
        if not self.ok:
            broken = len(self.failures) + len(self.never_ran)
            return f"{broken} failure{'s' * (broken != 1)}" if broken else "nothing was run"
        return "no failure in what was reached" if self.unreached else "verified"
