"""The quick check: a few telling cases of every form and backend, cheapest first, and which lines each of them runs."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from ..case import Case
from ..check import Outcome, check
from ..directed import directed
from ..profile import Profile
from ..reference import References

TELLING = {"torch": 8, "triton": 2}


@dataclass(frozen=True)
class Check:
    """One case, the lines of the module that it runs, and the seconds that it takes."""

    case: Case
    lines: frozenset[int]
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.case.form} on {self.case.backend}"


def cases(profile: Profile) -> list[Case]:
    """The first directed cases of every form and backend, and those that ask for one schedule of the kernels."""
    found = []
    for form, backend in profile.pairs():
        every = directed(profile, form, backend)
        cuts = [case for case in every if case.schedule != "auto" and case.documents is None]
        found += cuts + every[1:2] if cuts else every[: TELLING[backend]]
    return found


def baseline(profile: Profile) -> tuple[list[Check], list[str]]:
    """The checks of a module as it is, cheapest first; or what the first that fails says."""
    checks: list[Check] = []
    wrong: list[str] = []
    for case in cases(profile):
        references = References(profile)
        references.truth(profile.fitting(case))
        started = time.perf_counter()
        outcome, lines = _traced(references, case)
        seconds = time.perf_counter() - started
        wrong = [f"{case.form} on {case.backend}: {reason}" for reason in outcome.reasons()]
        if wrong:
            break
        if not outcome.refused:
            checks.append(Check(case, lines, seconds))
    return sorted(checks, key=lambda one: one.seconds), wrong


def _traced(references: References, case: Case) -> tuple[Outcome, frozenset[int]]:
    """The outcome of a case, and the lines of the module's file that ran for it."""
    path = references.profile.path
    lines: set[int] = set()

    def inside(frame: FrameType, event: str, _: Any) -> Any:
        lines.add(frame.f_lineno)
        return inside

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        code: CodeType = frame.f_code
        if code.co_filename != path:
            return None
        lines.add(frame.f_lineno)
        return inside

    sys.settrace(enter)
    try:
        return check(references, case), frozenset(lines)
    finally:
        sys.settrace(None)


def first_failure(profile: Profile, checks: list[Check]) -> tuple[str, str] | None:
    """The first check that a module fails, and why; None if it passes all."""
    references = References(profile)
    for one in checks:
        outcome = check(references, one.case)
        if outcome.refused:
            return one.name, f"refused: {outcome.refused.splitlines()[0]}"
        if not outcome.ok:
            return one.name, f"{one.case.dtype}, T={one.case.T}: {outcome.reasons()[0].splitlines()[0]}"
    return None
