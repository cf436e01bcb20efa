"""Compiling and counting all forms of one operator, side by side: each kind of work has a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from recgen.verify.profile import Profile

from .compile import Result, compiler
from .jobs import Job, kernel_forms, keys_at, profile
from .process import Worker
from .traffic import Counts, Line

Advance = Callable[[int, int, str], None]
"""How far the work is: steps done, all steps, what was done last."""


@dataclass(frozen=True)
class Form:
    """One way to call the operator at one width: the chunk form in a schedule, or the recurrent form."""

    mode: str
    schedule: str
    width: int

    @property
    def name(self) -> str:
        """The schedule, or `recurrent`."""
        return self.schedule if self.mode == "chunk" else self.mode

    def __str__(self) -> str:
        return f"{self.name}, width {self.width}"


@dataclass(frozen=True)
class Request:
    """What to look at: the module in the file `path`, its forms at some widths, in one dtype, on some targets.

    schedules  those of the chunk form; none means all of them, and the recurrent form
    save       a folder for the code, or None
    """

    name: str
    path: str
    targets: tuple[str, ...]
    widths: tuple[int, ...] = (64,)
    dtype: str = "bfloat16"
    schedules: tuple[str, ...] = ()
    save: Path | None = None

    @property
    def about(self) -> Profile:
        """What the module says of itself."""
        return profile(self.path)

    @cached_property
    def keys(self) -> dict[int, int]:
        """Width → key channels."""
        return {width: keys_at(self.about, width) for width in self.widths}

    @cached_property
    def forms(self) -> list[Form]:
        """Every form that is asked for."""
        return [
            Form(mode, schedule, width)
            for width in self.widths
            for mode, schedule in kernel_forms(self.about)
            if not self.schedules or (mode == "chunk" and schedule in self.schedules)
        ]

    @property
    def lengths(self) -> tuple[int, int]:
        """The two lengths at which is counted: whole chunks, or whole pieces where a sequence is cut into those."""
        module = self.about.module
        unit = getattr(module, "SEGMENT", max(64, module.CHUNK_SIZE))
        return unit, 2 * unit

    def job(self, form: Form, target: str = "") -> Job:
        """The call to make: one sequence and head, as long as the longer length."""
        sizes = {"T": self.lengths[1], "K": self.keys[form.width], "V": form.width}
        return Job(self.path, form.mode, target, form.schedule, self.dtype, **sizes)


@dataclass
class Findings:
    """What the two processes have found. uncounted: why the interpreter could not run a form."""

    compiled: dict[tuple[str, Form], Result] = field(default_factory=dict)
    counted: dict[Form, dict[str, Line]] = field(default_factory=dict)
    uncounted: dict[Form, str] = field(default_factory=dict)


def gather(request: Request, progress: Advance) -> Findings:
    """Compile every form for every target, and count every form once."""
    findings, done = Findings(), iter(range(1, 10**9))
    steps = len(request.forms) * (len(request.targets) + 1)

    def advance(text: str) -> None:
        progress(next(done), steps, text)

    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(_count, request, findings, advance)
        _compile(request, findings, advance)
        counting.result()
    return findings


def _compile(request: Request, findings: Findings, advance: Callable[[str], None]) -> None:
    with compiler() as worker:
        for target in request.targets:
            for form in request.forms:
                task: dict[str, Any] = asdict(request.job(form, target))
                if request.save is not None:
                    task["save"] = str(request.save / target / f"{form.name}-{form.width}")
                findings.compiled[target, form] = worker.ask(task)
                advance(f"{target}, {form}")


def _count(request: Request, findings: Findings, advance: Callable[[str], None]) -> None:
    with Worker("recgen.cost.traffic", interpret=True) as worker:
        for form in request.forms:
            answer = worker.ask({"job": asdict(request.job(form)), "lengths": request.lengths})
            findings.counted[form] = {
                name: Line(Counts(**line["fixed"]), Counts(**line["per_token"]))
                for name, line in answer["lines"].items()
            }
            if answer["error"]:
                findings.uncounted[form] = answer["error"]
            advance(f"counted {form}")
