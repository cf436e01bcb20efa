"""What a run found: values as they come in, and the JSON and Markdown files that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recgen.bench.gpu.plan import Batch, Job
from recgen.files import write_atomically, write_json

CHECKED, TIMED, DECODED = "check", "time", "decode"


@dataclass
class Results:
    """Results by kind of job. `left_out` says in words what there was no time for."""

    machine: dict[str, Any]
    dry: bool
    operators: list[str]
    budget: float
    seconds: float = 0.0
    checks: list[dict[str, Any]] = field(default_factory=list)
    timings: list[dict[str, Any]] = field(default_factory=list)
    decode: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _compiled: dict[Job, bool] = field(default_factory=dict)

    def record(self, job: Job, label: str, result: dict[str, Any]) -> None:
        """Take in one unit's result, or {"crash": why}."""
        where = str(job) if label in str(job) else f"{job}: {label}"
        if job.kind in ("compile", "tune"):
            self._compiled[job] = "crash" not in result and self._compiled.get(job, True)
            if "crash" in result:
                self.notes.append(f"{where}: {result['crash']}")
            return
        entry = {"operator": job.operator, "at": label, **result}
        {CHECKED: self.checks, TIMED: self.timings, DECODED: self.decode}[job.kind].append(entry)
        reasons = [result["crash"]] if "crash" in result else result.get("failed") or result.get("reasons") or []
        self.failures += [f"{where}: {reason}" for reason in reasons]
        self.notes += [f"{where}: {note}" for note in result.get("notes", [])]

    def leave_out(self, batches: Iterable[Batch]) -> None:
        """What was not done, in words."""
        for batch in batches:
            for n, job in enumerate(batch.jobs):
                begun = batch.skip if n == 0 else 0
                self.left_out.append(f"{job}, after the first {begun}" if begun else str(job))

    def compiled(self, job: Job) -> bool:
        """All units of a job that compiles are done, and none failed."""
        return self._compiled.get(job, False)

    @property
    def unchecked(self) -> list[str]:
        """The operators of which no check was made."""
        seen = {check["operator"] for check in self.checks}
        return [name for name in self.operators if name not in seen]

    @property
    def ok(self) -> bool:
        """Something was checked, nothing failed and nothing crashed."""
        return bool(self.checks) and not self.failures

    def as_dict(self) -> dict[str, Any]:
        """A plain dict. Figures are seconds and bytes, and None in a dry run."""
        return {
            "machine": self.machine,
            "dry_run": self.dry,
            "ok": self.ok,
            "budget_s": self.budget,
            "took_s": None if self.dry else round(self.seconds, 1),
            "operators": self.operators,
            "unchecked": self.unchecked,
            "failures": self.failures,
            "left_out": self.left_out,
            "notes": self.notes,
            "checks": self.checks,
            "timings": self.timings,
            "decode": self.decode,
        }

    def write(self, folder: Path) -> tuple[Path, Path]:
        """gpu.json and gpu.md in `folder`, each replaced whole."""
        from recgen.bench.gpu.tables import markdown

        data, text = folder / "gpu.json", folder / "gpu.md"
        write_json(data, self.as_dict())
        write_atomically(text, markdown(self))
        return data, text
