"""The fuzz driver: directed cases of every form and backend, then random ones, each failure made small."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from hypothesis import HealthCheck, Phase, Verbosity, find, settings
from hypothesis.errors import NoSuchExample

from .case import Case
from .check import Outcome, check
from .directed import directed
from .interpreter import Interpreted
from .profile import FORMS, Profile
from .reference import References
from .report import Report
from .repro import script
from .shrink import shrink
from .strategies import TORCH, cases, runs

if TYPE_CHECKING:
    from recgen.spec import Spec

Progress = Callable[[int, int, str], None]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Options:
    """How thoroughly to verify. `seconds` bounds the random cases of one backend, `small_seconds` each shrinking;
    no case starts after `until`, a time of the system's clock."""

    forms: tuple[str, ...] | None = None
    backends: tuple[str, ...] = ("torch", "triton")
    examples: int = 50
    triton_examples: int | None = None
    directed: int | None = None
    seed: int = 0
    seconds: float = 120.0
    small_seconds: float = 15.0
    until: float = math.inf
    fail_fast: bool = False

    def examples_of(self, backend: str) -> int:
        """Random cases of a backend: a fifth of them in the interpreter, which is slow."""
        if backend == "torch":
            return self.examples
        return max(self.examples // 5, min(self.examples, 3)) if self.triton_examples is None else self.triton_examples


def verify_spec(spec: Spec | str | os.PathLike[str], **options: Any) -> Report:
    """Compile `spec` (a Spec, a path, or the name of a catalogue operator), load it and verify the emitted module.

    Options are those of `verify_module`. SpecError when the spec is refused."""
    from recgen.loader import load

    return verify_module(load(spec), **options)


def verify_module(
    module: ModuleType,
    forms: Iterable[str] | None = None,
    examples: int = 50,
    seed: int | None = None,
    progress: Progress | None = None,
    *,
    backends: Sequence[str] = ("torch", "triton"),
    triton_examples: int | None = None,
    directed: int | None = None,
    seconds: float = 120.0,
    small_seconds: float = 15.0,
    budget: float | None = None,
    fail_fast: bool = False,
) -> Report:
    """Compare every form and backend of an emitted module with its `naive` in float64.

    forms      the forms to verify (default: all the module has); ValueError for one it does not have
    examples   random cases, each run in every form, after the directed ones
    seed       of the random cases (default: drawn, and reported)
    progress   called with (runs done, runs expected, what is running)
    directed   at most so many directed cases of each form and backend, the most telling first (default: all)
    triton_examples  random cases of the kernels (default: a fifth of `examples`, because interpreting them is slow)
    seconds    bounds the random cases of one backend, small_seconds the shrinking of one failure
    budget     seconds after which no further case starts; the report says what was not reached
    fail_fast  stop at the first failure and do not shrink it

    Triton's kernels run on a CUDA device when there is one, else in Triton's interpreter: in a process of its own,
    unless this process was started with TRITON_INTERPRET=1, because Triton reads the variable when it is imported.
    """
    profile = Profile.of(module)
    unknown = [form for form in forms or () if form not in profile.forms]
    if unknown:
        raise ValueError(f"forms: {', '.join(unknown)} not in this module; it has {', '.join(profile.forms)}")
    options = Options(
        forms=None if forms is None else tuple(form for form in FORMS if form in set(forms)),
        backends=tuple(backends),
        examples=examples,
        triton_examples=triton_examples,
        directed=directed,
        seed=random.SystemRandom().randrange(2**31) if seed is None else seed,
        seconds=seconds,
        small_seconds=small_seconds,
        until=math.inf if budget is None else time.time() + budget,
        fail_fast=fail_fast,
    )
    return _Run(profile, options, progress).everything()


class _Run:
    def __init__(self, profile: Profile, options: Options, progress: Progress | None) -> None:
        self.profile, self.options = profile, options
        self.report = Report(profile.module.SPEC["name"], profile.path, options.seed)
        self.references = References(profile)
        self.progress = progress or (lambda done, total, text: None)
        self.done, self.total = 0, 0

    def everything(self) -> Report:
        """Torch here; Triton here, in an interpreter process at the same time, or not at all."""
        started = time.monotonic()
        pairs = [
            (form, backend)
            for form, backend in self.profile.pairs()
            if backend in self.options.backends and form in (self.options.forms or FORMS)
        ]
        here = [pair for pair in pairs if pair[1] == "torch" or _triton_runs_here()]
        interpreted = None
        if len(here) < len(pairs):
            options = dataclasses.replace(self.options, backends=("triton",))
            interpreted = Interpreted.start(self.profile, dataclasses.asdict(options), self._advance)
        try:
            self._note_gaps()
            for backend in dict.fromkeys(backend for _, backend in here):
                self._backend([pair for pair in here if pair[1] == backend])
                if self.options.fail_fast and self.report.failures:
                    break
            if interpreted is not None and not (self.options.fail_fast and self.report.failures):
                self.report.merge(interpreted.result())
        finally:
            if interpreted is not None:
                interpreted.stop()
        self.report.seconds = time.monotonic() - started
        return self.report

    def _note_gaps(self) -> None:
        if self.profile.gates and self.profile.reset is None:
            names = ", ".join(self.profile.gates)
            self.report.notes.append(f"no infinite value of {names} is a hard reset for naive; resets were not drawn")

    def _backend(self, pairs: list[Pair]) -> None:
        backend = pairs[0][1]
        device = "cuda" if backend == "triton" and torch.cuda.is_available() else "cpu"
        most = self.options.directed
        each = [directed(self.profile, form, backend, device)[:most] for form, _ in pairs]
        plan = [case for turn in zip_longest(*each) for case in turn if case is not None]  # no form waits for another
        self._expect(len(plan) + len(pairs) * self.options.examples_of(backend))
        broken: set[Pair] = set()
        for case in plan:
            if (case.form, backend) in broken:
                self._advance(1, 0, "")
                continue
            if self._out_of_time():
                self.report.skip(f"{case.form} on {backend}")
                self._advance(1, 0, "")
                continue
            outcome = self._check(case)
            if not outcome.ok:
                broken.add((case.form, backend))
                self._fail(outcome, "directed")
                if self.options.fail_fast:
                    return
        whole = [pair for pair in pairs if pair not in broken]
        if whole and self.options.examples_of(backend):
            self._random(whole, backend, device)
        for form, _ in pairs:
            ran = {(row.form, row.backend) for row in self.report.rows} | broken
            if (form, backend) not in ran and f"{form} on {backend}" not in self.report.unreached:
                self.report.never_ran.append(f"{form} on {backend}")

    def _random(self, pairs: list[Pair], backend: str, device: str) -> None:
        """Hypothesis over cases; each runs in every form of `pairs`, up to the first failure."""
        failed: list[Outcome] = []
        deadline = time.monotonic() + self.options.seconds
        tried = 0

        def fails(case: Case) -> bool:
            nonlocal tried
            if failed or time.monotonic() > deadline or self._out_of_time():
                return bool(failed)
            tried += 1
            for form, _ in pairs:
                if runs(case, form):
                    outcome = self._check(dataclasses.replace(case, form=form, device=device))
                    if not outcome.ok:
                        failed.append(outcome)
                        return True
            return False

        with contextlib.suppress(NoSuchExample):
            find(
                cases(self.profile, backend, TORCH if device == "cuda" else None),
                fails,
                settings=settings(
                    max_examples=self.options.examples_of(backend),
                    database=None,
                    deadline=None,
                    verbosity=Verbosity.quiet,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
                random=random.Random(self.options.seed),
            )
        for outcome in failed:
            self._fail(outcome, "random")
        if (
            not failed
            and tried < (wanted := self.options.examples_of(backend))
            and (time.monotonic() > deadline or self._out_of_time())
        ):
            self.report.skip(f"random inputs on {backend}", (wanted - tried) * len(pairs))

    def _check(self, case: Case) -> Outcome:
        outcome = check(self.references, case)
        self.report.add(outcome)
        self._advance(1, 0, f"{case.form} {case.backend} {case.dtype} T={case.T}")
        return outcome

    def _fail(self, outcome: Outcome, origin: str) -> None:
        if not self.options.fail_fast:
            left = max(2.0, self.options.until - time.time())
            deadline = time.monotonic() + min(self.options.small_seconds, left)
            small = shrink(
                outcome.case,
                lambda case: runs(case, case.form) and not check(self.references, case).ok,
                lambda: time.monotonic() > deadline,
            )
            outcome = check(self.references, small)
        self.report.fail(outcome, origin, script(self.references, outcome))

    def _out_of_time(self) -> bool:
        return time.time() > self.options.until

    def _expect(self, runs_more: int) -> None:
        self._advance(0, runs_more, "")

    def _advance(self, done: int, expected: int, text: str) -> None:
        self.done += done
        self.total += expected
        self.progress(min(self.done, self.total), self.total, text)


def _triton_runs_here() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1" or torch.cuda.is_available()
